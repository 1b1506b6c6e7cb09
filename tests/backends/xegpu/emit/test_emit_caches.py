"""Hints for the caches: emitted as decorations, and checked before LLVM sees them."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.utils.exceptions import VerifyException

from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from tests.backends.xegpu.spirv_tools import with_one_hint_each
from xetl.codegen.types import I8, I32, I64, ll
from xetl.errors import InternalError
from xetl_xegpu.emit.memory import METADATA
from xetl_xegpu.emit.module import emit, llvm_text
from xetl_xegpu.emit.spirv import check_module
from xetl_xegpu.emit.spirv_words import instructions

HINTED = 'l1_hint = "{}", l3_hint = "{}"'


def load(l1: str, l3: str) -> str:
    return f"""
      %z = arith.constant 0.0 : f32
      %v = simt.load %p, %on, %z {{{HINTED.format(l1, l3)}}} : f32
      simt.store %v, %p, %on : f32"""


def text_of(body: str, target: str = "pvc") -> str:
    return llvm_text(parsed(kernel("k", "%p: i64", body)), target)


def test_words_are_numbers_of_levels():
    text = text_of(load("streaming", "cached"))
    assert text.count(f"!{METADATA}") == 1
    assert "!{ i32 6442, i32 0, i32 2 }" in text
    assert "!{ i32 6442, i32 1, i32 1 }" in text


def test_no_hint_is_no_decoration():
    body = "%z = arith.constant 0.0 : f32\n%v = simt.load %p, %on, %z : f32"
    assert METADATA not in text_of(body)


@pytest.mark.parametrize(
    ("target", "l1", "l3"),
    [
        ("pvc", "cached", "streaming"),
        ("pvc", "read_invalidate", "read_invalidate"),
        ("bmg", "read_invalidate", "cached"),
        ("pvc", "write_back", "write_back"),
        ("opencl", "cached", "cached"),
    ],
)
def test_what_a_device_has_not_is_refused(target: str, l1: str, l3: str):
    message = f"`{target}` has no load that is `{l1}` in L1 and `{l3}` in L3"
    with pytest.raises(InternalError, match=message):
        text_of(load(l1, l3), target)


def test_one_word_alone_is_refused():
    text = kernel("k", "%p: i64", load("cached", "cached"))
    with pytest.raises(VerifyException, match="given together"):
        parsed(text.replace(', l3_hint = "cached"', ""))


def test_the_validator_gets_one_hint_a_pointer():
    module = parsed(kernel("k", "%p: i64", load("streaming", "cached")))
    spirv = emit(module, "pvc").spirv
    assert len(hints_in(spirv)) == 2
    assert len(hints_in(with_one_hint_each(spirv))) == 1
    assert with_one_hint_each(with_one_hint_each(spirv)) == with_one_hint_each(spirv)


def hints_in(spirv: bytes) -> list[Any]:
    return [
        each
        for each in instructions(spirv)
        if each.opcode == 71 and each.operands[1] == 6442
    ]


# What LLVM would write as it is, or end the process over ----------------------------

GLOBAL = ll.PointerType(addrspace=1)


def decorated(*decorations: list[Any], constant: bool = False) -> Any:
    """A module with a place whose pointer has these decorations."""
    module = ll.Module("test")
    made = ll.Function(module, ll.FunctionType(ll.VoidType(), [GLOBAL, I64]), "f")
    b = ll.IRBuilder(made.append_basic_block("entry"))
    index = I64(0) if constant else made.args[1]
    place = b.gep(made.args[0], [index], source_etype=I8)
    parts = [module.add_metadata(each) for each in decorations]
    place.set_metadata(METADATA, module.add_metadata(parts))
    b.ret_void()
    return module


def numbers(*values: int) -> list[Any]:
    return [I32(value) for value in values]


FINE = numbers(6442, 0, 1), numbers(6442, 1, 0)


def test_decorations_that_are_fine():
    check_module(decorated(*FINE))


@pytest.mark.parametrize(
    "decorations",
    [
        [numbers(6444, 0, 1)],
        [numbers(6442, 2, 1)],
        [numbers(6442, 0, 4)],
        [numbers(6442, 0)],
        [["text"]],
        [numbers(6442, 0, 1), numbers(6442, 0, 0)],
        [numbers(6442, 0, 1), numbers(6443, 1, 0)],
        [],
    ],
)
def test_decorations_that_mean_nothing(decorations: list[list[Any]]):
    with pytest.raises(InternalError, match="asks each cache for one thing"):
        check_module(decorated(*decorations))


def test_a_place_that_llvm_drops():
    with pytest.raises(InternalError, match="LLVM drops a place"):
        check_module(decorated(*FINE, constant=True))


def test_no_other_instruction_makes_a_pointer():
    module = decorated(*FINE)
    (function,) = module.functions
    builder = ll.IRBuilder(function.blocks[0])
    builder.position_at_start(function.blocks[0])
    value = builder.ptrtoint(function.args[0], I64)
    value.set_metadata(METADATA, module.add_metadata([]))
    with pytest.raises(InternalError, match="makes no pointer"):
        check_module(module)


def test_the_extension_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("xetl_xegpu.emit.spirv.EXTENSIONS", ())
    with pytest.raises(InternalError, match="SPV_INTEL_cache_controls is not"):
        check_module(decorated(*FINE))
