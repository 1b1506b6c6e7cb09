"""Loops and conditionals: vectors they carry live in buffers, tiles become offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import TileType
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.carried import (
    Carried,
    moves_forward,
    same_matrix,
    stays_in_matrix,
)
from xetl_cpu.lowering.loops.materialization import reads_elsewhere
from xetl_cpu.lowering.loops.matmul import accumulator
from xetl_cpu.lowering.loops.registers import (
    fit_registers,
    load_registers,
    register_types,
    store_registers,
)
from xetl_cpu.lowering.loops.state import Buffer, State, shape_of
from xetl_cpu.lowering.loops.stores import element_of, write

LowerBlock = Callable[[State, Block], None]


def lower_for(state: State, op: scf.ForOp, lower_block: LowerBlock) -> None:
    """A loop that carries scalars and registers; other vectors are updated in place."""
    old = op.body.block
    last = old.last_op
    assert isinstance(last, scf.YieldOp)
    carried = Carried(op.init_args)
    in_registers = fit_registers(state, op)
    for index, init in enumerate(op.init_args):
        if in_registers and is_vector(init.type):
            carried.registers[index] = register_types(state, init)
        elif is_vector(init.type):
            carried.buffers[index] = _carried_buffer(state, old, last, index)
        elif isinstance(init.type, TileType):
            end, start = last.operands[index], old.args[index + 1]
            stays = stays_in_matrix(end, start)
            carried.add_tile(state, index, init, stays, moves_forward(end, start))
    for value, buffer in carried.vectors(state, op.init_args):
        write(state, value, buffer, op)
    if in_registers:
        load_registers(state, [op.init_args[n] for n in carried.registers], op)
    inits = carried.flatten(state, list(op.init_args), op)
    state.registers.clear()
    new = Block(arg_types=[old.args[0].type, *carried.types()])
    loop = scf.ForOp(op.lower_bound, op.upper_bound, op.step, inits, Region(new))
    loop.location = op.location
    Builder.before(op).add(loop)
    _move(old, new)
    old.args[0].replace_all_uses_with(new.args[0])
    carried.bind(state, old.args[1:], new.args[1:])
    _mark_in_place(state, old, last)
    if in_registers:
        state.unrolled.add(new)
    lower_block(state, new)
    if in_registers:
        load_registers(state, [last.operands[n] for n in carried.registers], last)
    _end(state, last, carried)
    state.registers.clear()
    carried.bind(state, op.results, loop.results)
    for index in carried.registers:
        store_registers(state, op.results[index], loop)
    state.dead.append(op)


def _carried_buffer(state: State, body: Block, last: scf.YieldOp, index: int) -> Buffer:
    """Shaped for the BRGEMM that updates it, if one does."""
    producer = last.operands[index].owner
    argument = body.args[index + 1]
    if isinstance(producer, BrgemmTileOp) and _is_made_of(producer.acc, argument):
        return accumulator(state, producer)
    return state.allocate(shape_of(argument), element_of(argument))


def _is_made_of(value: SSAValue | None, argument: SSAValue) -> bool:
    """True for a value, or its elements scaled and the like, that nobody else reads."""
    if value is None or len(list(value.uses)) != 1:
        return False
    if value is argument:
        return True
    op = value.owner
    return (
        isinstance(op, Operation)
        and op.name.startswith(("arith.", "math."))
        and any(_is_made_of(operand, argument) for operand in op.operands)
    )


def _mark_in_place(state: State, body: Block, last: scf.YieldOp) -> None:
    """An accumulator that only its own BRGEMM reads is updated where it is.

    So is one that is scaled first, as between the steps of attention.
    """
    for index, value in enumerate(last.operands):
        producer, argument = value.owner, body.args[index + 1]
        if not isinstance(producer, BrgemmTileOp) or producer.parent is not last.parent:
            continue
        alone = len(list(value.uses)) == 1
        if not alone or not _is_made_of(producer.acc, argument):
            continue
        assert producer.acc is not None
        buffer = state.buffers[argument]
        if producer.acc is argument:
            state.in_place.add(argument)
        elif not reads_elsewhere(state, producer.acc, buffer, [buffer]):
            state.homes[producer.acc] = buffer


def _move(old: Block, new: Block) -> None:
    for op in list(old.ops):
        op.detach()
        new.add_op(op)


def _end(state: State, last: scf.YieldOp, carried: Carried) -> None:
    """Write the vectors of the next iteration, then yield the rest."""
    _assign_all(state, last.operands, carried, last)
    flat = carried.flatten(state, list(last.operands), last)
    Builder.before(last).add(scf.YieldOp(*flat))
    _retire(state, last)


def _assign(
    state: State, pending: list[tuple[SSAValue, Buffer]], last: Operation
) -> None:
    """A parallel assignment: all values first, unless each can go straight in."""
    targets = [buffer for _, buffer in pending]
    straight = all(
        not reads_elsewhere(state, value, buffer, targets) for value, buffer in pending
    )
    known = dict(state.buffers)
    if not straight:
        for value, _ in pending:
            snapshot = state.allocate(shape_of(value), element_of(value))
            write(state, value, snapshot, last)
            state.buffers[value] = snapshot
    for value, buffer in pending:
        write(state, value, buffer, last)
    # A value from outside is in none of these where the region does not run.
    state.buffers.clear()
    state.buffers.update(known)


def lower_if(state: State, op: scf.IfOp, lower_block: LowerBlock) -> None:
    """Both branches write vector results into the same buffers."""
    carried = Carried(op.results)
    for index, result in enumerate(op.results):
        if is_vector(result.type):
            carried.buffers[index] = state.allocate(
                shape_of(result), element_of(result)
            )
    regions: list[Region] = []
    lasts: list[scf.YieldOp] = []
    for region in op.regions:
        if region.blocks:
            block = Block()
            last = region.block.last_op
            assert isinstance(last, scf.YieldOp)
            lasts.append(last)
            _move(region.block, block)
            regions.append(Region(block))
    new_regions = [*regions, Region()][:2]
    for block in [region.block for region in regions]:
        lower_block(state, block)
    _note_tiles(state, carried, lasts)
    for last in lasts:
        _end_branch(state, last, carried)
    new = scf.IfOp(op.condition, carried.types(), *new_regions)
    new.location = op.location
    Builder.before(op).add(new)
    carried.bind(state, op.results, new.results)
    state.dead.append(op)


def _note_tiles(state: State, carried: Carried, lasts: list[scf.YieldOp]) -> None:
    for index, result in enumerate(carried.values):
        if not isinstance(result.type, TileType):
            continue
        values = [last.operands[index] for last in lasts]
        first, *others = (state.tiles[value] for value in values)
        stays = all(same_matrix(first, other) for other in others)
        carried.add_tile(state, index, values[0], stays, forward=False)


def _end_branch(state: State, last: scf.YieldOp, carried: Carried) -> None:
    for value, buffer in carried.vectors(state, last.operands):
        write(state, value, buffer, last)
    flat = carried.flatten(state, list(last.operands), last)
    Builder.before(last).add(scf.YieldOp(*flat))
    _retire(state, last)


def lower_while(state: State, op: scf.WhileOp, lower_block: LowerBlock) -> None:
    """Two sets of carried values: what is tested, and what the body gets.

    Vectors of each set have their own buffers, assigned where a region ends.
    """
    tested, passed = Carried(op.inits), Carried(op.results)
    condition, repeat = op.before.block.last_op, op.after.block.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert isinstance(repeat, scf.YieldOp)
    for index, init in enumerate(op.inits):
        if is_vector(init.type):
            tested.buffers[index] = state.allocate(shape_of(init), element_of(init))
        elif isinstance(init.type, TileType):
            tested.add_tile(state, index, init, stays=False, forward=False)
    for value, buffer in tested.vectors(state, op.inits):
        write(state, value, buffer, op)
    for index, result in enumerate(op.results):
        if is_vector(result.type):
            passed.buffers[index] = state.allocate(shape_of(result), element_of(result))
    inits = tested.flatten(state, list(op.inits), op)
    before_block = Block(arg_types=tested.types())
    _move(op.before.block, before_block)
    tested.bind(state, op.before.block.args, before_block.args)
    lower_block(state, before_block)
    for index, value in enumerate(condition.arguments):
        if isinstance(value.type, TileType):
            passed.add_tile(state, index, value, stays=False, forward=False)
    _assign_all(state, condition.arguments, passed, condition)
    flat = passed.flatten(state, list(condition.arguments), condition)
    Builder.before(condition).add(scf.ConditionOp(condition.condition, *flat))
    _retire(state, condition)
    after_block = Block(arg_types=passed.types())
    _move(op.after.block, after_block)
    passed.bind(state, op.after.block.args, after_block.args)
    lower_block(state, after_block)
    _assign_all(state, repeat.operands, tested, repeat)
    Builder.before(repeat).add(
        scf.YieldOp(*tested.flatten(state, list(repeat.operands), repeat))
    )
    _retire(state, repeat)
    regions = (Region(before_block), Region(after_block))
    new = scf.WhileOp(inits, passed.types(), *regions, location=op.location)
    Builder.before(op).add(new)
    passed.bind(state, op.results, new.results)
    state.dead.append(op)


def _assign_all(
    state: State, values: Sequence[SSAValue], carried: Carried, last: Operation
) -> None:
    """Write the vectors of the next region into their buffers."""
    pending = [
        (value, buffer)
        for value, buffer in carried.vectors(state, values)
        if state.buffers.get(value) is not buffer
    ]
    _assign(state, pending, last)


def _retire(state: State, last: Operation) -> None:
    state.lowered.add(last)
    state.dead.append(last)
