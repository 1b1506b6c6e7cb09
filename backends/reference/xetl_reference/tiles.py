"""Tiles: their position, and the part of them inside their matrix.

Source: docs/xetile.md, sections 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xetl.dialects.base import shape_of
from xetl_reference import values
from xetl_reference.memory import (
    READ,
    WRITE,
    AddressMemory,
    Memory,
    View,
    readers,
    window_readers,
)


class Tile(NamedTuple):
    """A block of a matrix at ``row`` and ``column``; it may be outside the matrix."""

    memory: Memory
    dtype: values.DType
    base: int
    sizes: tuple[int, int]
    strides: tuple[int, int]
    row: int
    column: int

    def moved(self, rows: int, columns: int) -> Tile:
        """Return the tile moved by these numbers of rows and columns."""
        return self._replace(row=self.row + rows, column=self.column + columns)

    def inside(
        self,
        kind: str | None,
        rows: int,
        columns: int,
        mask: values.Array | None = None,
    ) -> tuple[values.Array, tuple[slice, slice]]:
        """Access the part of ``rows`` x ``columns`` inside the matrix.

        Args:
            mask: which elements of the tile are accessed, if not all.

        Returns:
            A view of its elements, and their position in the tile.
        """
        top, bottom = _clip(self.row, rows, self.sizes[0])
        left, right = _clip(self.column, columns, self.sizes[1])
        down, along = self.strides
        offset = self.base + (self.row + top) * down + (self.column + left) * along
        where = slice(top, bottom), slice(left, right)
        shape = bottom - top, right - left
        if 0 in shape:
            return np.empty(shape, self.dtype), where
        chosen = ... if mask is None else mask[where]
        place = offset, shape, self.strides
        return self.memory.access(kind, self.dtype, *place, chosen), where

    def load(
        self, rows: int, columns: int, padding: Any = 0, kind: str | None = READ
    ) -> values.Array:
        """Return the elements, with ``padding`` outside the matrix."""
        window, where = self.inside(kind, rows, columns)
        if window.shape == (rows, columns):
            return window.copy()
        result = np.full((rows, columns), padding, self.dtype)
        result[where] = window
        return result

    def store(self, value: values.Array) -> None:
        """Write the part inside the matrix."""
        window, where = self.inside(WRITE, *value.shape)
        window[...] = value[where]


def _clip(at: int, count: int, size: int) -> tuple[int, int]:
    """Return which of ``count`` elements from ``at`` on are in 0 .. size."""
    first = min(max(-at, 0), count)
    return first, max(min(size - at, count), first)


class ScatteredTile(NamedTuple):
    """Elements at ``indices`` of a base, one index for each element."""

    view: View
    indices: values.Array

    def moved(self, distance: values.Array) -> ScatteredTile:
        """Return the tile with each index moved by its own distance."""
        return ScatteredTile(self.view, self.indices + distance)

    def places(
        self, mask: values.Array, kind: str
    ) -> tuple[values.Array, values.Array, values.Array]:
        """Access the active elements; indices outside the base are masked off.

        Returns:
            A view of the memory around them, their positions in the view, and the mask
            of the elements that are active.
        """
        mask = mask & ~self.outside(mask)
        return *self.view.around((), self.indices[mask], kind), mask

    def outside(self, mask: values.Array) -> values.Array:
        """Return which elements of a mask have an index outside the base."""
        low, high = self.bounds()
        return mask & ((self.indices < low) | (self.indices >= high))

    def bounds(self) -> tuple[int, int]:
        """Return the first index and the one past the last."""
        view = self.view
        if view.sizes:
            return 0, view.sizes[0]
        # A base of rank 0 is a bare address: its memory sets the bounds.
        low, high = view.memory.bounds(view.dtype)
        return low - view.offset, high - view.offset


# The operations ---------------------------------------------------------------------


def source_view(source: Any, dtype: values.DType) -> View:
    """Return the base of a tile. An address has no sizes."""
    if isinstance(source, View):
        return source
    return View(AddressMemory(source), dtype, 0, (), ())


def _init_tile(op: Any) -> values.Function:
    dtype = values.dtype_of(op.result.type)
    if op.indices is not None:
        sizes, strides = readers(op.static_sizes, op.static_strides)

        def scattered(source: Any, *rest: Any) -> ScatteredTile:
            *operands, indices = rest
            view = source_view(source, dtype)
            extents = sizes(operands) or view.sizes
            steps = strides(operands) or view.strides
            base = View(view.memory, dtype, view.offset, extents, steps)
            return ScatteredTile(base, indices)

        return scattered
    offsets, sizes, strides = window_readers(op)

    def run(source: Any, *operands: int) -> Tile:
        view = source_view(source, dtype)
        at = offsets(operands)
        extents = sizes(operands) or view.sizes
        steps = strides(operands) or view.strides
        base, inside = view.offset, True
        for place, extent, step in zip(at[:-2], extents, steps):
            base += place * step
            inside = inside and 0 <= place < extent
        rows, columns = extents[-2:] if inside else (0, 0)
        matrix = rows, columns
        pitch = steps[-2], steps[-1]
        return Tile(view.memory, dtype, base, matrix, pitch, at[-2], at[-1])

    return run


def _update(op: Any) -> values.Function:
    if op.indices is not None:
        return ScatteredTile.moved
    (offsets,) = readers(op.static_offsets)

    def run(tile: Tile, *operands: int) -> Tile:
        return tile.moved(*offsets(operands))

    return run


def _load_tile(op: Any) -> values.Function:
    type_ = op.tile.type
    rows, columns = type_.shape
    padding = values.padding_value(op.padding, values.dtype_of(type_))
    shape, count = shape_of(type_.vector_type()), type_.array_length
    turns = op.permutation is not None

    def load(tile: Tile) -> values.Array:
        found = tile.load(rows, columns, padding)
        if turns:
            return found.T
        return found if len(shape) == 2 else pack(found, shape)

    if count == 1 or turns:
        return load

    def several(tile: Tile) -> tuple[values.Array, ...]:
        return tuple(load(tile.moved(0, i * columns)) for i in range(count))

    return several


def _store_tile(op: Any) -> values.Binary:
    if len(shape_of(op.value.type)) == 2:
        return lambda value, tile: tile.store(value)
    return lambda value, tile: tile.store(unpack(value))


def _load_gather(op: Any) -> values.Function:
    dtype = values.dtype_of(op.tile.type)
    padding = values.padding_value(op.padding, dtype)

    def run(tile: ScatteredTile, mask: values.Array) -> values.Array:
        window, at, chosen = tile.places(mask, READ)
        result = np.full(mask.shape, padding, dtype)
        result[chosen] = window[at]
        return result

    return run


def _store_scatter(
    value: values.Array, mask: values.Array, tile: ScatteredTile
) -> None:
    window, at, chosen = tile.places(mask, WRITE)
    window[at] = value[chosen]


# Blocked values ---------------------------------------------------------------------


def pack(value: values.Array, shape: Sequence[int]) -> values.Array:
    """Pack (h, w) to (h/b0, w/b1, b0, b1): P[a,b,c,d] = V[a*b0 + c, b*b1 + d]."""
    rows, columns, block_rows, block_columns = shape
    parts = value.reshape(rows, block_rows, columns, block_columns)
    return parts.transpose(0, 2, 1, 3)


def unpack(value: values.Array) -> values.Array:
    """Unpack (h/b0, w/b1, b0, b1) to (h, w)."""
    rows, columns, block_rows, block_columns = value.shape
    whole = value.transpose(0, 2, 1, 3)
    return whole.reshape(rows * block_rows, columns * block_columns)


MEANINGS: dict[str, values.Meaning] = {
    "xetile.init_tile": _init_tile,
    "xetile.update_tile_offset": _update,
    "xetile.load_tile": _load_tile,
    "xetile.store_tile": _store_tile,
    "xetile.prefetch_tile": values.nothing,
    "xetile.load_gather": _load_gather,
    "xetile.store_scatter": values.always(_store_scatter),
}
