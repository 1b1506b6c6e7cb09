"""Translation of LLVM IR to SPIR-V, checked: binary modules, and text for `spirv-as`.

* LLVM's SPIR-V backend ends the process on code that it cannot translate, so such code
  is refused first. Source: SPIR-V 1.6, section 2.16.1, "Universal validation rules"
  (lengths of vectors, widths of integers); and code on which the backend was seen to
  abort.
* It translates some code wrongly. It turns ``zext (trunc iW to iN) to iM`` with W > M
  into a bitwise `and` of operands of different widths, and drivers refuse that module.
  [measured] LLVM 20: W, N, M of 32, 8, 16; 64, 8, 16; 64, 8, 32; 64, 16, 32. So we
  write the `and` ourselves, before the truncation::

    %n = trunc i32 %w to i8            %m = and i32 %w, 255
    %z = zext i8 %n to i16       ->    %z = trunc i32 %m to i16

* Wrong modules define an id twice (all 76 of 480 that were wrong after memory had been
  freed). Every module and text is checked. A wrong one is emitted again, the last time
  in another process.
* The memory of an emission cannot be freed. After a number of emissions, all others run
  in other processes.
* Optimisations of LLVM make invalid modules, and gain nothing.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from xetl.codegen.types import Module, Type, ll
from xetl.errors import InternalError
from xetl.locks import ForkSafeLock
from xetl_xegpu.emit import llvm_spirv, memory
from xetl_xegpu.emit.arith_math import is_bool
from xetl_xegpu.emit.builtins import EXTENSIONS, find_builtin
from xetl_xegpu.emit.scalars import bits_of
from xetl_xegpu.emit.spirv_words import instructions, result_of
from xetl_xegpu.simt import LENGTHS


def mend_zero_extensions(module: Module) -> None:
    """Rewrite each `zext` of a `trunc` that the backend gets wrong, in place."""
    for function in module.functions:
        for block in function.blocks:
            for wrong in [each for each in block.instructions if _is_wrong(each)]:
                (narrow,) = wrong.operands
                assert isinstance(narrow, ll.Instruction)
                (wide,) = narrow.operands
                mask = (1 << bits_of(narrow.type)) - 1
                many = getattr(wide.type, "count", None)
                kept = ll.Constant(wide.type, mask if many is None else [mask] * many)
                make = ll.instructions.Instruction
                made = make(block, wide.type, "and", [wide, kept])
                block.instructions.insert(block.instructions.index(wrong), made)
                wrong.opname, wrong.operands[0] = "trunc", made


def _is_wrong(cast: ll.Instruction) -> bool:
    if getattr(cast, "opname", None) != "zext":
        return False
    (narrow,) = cast.operands
    if not isinstance(narrow, ll.Instruction) or narrow.opname != "trunc":
        return False
    return bits_of(narrow.operands[0].type) > bits_of(cast.type)


WIDTHS = (1, 8, 16, 32, 64)
"""The widths of integers in bits."""

INTRINSICS = frozenset(
    {
        *("abs", "ceil", "copysign", "ctlz", "ctpop", "cttz", "fabs", "floor"),
        *("fma", "round", "roundeven", "sqrt", "trunc"),
    }
)
"""LLVM's intrinsics that have an instruction in SPIR-V."""

_FLOAT_ATOMICS = "SPV_EXT_shader_atomic_float_add"
_NUMBERS = (ll.HalfType, ll.FloatType, ll.DoubleType)
_NOT_FOR_BOOLS = frozenset(
    {*("add", "sub", "mul", "shl", "lshr", "ashr", "bitcast", "sitofp", "uitofp")}
)


def check_module(module: Module) -> None:
    """Refuse instructions that SPIR-V or LLVM's backend for it does not have.

    Raises:
        InternalError: the module has such an instruction.
    """
    for function in module.functions:
        if not function.blocks:
            _check_symbol(function)
        for number, block in enumerate(function.blocks):
            for instruction in block.instructions:
                _check_instruction(instruction, is_entry=number == 0)


def _check_symbol(function: ll.Function) -> None:
    """Check that compilers know a function that is called."""
    name = function.name
    if name.startswith("llvm."):
        if name.split(".")[1] not in INTRINSICS:
            raise InternalError(f"SPIR-V has nothing for `{name}`")
        return
    builtin = find_builtin(name)
    if builtin is None or builtin.type != function.function_type:
        raise InternalError(f"`{name}` is no builtin function of this type")
    if builtin.extension is not None:
        _require(builtin.extension)


def _require(extension: str) -> None:
    if extension not in EXTENSIONS:
        raise InternalError(f"the extension {extension} is not enabled")


def _check_instruction(instruction: ll.Instruction, *, is_entry: bool) -> None:
    name = instruction.opname
    if name == "alloca":
        _check_alloca(instruction, is_entry=is_entry)
        return
    problem = memory.problem_with_decorations(instruction)
    if problem is not None:
        raise InternalError(problem)
    if memory.METADATA in instruction.metadata:
        _require(memory.EXTENSION)
    if name == "fence":
        raise InternalError("a `fence` does not say which memory; `barriers` does")
    _check_type(instruction.type, name)
    for operand in instruction.operands:
        if not isinstance(operand, ll.Block | ll.Function):
            _check_type(operand.type, name)
    if name in _NOT_FOR_BOOLS and is_bool(instruction.operands[0].type):
        raise InternalError(f"SPIR-V has no `{name}` of booleans")
    if name == "trunc" and is_bool(instruction.type):
        raise InternalError("SPIR-V has no `trunc` to booleans")
    if name == "atomicrmw" and isinstance(instruction.operands[1].type, _NUMBERS):
        _require(_FLOAT_ATOMICS)


def _check_type(type_: Type, name: str) -> None:
    if isinstance(type_, ll.VectorType):
        if type_.count not in LENGTHS:
            raise InternalError(f"`{name}`: SPIR-V has no vector {type_}")
        type_ = type_.element
    if isinstance(type_, ll.IntType) and type_.width not in WIDTHS:
        raise InternalError(f"`{name}`: SPIR-V has no integer {type_}")
    if str(type_) == "bfloat":
        raise InternalError(f"`{name}`: the bits of a bf16 are an i16 here")


def _check_alloca(instruction: ll.Instruction, *, is_entry: bool) -> None:
    reserved = getattr(instruction, "allocated_type", None)
    is_array = isinstance(reserved, ll.ArrayType)
    if not (is_entry and is_array) or instruction.operands:
        raise InternalError(
            "private memory is an array, reserved where the function begins"
        )


_FUNCTION_END = 56


def problem_with(module: bytes) -> str | None:
    """Return what is wrong with a module: a bad id, or no end. None: it is right."""
    seen, last = set[int](), None
    try:
        bound = struct.unpack_from("<I", module, 12)[0] if len(module) >= 16 else 0
        for each in instructions(module):
            found, last = result_of(each), each.opcode
            if found is None:
                continue
            if found in seen:
                return f"id {found} is defined more than once"
            if not 0 < found < bound:
                return f"id {found} is out of bounds ({bound})"
            seen.add(found)
    except ValueError as error:
        return str(error)
    return None if last == _FUNCTION_END else "its last function does not end"


_DEFINITION = re.compile(r"^\s*(%\w+) = ", re.MULTILINE)
_ID = re.compile(r"%\w+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_CACHE_CONTROL = re.compile(r"(CacheControl(Load|Store)INTEL \d+) (\d+)")
_CACHE_CONTROLS = {
    "Load": ("Uncached", "Cached", "Streaming", "InvalidateAfterRead", "ConstCached"),
    "Store": ("Uncached", "WriteThrough", "WriteBack", "Streaming"),
}


def problem_with_text(text: str) -> str | None:
    """Return what is wrong with the text of a module, as `problem_with` does."""
    text = _STRING.sub("", text)
    defined = _DEFINITION.findall(text)
    known = set(defined)
    if len(known) < len(defined):
        twice = next(each for each in defined if defined.count(each) > 1)
        return f"{twice} is defined more than once"
    unknown = set(_ID.findall(text)) - known
    if unknown:
        return f"{min(unknown)} is not defined"
    return None if text.rstrip().endswith("OpFunctionEnd") else "its end is not there"


def readable(text: str) -> str:
    """Return the text with names of cache controls, which LLVM prints as numbers."""

    def named(found: re.Match[str]) -> str:
        head, access, number = found.groups()
        return f"{head} {_CACHE_CONTROLS[access][int(number)]}INTEL"

    return _CACHE_CONTROL.sub(named, text)


_LOCK = ForkSafeLock()

_MOST_HERE = 256
"""The most emissions in this process, whose memory is never freed."""

_ATTEMPTS = 4
"""An attempt takes 10 ms in this process, and 100 ms in another, as the last does."""

_EXTENSIONS = ",".join(f"+{name}" for name in EXTENSIONS)


def emit_once(text: str, as_text: bool) -> bytes:
    """Return the unchecked SPIR-V of an LLVM module, emitted in this process."""
    with _LOCK.held():
        try:
            return llvm_spirv.emit(text, _EXTENSIONS, as_text=as_text)
        except RuntimeError as error:
            raise InternalError(f"LLVM does not read a kernel: {error}") from error


def emit_elsewhere(text: str, as_text: bool) -> bytes:
    """Return the same as `emit_once`, emitted in another process."""
    # Pass only one entry of `sys.path`: others may hold a user's ``types.py``.
    package = cast("Any", sys.modules["llvmlite"]).__file__
    environment = {**os.environ, "PYTHONPATH": str(Path(package).parents[1])}
    form = "text" if as_text else "binary"
    done = subprocess.run(
        [sys.executable, "-P", llvm_spirv.__file__, _EXTENSIONS, form],
        input=text.encode(),
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        what = "does not read a kernel" if done.returncode == 1 else "ended its process"
        raise InternalError(f"LLVM {what}: {' '.join(last)}")
    return done.stdout


def to_spirv(text: str) -> bytes:
    """Return the SPIR-V module of a checked LLVM module.

    Raises:
        InternalError: LLVM does not read the text, or makes a wrong module of it.
    """
    return _right(text, False, problem_with)


def to_assembly(text: str) -> str:
    """Return the SPIR-V module as text that `spirv-as` reads.

    Raises:
        InternalError: see `to_spirv`.
    """
    found = _right(text, True, lambda made: problem_with_text(made.decode()))
    return readable(found.decode())


def _right(
    text: str, as_text: bool, problem_with: Callable[[bytes], str | None]
) -> bytes:
    """Return the first emission without a problem."""
    problem = None
    for last in range(_ATTEMPTS - 1, -1, -1):
        # Wrong modules count for the limit, too.
        here = last and len(llvm_spirv.KEPT) < _MOST_HERE
        found = (emit_once if here else emit_elsewhere)(text, as_text)
        problem = problem_with(found)
        if problem is None:
            return found
    raise InternalError(f"LLVM makes a wrong module of SPIR-V: {problem}")
