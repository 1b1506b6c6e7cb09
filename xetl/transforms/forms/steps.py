"""Writing down the operations that stand for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import element_type
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith


class Expansion(NamedTuple):
    """What stands for an operation.

    Attributes:
        operations: in their order.
        values: in place of its results.
    """

    operations: Sequence[Operation]
    values: Sequence[SSAValue]


Rule: TypeAlias = Callable[[Any], Expansion | None]
"""Gives None for what can stay."""


class Steps:
    """A list of operations that grows."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        """Write down an operation; its first result."""
        self.operations.append(op)
        return op.results[0]

    def number(self, value: int | float, like: Attribute) -> SSAValue:
        """A constant of a type: the number, or a vector full of it."""
        is_float = isinstance(element_type(like), AnyFloat)
        number = float(value) if is_float else int(value)
        return self.add(arith.ConstantOp(make_splat(number, like), like))

    def done(self, *values: SSAValue) -> Expansion:
        """The expansion, with these values for the results."""
        return Expansion(self.operations, values)
