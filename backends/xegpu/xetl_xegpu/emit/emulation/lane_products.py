"""Products that no matrix unit has: sums run in the type of their operands."""

from __future__ import annotations

from typing import Any

from xetl.codegen.llvm import ll
from xetl.codegen.types import F32, I32
from xetl_xegpu.emit.emulation.body import Body, together
from xetl_xegpu.simt.block_ops import PIECE


def define(body: Body) -> None:
    """Write ``C + A @ B``; lane l has column l of each, and asks lane k for A[:, k]."""
    product = body.builtin.product
    assert product is not None
    b, (a, upper, lower, c) = body.builder, body.arguments
    left, sums = _items(b, a, product.rows), _items(b, c, product.rows)
    right = [*_items(b, upper, PIECE), *_items(b, lower, PIECE)]
    for k, factor in enumerate(right):
        for m, mine in enumerate(left):
            theirs = _broadcast(body, mine, k)
            sums[m] = b.fadd(sums[m], b.fmul(theirs, factor))
    b.ret(together(b, sums))


def _items(b: Any, value: Any, count: int) -> list[Any]:
    if count == 1:
        return [value]
    return [b.extract_element(value, I32(i)) for i in range(count)]


def _broadcast(body: Body, value: Any, lane: int) -> Any:
    """A number as a lane has it; of 64 bits in halves."""
    b, type_ = body.builder, value.type
    if type_ == F32:
        return b.bitcast(body.broadcast(b.bitcast(value, I32), lane), type_)
    pair = ll.VectorType(I32, 2)
    halves = _items(b, b.bitcast(value, pair), 2)
    there = [body.broadcast(half, lane) for half in halves]
    return b.bitcast(together(b, there), type_)
