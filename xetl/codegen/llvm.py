"""``llvmlite.ir``; its types are declared in ``typings/``, for it ships none."""

from __future__ import annotations

from llvmlite import ir as ll

Block = ll.Block
Builder = ll.IRBuilder
Function = ll.Function
Module = ll.Module
Type = ll.Type
Value = ll.Value

__all__ = ["BF16", "Block", "Builder", "Function", "Module", "Type", "Value", "ll"]


class _BFloatType(ll.HalfType):
    """``bfloat``, which llvmlite.ir lacks; it has no constants of its own."""

    intrinsic_name = "bf16"

    def __str__(self) -> str:
        return "bfloat"


# llvmlite keeps one instance of each floating type.
_BFloatType._create_instance()  # pyright: ignore[reportPrivateUsage]
BF16: Type = _BFloatType()
