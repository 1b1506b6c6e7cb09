"""Sorting, the largest elements, and counting; made of other operations."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from xetl.language.dtypes import f32, i32, i64
from xetl.language.operation import composite
from xetl.language.ops.compile_time import next_power_of_2, static_assert
from xetl.language.ops.elementwise import (
    isnan,
    maximum,
    minimum,
    nan,
    where,
)
from xetl.language.ops.moves import (
    along,
    as_matrix,
    dim_of,
    exchange,
    memory_for,
    slice_rows,
)
from xetl.language.ops.program import barrier
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

__all__ = [
    "argsort",
    "histogram",
    "sort",
    "topk",
]

_LEAST = -(1 << 63)
_MOST_PASSES = 32
"""With more, sorting everything is faster."""


@composite
def _most(bits: int) -> int:
    """The largest signed integer of so many bits."""
    return 2 ** (bits - 1) - 1


@composite
def _of_bits(bits: Vector, width: int) -> Vector:
    """The integers that are in the order of the floats with these bits; or back."""
    return where(bits < 0, bits ^ _most(width), bits)


@composite
def _key(v: Vector, descending: bool) -> Vector:
    """Signed integers, i32 or i64, in the order wanted of the elements; NaN is last."""
    if v.dtype.is_float:
        wide = v.to(f32) if v.dtype.bits < 32 else v
        width = wide.dtype.bits
        bits = wide.to(i64 if width == 64 else i32, bitcast=True)
        key = _of_bits(bits, width)
        # Larger than all others, the ends of both orders included.
        return where(isnan(wide), _most(width), ~key if descending else key)
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
        bits = _of_bits(plain, width)
        floats = bits.to(f32 if width == 32 else v.dtype, bitcast=True)
        return where(key == _most(width), nan, floats).to(v.dtype)
    if v.dtype.kind == "u" and v.dtype.bits >= 32:
        return plain.to(v.dtype, bitcast=True) ^ (1 << (width - 1))
    return plain.to(v.dtype)


@composite
def _sorted_keys(key: Vector, dim: int) -> Vector:
    """Matrices of integers, sorted along a dim by Batcher's bitonic network."""
    extent = key.shape[dim]
    size = next_power_of_2(extent)
    at = along(size, dim)
    if size > extent:
        wide = exchange(memory_for(key), key, at, dim)
        key = where(at < extent, wide, _most(key.dtype.bits))
    memory = memory_for(key)
    for merged in range(int(log2(size))):
        for half in range(merged + 1):
            distance = 1 << (merged - half)
            other = exchange(memory, key, at ^ distance, dim)
            falls = (at & (2 << merged)) != 0
            is_upper = (at & distance) != 0
            smaller = falls ^ is_upper
            key = where(smaller, maximum(key, other), minimum(key, other))
    return slice_rows(key, 0, extent, dim) if size > extent else key


@composite
def sort(v: Vector, axis: int = -1, descending: bool = False) -> Vector:
    """``v`` with its elements along ``axis`` in order; NaN is last in either order.

    Source: Batcher, "Sorting networks and their applications" (1968).
    """
    dim = dim_of(v, axis, "a vector of rank")
    keys = _sorted_keys(_key(as_matrix(v), descending), dim)
    return reshape(_element_of_key(keys, v, descending), v.shape)


@composite
def argsort(v: Vector, axis: int = -1, descending: bool = False) -> Vector:
    """The indices, i32, that sort ``v`` along ``axis``; equals keep their order.

    Raises:
        ControlFlowError: elements of 64 bits: key and index go into one i64.
    """
    static_assert(v.dtype.bits < 64, f"`argsort` takes at most 32 bits, not {v.dtype}")
    dim = dim_of(v, axis, "a vector of rank")
    both = _sorted_keys(_key_and_index(as_matrix(v), descending, dim), dim)
    return reshape((both & 0xFFFFFFFF).to(i32), v.shape)


@composite
def _key_and_index(v: Vector, descending: bool, dim: int) -> Vector:
    """i64 in the order of elements and, where these are equal, of their indices."""
    key = _key(v, descending).to(i64)
    return key * 4294967296 + along(key.shape[dim], dim).to(i64)


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
    static_assert(v.dtype.bits < 64, f"`topk` takes at most 32 bits, not {v.dtype}")
    both = _key_and_index(wide, True, dim)
    if k > _MOST_PASSES:
        chosen = slice_rows(_sorted_keys(both, dim), 0, k, dim)
    else:
        chosen = _least(both, k, dim)
    best = _element_of_key((chosen >> 32).to(_key(wide, True).dtype), v, True)
    order = (chosen & 0xFFFFFFFF).to(i32)
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
    memory = slm((bins,), i32)
    whole = init_tile(memory, [0], (bins,))
    store_tile(zeros((bins,), i32), whole)
    barrier()
    place = init_tile(memory, v)
    atomic_rmw_tile("add", zeros(v.shape, i32) + 1, place, mask=mask)
    barrier()
    counts = load_tile(whole)
    barrier()
    return counts
