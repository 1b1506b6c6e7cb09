"""Which elements of memory an operation is about to touch: what the checks ask.

Operations that are not here are not checked: those of lower levels, and transfers,
gathers and scatters of `vector`, which the front end never makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from xetl_reference.memory import View
from xetl_reference.shadow import ATOMIC, READ, WRITE, Access, Window
from xetl_reference.tiles import ScatteredTile, Tile, unpack
from xetl_reference.values import Array, shape_of

Accesses: TypeAlias = Callable[..., Iterable[Access]]
"""The operands' values to what is touched."""


def accesses_of(op: Any) -> Accesses | None:
    """What an operation touches; None if it is not checked."""
    builder = _BUILDERS.get(op.name)
    return None if builder is None else builder(op)


Lanes: TypeAlias = tuple[ScatteredTile, Array]
"""A scattered tile, and which of its elements are active."""


def lanes_of(op: Any) -> Callable[..., Lanes] | None:
    """The active elements of an access with an index for each element."""
    found = _LANES.get(op.name)
    return found if found is not None and op.tile.type.scattered else None


def _gathered(tile: ScatteredTile, mask: Array) -> Lanes:
    return tile, mask


def _stored(value: Array, mask: Array, tile: ScatteredTile) -> Lanes:
    return tile, mask


def _updated(value: Array, tile: ScatteredTile, mask: Array | None = None) -> Lanes:
    if mask is None:
        mask = np.ones(tile.indices.shape, np.bool_)
    return tile, mask


def _compared(value: Array, tile: ScatteredTile, expected: Array) -> Lanes:
    return _updated(value, tile)


def _scattered(kind: str, lanes: Callable[..., Lanes]) -> Accesses:
    def find(*operands: Any) -> Iterable[Access]:
        tile, mask = lanes(*operands)
        view = tile.view
        return (Access(kind, view.memory, view.dtype, tile.offsets(mask)),)

    return find


# Tiles ------------------------------------------------------------------------------


def _window(kind: str, tile: Tile, rows: int, columns: int) -> Access:
    offset, shape, _ = tile.clipped(rows, columns)
    return Access(kind, tile.memory, tile.dtype, Window(offset, shape, tile.strides))


def _load_tile(op: Any) -> Accesses:
    type_ = op.tile.type
    (rows, columns), count = type_.shape, type_.array_length

    def one(tile: Tile) -> Iterable[Access]:
        return (_window(READ, tile, rows, columns),)

    def several(tile: Tile) -> Iterable[Access]:
        for i in range(count):
            yield _window(READ, tile.moved(0, i * columns), rows, columns)

    return one if count == 1 else several


def _store_tile(op: Any) -> Accesses:
    rows, columns = op.tile.type.shape

    def find(value: Array, tile: Tile) -> Iterable[Access]:
        return (_window(WRITE, tile, rows, columns),)

    return find


def _atomic(op: Any) -> Accesses:
    type_ = op.tile.type
    if type_.scattered:
        return _scattered(ATOMIC, _updated if op.expected is None else _compared)
    rows, columns = type_.shape

    def block(value: Array, tile: Tile, mask: Array | None = None) -> Iterable[Access]:
        access = _window(ATOMIC, tile, rows, columns)
        if mask is None or op.expected is not None:
            return (access,)
        chosen = mask if mask.ndim == 2 else unpack(mask)
        offset, shape, where = tile.clipped(rows, columns)
        down, along = tile.strides
        offsets = offset + np.add.outer(
            np.arange(shape[0]) * down, np.arange(shape[1]) * along
        )
        return (access._replace(places=offsets[chosen[where]]),)

    return block


# Single elements --------------------------------------------------------------------


def _element(kind: str, view: View, indices: tuple[int, ...]) -> Iterable[Access]:
    place = Window(view.at(indices), (), ())
    return (Access(kind, view.memory, view.dtype, place),)


def _load(view: View, *indices: int) -> Iterable[Access]:
    return _element(READ, view, indices)


def _store(value: Any, view: View, *indices: int) -> Iterable[Access]:
    return _element(WRITE, view, indices)


def _atomic_element(value: Any, view: View, *indices: int) -> Iterable[Access]:
    return _element(ATOMIC, view, indices)


# Vectors in memory ------------------------------------------------------------------


def _vector(
    kind: str, view: View, indices: tuple[int, ...], shape: tuple[int, ...]
) -> Iterable[Access]:
    strides = view.strides[len(view.strides) - len(shape) :]
    place = Window(view.at(indices), shape, strides)
    return (Access(kind, view.memory, view.dtype, place),)


def _vector_load(op: Any) -> Accesses:
    shape = shape_of(op.result.type)

    def find(base: View, *indices: int) -> Iterable[Access]:
        return _vector(READ, base, indices, shape)

    return find


def _vector_store(op: Any) -> Accesses:
    shape = shape_of(op.value.type)

    def find(value: Array, base: View, *indices: int) -> Iterable[Access]:
        return _vector(WRITE, base, indices, shape)

    return find


def _masked(kind: str) -> Accesses:
    def find(base: View, *rest: Any) -> Iterable[Access]:
        *indices, mask, _ = rest
        stride = base.strides[-1] if base.strides else 1
        places = base.at(indices) + np.flatnonzero(mask) * stride
        return (Access(kind, base.memory, base.dtype, places),)

    return find


def _copy(source: View, target: View) -> Iterable[Access]:
    for kind, view in ((READ, source), (WRITE, target)):
        place = Window(view.offset, view.sizes, view.strides)
        yield Access(kind, view.memory, view.dtype, place)


_LANES: dict[str, Callable[..., Lanes]] = {
    "xetile.load_gather": _gathered,
    "xetile.store_scatter": _stored,
    "xetile.atomic_rmw_tile": _updated,
}
_BUILDERS: dict[str, Callable[[Any], Accesses]] = {
    "xetile.load_tile": _load_tile,
    "xetile.store_tile": _store_tile,
    "xetile.atomic_rmw_tile": _atomic,
    "xetile.load_gather": lambda op: _scattered(READ, _gathered),
    "xetile.store_scatter": lambda op: _scattered(WRITE, _stored),
    "memref.load": lambda op: _load,
    "memref.store": lambda op: _store,
    "memref.atomic_rmw": lambda op: _atomic_element,
    "memref.copy": lambda op: _copy,
    "vector.load": _vector_load,
    "vector.store": _vector_store,
    "vector.maskedload": lambda op: _masked(READ),
    "vector.maskedstore": lambda op: _masked(WRITE),
}
