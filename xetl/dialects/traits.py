"""Traits: effects of operations on memory, and their use of elements of matrices.

The distribution over subgroups follows from the traits: `propagate-wg-maps` relates the
maps of operands and results by them, and `distribute-to-subgroups` splits an operation
by its trait.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, OpTrait

READS_AND_WRITES = (MemoryReadEffect(), MemoryWriteEffect())
"""An operation with these is neither removed nor moved across others with effects."""


class ElementTrait(OpTrait):
    """A statement which elements of the operands a result element depends on."""


class Elementwise(ElementTrait):
    """A result element depends on the elements at its position, and on scalars."""


class Reduces(ElementTrait):
    """A result element combines, by ``op.kind``, all along ``op.dims``."""


class Repeats(ElementTrait):
    """A result element is the only one along ``op.dims`` of ``op.source``."""


class Scans(ElementTrait):
    """A result element depends on all up to its position along ``op.dim``."""


class Transposes(ElementTrait):
    """The operand is transposed by ``op.permutation``, which may be the identity."""


class AccessesTile(ElementTrait):
    """Each vector, operand or result, has the elements of ``op.tile`` in memory."""


@cache
def element_trait(cls: type[Operation]) -> type[ElementTrait] | None:
    """Return the `ElementTrait` of an operation class, or None."""
    found = (type(each) for each in cls.traits if isinstance(each, ElementTrait))
    return next(found, None)


def is_elementwise(op: Operation) -> bool:
    """Whether an operation has the trait `Elementwise`."""
    return element_trait(type(op)) is Elementwise
