"""Operations on the values of tiles: products, reductions, shapes, layouts, atomics.

Source: docs/xetile.md, section 3; docs/language.md, "Rules of types and edges".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np

from xetl.dialects.base import ints_of, is_tf32, shape_of
from xetl_reference.combining import combine, reduction, scan
from xetl_reference.floats import round_to_tf32
from xetl_reference.memory import ATOMIC
from xetl_reference.tiles import ScatteredTile, Tile, pack, unpack
from xetl_reference.values import (
    BF16,
    F32,
    F64,
    Array,
    Binary,
    DType,
    Function,
    Meaning,
    Unary,
    always,
    dtype_of,
    is_narrow,
    same,
    unsigned,
)

# Products ---------------------------------------------------------------------------


def _product_f64(a: Array, b: Array) -> Array:
    return a.astype(F64) @ b.astype(F64)


def _product_bf16x3(a: Array, b: Array) -> Array:
    """Three products of bf16 parts: high x high, high x low, low x high."""
    a_high, b_high = a.astype(BF16), b.astype(BF16)
    a_low = (a - a_high.astype(F32)).astype(BF16)
    b_low = (b - b_high.astype(F32)).astype(BF16)
    return (
        _product_f64(a_high, b_high)
        + _product_f64(a_high, b_low)
        + _product_f64(a_low, b_high)
    )


_PRECISIONS: dict[str, Binary] = {
    "tf32": lambda a, b: _product_f64(round_to_tf32(a), round_to_tf32(b)),
    "bf16x3": _product_bf16x3,
}


def product(
    precision: str | None, result: DType, a_unsigned: bool, b_unsigned: bool
) -> Function:
    """Return the function ``a @ b + c``, rounded to f32 and to the result's type."""
    if result.kind == "i":
        # Wrapping; products of 8 bits are exact in f64, which is fast.
        def run(a: Array, b: Array, c: Array | None = None) -> Array:
            left = unsigned(a) if a_unsigned else a
            right = unsigned(b) if b_unsigned else b
            if a.dtype.itemsize == 1:
                total = _product_f64(left, right).astype(np.int64)
            else:
                total = left.astype(np.int64) @ right.astype(np.int64)
            total = total.astype(result)
            return total if c is None else total + c

        return run
    multiply = _PRECISIONS.get(precision or "ieee", _product_f64)

    def run(a: Array, b: Array, c: Array | None = None) -> Array:
        total = multiply(a, b)
        if c is not None:
            total = total + c.astype(F64)
        if result != F64:
            total = total.astype(F32)
        return total.astype(result) if is_narrow(result) else total

    return run


def _tile_mma(op: Any) -> Function:
    type_ = op.result.type
    precision = "tf32" if is_tf32(op.a.type) else None
    function = product(
        precision if op.precision is None else op.precision.data,
        dtype_of(type_),
        op.a_unsigned is not None,
        op.b_unsigned is not None,
    )
    shape = shape_of(type_)
    if len(shape) == 2:
        return function
    return lambda *values: pack(function(*(unpack(value) for value in values)), shape)


# Shapes -----------------------------------------------------------------------------


def _reduce(op: Any) -> Unary:
    dims = op.dims
    reduce = reduction(op.kind.data, dtype_of(op.result.type))
    if op.reduction_size is None:
        return lambda source: reduce(source, dims)
    size = op.reduction_size.value.data

    def grouped(source: Array) -> Array:
        for dim in dims:
            shape = source.shape
            groups = (*shape[:dim], shape[dim] // size, size, *shape[dim + 1 :])
            source = reduce(source.reshape(groups), (dim + 1,)).squeeze(dim + 1)
        return source

    return grouped


def _scan(op: Any) -> Unary:
    dim, function = op.dim, scan(op.kind.data, dtype_of(op.result.type))
    return lambda source: function(source, dim)


# Atomics ----------------------------------------------------------------------------


def _atomic(op: Any) -> Function:
    type_, swaps = op.tile.type, op.expected is not None
    join = _swapped if swaps else combine(op.kind.data, dtype_of(type_))
    update = _update_scattered if type_.scattered else _update_block
    shape = shape_of(type_.vector_type())

    def run(value: Array, tile: Any, other: Array | None = None) -> Array:
        """``other``: the expected elements, or a mask."""
        if swaps or other is None:
            mask, values = np.ones(value.shape, np.bool_), [value]
            values += [] if other is None else [other]
            return update(join, tile, mask, values)
        return update(join, tile, other, [value])

    if len(shape) == 2 or type_.scattered:
        return run

    def blocked(value: Array, tile: Tile, *rest: Array) -> Array:
        return pack(run(unpack(value), tile, *map(unpack, rest)), shape)

    return blocked


def _swapped(old: Array, new: Array, expected: Array) -> Array:
    return np.where(same_bits(old, expected), new, old)


def same_bits(one: Array, other: Array) -> Array:
    """Return where two arrays of one dtype have the same bits."""
    return unsigned(np.ascontiguousarray(one)) == unsigned(np.ascontiguousarray(other))


def _update_block(
    join: Function, tile: Tile, mask: Array, values: Sequence[Array]
) -> Array:
    """Combine the elements of a mask with values; return the old ones, others are 0."""
    window, where = tile.inside(ATOMIC, *mask.shape, mask=mask)
    chosen, old = mask[where], np.zeros_like(values[0])
    before = old[where][chosen] = window[chosen]
    window[chosen] = join(before, *(each[where][chosen] for each in values))
    return old


def _update_scattered(
    join: Function, tile: ScatteredTile, mask: Array, values: Sequence[Array]
) -> Array:
    """Update one element after the other if offsets repeat, so that each counts."""
    window, at, chosen = tile.places(mask, ATOMIC)
    old, given = np.zeros_like(values[0]), [each[chosen] for each in values]
    before, parts = np.zeros_like(given[0]), [slice(None)]
    if len(np.unique(at)) < len(at):
        parts = [slice(i, i + 1) for i in range(len(at))]
    for part in parts:
        before[part] = window[at[part]]
        window[at[part]] = join(before[part], *(each[part] for each in given))
    old[chosen] = before
    return old


MEANINGS: dict[str, Meaning] = {
    "xetile.tile_mma": _tile_mma,
    "xetile.tile_transpose": lambda op: methodcaller(
        "transpose", ints_of(op.permutation)
    ),
    "xetile.tile_reduce": _reduce,
    "xetile.tile_scan": _scan,
    "xetile.tile_sort": lambda op: partial(np.sort, axis=op.dim),
    "xetile.tile_broadcast": lambda op: partial(
        np.broadcast_to, shape=shape_of(op.result.type)
    ),
    "xetile.tile_pack": lambda op: partial(pack, shape=shape_of(op.result.type)),
    "xetile.tile_unpack": always(unpack),
    "xetile.tile_conv_layout": same,
    "xetile.atomic_rmw_tile": _atomic,
}
