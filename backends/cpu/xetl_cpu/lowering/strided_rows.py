"""Rows of memory whose elements are not neighbours: loads and shuffles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import vector
from xetl.ir.builder import Builder


def strided_row(
    build: Builder,
    base: SSAValue,
    at: Sequence[Index],
    row: VectorType,
    step: int,
    offset: int | None = None,
) -> SSAValue:
    """Load elements ``step`` apart along the last dimension, or neighbours backwards.

    Args:
        base: memory whose neighbours along the last dimension are neighbours.
        at: where the first element is.
        row: the type of the row.
        step: at least -1, not 0.
        offset: how many places behind ``at`` the first element is, if memory has all
            ``step`` vectors; None: none, and memory may end with the last element.
    """
    *others, first = at
    (lanes,) = row.get_shape()
    early = step - 1 if offset is None else 0
    last = (step - 1) * lanes - early
    starts = [*range(0, last, lanes), last] if step > 0 else [1 - lanes]
    places = [map(build.index, (*others, build.plus(first, n))) for n in starts]
    parts = [build.insert(vector.LoadOp(base, [*place], row)) for place in places]
    if step < 0:
        return backwards(build, *parts)
    return each_nth(build, parts, lanes, offset or 0, early=early)


def each_nth(
    build: Builder, parts: Sequence[SSAValue], lanes: int, offset: int, early: int = 0
) -> SSAValue:
    """Take every n-th lane from ``offset`` on, where n is the number of ``parts``.

    The last part begins ``early`` lanes before the end of the part before it.
    """
    step, found = len(parts), parts[0]
    for number, part in enumerate(parts[1:], 1):
        order = [-1] * lanes  # of the two: later parts bring the rest
        for lane in range(lanes):
            source, place = divmod(lane * step + offset, lanes)
            if source == number:
                moved = early if number == step - 1 else 0
                order[lane] = lanes + place + moved
            elif source < number:
                order[lane] = place if number == 1 else lane
        found = build.insert(vector.ShuffleOp(found, part, mask=order))
    return found


def backwards(build: Builder, value: SSAValue) -> SSAValue:
    """Return the lanes of a vector in reverse order."""
    mask = list(reversed(range(vector_type(value).get_shape()[0])))
    return build.insert(vector.ShuffleOp(value, value, mask=mask))
