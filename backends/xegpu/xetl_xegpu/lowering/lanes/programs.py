"""Where a lane is in the grid, where the workgroup meets, what it says of itself."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import ints_of
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, gpu
from xetl.dialects.upstream.xegpu_hints import (
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
)
from xetl_xegpu import simt
from xetl_xegpu.dialect import AssertOp, FenceOp, PrintOp
from xetl_xegpu.lowering.lanes.state import Lanes


def block_id(lanes: Lanes, op: gpu.BlockIdOp) -> None:
    """Which workgroup of the grid this is."""
    _number(lanes, op, simt.GroupIdOp(op.dimension.letter.data))


def grid_dim(lanes: Lanes, op: gpu.GridDimOp) -> None:
    """How many workgroups there are."""
    _number(lanes, op, simt.NumGroupsOp(op.dimension.letter.data))


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
    """Who sees what was written."""
    scope = "workgroup" if op.fence_scope.word == "workgroup" else "device"
    lanes.add(simt.FenceOp(scope))


def nothing(lanes: Lanes, op: Operation) -> None:
    """A hint, or a declaration."""


# Named barriers ---------------------------------------------------------------------


def init_nbarrier(lanes: Lanes, op: InitNbarrierOp) -> None:
    """Only one for all subgroups is a barrier of the workgroup."""
    count = constant_index(op.participant_thread_num)
    if count != lanes.subgroups:
        raise _refuse_barrier(lanes, op, f"{lanes.subgroups} subgroups meet, not some")
    for use in op.result.uses:
        if not _is_met_by_all(use.operation, op.result):
            raise _refuse_barrier(lanes, use.operation, "who arrives must also wait")


def _is_met_by_all(op: Operation, barrier: SSAValue) -> bool:
    """Whether those who arrive wait in the same block, one after the other."""
    block = op.parent
    assert block is not None
    turns = [
        each
        for each in block.ops
        if isinstance(each, NbarrierArriveOp | NbarrierWaitOp)
        and each.nbarrier is barrier
    ]
    arrivals, waits = turns[::2], turns[1::2]
    return len(arrivals) == len(waits) and (
        all(isinstance(each, NbarrierArriveOp) for each in arrivals)
        and all(isinstance(each, NbarrierWaitOp) for each in waits)
    )


def _refuse_barrier(lanes: Lanes, op: Operation, why: str) -> Exception:
    return lanes.refuse(
        op,
        f"this named barrier is no barrier of the whole workgroup: {why}",
        "let all subgroups arrive and then wait, or use `gpu.barrier`",
    )


def nbarrier_wait(lanes: Lanes, op: NbarrierWaitOp) -> None:
    """All have arrived when all wait."""
    lanes.add(simt.BarrierOp())


# Texts ------------------------------------------------------------------------------


def print_text(lanes: Lanes, op: PrintOp) -> None:
    """The values as a lane holds them."""
    text, unsigned = op.template.data, _unsigned(op)
    values = [piece for value in op.arguments for piece in lanes.pieces(value)]
    lanes.add(simt.PrintOp(text, values, op.field_shapes(), unsigned))


def assert_text(lanes: Lanes, op: AssertOp) -> None:
    """The values as a lane holds them; the condition is the same in all."""
    text, unsigned = op.template.data, _unsigned(op)
    values = [piece for value in op.arguments for piece in lanes.pieces(value)]
    condition = lanes.one(op.condition)
    lanes.add(simt.AssertOp(condition, text, values, op.field_shapes(), unsigned))


def _unsigned(op: PrintOp | AssertOp) -> tuple[int, ...]:
    return ints_of(op.unsigned)
