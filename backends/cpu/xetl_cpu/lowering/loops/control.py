"""Loops and conditionals: carried vectors live in buffers, tiles become offsets.

Loop-carried rows stay in registers if one row of each value fits: a loop around it
takes as many rows at a time as fit.  Other carried vectors have a buffer, which each
iteration reads and writes.

Before: ``scf.for iter_args(%acc : vector<1x64xf32>) { yield %acc + load_tile %t }``
After:  ``scf.for iter_args(%a, %b, %c, %d : vector<16xf32>) {
            scf.if %inside { yield %a + load, ... } else { yield %a + maskedload, ... }
        }``; behind the loop, the four are stored to a buffer for all readers.

Stores of what the body computes are done at its end, from the registers.

Left alone: loops whose body does more than compute and store elements of these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import UnitAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from xetl.codegen.types import is_narrow_float
from xetl.dialects import xetile
from xetl.dialects.base import Index, is_vector
from xetl.dialects.upstream import arith, math, scf, vector
from xetl.imports import late
from xetl.ir.builder import Builder, move_to_end
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.loops.carried import (
    Carried,
    moves_forward,
    same_matrix,
    stays_in_matrix,
)
from xetl_cpu.lowering.loops.chunks import store_inside
from xetl_cpu.lowering.loops.evaluator import Evaluator
from xetl_cpu.lowering.loops.materialization import reads_elsewhere
from xetl_cpu.lowering.loops.nest import COLUMNS, At, Nest
from xetl_cpu.lowering.loops.reductions import accumulated
from xetl_cpu.lowering.loops.state import Buffer, State, TileAt, element_of, shape_of
from xetl_cpu.lowering.loops.stores import write
from xetl_cpu.lowering.place_values import REGISTERS, lanes_of_rows, rows_at_once

CARRIES = "xetl.carries"
"""Marks a loop that carries rows in memory, which its results do not show."""


@record()
class Rows:
    """Rows in registers of ``lanes``: ``count`` rows from ``first`` on."""

    first: Index
    count: int
    lanes: int

    def at(self, build: Builder) -> list[Index]:
        """Return the numbers of the rows."""
        return [build.plus(self.first, n) for n in range(self.count)]

    def registers(self, value: SSAValue) -> int:
        """Return how many registers hold these rows of a value."""
        return self.count * shape_of(value)[1] // self.lanes


def load_registers(
    state: State,
    values: Sequence[SSAValue],
    rows: Rows,
    op: Operation,
    stores: Sequence[xetile.StoreTileOp] = (),
) -> None:
    """Compute rows of all values into registers in front of ``op``; store some."""
    build = Builder.before(op)
    widths = [shape_of(each)[1] for each in (*values, *(s.value for s in stores))]
    longest = max(widths)
    columns = [build.index(n) for n in range(0, longest, rows.lanes)]
    places = rows.at(build), columns
    inside = Block()
    narrow = replace(state, lanes=rows.lanes)
    ev = Evaluator(narrow, _no_loops(build, inside, columns), whole=True)
    found = _chunks(ev, values, places, stores)
    state.reads.update(ev.loads.keys())
    if not ev.limits:
        for each in list(inside.ops):
            each.detach()
            build.add(each)
    else:
        tests = [build.compare("sge", limit, longest) for limit in ev.limits.values()]
        tests += [build.compare("eq", start, 0) for start in ev.starts.values()]
        is_inside, masked = build.both(*tests), Block()
        others = Evaluator(narrow, _no_loops(build, masked, columns))
        results = found, _chunks(others, values, places, stores)
        for block, made in zip((inside, masked), results):
            block.add_op(scf.YieldOp(*made))
            _add_products(block)
        types = [each.type for each in found]
        chosen = scf.IfOp(is_inside, types, Region(inside), Region(masked))
        found = list(build.add(chosen).results)
    rest = iter(found)
    for value in values:
        state.registers[value] = [next(rest) for _ in range(rows.registers(value))]


def _add_products(block: Block) -> None:
    """Fuse sums of products: LLVM moves only the sums behind the branch."""
    for op in list(block.ops):
        if not isinstance(op, arith.AddfOp) or is_narrow_float(element_of(op.result)):
            continue
        for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            product = one.owner
            if isinstance(product, arith.MulfOp) and len(list(one.uses)) == 1:
                factors = product.lhs, product.rhs
                Rewriter.replace_op(op, math.FmaOp(*factors, other))
                Rewriter.erase_op(product)
                break


def _no_loops(build: Builder, inside: Block, columns: Sequence[SSAValue]) -> Nest:
    """Return a nest without loops: code that depends on a column goes into a block."""
    places = (build, build, Builder.at_end(inside))
    levels = dict.fromkeys(columns, 2)
    return Nest(0, columns[0], None, None, places, levels)  # pyright: ignore[reportArgumentType]


def _chunks(
    ev: Evaluator,
    values: Sequence[SSAValue],
    places: Places,
    stores: Sequence[xetile.StoreTileOp],
) -> list[SSAValue]:
    """Return the elements of all values, register by register; then store some."""
    lanes = ev.state.lanes

    def all_of(value: SSAValue) -> list[At]:
        columns = places[1][: shape_of(value)[1] // lanes]
        return [At(r, c, COLUMNS, lanes) for r in places[0] for c in columns]

    for value, parts in ev.state.registers.items():
        for at, part in zip(all_of(value), parts):
            ev.memo[id(value), at.key()] = part
    found = [ev.eval(value, at) for value in values for at in all_of(value)]
    stored = [
        (op, at, ev.eval(op.value, at)) for op in stores for at in all_of(op.value)
    ]
    for op, at, part in stored:
        tile = ev.state.tiles[op.tile]
        assert isinstance(tile, TileAt)
        store_inside(ev, part, tile, at)
    return found


def store_registers(state: State, value: SSAValue, rows: Rows, op: Operation) -> None:
    """Store the rows in registers to a buffer, behind ``op``."""
    parts = state.registers.pop(value)
    if not list(value.uses):
        return
    buffer = state.room_for(value)
    build = Builder.after(op)
    columns = range(0, shape_of(value)[1], rows.lanes)
    places = [(row, column) for row in rows.at(build) for column in columns]
    for part, place in zip(parts, places):
        build.add(vector.StoreOp(part, buffer.memref, list(map(build.index, place))))
    state.buffers[value] = buffer
    elements = f"of {shape_of(value)[1]} elements"
    one = (
        f"a row {elements} is"
        if rows.count == 1
        else f"{rows.count} rows {elements} are"
    )
    remark(op, "memory", f"{one} carried in registers: {len(parts)} of them")


Places = tuple[Sequence[Index], Sequence[SSAValue]]
"""Rows, and the first column of each register."""

LowerBlock = Callable[[State, Block], None]


def lower_for(state: State, op: scf.ForOp, lower_block: LowerBlock) -> None:
    """Lower a loop: it carries scalars and registers; buffers are updated in place."""
    old = op.body.block
    last = old.last_op
    assert isinstance(last, scf.YieldOp)
    carried = Carried(op.init_args)
    rows = _rows(state, op)
    for index, init in enumerate(op.init_args):
        if rows and is_vector(init.type):
            part = VectorType(element_of(init), [rows.lanes])
            carried.registers[index] = [part] * rows.registers(init)
        elif is_vector(init.type):
            carried.buffers[index] = _carried_buffer(state, old, last, index)
        elif isinstance(init.type, xetile.TileType):
            end, start = last.operands[index], old.args[index + 1]
            stays = stays_in_matrix(end, start)
            carried.add_tile(state, index, init, stays, moves_forward(end, start))
    for value, buffer in carried.vectors(state, op.init_args):
        write(state, value, buffer, op)
    if rows:
        load_registers(state, [op.init_args[n] for n in carried.registers], rows, op)
    inits = carried.flatten(state, list(op.init_args), op)
    state.registers.clear()
    new = Block(arg_types=[old.args[0].type, *carried.types()])
    loop = scf.ForOp(op.lower_bound, op.upper_bound, op.step, inits, Region(new))
    loop.location = op.location
    if carried.buffers:
        loop.attributes[CARRIES] = UnitAttr()
    Builder.before(op).add(loop)
    move_to_end(old.ops, new)
    old.args[0].replace_all_uses_with(new.args[0])
    carried.bind(state, old.args[1:], new.args[1:])
    _mark_in_place(state, old, last)
    lower_block(state, new)
    if rows:
        _load_ends(state, last, carried, rows)
    _end(state, last, carried)
    state.registers.clear()
    carried.bind(state, op.results, loop.results)
    for index in carried.registers:
        assert rows
        store_registers(state, op.results[index], rows, loop)
    state.dead.append(op)


def _load_ends(state: State, last: scf.YieldOp, carried: Carried, rows: Rows) -> None:
    """Compute the registers of the next iteration, and do the stores of this one."""
    ends = [last.operands[n] for n in carried.registers]
    load_registers(state, ends, rows, last, state.joined)
    state.lowered.update(state.joined)
    state.dead += state.joined
    state.joined.clear()


def _rows(state: State, op: scf.ForOp) -> Rows | None:
    """Return the rows in registers during ``op``; a loop around it takes other rows."""
    if REGISTERS not in op.attributes:
        return None
    count = rows_at_once(op, state.target, state.lanes)
    lanes = lanes_of_rows(op, state.lanes)
    total = max(shape_of(each)[0] for each in op.init_args if is_vector(each.type))
    if count == total:
        return Rows(0, count, lanes)
    around = Builder.before(op).for_loop(0, total, count)
    op.detach()
    around.body.block.add_ops([op, scf.YieldOp()])
    return Rows(around.body.block.args[0], count, lanes)


def _carried_buffer(state: State, body: Block, last: scf.YieldOp, index: int) -> Buffer:
    """Return a buffer, in the shape for the BRGEMM that updates it, if one does."""
    producer = last.operands[index].owner
    argument = body.args[index + 1]
    if isinstance(producer, BrgemmTileOp) and _is_made_of(producer.acc, argument):
        return late("xetl_cpu.lowering.loops.matmul", "accumulator")(state, producer)
    return state.room_for(argument)


def _is_made_of(value: SSAValue | None, argument: SSAValue) -> bool:
    """True if a value is ``argument``, perhaps scaled and so on, with no other use."""
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
    """Update an accumulator in place if only its own BRGEMM reads it.

    The same holds for an accumulator that is scaled first, as between the steps of
    attention, and for one that a reduction of columns is combined with.
    """
    for index, value in enumerate(last.operands):
        producer, argument = value.owner, body.args[index + 1]
        reduction = accumulated(argument, value)
        if reduction is not None and producer.parent is last.parent:
            buffer = state.buffers[argument]
            state.homes[reduction] = state.buffers[value] = buffer
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


def _end(state: State, last: scf.YieldOp | scf.ConditionOp, carried: Carried) -> None:
    """Write vectors of the next region to their buffers, and pass on other values."""
    is_test = isinstance(last, scf.ConditionOp)
    values = list(last.arguments)
    _assign(state, carried.vectors(state, values), last)
    flat = carried.flatten(state, values, last)
    new = scf.ConditionOp(last.condition, *flat) if is_test else scf.YieldOp(*flat)
    Builder.before(last).add(new)
    state.lowered.add(last)
    state.dead.append(last)


def _assign(
    state: State, vectors: list[tuple[SSAValue, Buffer]], last: Operation
) -> None:
    """Assign in parallel: copy all values first, unless direct writes are safe."""
    pending = [
        (value, buffer)
        for value, buffer in vectors
        if state.buffers.get(value) is not buffer
    ]
    targets = [buffer for _, buffer in pending]
    straight = all(
        not reads_elsewhere(state, value, buffer, targets) for value, buffer in pending
    )
    known = dict(state.buffers)
    if not straight:
        for value, _ in pending:
            snapshot = state.room_for(value)
            write(state, value, snapshot, last)
            state.buffers[value] = snapshot
    for value, buffer in pending:
        write(state, value, buffer, last)
    # If the region does not run, none of these buffers holds a value from outside.
    state.buffers.clear()
    state.buffers.update(known)


def lower_if(state: State, op: scf.IfOp, lower_block: LowerBlock) -> None:
    """Lower a conditional: both branches write vector results to the same buffers."""
    carried = Carried(op.results)
    for index, result in enumerate(op.results):
        if is_vector(result.type):
            carried.buffers[index] = state.room_for(result)
    olds = [region.block for region in op.regions if region.blocks]
    lasts = [cast("scf.YieldOp", block.last_op) for block in olds]
    regions = [_lowered(state, block, Carried(()), lower_block) for block in olds]
    _note_tiles(state, carried, lasts)
    for last in lasts:
        _end(state, last, carried)
    new = scf.IfOp(op.condition, carried.types(), *[*regions, Region()][:2])
    _replace(state, op, new, carried)


def _note_tiles(state: State, carried: Carried, lasts: list[scf.YieldOp]) -> None:
    for index, result in enumerate(carried.values):
        if not isinstance(result.type, xetile.TileType):
            continue
        values = [last.operands[index] for last in lasts]
        first, *others = (state.tiles[value] for value in values)
        stays = all(same_matrix(first, other) for other in others)
        carried.add_tile(state, index, values[0], stays, forward=False)


def lower_while(state: State, op: scf.WhileOp, lower_block: LowerBlock) -> None:
    """Lower a loop with two sets of carried values: of the test, and of the body.

    Vectors of each set have separate buffers, assigned at the end of a region.
    """
    tested, passed = Carried(op.inits), Carried(op.results)
    condition, repeat = op.before.block.last_op, op.after.block.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert isinstance(repeat, scf.YieldOp)
    for index, init in enumerate(op.inits):
        if is_vector(init.type):
            tested.buffers[index] = state.room_for(init)
        elif isinstance(init.type, xetile.TileType):
            tested.add_tile(state, index, init, stays=False, forward=False)
    for value, buffer in tested.vectors(state, op.inits):
        write(state, value, buffer, op)
    for index, result in enumerate(op.results):
        if is_vector(result.type):
            passed.buffers[index] = state.room_for(result)
    inits = tested.flatten(state, list(op.inits), op)
    before = _lowered(state, op.before.block, tested, lower_block)
    for index, value in enumerate(condition.arguments):
        if isinstance(value.type, xetile.TileType):
            passed.add_tile(state, index, value, stays=False, forward=False)
    _end(state, condition, passed)
    after = _lowered(state, op.after.block, passed, lower_block)
    _end(state, repeat, tested)
    _replace(state, op, scf.WhileOp(inits, passed.types(), before, after), passed)


def _lowered(
    state: State, old: Block, carried: Carried, lower_block: LowerBlock
) -> Region:
    """Lower the operations of a block into a new one that takes the split values."""
    new = Block(arg_types=carried.types())
    move_to_end(old.ops, new)
    carried.bind(state, old.args, new.args)
    lower_block(state, new)
    return Region(new)


def _replace(
    state: State, op: scf.IfOp | scf.WhileOp, new: Operation, carried: Carried
) -> None:
    new.location = op.location
    Builder.before(op).add(new)
    carried.bind(state, op.results, new.results)
    state.dead.append(op)
