"""The launches of a call, and copies where an array does not lie as they need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl.imports import import_whole
from xetl.ops.batches import are_views
from xetl.ops.declarations import Call, Operand, Step, temporary


def as_rows(values: list[Any], places: Sequence[int]) -> list[Step]:
    """Copies of arrays whose rows do not lie along memory; they take their places.

    Args:
        values: all arguments of a rule; it is changed.
        places: of the arrays.
    """
    copies: list[Step] = []
    for i in places:
        x: Operand | None = values[i]
        if x is not None and x.order is not None and x.order[-1] != x.ndim - 1:
            values[i], steps = along(x, x.ndim - 1)
            copies += steps
    return copies


def along(x: Operand, dim: int) -> tuple[Operand, list[Step]]:
    """An array that lies along a dimension, and what copies elements to it."""
    order = (*(i for i in range(x.ndim) if i != dim), dim)
    to = temporary(x.shape, x.dtype, x.name, order)
    return to, [copied(x, to)]


def steps_of(call: Call, results: Sequence[Operand]) -> list[Step]:
    """The launches of a call; what they cannot write to in place is copied there."""
    steps = [step for step in call.steps(results) if step is not None]
    lost = [x for x in results if any(_misses(step, x) for step in steps)]
    if not lost:
        return steps
    between = {id(x): temporary(x.shape, x.dtype) for x in lost}
    moved = [between.get(id(x), x) for x in results]
    copies = [copied(between[id(x)], x) for x in lost]
    return [*(step for step in call.steps(moved) if step is not None), *copies]


def copied(source: Operand, to: Operand) -> Step:
    """The launch that converts elements to the dtype of ``to``."""
    # Imported late: few calls need a copy.
    return import_whole("xetl.ops.activations").copied(source, to)


def _misses(step: Step, place: Operand) -> bool:
    """Whether a step would write to a copy, such as a reshaped ``out``."""
    if place.is_new or place.array is None:
        return False
    pairs = zip(step.launch.views, step.operands)
    views = [view for view, x in pairs if x is place and view is not None]
    return not are_views([place.array] * len(views), views)
