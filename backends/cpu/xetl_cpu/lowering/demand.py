"""How much of a value anybody reads: what a store drops need not be computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

from xdsl.ir import Operation, SSAValue

from xetl.analysis.affine import dominates
from xetl.dialects.base import Index
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import InitTileOp, StoreTileOp
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.tiles import tile_sizes


class Demand(NamedTuple):
    """How many rows and columns are read; None: all of them."""

    rows: SSAValue | None = None
    cols: SSAValue | None = None


def demanded_extent(value: SSAValue, before: Operation, build: Builder) -> Demand:
    """The part of a rank-2 value that its readers use, known before ``before``.

    Elementwise operations read what their readers read; a store reads what lies
    inside its matrix; anything else reads all. ``build`` inserts before ``before``.
    """
    stores: list[StoreTileOp] = []
    if not _only_stored(value, stores) or not stores:
        return Demand()
    places: list[tuple[Sequence[Index], Sequence[Index]]] = []
    for store in stores:
        init = store.tile.owner
        if not isinstance(init, InitTileOp) or init.indices is not None:
            return Demand()
        sizes, offsets = tile_sizes(init), init.mixed_offsets[-2:]
        if sizes is None or not all(dominates(v, before) for v in (*sizes, *offsets)):
            return Demand()
        places.append((sizes, offsets))
    # How far each matrix reaches into the tile.
    limits = [
        [build.pure(arith.SubiOp, *pair) for pair in zip(*place)] for place in places
    ]
    return Demand(
        *(reduce(partial(build.pure, arith.MaxsiOp), x) for x in zip(*limits))
    )


def _only_stored(value: SSAValue, stores: list[StoreTileOp]) -> bool:
    for use in value.uses:
        op = use.operation
        if isinstance(op, StoreTileOp) and use.index == 0:
            stores.append(op)
        elif not _is_elementwise(op, value) or not _only_stored(op.results[0], stores):
            return False
    return True


def _is_elementwise(op: Operation, value: SSAValue) -> bool:
    if not op.name.startswith(("arith.", "math.")) or len(op.results) != 1:
        return False
    old, new = value.type, op.results[0].type
    assert is_vector(old)
    return is_vector(new) and new.get_shape() == old.get_shape()


def way_to_store(product: BrgemmTileOp) -> tuple[list[Operation], StoreTileOp] | None:
    """A product, perhaps a cast, and the store behind them, if nobody else reads."""
    way: list[Operation] = [product]
    reader = _only_reader(product.result)
    if isinstance(reader, arith.TruncfOp):
        way.append(reader)
        reader = _only_reader(reader.results[0])
    return (way, reader) if isinstance(reader, StoreTileOp) else None


def _only_reader(value: SSAValue) -> Operation | None:
    readers = [use.operation for use in value.uses]
    return readers[0] if len(readers) == 1 else None
