"""The operation of a reduction: its initial values, and how elements are combined."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import integer_width, is_vector
from xetl.dialects.reduction_kinds import ON_INTEGERS, identity_of, operation_of
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder

CHOICES = {"minnumf": "olt", "maxnumf": "ogt"}
"""By kind, the comparison that selects the left operand; it never selects a NaN."""

_OTHERS = {"minnumf": "ogt", "maxnumf": "olt"}
"""By kind, the comparison that says that the left operand is worse."""


class Combine:
    """The operation of a reduction and its identity; narrow floats go through f32."""

    def __init__(self, kind: str, element: Attribute) -> None:
        narrow = isinstance(element, Float16Type | BFloat16Type)
        self.narrow = element if narrow else None
        self.element: Attribute = f32 if narrow else element
        if integer_width(element) == 1:
            kind = ON_INTEGERS[kind].on_bits
        self.kind = kind

    def widen(self, build: Builder, value: SSAValue) -> SSAValue:
        """Return the value in the type of the accumulator."""
        if self.narrow is None:
            return value
        type_ = value.type
        to = VectorType(f32, type_.get_shape()) if is_vector(type_) else f32
        return build.insert(arith.ExtfOp(value, to))

    def narrow_back(self, build: Builder, value: SSAValue) -> SSAValue:
        """Return the accumulated value, rounded once to the type of the result."""
        if self.narrow is None:
            return value
        type_ = value.type
        to: Attribute = self.narrow
        if is_vector(type_):
            to = VectorType(to, type_.get_shape())
        return build.insert(arith.TruncfOp(value, to))

    def apply(self, build: Builder, left: SSAValue, right: SSAValue) -> SSAValue:
        """Combine two values."""
        if self.narrow is None or self.kind not in CHOICES:
            return build.insert(operation_of(self.kind, self.element)(left, right))
        # LLVM would turn minima of widened f16 into `minnum` of f16, and has no code
        # for it.
        takes_left = build.insert(arith.CmpfOp(CHOICES[self.kind], left, right))
        no_right = build.insert(arith.CmpfOp("uno", right, right))
        either = build.insert(arith.OriOp(takes_left, no_right))
        return build.insert(arith.SelectOp(either, left, right))

    def begins(self) -> tuple[float, ...]:
        """Return the initial numbers of rows, which `onto` combines with each element.

        If NaNs are ignored, these are the best and the worst number. Comparing an
        element with a number that is never NaN takes one instruction. If in the end the
        best is behind the worst, all elements were NaN.
        """
        if self.kind not in CHOICES:
            return (self.identity(),)
        return (-inf, inf) if self.kind == "maxnumf" else (inf, -inf)

    def onto(
        self, build: Builder, have: Sequence[SSAValue], value: SSAValue
    ) -> list[SSAValue]:
        """Combine the state ``have`` with a value that may be NaN."""
        if self.kind not in CHOICES:
            return [self.apply(build, have[0], value)]
        tests = CHOICES[self.kind], _OTHERS[self.kind]
        takes = [build.insert(arith.CmpfOp(t, value, h)) for t, h in zip(tests, have)]
        return [
            build.insert(arith.SelectOp(take, value, each))
            for take, each in zip(takes, have)
        ]

    def found(self, build: Builder, have: Sequence[SSAValue]) -> SSAValue:
        """Return the result of the state ``have``: NaN if no number was found."""
        best, *others = have
        for worst in others:
            is_nothing = build.insert(arith.CmpfOp(_OTHERS[self.kind], best, worst))
            nothing = build.constant(nan, best.type)
            best = build.insert(arith.SelectOp(is_nothing, nothing, best))
        return best

    def all(self, build: Builder, values: Sequence[SSAValue]) -> SSAValue:
        """Combine all values, in pairs."""
        waiting = list(values)
        while len(waiting) > 1:
            left, right, *rest = waiting
            waiting = [*rest, self.apply(build, left, right)]
        return waiting[0]

    def identity(self) -> float:
        """Return the neutral value of the operation."""
        return identity_of(self.kind, self.element)
