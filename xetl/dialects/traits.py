"""Traits: what operations do with memory, and with the elements of matrices.

How values are spread over subgroups follows from these alone: `propagate-wg-maps`
relates the maps of operands and results by them, and `distribute-to-subgroups` splits
an operation by its trait.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, OpTrait

READS_AND_WRITES = (MemoryReadEffect(), MemoryWriteEffect())
"""Such an operation is neither removed nor moved across others with effects."""


class ElementTrait(OpTrait):
    """Which elements of the operands an element of the result depends on."""


class Elementwise(ElementTrait):
    """On those at the same place; scalar operands serve all elements."""


class Reduces(ElementTrait):
    """On all along ``op.dims`` of ``op.source``: ``op.kind`` says how they combine."""


class Repeats(ElementTrait):
    """On the one along each of ``op.dims`` of ``op.source``."""


class Scans(ElementTrait):
    """On all up to its place along ``op.dim`` of ``op.source``."""


class Transposes(ElementTrait):
    """On the one whose row is its column; ``op.permutation`` may be the identity."""


class AccessesTile(ElementTrait):
    """On memory: each vector, operand or result, has the elements of ``op.tile``."""


@cache
def element_trait(cls: type[Operation]) -> type[ElementTrait] | None:
    """The one `ElementTrait` of a type of operations, if it has one."""
    found = (type(each) for each in cls.traits if isinstance(each, ElementTrait))
    return next(found, None)


def is_elementwise(op: Operation) -> bool:
    """Whether an operation has the trait `Elementwise`."""
    return element_trait(type(op)) is Elementwise
