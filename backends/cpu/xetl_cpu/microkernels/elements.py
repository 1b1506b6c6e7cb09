"""Conversions between element types, on vectors of any width and on scalars.

Elements travel as integers of their size (``<n x i16>``, ``<n x i32>``) up to here, so
that loads, masks and shuffles need not know what they mean.
"""

from xetl_cpu.llvm import (
    BF16,
    F16,
    F32,
    I16,
    I32,
    Builder,
    Type,
    Value,
    const,
    ir,
    vector,
)

__all__ = ["bits_of", "convert"]

_BITS = {"f32": I32, "f16": I16, "bf16": I16}


def bits_of(dtype: str) -> Type:
    """The integer type an element travels as."""
    return _BITS[dtype]


def convert(builder: Builder, value: Value, source: str, target: str) -> Value:
    """Convert the bits of ``source`` elements to the bits of ``target`` elements.

    Exact, but for f32 or f16 to bf16: that rounds to nearest even (and takes a target
    with bf16 instructions, which flush subnormals).
    """
    if source == target:
        return value
    lanes = value.type.count if isinstance(value.type, ir.VectorType) else 1
    if source == "bf16":
        wide = builder.zext(value, vector(I32, lanes))
        shift = const(wide.type, 16)
        return builder.shl(wide, shift)
    if source == "f16":
        half = builder.bitcast(value, vector(F16, lanes))
        single = builder.fpext(half, vector(F32, lanes))
    else:
        single = builder.bitcast(value, vector(F32, lanes))
    if target == "bf16":
        single = builder.fptrunc(single, vector(BF16, lanes))
    return builder.bitcast(single, vector(bits_of(target), lanes))
