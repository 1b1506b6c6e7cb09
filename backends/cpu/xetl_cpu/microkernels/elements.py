"""Conversions between element types, on vectors of any width and on scalars.

Elements travel as integers of their size (``<n x i16>``, ``<n x i32>``) up to here, so
that loads, masks and shuffles need not know what they mean.
"""

from xetl_cpu.llvm import (
    BF16,
    F16,
    F32,
    I8,
    I16,
    I32,
    I64,
    Builder,
    Type,
    Value,
    const,
    ir,
    vector,
)

__all__ = ["bits_of", "convert"]

_BITS = {
    **{"i8": I8, "u8": I8, "i16": I16, "f16": I16, "bf16": I16},
    **{"i32": I32, "f32": I32, "f64": I64},
}

_NARROW = {"f16": F16, "bf16": BF16}


def bits_of(dtype: str) -> Type:
    """The integer type an element travels as."""
    return _BITS[dtype]


def convert(builder: Builder, value: Value, source: str, target: str) -> Value:
    """Convert the bits of ``source`` elements to the bits of ``target`` elements.

    Bytes become wider integers or stay as they are.  Exact, but for f32 to f16 and f32
    or f16 to bf16: these round to nearest even (and bf16 takes a target with
    instructions for it, which flush subnormals).
    """
    if source == target or (source, target) == ("u8", "i8"):
        return value
    lanes = value.type.count if isinstance(value.type, ir.VectorType) else 1
    if source in ("i8", "u8"):
        extend = builder.zext if source == "u8" else builder.sext
        return extend(value, vector(bits_of(target), lanes))
    if source == "bf16":
        wide = builder.zext(value, vector(I32, lanes))
        shift = const(wide.type, 16)
        return builder.shl(wide, shift)
    if source == "f16":
        half = builder.bitcast(value, vector(F16, lanes))
        single = builder.fpext(half, vector(F32, lanes))
    else:
        single = builder.bitcast(value, vector(F32, lanes))
    if target in _NARROW:
        single = builder.fptrunc(single, vector(_NARROW[target], lanes))
    return builder.bitcast(single, vector(bits_of(target), lanes))
