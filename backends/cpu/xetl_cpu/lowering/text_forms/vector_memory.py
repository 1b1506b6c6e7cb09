"""Operations of `vector` on memory: rows and matrices as tiles, the rest by indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType, i1
from xdsl.ir import Operation, SSAValue

from xetl.codegen.memref import static_strides
from xetl.dialects.base import Index, memref_type, vector_type
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.xetile import (
    InitTileOp,
    LoadGatherOp,
    StoreScatterOp,
    TileAttr,
    TileType,
)
from xetl.ir.builder import Builder
from xetl_cpu.lowering.text_forms import scratch
from xetl_cpu.lowering.text_forms.parts import coordinate, spread
from xetl_cpu.lowering.text_forms.scratch import Place
from xetl_cpu.lowering.text_forms.writing import replace_by

_EVERYTHING = 1 << 62
"""The size of a base whose bounds the masks observe."""


def _at(w: Builder, base: SSAValue, indices: Sequence[Index]) -> Place:
    """An element of a memref, with the strides of the memref."""
    rank = len(memref_type(base).get_shape())
    meta = memref.ExtractStridedMetadataOp(base)
    w.add(meta)
    known = static_strides(memref_type(base))
    strides = tuple(
        given if fixed is None else fixed
        for fixed, given in zip(known, meta.results[2 + rank :])
    )
    offset: Index = 0
    for place, stride in zip(indices, strides):
        offset = w.plus(offset, w.times(place, stride))
    return Place(meta.results[0], offset, strides)


def _is_matrix(value: SSAValue) -> bool:
    return vector_type(value).get_num_dims() in (1, 2)


def _window(place: Place, rank: int) -> Place:
    """Rows and columns from an element on, along the last dimensions."""
    pitch = place.strides[len(place.strides) - rank :]
    return Place(place.memory, place.offset, (0, *pitch)[-2:])


def _load(op: vector.LoadOp) -> None:
    w, shape = Builder.before(op), vector_type(op.result).get_shape()
    place = _at(w, op.base, op.indices)
    if _is_matrix(op.result):
        matrix = scratch.matrix_shape(shape)
        found = scratch.read(w, _window(place, len(shape)), matrix)
        replace_by(op, scratch.cast(w, found, shape))
        return
    places = _along(w, shape, place.strides[len(place.strides) - len(shape) :])
    replace_by(op, _gathered(w, place, places, None, None, op.result.type))


def _store(op: vector.StoreOp) -> None:
    w, shape = Builder.before(op), vector_type(op.value).get_shape()
    place = _at(w, op.base, op.indices)
    if _is_matrix(op.value):
        scratch.write(w, scratch.as_matrix(w, op.value), _window(place, len(shape)))
    else:
        places = _along(w, shape, place.strides[len(place.strides) - len(shape) :])
        _scattered(w, place, places, None, op.value)
    replace_by(op)


# Elements by index ------------------------------------------------------------------


def _along(w: Builder, shape: Sequence[int], strides: Sequence[Index]) -> SSAValue:
    """How far each element of a vector is from the first; a matrix of these."""
    matrix = scratch.matrix_shape(shape)
    total: SSAValue | None = None
    for dim, stride in enumerate(strides):
        if shape[dim] == 1:
            continue
        steps = coordinate(w, matrix, shape, dim)
        wide = w.insert(vector.BroadcastOp(w.index(stride), vector_type(steps)))
        part = spread(w, w.insert(arith.MuliOp(steps, wide)), matrix)
        total = part if total is None else w.insert(arith.AddiOp(total, part))
    if total is None:
        type_ = VectorType(IndexType(), list(matrix))
        total = w.insert(arith.ConstantOp.splat(0, type_))
    return total


def _gathered(
    w: Builder,
    place: Place,
    places: SSAValue,
    mask: SSAValue | None,
    other: SSAValue | None,
    type_: Any,
) -> SSAValue:
    """The elements at ``places`` from an element on; ``other`` where masked off."""
    tile = _scatter_tile(w, place, places)
    mask = _mask(w, mask, places)
    found = w.insert(LoadGatherOp(tile, mask))
    if other is not None:
        found = w.insert(arith.SelectOp(mask, found, scratch.as_matrix(w, other)))
    return scratch.cast(w, found, type_.get_shape())


def _scattered(
    w: Builder, place: Place, places: SSAValue, mask: SSAValue | None, value: SSAValue
) -> None:
    tile = _scatter_tile(w, place, places)
    mask = _mask(w, mask, places)
    w.add(StoreScatterOp(scratch.as_matrix(w, value), mask, tile))


def _mask(w: Builder, mask: SSAValue | None, places: SSAValue) -> SSAValue:
    if mask is not None:
        return scratch.as_matrix(w, mask)
    shape = vector_type(places).get_shape()
    return w.insert(arith.ConstantOp.splat(1, VectorType(i1, shape)))


def _scatter_tile(w: Builder, place: Place, places: SSAValue) -> SSAValue:
    base = scratch.view(w, Place(place.memory, place.offset, (1,)), (_EVERYTHING,))
    memory, shape = memref_type(base), vector_type(places).get_shape()
    where = TileAttr(scattered=True, memory_space=memory_space_of(memory) or 0)
    type_ = TileType(shape, memory.element_type, where)
    return w.insert(
        InitTileOp(base, [], type_, sizes=[_EVERYTHING], strides=[1], indices=places)
    )


def _indexed(w: Builder, op: Any) -> tuple[Place, SSAValue]:
    """Base and places of a gather or scatter: along the last dimension."""
    place = _at(w, op.base, op.indices)
    places = scratch.as_matrix(w, op.index_vec)
    wide = VectorType(IndexType(), vector_type(places).get_shape())
    if places.type != wide:
        places = w.insert(arith.IndexCastOp(places, wide))
    stride = place.strides[-1] if place.strides else 1
    if stride != 1:
        steps = w.insert(vector.BroadcastOp(w.index(stride), wide))
        places = w.insert(arith.MuliOp(places, steps))
    return place, places


def _gather(op: vector.GatherOp) -> None:
    w = Builder.before(op)
    place, places = _indexed(w, op)
    type_ = op.result.type
    replace_by(op, _gathered(w, place, places, op.mask, op.pass_thru, type_))


def _scatter(op: vector.ScatterOp) -> None:
    w = Builder.before(op)
    place, places = _indexed(w, op)
    _scattered(w, place, places, op.mask, op.value)
    replace_by(op)


def _masked(w: Builder, op: Any) -> tuple[Place, SSAValue]:
    place, shape = _at(w, op.base, op.indices), vector_type(op.mask).get_shape()
    strides = place.strides[len(place.strides) - len(shape) :]
    return place, _along(w, shape, strides)


def _maskedload(op: vector.MaskedloadOp) -> None:
    w = Builder.before(op)
    place, places = _masked(w, op)
    type_ = op.result.type
    replace_by(op, _gathered(w, place, places, op.mask, op.pass_thru, type_))


def _maskedstore(op: vector.MaskedstoreOp) -> None:
    w = Builder.before(op)
    place, places = _masked(w, op)
    _scattered(w, place, places, op.mask, op.value)
    replace_by(op)


# Transfers --------------------------------------------------------------------------


def _transfer(w: Builder, op: Any, shape: Sequence[int]) -> tuple[Place, Any, Any]:
    """First element, places, and a mask of what lies in the memref and is wanted."""
    place = _at(w, op.base, op.indices)
    dims = [getattr(e, "position", None) for e in op.permutation_map.data.results]
    strides: list[Index] = [0 if d is None else place.strides[d] for d in dims]
    places = _along(w, shape, strides)
    mask = None if op.mask is None else scratch.as_matrix(w, op.mask)
    matrix = scratch.matrix_shape(shape)
    for axis, (dim, flag) in enumerate(zip(dims, op.in_bounds.data)):
        if dim is None or (isinstance(flag, IntegerAttr) and flag.value.data):
            continue
        steps = coordinate(w, matrix, shape, axis)
        type_ = vector_type(steps)
        size = w.insert(memref.DimOp(op.base, w.index(dim)))
        start, end = (
            w.insert(vector.BroadcastOp(v, type_)) for v in (op.indices[dim], size)
        )
        at = w.insert(arith.AddiOp(start, steps))
        inside = spread(w, w.insert(arith.CmpiOp("ult", at, end)), matrix)
        mask = inside if mask is None else w.insert(arith.AndiOp(mask, inside))
    return place, places, mask


def _transfer_read(op: vector.TransferReadOp) -> None:
    w, type_ = Builder.before(op), vector_type(op.result)
    place, places, mask = _transfer(w, op, type_.get_shape())
    matrix = VectorType(type_.element_type, vector_type(places).get_shape())
    other = w.insert(vector.BroadcastOp(op.padding, matrix))
    replace_by(op, _gathered(w, place, places, mask, other, type_))


def _transfer_write(op: vector.TransferWriteOp) -> None:
    w = Builder.before(op)
    place, places, mask = _transfer(w, op, vector_type(op.value).get_shape())
    _scattered(w, place, places, mask, op.value)
    replace_by(op)


RULES: dict[type[Operation], Callable[[Any], None]] = {
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedloadOp: _maskedload,
    vector.MaskedstoreOp: _maskedstore,
    vector.GatherOp: _gather,
    vector.ScatterOp: _scatter,
    vector.TransferReadOp: _transfer_read,
    vector.TransferWriteOp: _transfer_write,
}
