"""The operation of a reduction: its identity and how two values are combined."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    VectorType,
    f32,
)
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.kinds_of_types import integer_width, is_vector
from xetl.dialects.reduction_kinds import ON_INTEGERS, identity_of, operation_of
from xetl.dialects.upstream import arith
from xetl_cpu.lowering.loops.build import Build


class Combine:
    """The operation of a reduction and its identity; narrow floats go through f32."""

    def __init__(self, kind: str, element: Attribute) -> None:
        narrow = isinstance(element, Float16Type | BFloat16Type)
        self.narrow = element if narrow else None
        self.element: Attribute = f32 if narrow else element
        if integer_width(element) == 1:
            kind = ON_INTEGERS[kind].on_bits
        self.kind = kind

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
        return build.insert(operation_of(self.kind, self.element)(left, right))

    def identity(self) -> float:
        """The value that changes nothing."""
        return identity_of(self.kind, self.element)
