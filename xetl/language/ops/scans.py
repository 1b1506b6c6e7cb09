"""Reductions and scans with a function of the user."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import TYPE_CHECKING, Any

from xetl.language.operation import composite, operation
from xetl.language.ops.elementwise import where
from xetl.language.ops.moves import (
    along,
    as_matrix,
    dim_of,
    exchanged,
    flip,
    memory_for,
)
from xetl.language.ops.program import next_power_of_2, static_assert, static_range
from xetl.language.ops.reductions import element
from xetl.language.ops.vectors import reshape

if TYPE_CHECKING:
    from xetl.language.values import Vector

    Vectors = tuple[Vector, ...]

__all__ = ["associative_scan", "reduce"]

Combine = Callable[..., Any]


@composite
def _listed(value: Vector | Vectors) -> Vectors:
    """Return a tuple of vectors; a single vector becomes a tuple."""
    return value if isinstance(value, tuple) else (value,)


@composite
def _combined(combine: Combine, left: Vectors, right: Vectors) -> Vectors:
    """Combine two tuples of vectors; the result must have the same dtypes."""
    result = _listed(combine(*left, *right))
    static_assert(len(result) == len(right), "`combine` gives another number of values")
    for old, new in zip(right, result):
        static_assert(
            old.dtype == new.dtype,
            f"`combine` makes {new.dtype} of {old.dtype}: convert its result",
        )
    return result


@operation
def scan_by(values: Vectors, dim: int, combine: Combine) -> Vectors:
    """`associative_scan` of matrices; ``combine`` is a function of two tuples."""
    ...


@composite
def _folded(values: Vectors, combine: Combine) -> Vectors:
    """Combine neighbouring rows until one is left, in log2(n) steps."""
    memories: tuple[Any, ...] = ()
    for v in values:
        memories = (*memories, memory_for(v))
    extent = values[0].shape[0]
    for _ in static_range(int(log2(next_power_of_2(extent)))):
        first = 2 * along((extent + 1) // 2, 0)
        lefts: Vectors = ()
        rights: Vectors = ()
        for memory, v in zip(memories, values):
            left, right = exchanged(memory, v, (first, first + 1), 0)
            lefts, rights = (*lefts, left), (*rights, right)
        both: Vectors = ()
        for left, new in zip(lefts, _combined(combine, lefts, rights)):
            both = (*both, where(first + 1 < extent, new, left) if extent % 2 else new)
        values, extent = both, (extent + 1) // 2
    return values


@composite
def _as_matrices(values: Vectors, axis: int, reverse: bool) -> Vectors:
    """Return vectors of one shape as matrices, reversed along the axis if wanted."""
    matrices: Vectors = ()
    for v in values:
        static_assert(v.shape == values[0].shape, "the values differ in shape")
        matrices = (*matrices, as_matrix(flip(v, axis) if reverse else v))
    return matrices


@composite
def associative_scan(
    value: Any, axis: int, combine: Combine, reverse: bool = False
) -> Any:
    """Combine the elements up to and with each one along ``axis``.

    Args:
        value: a vector, or a tuple of vectors of one shape.
        axis: the axis, a compile-time constant.
        combine: an associative function ``combine(a, b)``. For tuples it takes the
            elements of both and returns a tuple: ``combine(a0, a1, b0, b1)``.
        reverse: combine from the other end.

    Raises:
        ControlFlowError: ``combine`` changes dtypes or the number of values.
    """
    values = _listed(value)
    dim = dim_of(values[0], axis, "the values have rank")

    def both(left: Vectors, right: Vectors) -> Vectors:
        return _combined(combine, left, right)

    result: tuple[Any, ...] = ()
    for v in scan_by(_as_matrices(values, axis, reverse), dim, both):
        whole = reshape(v, values[0].shape)
        result = (*result, flip(whole, axis) if reverse else whole)
    return result if isinstance(value, tuple) else result[0]


@composite
def reduce(value: Any, axis: int, combine: Combine) -> Any:
    """Combine all elements along ``axis``, in their order; rank 1 gives a number.

    Args:
        value: a vector, or a tuple of vectors of one shape.
        axis: the axis, a compile-time constant.
        combine: as for `associative_scan`.
    """
    values = _listed(value)
    dim = dim_of(values[0], axis, "the values have rank")
    rows: Vectors = ()
    for v in _as_matrices(values, axis, False):
        rows = (*rows, v if dim == 0 else v.T)
    result: tuple[Any, ...] = ()
    for v in _folded(rows, combine):
        flat = reshape(v, v.shape[1])
        result = (*result, element(flat, 0) if values[0].ndim == 1 else flat)
    return result if isinstance(value, tuple) else result[0]
