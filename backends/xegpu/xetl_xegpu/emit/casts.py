"""Casts that LLVM's SPIR-V backend gets wrong, written so that it does not.

``zext iM (trunc iW to iN) to iM`` with W > M becomes a bitwise `and` of operands of
different widths, a module that drivers refuse. [measured] LLVM 20: W, N, M of
32, 8, 16; 64, 8, 16; 64, 8, 32; 64, 16, 32. So the `and` is ours, and comes first::

    %n = trunc i32 %w to i8            %m = and i32 %w, 255
    %z = zext i8 %n to i16       ->    %z = trunc i32 %m to i16
"""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll


def mend_zero_extensions(module: Any) -> None:
    """Rewrite such pairs in all functions of a module of llvmlite, in place."""
    for function in module.functions:
        for block in function.blocks:
            for cast in [each for each in block.instructions if _is_wrong(each)]:
                _mend(block, cast)


def _is_wrong(cast: Any) -> bool:
    if getattr(cast, "opname", None) != "zext":
        return False
    (narrow,) = cast.operands
    if getattr(narrow, "opname", None) != "trunc":
        return False
    return _bits(narrow.operands[0].type) > _bits(cast.type)


def _mend(block: Any, cast: Any) -> None:
    (narrow,) = cast.operands
    (wide,) = narrow.operands
    mask = (1 << _bits(narrow.type)) - 1
    many = getattr(wide.type, "count", None)
    kept = ll.Constant(wide.type, mask if many is None else [mask] * many)
    made = ll.instructions.Instruction(block, wide.type, "and", [wide, kept])
    block.instructions.insert(block.instructions.index(cast), made)
    cast.opname, cast.operands[0] = "trunc", made


def _bits(type_: Any) -> int:
    """Of an integer, or of an item of a vector of them."""
    return getattr(type_, "element", type_).width
