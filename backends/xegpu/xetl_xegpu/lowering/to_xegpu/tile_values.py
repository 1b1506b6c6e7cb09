"""Packing, layouts and transposes of tile values: mostly another name for the same."""

from __future__ import annotations

from xdsl.ir import Operation

from xetl.dialects.base import vector_type
from xetl.dialects.xetile import (
    TileConvLayoutOp,
    TilePackOp,
    TileTransposeOp,
    TileUnpackOp,
)
from xetl_xegpu.lowering.to_xegpu.moves import same_values, transposed
from xetl_xegpu.lowering.to_xegpu.values import Pieces, Turned
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule


def _same(c: Converter, op: Operation) -> None:
    if isinstance(c.found(op.operands[0]), Turned):
        c.give(op.results[0], c.found(op.operands[0]))
        return
    same_values(c, op)


def _transpose(c: Converter, op: TileTransposeOp) -> None:
    found, shape = c.found(op.source), vector_type(op.result).get_shape()
    if isinstance(found, Turned):
        ready = found.found
        c.give(op.result, ready.reshaped(shape) if isinstance(ready, Pieces) else ready)
        return
    c.give_parts(op.result, transposed(c, c.pieces(op.source)))


RULES: dict[type[Operation], Rule] = {
    TilePackOp: _same,
    TileUnpackOp: _same,
    TileConvLayoutOp: _same,
    TileTransposeOp: _transpose,
}
