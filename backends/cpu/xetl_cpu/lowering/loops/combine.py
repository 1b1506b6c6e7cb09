"""The operation of a reduction: its identity and how two values are combined."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerType,
    VectorType,
    f32,
)
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.kinds_of_types import integer_width, is_vector
from xetl.dialects.upstream import arith
from xetl_cpu.lowering.loops.build import Build


class Combine:
    """The operation of a reduction and its identity; narrow floats go through f32."""

    def __init__(self, kind: str, element: Attribute) -> None:
        narrow = isinstance(element, Float16Type | BFloat16Type)
        self.narrow = element if narrow else None
        self.element: Attribute = f32 if narrow else element
        if integer_width(element) == 1:
            kind = _BIT_KINDS.get(kind, kind)
        self.kind = kind
        self.is_float = not isinstance(element, IntegerType | IndexType)

    def widen(self, build: Build, value: SSAValue) -> SSAValue:
        """The value as it is accumulated."""
        if self.narrow is None:
            return value
        type_ = value.type
        to = VectorType(f32, type_.get_shape()) if is_vector(type_) else f32
        return build.insert(arith.ExtfOp(value, to))

    def narrow_back(self, build: Build, value: SSAValue) -> SSAValue:
        """The accumulated value rounded once to the type of the result."""
        if self.narrow is None:
            return value
        type_ = value.type
        to: Attribute = self.narrow
        if is_vector(type_):
            to = VectorType(to, type_.get_shape())
        return build.insert(arith.TruncfOp(value, to))

    def apply(self, build: Build, left: SSAValue, right: SSAValue) -> SSAValue:
        """Left combined with right."""
        table = _FLOAT_KINDS if self.is_float else _INT_KINDS
        return build.insert(table[self.kind](left, right))

    def identity(self) -> float:
        """The value that changes nothing."""
        element = self.element
        bits = integer_width(element) or 64
        signed_max = 2 ** (bits - 1) - 1
        return {
            "add": 0,
            "or": 0,
            "xor": 0,
            "mul": 1,
            "and": -1,
            "minsi": signed_max,
            "maxsi": -signed_max - 1,
            "minui": -1,
            "maxui": 0,
            "minimumf": float("inf"),
            "minnumf": float("inf"),
            "maximumf": float("-inf"),
            "maxnumf": float("-inf"),
        }[self.kind]


_INT_KINDS: dict[str, Any] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "minsi": arith.MinsiOp,
    "minui": arith.MinuiOp,
    "maxsi": arith.MaxsiOp,
    "maxui": arith.MaxuiOp,
    "and": arith.AndiOp,
    "or": arith.OriOp,
    "xor": arith.XoriOp,
}
_BIT_KINDS = {
    # A bit counts modulo 2, and true is -1 as a signed number.
    **{"add": "xor", "mul": "and", "minsi": "or", "maxsi": "and"},
    **{"minui": "and", "maxui": "or"},
}
_FLOAT_KINDS: dict[str, Any] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "minimumf": arith.MinimumfOp,
    "maximumf": arith.MaximumfOp,
    "minnumf": arith.MinnumfOp,
    "maxnumf": arith.MaxnumfOp,
}


def operation_of(kind: str, element: Attribute) -> Any:
    """The class of the operation that combines two values of a type."""
    is_integer = isinstance(element, IntegerType | IndexType)
    return (_INT_KINDS if is_integer else _FLOAT_KINDS)[kind]
