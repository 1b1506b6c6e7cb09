"""Single elements of memory: every lane reads them, the first one writes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.combining import normalize_kind
from xetl.dialects.upstream import memref, vector
from xetl_xegpu.lowering.fragments import LANES
from xetl_xegpu.lowering.to_xegpu.lines import first_lanes
from xetl_xegpu.lowering.to_xegpu.rows import (
    Access,
    load_line,
    scattered_access,
    store_line,
)
from xetl_xegpu.lowering.to_xegpu.scattered import atomic_line
from xetl_xegpu.lowering.to_xegpu.values import Start, View, vector_of
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule


def element_start(c: Converter, view: View, indices: Sequence[Index]) -> Start:
    """Where an element of a memref is."""
    at = view.start.offset
    for index, stride in zip(indices, view.strides):
        at = c.emit.plus(at, c.emit.times(index, stride))
    return Start(view.start.root, at, view.start.space)


def _access(
    c: Converter, view: View, indices: Sequence[SSAValue], lanes: int
) -> Access:
    """The same element for the first lanes."""
    zeros = c.emit.constant(0, vector_of(IndexType(), LANES))
    start = element_start(c, view, indices)
    mask = first_lanes(c, lanes)
    return scattered_access(c, start, view.element, zeros, mask)


def _load(c: Converter, op: memref.LoadOp) -> None:
    access = _access(c, c.view(op.memref), op.indices, LANES)
    c.bind(op.result, _first(c, load_line(c, access)))


def _first(c: Converter, line: SSAValue) -> SSAValue:
    return c.emit.value(vector.ExtractOp(line, [0]))


def _store(c: Converter, op: memref.StoreOp) -> None:
    access = _access(c, c.view(op.memref), op.indices, 1)
    store_line(c, access, c.spread(op.value, LANES))


def _atomic(c: Converter, op: memref.AtomicRmwOp) -> None:
    access = _access(c, c.view(op.memref), op.indices, 1)
    kind = normalize_kind(op.kind_name)
    old = atomic_line(c, kind, access, c.spread(op.value, LANES))
    c.bind(op.result, _first(c, old))


RULES: dict[type[Operation], Rule] = {
    memref.LoadOp: _load,
    memref.StoreOp: _store,
    memref.AtomicRmwOp: _atomic,
}
