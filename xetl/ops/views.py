"""Other views of the operands of a product: the same memory, other shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xetl.ops.operands import Numbers

View: TypeAlias = Callable[[Numbers], Numbers]
"""Gives another view of an array: the same memory, another shape."""

Views: TypeAlias = tuple[View, View, View]
"""Of a, b and out."""


def itself(x: Numbers) -> Numbers:
    """No other view."""
    return x


def as_matrices(a: Numbers, b: Numbers) -> Views:
    """Vectors as matrices: a row on the left, a column on the right."""
    is_row, is_column = a.ndim == 1, b.ndim == 1
    if is_row and is_column:
        return _row, _column, _row
    if is_row:
        return _row, itself, lambda x: x[..., None, :]
    return itself, _column if is_column else itself, _column if is_column else itself


def _row(x: Numbers) -> Numbers:
    return x[None, :]


def _column(x: Numbers) -> Numbers:
    return x[..., None]


def transposed(x: Numbers) -> Numbers:
    """Rows and columns exchanged."""
    return x.swapaxes(-1, -2)


def seen(arrays: Sequence[Numbers], views: Views) -> tuple[Numbers, Numbers, Numbers]:
    """The views of a, b and out."""
    a, b, out = (view(array) for array, view in zip(arrays, views))
    return a, b, out


def chained(first: Views, then: Views) -> Views:
    """The views ``then`` of the views ``first``."""
    a, b, out = map(_chain, first, then)
    return a, b, out


def _chain(first: View, then: View) -> View:
    if first is itself:
        return then
    if then is itself:
        return first
    return lambda x: then(first(x))
