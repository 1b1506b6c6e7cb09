"""fit-registers: order operations around products so that they fit the registers.

*What*: where more is in use at once than a thread has registers, loads and what is
computed move down to right before the first that needs them, and products change places
so that what they read is read for the last time soon. If no order fits, messages that
bring many rows are cut in two.
*Why*: what does not fit is spilled to memory; Intel's compiler moves operations, too,
but not so far. [measured] ocloc 26.27, pvc: attention of f32 with heads of 128, 11 KB
of a thread before, none now; a GEMM of f32, 64x32 a subgroup, 10.7 KB and none.
*How*: some orders are tried, first those that are most like the one there is; the first
that fits is taken, else the one that needs least. What is in use is estimated
(`graph.Registers`); a few registers are left for what the estimate does not see.
*Left alone*: blocks that fit, for there a load had better be early; those of which no
order comes near to fitting; blocks without products (`order-by-use`); the order of
whatever writes memory or waits, and of loads beside it.

Before: ``%a0 = load; %a1 = load; %b0 = load; %b1 = load; dpas %a0, %b0; dpas %a1, %b1``
After:  ``%a0 = load; %b0 = load; dpas %a0, %b0; %a1 = load; %b1 = load; dpas %a1, %b1``
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.devices import Device, find_device
from xetl.dialects.upstream import arith
from xetl.dialects.walk import operations_in
from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import Graph, Registers
from xetl_xegpu.lowering.fit_registers.orders import Line, line_of, lines
from xetl_xegpu.simt.block_ops import PIECE

_ENOUGH: dict[type[Operation], int] = {simt.DpasOp: 24, simt.LaneProductOp: 40}
"""Registers that must be left as it stands; [measured] with as many, nothing spills."""

_SPARE = 64
"""Registers to leave where an order is chosen: for addresses, descriptions of messages,
and gaps.  [measured] with 48 some GEMMs of f32 still spill a KB."""

_UNCUT = {_ENOUGH[simt.DpasOp]: 0}
"""Registers that must be left so that no message is cut, by `_ENOUGH`. [measured]
attention, 16 rows by 64 keys, D = 64: the best order leaves 12, and nothing spills; a
step takes 737 instructions with messages cut, 694 without."""

_SPARE_FOR_LANES = 96
"""Registers to leave beside blocks that lanes move: each element has an address of its
own, of two registers.  [measured] with 64 attention of 16 keys still spills a KB."""

_BEYOND = 32
"""Registers more than there are with which no order helps.  [measured] products of f64
that need 320 or more spill more bytes in another order; with 268 all still fit."""

_SMALLER = (64, 32)
"""Bytes that a load brings a lane at most where it is cut: 16 registers, then 8."""


@dataclass(frozen=True)
class FitRegistersPass(ModulePass):
    """See the module docstring."""

    name = "fit-registers"

    device: str = "pvc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        device = find_device(self.device)
        for kernel in operations_in(op, simt.FuncOp):
            regions = [region for inner in kernel.walk() for region in inner.regions]
            for block in [block for region in regions for block in region.blocks]:
                _fit(kernel, block, device)


def _fit(kernel: simt.FuncOp, block: Block, device: Device) -> None:
    """Bring a block into the order that needs least, if it needs too much."""
    enough = max((_ENOUGH.get(type(op), 0) for op in block.ops), default=0)
    if not enough:
        return  # no product
    spare, cut = _SPARE, _UNCUT.get(enough, _SPARE)
    if any(isinstance(op, simt.BlockLoadOp) and op.by_lanes for op in block.ops):
        enough = spare = cut = _SPARE_FOR_LANES
    registers = Registers(kernel)
    graph = Graph(block, registers)
    if line_of(graph, registers, range(len(graph.ops))).most <= _bytes(device, enough):
        return
    budget = _bytes(device, spare)
    line = _best(kernel, block, budget)
    for most in _SMALLER:
        if line.most <= _bytes(device, cut) or not halve_loads(block, most):
            break
        line = _best(kernel, block, budget)
    if line.most > _bytes(device, -_BEYOND):
        return
    for op in line.operations:
        op.detach()
        block.add_op(op)


def _bytes(device: Device, spare: int) -> int:
    """What a lane has for values, in bytes, if some registers are left."""
    registers = max(device.registers) - spare
    return registers * device.register_bytes // device.subgroup_size


def _best(kernel: simt.FuncOp, block: Block, budget: int) -> Line:
    """The first line that fits, else the one that needs least."""
    registers, found = Registers(kernel), list[Line]()
    for line in lines(Graph(block, registers), registers, budget):
        found.append(line)
        if line.most <= budget:
            break
    # Of equals the last: it deviates from the order there was latest.
    return min(reversed(found), key=lambda line: line.most)


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
        simt.BlockLoadOp(
            *(*surface, shape.pieces()),
            shape=shape,
            by_lanes=by_lanes,
            hints=op.hints,
            location=at,
        )
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
