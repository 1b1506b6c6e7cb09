"""Sorting, the largest elements, and counting; made of `tile_sort` and of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.dtypes import i32, i64
from xetl.language.operation import composite, operation
from xetl.language.ops.elementwise import isnan, nan, where
from xetl.language.ops.moves import along, as_matrix, dim_of, gather, slice_matrix
from xetl.language.ops.program import barrier, static_assert
from xetl.language.ops.reductions import integers
from xetl.language.ops.reductions import min as reduce_min
from xetl.language.ops.tiles import (
    atomic_rmw_tile,
    init_tile,
    load_tile,
    slm,
    store_tile,
)
from xetl.language.ops.vectors import reshape, zeros

if TYPE_CHECKING:
    from xetl.language.values import Vector

__all__ = ["argsort", "histogram", "sort", "tile_sort", "topk"]

_LEAST = -(1 << 63)
_MOST_PASSES = 32
"""With more, sorting everything is faster."""


@composite
def _most(bits: int) -> int:
    """The largest signed integer of so many bits."""
    return 2 ** (bits - 1) - 1


@composite
def _bits(v: Vector) -> Vector:
    """The bits of floats as i32 or i64."""
    bits = v.to(integers(v.dtype.bits), bitcast=True)
    return bits if v.dtype.bits == 64 else bits.to(i32)


@composite
def _of_bits(bits: Vector, width: int) -> Vector:
    """The integers that are in the order of the floats with these bits; or back."""
    return where(bits < 0, bits ^ _most(width), bits)


@composite
def _key(v: Vector, descending: bool) -> Vector:
    """Signed integers, i32 or i64, in the order wanted of the elements; NaN is last."""
    if v.dtype.is_float:
        key = _of_bits(_bits(v), v.dtype.bits)
        # Larger than all others, the ends of both orders included.
        last = _most(key.dtype.bits)
        return where(isnan(v), last, ~key if descending else key)
    if v.dtype.kind == "u" and v.dtype.bits >= 32:
        wide = v ^ (1 << (v.dtype.bits - 1))
        key = wide.to(i64 if v.dtype.bits == 64 else i32, bitcast=True)
    else:
        key = v.to(i64 if v.dtype.bits == 64 else i32)
    return ~key if descending else key


@composite
def _element_of_key(key: Vector, v: Vector, descending: bool) -> Vector:
    """The elements of ``v``'s dtype that have these keys."""
    width = key.dtype.bits
    plain = ~key if descending else key
    if v.dtype.is_float:
        bits = _of_bits(plain, v.dtype.bits).to(integers(v.dtype.bits))
        return where(key == _most(width), nan, bits.to(v.dtype, bitcast=True))
    if v.dtype.kind == "u" and v.dtype.bits >= 32:
        return plain.to(v.dtype, bitcast=True) ^ (1 << (width - 1))
    return plain.to(v.dtype)


@operation
def tile_sort(v: Vector, axis: int) -> Vector:
    """``v`` with its elements along ``axis`` in ascending order; `sort` is made of it.

    Args:
        v: i32 or i64, rank 1 or 2.
        axis: known when compiling.
    """
    ...


@composite
def sort(v: Vector, axis: int = -1, descending: bool = False) -> Vector:
    """``v`` with its elements along ``axis`` in order; NaN is last in either order.

    Source: Batcher, "Sorting networks and their applications" (1968).
    """
    dim = dim_of(v, axis, "a vector of rank")
    keys = tile_sort(_key(as_matrix(v), descending), dim)
    return reshape(_element_of_key(keys, v, descending), v.shape)


@composite
def argsort(v: Vector, axis: int = -1, descending: bool = False) -> Vector:
    """The indices, i32, that sort ``v`` along ``axis``; equals keep their order."""
    dim = dim_of(v, axis, "a vector of rank")
    return reshape(_order(as_matrix(v), descending, dim), v.shape)


@composite
def _order(v: Vector, descending: bool, dim: int) -> Vector:
    """The indices that sort a matrix; 64 bits by their lower halves, then the upper."""
    key = _key(_without_signs_of_zeros(v), descending)
    if key.dtype == i32:
        return _sorted_index(key, dim)
    first = _sorted_index((key & 0xFFFFFFFF) - 0x80000000, dim)
    return gather(first, _sorted_index(gather(key >> 32, first, dim), dim), dim)


@composite
def _without_signs_of_zeros(v: Vector) -> Vector:
    """``v`` with all zeros positive: they are equals."""
    return where(v == 0, 0, v) if v.dtype.is_float else v


@composite
def _sorted_index(key: Vector, dim: int) -> Vector:
    """The indices that sort keys of 32 bits."""
    return _index(tile_sort(_key_and_index(key, dim), dim))


@composite
def _key_and_index(key: Vector, dim: int) -> Vector:
    """i64 in the order of keys of 32 bits and, where these are equal, of indices."""
    return key.to(i64) * 4294967296 + along(key.shape[dim], dim).to(i64)


@composite
def _index(both: Vector) -> Vector:
    return (both & 0xFFFFFFFF).to(i32)


@composite
def topk(v: Vector, k: int, axis: int = -1) -> tuple[Vector, Vector]:
    """The ``k`` largest elements along ``axis``, in order, and their indices, i32.

    Of equals the first stands first; NaN is last.
    """
    dim = dim_of(v, axis, "a vector of rank")
    wide = as_matrix(v)
    static_assert(
        0 < k <= wide.shape[dim], f"`topk`: {k} of {wide.shape[dim]} elements"
    )
    if v.dtype.bits == 64:
        order = slice_matrix(_order(wide, True, dim), 0, k, 1, dim)
        best = gather(wide, order, dim)
    else:
        both = _key_and_index(_key(_without_signs_of_zeros(wide), True), dim)
        if k > _MOST_PASSES:
            chosen = slice_matrix(tile_sort(both, dim), 0, k, 1, dim)
        else:
            chosen = _least(both, k, dim)
        best = _element_of_key((chosen >> 32).to(i32), v, True)
        order = _index(chosen)
    if v.ndim == 1:
        return reshape(best, k), reshape(order, k)
    return best, order


@composite
def _least(numbers: Vector, k: int, dim: int) -> Vector:
    """The ``k`` least of different i64 along a dim, in order: one pass for each."""
    at = along(k, dim)
    chosen = zeros((numbers.shape[0], k) if dim else (k, numbers.shape[1]), i64)
    bound = reduce_min(numbers * 0, dim, True) + _LEAST
    for turn in range(k):
        last = reduce_min(where(numbers >= bound, numbers, _most(64)), dim, True)
        chosen = where(at == turn, last, chosen)
        bound = last + 1
    return chosen


@composite
def histogram(v: Vector, bins: int, mask: Vector | None = None) -> Vector:
    """How many elements are 0, 1, ... ``bins - 1``: i32, of rank 1.

    Args:
        v: integers; those outside are not counted.
        bins: known when compiling.
        mask: i1; where false, elements are not counted.
    """
    static_assert(v.dtype.is_integer, f"`histogram` counts integers, not {v.dtype}")
    static_assert(bins > 0, f"`histogram` of {bins} bins")
    memory = slm((bins,), i32)
    whole = init_tile(memory, [0], (bins,))
    store_tile(zeros((bins,), i32), whole)
    barrier()
    place = (v | 0).to(i64)  # a value, which wraps as offsets do not
    counted = (place >= 0) & (place < bins)
    counted = counted if mask is None else counted & mask
    one = zeros(v.shape, i32) + 1
    atomic_rmw_tile("add", one, init_tile(memory, place), mask=counted)
    barrier()
    counts = load_tile(whole)
    barrier()
    return counts
