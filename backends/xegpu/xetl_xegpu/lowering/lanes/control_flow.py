"""Loops and branches, where a lane is in the grid, barriers, prints and assertions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import ints_of
from xetl.dialects.upstream import arith, gpu, scf
from xetl_xegpu import simt
from xetl_xegpu.dialect import AssertOp, FenceOp, PrintOp
from xetl_xegpu.lowering.lanes.state import Lanes, types_held

Lower = Callable[[Lanes, Block], None]
"""Lowers the operations of a block, at the current place."""


def _body(lanes: Lanes, block: Block, lower: Lower, *, kept: int = 0) -> Region:
    """The new region of a block; its first ``kept`` arguments stay as they are."""
    arguments = [argument.type for argument in block.args[:kept]]
    carried = block.args[kept:]
    new = Block(arg_types=[*arguments, *types_held(carried, lanes)])
    for old, argument in zip(block.args[:kept], new.args):
        lanes.hold(old, argument)
    _hold_in_turn(lanes, carried, new.args[kept:])
    with lanes.inside(new):
        lower(lanes, block)
    return Region(new)


def _hold_in_turn(
    lanes: Lanes, values: Sequence[SSAValue], pieces: Sequence[SSAValue]
) -> None:
    """Say of each value which pieces are its own; they follow one another."""
    at = 0
    for value in values:
        count = len(lanes.layout(value).lengths)
        lanes.hold(value, *pieces[at : at + count])
        at += count


def _pieces(lanes: Lanes, values: Sequence[SSAValue]) -> list[SSAValue]:
    return [piece for value in values for piece in lanes.pieces(value)]


def lower_for(lanes: Lanes, op: scf.ForOp, lower: Lower) -> None:
    """A counted loop."""
    first, end, step = map(lanes.one, (op.lower_bound, op.upper_bound, op.step))
    start = _pieces(lanes, op.init_args)
    body = _body(lanes, op.body.block, lower, kept=1)
    loop = lanes.add(scf.ForOp(first, end, step, start, body))
    _hold_in_turn(lanes, op.res, loop.res)


def lower_if(lanes: Lanes, op: scf.IfOp, lower: Lower) -> None:
    """A branch; all lanes go the same way."""
    condition = lanes.one(op.condition)
    types = types_held(op.res, lanes)
    regions = [
        _body(lanes, region.block, lower) if region.blocks else Region()
        for region in (op.then_region, op.else_region)
    ]
    branch = lanes.add(scf.IfOp(condition, types, *regions))
    _hold_in_turn(lanes, op.res, branch.res)


def lower_while(lanes: Lanes, op: scf.WhileOp, lower: Lower) -> None:
    """A loop with a condition."""
    start = _pieces(lanes, op.inits)
    types = types_held(op.res, lanes)
    before = _body(lanes, op.before.block, lower)
    after = _body(lanes, op.after.block, lower)
    loop = lanes.add(scf.WhileOp(start, types, before, after))
    _hold_in_turn(lanes, op.res, loop.res)


def yield_(lanes: Lanes, op: scf.YieldOp) -> None:
    """What a region gives."""
    lanes.add(scf.YieldOp(*_pieces(lanes, op.operands)))


def condition(lanes: Lanes, op: scf.ConditionOp) -> None:
    """Whether a loop goes on, and with what."""
    values = _pieces(lanes, op.arguments)
    lanes.add(scf.ConditionOp(lanes.one(op.condition), *values))


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
    """Who sees what was written, and where."""
    scope = "workgroup" if op.fence_scope.word == "workgroup" else "device"
    memory = "local" if op.memory_kind.word == "slm" else "global"
    lanes.add(simt.FenceOp(scope, memory))


def nothing(lanes: Lanes, op: Operation) -> None:
    """A hint, or a declaration."""


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
