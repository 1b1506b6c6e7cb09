"""SPIR-V out of LLVM: valid, the same every time, and looked at before it is used."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from tests.backends.xegpu.emit.elementwise import Form, elementwise
from tests.backends.xegpu.emit.on_opencl import TARGET, kernel, parsed
from tests.backends.xegpu.spirv_tools import find_spirv_tool, says_the_same, validate
from xetl.errors import InternalError
from xetl_xegpu.emit import llvm_spirv, spirv
from xetl_xegpu.emit.module import emit, llvm_text, spirv_text
from xetl_xegpu.emit.spirv import problem_with, problem_with_text
from xetl_xegpu.emit.spirv_words import instructions, result_of
from xetl_xegpu.offline.ocloc import SETUP

FORM: Form = ("math.fma %0, %1, %2 : {0}", ("f32",) * 3, "f32")
TEXT = elementwise("k", FORM, 8)


HINTED = """
      %z = arith.constant 0.0 : f32
      %v = simt.load %a, %on, %z {l1_hint = "streaming", l3_hint = "cached"} : f32
      simt.store %v, %a, %on {l1_hint = "write_back", l3_hint = "write_back"} : f32"""
HALVES = """
      %w = vector.broadcast %n : i32 to vector<8xi32>
      %h = vector.bitcast %w : vector<8xi32> to vector<16xi16>
      %u = vector.shuffle %h, %h [1, 3, 5, 7, 9, 11, 13, 15]
          : vector<16xi16>, vector<16xi16>
      %v = vector.extract %u[3] : i16 from vector<8xi16>
      simt.store %v, %a, %on : i16"""
TEXTS = {
    "plain": TEXT,
    "hinted": kernel("k", "%a: i64", HINTED),
    "assembly": kernel("k", "%a: i64, %n: i32", HALVES),
}


def knows_extensions(assembler: Path) -> bool:
    shown = subprocess.run([assembler, "--version"], capture_output=True, text=True)
    year = re.search(r"SPIRV-Tools v(\d{4})", shown.stdout)
    return year is not None and int(year[1]) >= 2024


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_the_module(name: str):
    """`spirv-as` makes of the text what a driver gets."""
    assembler = find_spirv_tool("spirv-as")
    if assembler is None or (name != "plain" and not knows_extensions(assembler)):
        pytest.skip(f"there is no spirv-as of 2024 or later: {SETUP}")
    module = emit(parsed(TEXTS[name]), "pvc").spirv
    assembly = spirv_text(parsed(TEXTS[name]), "pvc")
    assert ("CacheControl" in assembly) == (name == "hinted")
    assert ("OpAsmCallINTEL" in assembly) == (name == "assembly")
    assert says_the_same(assembly, module)
    assert validate(module) is None


@pytest.mark.slow
def test_all_emissions_are_alike():
    text = llvm_text(parsed(TEXT), TARGET)
    first = spirv.to_spirv(text)
    found: list[bytes] = []

    def emit_some() -> None:
        found.extend(spirv.to_spirv(text) for _ in range(10))

    threads = [threading.Thread(target=emit_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    assert set(found) == {first}


def test_a_wrong_module_is_emitted_again_elsewhere(monkeypatch: pytest.MonkeyPatch):
    text = llvm_text(parsed(TEXT), TARGET)
    right = spirv.to_spirv(text)
    monkeypatch.setattr(spirv, "emit_once", lambda *_: with_an_id_twice(right))
    assert spirv.to_spirv(text) == right


def test_a_module_that_stays_wrong_is_an_error(monkeypatch: pytest.MonkeyPatch):
    text = llvm_text(parsed(TEXT), TARGET)
    wrong = with_an_id_twice(spirv.to_spirv(text))
    monkeypatch.setattr(spirv, "emit_once", lambda *_: wrong)
    monkeypatch.setattr(spirv, "emit_elsewhere", lambda *_: wrong)
    with pytest.raises(InternalError, match="defined more than once"):
        spirv.to_spirv(text)


@pytest.mark.parametrize("emit", [spirv.emit_once, spirv.emit_elsewhere])
def test_text_that_llvm_does_not_read_is_an_error(emit: spirv.Emit):
    with pytest.raises(InternalError, match="LLVM does not read a kernel"):
        emit("define nonsense", False)


def with_an_id_twice(module: bytes) -> bytes:
    """The module with its last label numbered as its first."""
    words = list(struct.unpack(f"<{len(module) // 4}I", module))
    at, labels = 5, []
    while at < len(words):
        if words[at] & 0xFFFF in (248, 54):  # OpLabel, OpFunction
            labels.append(at + (1 if words[at] & 0xFFFF == 248 else 2))
        at += words[at] >> 16
    words[labels[-1]] = words[labels[0]]
    return struct.pack(f"<{len(words)}I", *words)


def test_a_wrong_text_is_emitted_again_elsewhere(monkeypatch: pytest.MonkeyPatch):
    text = llvm_text(parsed(TEXT), TARGET)
    right = spirv.to_assembly(text)
    wrong = re.sub(r"%\d+ = OpLabel", "%1 = OpLabel", right).encode()
    monkeypatch.setattr(spirv, "emit_once", lambda *_: wrong)
    assert problem_with_text(spirv.to_assembly(text)) is None
    monkeypatch.setattr(spirv, "emit_elsewhere", lambda *_: wrong)
    with pytest.raises(InternalError, match="%1 is defined more than once"):
        spirv.to_assembly(text)


@pytest.mark.parametrize("wrong_first", [False, True])
def test_emissions_beyond_the_limit_leave_nothing_here(
    monkeypatch: pytest.MonkeyPatch, wrong_first: bool
):
    text = llvm_text(parsed(TEXT), TARGET)
    first = spirv.to_spirv(text)
    kept = len(llvm_spirv.KEPT)
    monkeypatch.setattr(spirv, "_MOST_HERE", kept + 1)
    if wrong_first:  # as LLVM itself does now and then
        right = spirv.emit_once
        monkeypatch.setattr(spirv, "emit_once", lambda *of: right(*of)[:-4])
    assert [spirv.to_spirv(text) for _ in range(4)] == [first] * 4
    assert problem_with_text(spirv.to_assembly(text)) is None
    assert len(llvm_spirv.KEPT) == kept + 1


def test_lines_of_a_text_are_looked_at():
    text = spirv_text(parsed(TEXT), TARGET)
    assert problem_with_text(text) is None
    again = text.replace("OpFunctionEnd", "%1 = OpUndef %2\nOpFunctionEnd")
    assert "is defined more than once" in (problem_with_text(again + again) or "")
    unknown = text.replace("OpFunctionEnd", 'OpName %none "%quoted"\nOpFunctionEnd')
    assert problem_with_text(unknown) == "%none is not defined"
    assert problem_with_text(text[: text.rindex("Op")]) == "its end is not there"


def test_words_of_a_module_are_looked_at():
    module = emit(parsed(TEXT), TARGET).spirv
    assert problem_with(module) is None
    assert "more than once" in (problem_with(with_an_id_twice(module)) or "")
    assert problem_with(module[:-4]) == "its last function does not end"
    assert "has 13 words" in (problem_with(module + bytes([7, 0, 13, 0])) or "")
    assert problem_with(b"\0" * 40) == "it does not begin with the magic number"
    assert problem_with(b"abc") == "it is no sequence of words"
    bound = bytearray(module)
    bound[12:16] = struct.pack("<I", 5)
    assert "out of bounds" in (problem_with(bytes(bound)) or "")


def test_results_are_found_in_every_instruction(tmp_path: Path):
    """`spirv-dis` and we agree on which instructions have results."""
    disassembler = shutil.which("spirv-dis")
    if disassembler is None:
        pytest.skip("spirv-dis is not installed (Debian: spirv-tools)")
    module = emit(parsed(TEXT), TARGET).spirv
    (tmp_path / "k.spv").write_bytes(module)
    command = [disassembler, "--raw-id", "--no-header", "--no-indent", "k.spv"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = shown.stdout.strip().splitlines()
    found = [result_of(each) for each in instructions(module)]
    assert len(lines) == len(found)
    for line, number in zip(lines, found):
        left, is_result, _ = line.partition(" = ")
        assert number == (int(left[1:]) if is_result else None), line


def test_constant_lanes_beside_a_loop_of_compare_and_exchange():
    """LLVM ended the process: in one of its own that is an error."""
    body = """
      %zero = arith.constant 0.0 : f32
      %x = simt.atomic "maximumf" %zero, %status, %on : f32
      %first = arith.constant 0 : i32
      %y = simt.shuffle %x, %first : f32
      simt.store %y, %status, %on : f32"""
    text = llvm_text(parsed(kernel("k", "%n: i64", body)), TARGET)
    assert problem_with(spirv.emit_elsewhere(text, False)) is None


def test_another_process_reads_no_modules_of_the_users(tmp_path, monkeypatch):
    """A folder on `sys.path` may have a file named as a module of Python's own."""
    (tmp_path / "types.py").write_text("raise ImportError('the user has another')")
    monkeypatch.syspath_prepend(tmp_path)
    text = llvm_text(parsed(kernel("k", "%n: i64", "")), TARGET)
    assert problem_with(spirv.emit_elsewhere(text, False)) is None
