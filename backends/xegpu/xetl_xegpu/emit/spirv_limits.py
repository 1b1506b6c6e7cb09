"""Refuse code on which LLVM's SPIR-V backend would abort the process.

Source: SPIR-V 1.6, section 2.16.1, "Universal validation rules" (lengths of vectors,
widths of integers); and code on which the backend was seen to abort.

This module also rewrites code that the backend translates wrongly. It turns ``zext
(trunc iW to iN) to iM`` with W > M into a bitwise `and` of operands of different
widths, and drivers refuse that module. [measured] LLVM 20: W, N, M of 32, 8, 16; 64, 8,
16; 64, 8, 32; 64, 16, 32. So we write the `and` ourselves, before the truncation::

    %n = trunc i32 %w to i8            %m = and i32 %w, 255
    %z = zext i8 %n to i16       ->    %z = trunc i32 %m to i16
"""

from __future__ import annotations

from collections.abc import Iterator

from xetl.codegen.types import Module, Type, ll
from xetl.errors import InternalError
from xetl_xegpu.emit import memory
from xetl_xegpu.emit.arith_math import is_bool
from xetl_xegpu.emit.builtins import EXTENSIONS, find_builtin
from xetl_xegpu.emit.scalars import bits_of
from xetl_xegpu.simt import LENGTHS


def mend_zero_extensions(module: Module) -> None:
    """Rewrite each `zext` of a `trunc` that the backend gets wrong, in place."""
    for function in module.functions:
        for block in function.blocks:
            for cast in [each for each in block.instructions if _is_wrong(each)]:
                _mend(block, cast)


def _is_wrong(cast: ll.Instruction) -> bool:
    if getattr(cast, "opname", None) != "zext":
        return False
    (narrow,) = cast.operands
    if not isinstance(narrow, ll.Instruction) or narrow.opname != "trunc":
        return False
    return bits_of(narrow.operands[0].type) > bits_of(cast.type)


def _mend(block: ll.Block, cast: ll.Instruction) -> None:
    (narrow,) = cast.operands
    assert isinstance(narrow, ll.Instruction)
    (wide,) = narrow.operands
    mask = (1 << bits_of(narrow.type)) - 1
    many = getattr(wide.type, "count", None)
    kept = ll.Constant(wide.type, mask if many is None else [mask] * many)
    made = ll.instructions.Instruction(block, wide.type, "and", [wide, kept])
    block.instructions.insert(block.instructions.index(cast), made)
    cast.opname, cast.operands[0] = "trunc", made


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
    for type_ in _types(instruction):
        _check_type(type_, name)
    if name in _NOT_FOR_BOOLS and is_bool(instruction.operands[0].type):
        raise InternalError(f"SPIR-V has no `{name}` of booleans")
    if name == "trunc" and is_bool(instruction.type):
        raise InternalError("SPIR-V has no `trunc` to booleans")
    if name == "atomicrmw" and isinstance(instruction.operands[1].type, _NUMBERS):
        _require(_FLOAT_ATOMICS)


def _types(instruction: ll.Instruction) -> Iterator[Type]:
    yield instruction.type
    for operand in instruction.operands:
        if not isinstance(operand, ll.Block | ll.Function):
            yield operand.type


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
