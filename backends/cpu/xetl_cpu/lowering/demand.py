"""How much of a value anybody reads: what a store drops need not be computed."""

from __future__ import annotations

from dataclasses import field

from xdsl.ir import Operation, SSAValue

from xetl.analysis.affine import dominates
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import InitTileOp, StoreTileOp
from xetl.records import record
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.tiles import tile_sizes


@record()
class Demand:
    """What is read (None: all of it), and the operations that count it."""

    rows: SSAValue | None = None
    cols: SSAValue | None = None
    ops: list[Operation] = field(default_factory=list[Operation])


def demanded_extent(value: SSAValue, before: Operation) -> Demand:
    """The part of a rank-2 value that its readers use, known before ``before``.

    Elementwise operations read what their readers read; a store reads what lies
    inside its matrix; anything else reads all.
    """
    stores: list[StoreTileOp] = []
    if not _only_stored(value, stores) or not stores:
        return Demand()
    inits = [store.tile.owner for store in stores]
    demand = Demand()
    limits: list[list[SSAValue]] = [[], []]
    for init in inits:
        if not isinstance(init, InitTileOp) or init.indices is not None:
            return Demand()
        sizes, offsets = tile_sizes(init), init.mixed_offsets[-2:]
        if sizes is None or not all(dominates(v, before) for v in (*sizes, *offsets)):
            return Demand()
        for dim in (0, 1):
            limits[dim].append(_rest(demand, sizes[dim], offsets[dim]))
    demand.rows, demand.cols = (_largest(demand, limit) for limit in limits)
    return demand


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


def _rest(demand: Demand, size: SSAValue | int, offset: SSAValue | int) -> SSAValue:
    """Size - offset: how far the matrix reaches into the tile."""
    left, right = (_as_value(demand, v) for v in (size, offset))
    op = arith.SubiOp(left, right)
    demand.ops.append(op)
    return op.result


def _as_value(demand: Demand, value: SSAValue | int) -> SSAValue:
    if isinstance(value, SSAValue):
        return value
    op = arith.ConstantOp.index(value)
    demand.ops.append(op)
    return op.result


def _largest(demand: Demand, values: list[SSAValue]) -> SSAValue:
    best, *rest = values
    for value in rest:
        op = arith.MaxsiOp(best, value)
        demand.ops.append(op)
        best = op.result
    return best


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
