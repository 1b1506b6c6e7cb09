"""Accesses of tiles as transfers, gathers and scatters."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import IndexType, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import element_type, vector_type
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.xetile import (
    LoadGatherOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreScatterOp,
    StoreTileOp,
)
from xetl.transforms.subgroups.place import Place
from xetl.transforms.vectors.moving import Descriptors, Parts

AnyAccess = LoadTileOp | StoreTileOp | PrefetchTileOp | LoadGatherOp | StoreScatterOp


def replace_access(op: Operation, tiles: Descriptors, place: Place) -> bool:
    """Replace an access of a tile; False if ``op`` is none, or of a tile that stays.

    The caller erases ``op``. A prefetch changes nothing and gets no successor.
    """
    if not isinstance(op, AnyAccess) or not tiles.knows(op.tile):
        return False
    base, start = tiles.base(op.tile), tiles.starts[op.tile]
    if isinstance(op, LoadTileOp):
        _give(op.result, _read(op, base, start, place))
    elif isinstance(op, StoreTileOp):
        place.add(vector.TransferWriteOp(op.value, base, start))
    elif isinstance(op, LoadGatherOp):
        _give(op.result, _gather(op, base, start[0], place))
    elif isinstance(op, StoreScatterOp):
        _scatter(op, base, start[0], place)
    return True


def _give(old: SSAValue, new: SSAValue) -> None:
    new.name_hint = old.name_hint
    old.replace_all_uses_with(new)


def _read(op: LoadTileOp, base: SSAValue, start: Parts, place: Place) -> SSAValue:
    type_ = op.result.type
    padding = _constant(op.padding, element_type(type_), place)
    return place.add(vector.TransferReadOp(base, start, padding, type_)).result


def _constant(padding: Attribute | None, type_: Attribute, place: Place) -> SSAValue:
    number = 0 if padding is None else splat_value(padding)
    assert number is not None
    return place.add(arith.ConstantOp(make_splat(number, type_), type_)).result


# Scattered tiles --------------------------------------------------------------------


def _gather(
    op: LoadGatherOp, base: SSAValue, indices: SSAValue, place: Place
) -> SSAValue:
    row = _row(vector_type(op.result))
    at, mask = _flat(place, indices), _inside(place, base, indices, op.mask)
    other = _constant(op.padding, row, place)
    zero = place.value(0)
    found = vector.GatherOp(base, [zero], at, mask, other)
    gathered = place.add(found).result
    return place.add(vector.ShapeCastOp(gathered, op.result.type)).result


def _scatter(
    op: StoreScatterOp, base: SSAValue, indices: SSAValue, place: Place
) -> None:
    at, mask = _flat(place, indices), _inside(place, base, indices, op.mask)
    value = _flat(place, op.value)
    place.add(vector.ScatterOp(base, [place.value(0)], at, mask, value))


def _row(type_: VectorType[Attribute]) -> VectorType[Attribute]:
    """All elements in a row: only such vectors are scattered."""
    return VectorType(type_.element_type, [prod(type_.get_shape())])


def _flat(place: Place, value: SSAValue) -> SSAValue:
    type_ = vector_type(value)
    return place.add(vector.ShapeCastOp(value, _row(type_))).result


def _inside(
    place: Place, base: SSAValue, indices: SSAValue, mask: SSAValue
) -> SSAValue:
    """The mask, less what lies outside of the base: there is nothing to access."""
    shape = vector_type(indices).get_shape()
    type_ = VectorType(IndexType(), shape)
    size = place.add(memref.DimOp(base, place.value(0))).result
    limit = place.add(vector.BroadcastOp(size, type_)).result
    # As a number without sign, one below 0 is larger than all sizes.
    below = place.add(arith.CmpiOp("ult", indices, limit)).result
    assert vector_type(mask) == VectorType(i1, shape)
    return _flat(place, place.add(arith.AndiOp(below, mask)).result)
