"""Matrices of a batch, as kernels see them: an array of rank 2 is the same for all."""

from __future__ import annotations

from xetl import xetile
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def matrix(x: Array, number: int) -> Array:
    """The matrix called ``number`` of a batch."""
    if x.ndim == 2:
        return x
    if x.ndim == 3:
        return x[number]
    return x[number // x.shape[1], number % x.shape[1]]


@xetile.function
def take(
    x: Array,
    place: list[int],
    SHAPE: constexpr,
    ACC: constexpr,
    PADDING: constexpr = 0,
    MAP: constexpr = None,
) -> Vector:
    """What lies from ``place`` on, as a dtype; outside of ``x`` it is the padding."""
    tile = xetile.init_tile(x, place, SHAPE, wg_map=MAP)
    return xetile.load_tile(tile, padding=PADDING).to(ACC)


@xetile.function
def put(v: Vector, x: Array, place: list[int], MAP: constexpr = None) -> None:
    """Store a vector from ``place`` on, as the dtype of ``x``."""
    v = v.to(x.dtype)
    xetile.store_tile(v, xetile.init_tile(x, place, v.shape, wg_map=MAP))


@xetile.function
def matrices(x: Array) -> int:
    """How many matrices a batch has."""
    if x.ndim == 2:
        return 1
    if x.ndim == 3:
        return x.shape[0]
    return x.shape[0] * x.shape[1]
