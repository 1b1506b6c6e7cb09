"""Matrices of a batch in kernels. All of the batch share an array of rank 2."""

from __future__ import annotations

from xetl import xetile
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def matrix(x: Array, number: int) -> Array:
    """Return the matrix of index ``number`` in a batch."""
    if x.ndim == 2:
        return x
    if x.ndim == 3:
        return x[number]
    return x[number // x.shape[1], number % x.shape[1]]


@xetile.function
def place_of(TILE: constexpr, STEP: constexpr) -> list[int]:
    """Return (row, column) of a program's tile, in a grid of (columns, rows).

    STEP: columns from one program's tile to the next; 0 if one tile has all columns.
    """
    return [xetile.program_id(1) * TILE[0], xetile.program_id(0) * STEP]


@xetile.function
def take(
    x: Array,
    place: list[int],
    SHAPE: constexpr,
    ACC: constexpr,
    PADDING: constexpr = 0,
    MAP: constexpr = None,
) -> Vector:
    """Load the elements from ``place`` on as ``ACC``; outside of ``x``, the padding."""
    tile = xetile.init_tile(x, place, SHAPE, wg_map=MAP)
    return xetile.load_tile(tile, padding=PADDING).to(ACC)


@xetile.function
def put(v: Vector, x: Array, place: list[int], MAP: constexpr = None) -> None:
    """Store a vector from ``place`` on, converted to the dtype of ``x``."""
    v = v.to(x.dtype)
    xetile.store_tile(v, xetile.init_tile(x, place, v.shape, wg_map=MAP))


@xetile.function
def matrices(x: Array) -> int:
    """Return the number of matrices in a batch."""
    if x.ndim == 2:
        return 1
    if x.ndim == 3:
        return x.shape[0]
    return x.shape[0] * x.shape[1]
