"""Messages that bring many rows, cut in two."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.upstream import arith
from xetl_xegpu import simt
from xetl_xegpu.simt.block_ops import PIECE

_LEAST_ROWS = 8


def halve_loads(block: Block, most: int) -> bool:
    """Cut the loads of a block that bring a lane more than ``most`` bytes.

    Returns:
        Whether there were such loads.
    """
    large = [
        op
        for op in block.ops
        if isinstance(op, simt.BlockLoadOp) and _is_large(op.shape, most)
    ]
    for op in large:
        _halve(op)
    return bool(large)


def _is_large(shape: simt.BlockShape, most: int) -> bool:
    """Whether it is to be cut, and each half of a block has whole pieces."""
    if shape.items * shape.item_bits // 8 <= most or shape.mode == "transpose":
        return False
    half = shape.items // shape.count // 2
    return shape.rows >= 2 * _LEAST_ROWS and half % PIECE == 0


def _halve(op: simt.BlockLoadOp) -> None:
    shape = replace(op.shape, rows=op.shape.rows // 2)
    at = op.location
    down = arith.ConstantOp(IntegerAttr(shape.rows, i64), location=at)
    y = arith.AddiOp(op.y, down.result, location=at)
    by_lanes = op.by_lanes is not None
    halves = [
        simt.BlockLoadOp(surface, shape, by_lanes=by_lanes, hints=op.hints, location=at)
        for surface in (op.surface, op.surface._replace(y=y.result))
    ]
    each = len(halves[0].results) // shape.count
    blocks = range(0, each * shape.count, each)
    pieces = [
        piece
        for start in blocks
        for half in halves
        for piece in half.results[start : start + each]
    ]
    Rewriter.insert_op([down, y, *halves], InsertPoint.before(op))
    Rewriter.replace_op(op, [], pieces)
