"""Loops and conditionals: what they carry becomes as many values as there are parts.

Conditions and bounds are scalars, so all subgroups go the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.upstream import scf
from xetl.language.distribution import Layout
from xetl.transforms.diagnostics import refusal
from xetl.transforms.distribute_to_subgroups.distributor import Distributor
from xetl.transforms.distribute_to_subgroups.parts import is_distributed, without_maps

Layouts = Sequence[Layout | None]


def distribute_inside(d: Distributor, op: Operation) -> None:
    """What carries nothing that is distributed stays, around new operations."""
    d.keep(op)
    for region in op.regions:
        for block in region.blocks:
            d.run(block)


def distribute_for(d: Distributor, op: scf.ForOp) -> None:
    """A loop that carries parts."""
    if not any(is_distributed(result) for result in op.results):
        distribute_inside(d, op)
        return
    layouts = _layouts(d, op.results)
    inits = _flat(d, op.init_args, layouts)
    body = _block([op.lower_bound, *inits])
    bounds = (op.lower_bound, op.upper_bound, op.step)
    attributes = without_maps(op.attributes)
    new = d.team.add(scf.ForOp(*bounds, inits, Region(body), attributes=attributes))
    _fill(d, body, op.body.block)
    _end(d, body, layouts)
    _bind(d, op.results, new.results)


def distribute_while(d: Distributor, op: scf.WhileOp) -> None:
    """A while loop that carries parts; both its regions take other values."""
    before, after = op.before.block, op.after.block
    carried, given = _layouts(d, before.args), _layouts(d, op.results)
    if not any((*carried, *given)):
        distribute_inside(d, op)
        return
    inits = _flat(d, op.inits, carried)
    types = [t for result in op.results for t in d.part_types(result)]
    first = _block(inits)
    second = Block(arg_types=types)
    regions = Region(first), Region(second)
    attributes = without_maps(op.attributes)
    new = d.team.add(scf.WhileOp(inits, types, *regions, attributes=attributes))
    _fill(d, first, before)
    _end(d, first, given)
    _fill(d, second, after)
    _end(d, second, carried)
    _bind(d, op.results, new.results)


def distribute_branches(d: Distributor, op: Operation) -> None:
    """A conditional, or any regions without arguments, whose ends give parts."""
    if not any(is_distributed(result) for result in op.results):
        distribute_inside(d, op)
        return
    blocks = [region.block for region in op.regions]
    if any(block.args for block in blocks):
        raise refusal(
            op, "it carries values of a workgroup", "use `scf.for` or `scf.while`"
        )
    layouts = _layouts(d, op.results)
    types = [t for result in op.results for t in d.part_types(result)]
    branches = [Block() for _ in blocks]
    new = type(op).create(
        operands=op.operands,
        result_types=types,
        properties=without_maps(op.properties),
        attributes=without_maps(op.attributes),
        regions=[Region(branch) for branch in branches],
    )
    d.team.add(new)
    for branch, block in zip(branches, blocks):
        _fill(d, branch, block)
        _end(d, branch, layouts)
    _bind(d, op.results, new.results)


def _layouts(d: Distributor, values: Sequence[SSAValue]) -> Layouts:
    return [d.layout(each) if is_distributed(each) else None for each in values]


def _flat(
    d: Distributor, values: Sequence[SSAValue], layouts: Layouts
) -> list[SSAValue]:
    """All parts of all values, in the layouts that are asked for."""
    flat: list[SSAValue] = []
    for value, layout in zip(values, layouts):
        flat += [value] if layout is None else d.parts(value, layout)
    return flat


def _block(values: Sequence[SSAValue]) -> Block:
    return Block(arg_types=[value.type for value in values])


def _fill(d: Distributor, new: Block, old: Block) -> None:
    """Move a block's operations to the new one, and replace them there."""
    _bind(d, old.args, new.args)
    for op in list(old.ops):
        op.detach()
        new.add_op(op)
    d.run(new)


def _bind(d: Distributor, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
    """Say which of the flat values stand for which."""
    rest = list(new)
    for value in old:
        count = d.count(value)
        parts, rest = rest[:count], rest[count:]
        if is_distributed(value):
            d.give(value, parts)
        else:
            parts[0].name_hint = value.name_hint
            value.replace_all_uses_with(parts[0])


def _end(d: Distributor, block: Block, layouts: Layouts) -> None:
    """Let the last operation of a block give parts."""
    last = block.last_op
    assert isinstance(last, scf.YieldOp | scf.ConditionOp)
    d.team.move_before(last)
    flat = _flat(d, last.arguments, layouts)
    if isinstance(last, scf.ConditionOp):
        d.team.add(scf.ConditionOp(last.condition, *flat))
    else:
        d.team.add(scf.YieldOp(*flat))
    d.retire(last)
