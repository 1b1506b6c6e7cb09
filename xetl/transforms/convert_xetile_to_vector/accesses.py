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
from xetl.ir.builder import Builder
from xetl.transforms.convert_xetile_to_vector.descriptors import Descriptors, Parts

AnyAccess = LoadTileOp | StoreTileOp | PrefetchTileOp | LoadGatherOp | StoreScatterOp


def replace_access(op: Operation, tiles: Descriptors, build: Builder) -> bool:
    """Replace an access of a tile; False if ``op`` is none, or of a tile that stays.

    The caller erases ``op``. A prefetch changes nothing and gets no successor.
    """
    if not isinstance(op, AnyAccess) or not tiles.knows(op.tile):
        return False
    base, start = tiles.base(op.tile), tiles.starts[op.tile]
    if isinstance(op, LoadTileOp):
        _give(op.result, _read(op, base, start, build))
    elif isinstance(op, StoreTileOp):
        build.add(vector.TransferWriteOp(op.value, base, start))
    elif isinstance(op, LoadGatherOp):
        _give(op.result, _gather(op, base, start[0], build))
    elif isinstance(op, StoreScatterOp):
        _scatter(op, base, start[0], build)
    return True


def _give(old: SSAValue, new: SSAValue) -> None:
    new.name_hint = old.name_hint
    old.replace_all_uses_with(new)


def _read(op: LoadTileOp, base: SSAValue, start: Parts, build: Builder) -> SSAValue:
    type_ = op.result.type
    padding = _constant(op.padding, element_type(type_), build)
    return build.insert(vector.TransferReadOp(base, start, padding, type_))


def _constant(padding: Attribute | None, type_: Attribute, build: Builder) -> SSAValue:
    number = 0 if padding is None else splat_value(padding)
    assert number is not None
    return build.insert(arith.ConstantOp(make_splat(number, type_), type_))


# Scattered tiles --------------------------------------------------------------------


def _gather(
    op: LoadGatherOp, base: SSAValue, indices: SSAValue, build: Builder
) -> SSAValue:
    row = _row(vector_type(op.result))
    at, mask = _flat(build, indices), _inside(build, base, indices, op.mask)
    other = _constant(op.padding, row, build)
    zero = build.index(0)
    found = vector.GatherOp(base, [zero], at, mask, other)
    gathered = build.insert(found)
    return build.insert(vector.ShapeCastOp(gathered, op.result.type))


def _scatter(
    op: StoreScatterOp, base: SSAValue, indices: SSAValue, build: Builder
) -> None:
    at, mask = _flat(build, indices), _inside(build, base, indices, op.mask)
    value = _flat(build, op.value)
    build.add(vector.ScatterOp(base, [build.index(0)], at, mask, value))


def _row(type_: VectorType[Attribute]) -> VectorType[Attribute]:
    """All elements in a row: only such vectors are scattered."""
    return VectorType(type_.element_type, [prod(type_.get_shape())])


def _flat(build: Builder, value: SSAValue) -> SSAValue:
    type_ = vector_type(value)
    return build.insert(vector.ShapeCastOp(value, _row(type_)))


def _inside(
    build: Builder, base: SSAValue, indices: SSAValue, mask: SSAValue
) -> SSAValue:
    """The mask, less what lies outside of the base: there is nothing to access."""
    shape = vector_type(indices).get_shape()
    type_ = VectorType(IndexType(), shape)
    size = build.insert(memref.DimOp(base, build.index(0)))
    limit = build.insert(vector.BroadcastOp(size, type_))
    # As a number without sign, one below 0 is larger than all sizes.
    below = build.insert(arith.CmpiOp("ult", indices, limit))
    assert vector_type(mask) == VectorType(i1, shape)
    return _flat(build, build.insert(arith.AndiOp(below, mask)))
