"""Sorting, the largest elements, and counting; composed of `tile_sort` and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.dtypes import i32, i64
from xetl.language.operation import composite, operation
from xetl.language.ops.elementwise import isnan, nan, where
from xetl.language.ops.moves import (
    along,
    as_matrix,
    dim_of,
    exchange,
    gather,
    memory_for,
    slice_matrix,
)
from xetl.language.ops.program import barrier, static_assert, static_range
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

_MOST_PASSES = 32
SORTED = 8
"""Sorting all is faster up to this many times k elements, twice as many of 32 bits, or
with more passes [measured: Zen 4, f64, 4096 x 16, k = 1: 360 us sorted, 195 by passes,
k = 2: 289 and 292; 4096 x 32, k = 2: 507 and 342, k = 4: 516 and 593]."""
_GROUPED = 1024
"""The least elements times k for which groups pay: AVX-512, 1024 f32 a row, k = 1."""
_LONGEST = 16
"""The number of powers of two that are tried as the length of a group."""


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
    """Sort the elements of ``v`` along ``axis`` in ascending order; used by `sort`.

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
    return _order_of_keys(order_key(v, descending), dim)


@composite
def _order_of_keys(key: Vector, dim: int) -> Vector:
    """The same of keys."""
    if key.dtype == i32:
        return _sorted_index(key, dim)
    first = _sorted_index((key & 0xFFFFFFFF) - 0x80000000, dim)
    return gather(first, _sorted_index(gather(key >> 32, first, dim), dim), dim)


@composite
def order_key(v: Vector, descending: bool) -> Vector:
    """`_key` with one key for zeros of both signs: they are equals."""
    return _key(where(v == 0, 0, v) if v.dtype.is_float else v, descending)


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
        0 < k <= wide.shape[dim], f"`topk`: k is {k}, not 1 to {wide.shape[dim]}"
    )
    order = _first(order_key(wide, True), k, dim)
    best = gather(wide, order, dim)
    if v.ndim == 1:
        return reshape(best, k), reshape(order, k)
    return best, order


@composite
def _first(key: Vector, k: int, dim: int) -> Vector:
    """The indices of the ``k`` least keys along a dim, as `_order` has them."""
    n = key.shape[dim]
    size = _group(n, k) if dim and key.shape[0] == 1 else 1
    if size == 1:
        return _first_of_all(key, k, dim)
    # An element that is wanted is in one of the k groups with the least keys. Groups
    # follow one another, and are taken in that order: equals keep theirs.
    groups = reshape(key, (n // size, size))
    least = reshape(reduce_min(groups, 1, True), (1, n // size))
    chosen = tile_sort(_first_of_all(least, k, 1), 1)
    rows = exchange(memory_for(groups), groups, reshape(chosen, (k, 1)), 0)
    order = _first_of_all(reshape(rows, (1, k * size)), k, 1)
    return gather(chosen, order // size, 1) * size + order % size


@composite
def _group(n: int, k: int) -> int:
    """Return the size of groups: k groups have as many elements as there are groups."""
    size = 1
    if n * k >= _GROUPED and n >= 8 * k:
        for power in static_range(_LONGEST):
            wide = 1 << power
            if n % wide == 0 and wide * wide * k <= n:
                size = wide
    return size


@composite
def _first_of_all(key: Vector, k: int, dim: int) -> Vector:
    """`_first`, by one pass for each of few."""
    few = SORTED * 64 // key.dtype.bits * k
    if k > _MOST_PASSES or key.shape[dim] <= few:
        return slice_matrix(_order_of_keys(key, dim), 0, k, 1, dim)
    if key.dtype == i32:
        return _index(_least(_key_and_index(key, dim), k, dim))
    at, places = along(k, dim), along(key.shape[dim], dim)
    chosen = zeros((key.shape[0], k) if dim else (k, key.shape[1]), i32)
    bound = reduce_min(key * 0, dim, True) - _most(64) - 1
    last = bound.to(i32) * 0 - 1
    for turn in range(k):
        is_left = (key > bound) | ((key == bound) & (places > last))
        bound = reduce_min(where(is_left, key, _most(64)), dim, True)
        is_next = is_left & (key == bound)
        last = reduce_min(where(is_next, places, _most(32)), dim, True)
        chosen = where(at == turn, last, chosen)
    return chosen


@composite
def _least(numbers: Vector, k: int, dim: int) -> Vector:
    """The ``k`` least of different i64 along a dim, in order: one pass for each."""
    at = along(k, dim)
    chosen = zeros((numbers.shape[0], k) if dim else (k, numbers.shape[1]), i64)
    bound = reduce_min(numbers * 0, dim, True) - _most(64) - 1
    for turn in range(k):
        last = reduce_min(where(numbers >= bound, numbers, _most(64)), dim, True)
        chosen = where(at == turn, last, chosen)
        bound = last + 1
    return chosen


@composite
def histogram(v: Vector, bins: int, mask: Vector | None = None) -> Vector:
    """Count the elements that are 0, 1, ... ``bins - 1``: i32, of rank 1.

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
