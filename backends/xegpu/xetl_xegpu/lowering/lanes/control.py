"""Loops and branches: what they carry becomes the pieces a lane holds of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Region, SSAValue

from xetl.dialects.upstream import scf
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
