"""Where a lane is in the grid, barriers, prints and assertions."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from xetl.dialects.upstream import arith, gpu
from xetl_xegpu import simt
from xetl_xegpu.dialect import AssertOp, FenceOp, PrintOp
from xetl_xegpu.lowering.distribute_to_lanes.state import Lanes


def block_id(lanes: Lanes, op: gpu.BlockIdOp) -> None:
    """Which workgroup of the grid this is."""
    _number(lanes, op, simt.GroupIdOp(dimension=op.dimension.letter.data))


def grid_dim(lanes: Lanes, op: gpu.GridDimOp) -> None:
    """How many workgroups there are."""
    _number(lanes, op, simt.NumGroupsOp(dimension=op.dimension.letter.data))


def subgroup_id(lanes: Lanes, op: gpu.SubgroupIdOp) -> None:
    """Which subgroup of the workgroup this is."""
    _number(lanes, op, simt.SubgroupIdOp())


def _number(lanes: Lanes, op: Operation, made: Operation) -> None:
    (result,) = op.results
    lanes.hold(result, lanes.emit(arith.IndexCastOp(lanes.emit(made), IndexType())))


def barrier(lanes: Lanes, op: gpu.BarrierOp) -> None:
    """All lanes of the workgroup meet."""
    lanes.add(simt.BarrierOp())


def fence(lanes: Lanes, op: FenceOp) -> None:
    """Who sees what was written, and where."""
    scope = "workgroup" if op.fence_scope.word == "workgroup" else "device"
    memory = "local" if op.memory_kind.word == "slm" else "global"
    lanes.add(simt.FenceOp(scope=scope, memory=memory))


def nothing(lanes: Lanes, op: Operation) -> None:
    """A hint, a declaration, or an end that `xetl.ir.conversion` adds."""


# Texts ------------------------------------------------------------------------------


def print_text(lanes: Lanes, op: PrintOp) -> None:
    """The values as a lane holds them."""
    values = [piece for value in op.arguments for piece in lanes.pieces(value)]
    lanes.add(simt.PrintOp(values, properties=op.properties))


def assert_text(lanes: Lanes, op: AssertOp) -> None:
    """The values as a lane holds them; the condition is the same in all."""
    values = [piece for value in op.arguments for piece in lanes.pieces(value)]
    condition = lanes.one(op.condition)
    lanes.add(simt.AssertOp(condition, values, properties=op.properties))
