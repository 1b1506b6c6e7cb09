"""Rows that a loop carries in registers, if all of them fit.

A carried vector has a buffer otherwise, which each trip reads and writes.

Before: ``scf.for iter_args(%acc : vector<1x64xf32>) { yield %acc + load_tile %t }``
After:  ``scf.for iter_args(%a, %b, %c, %d : vector<16xf32>) {
            scf.if %inside { yield %a + load, ... } else { yield %a + maskedload, ... }
        }``, and behind it the four go into a buffer, for all that reads the result.

Left alone: loops whose body does more than computing elements of these rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import integer_width, is_vector
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    TileBroadcastOp,
    TileConvLayoutOp,
    TileTransposeOp,
    UpdateTileOffsetOp,
)
from xetl.ir.builder import Builder
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.evaluate import Evaluator
from xetl_cpu.lowering.loops.nest import COLUMNS, At, Nest
from xetl_cpu.lowering.loops.placement import leaves
from xetl_cpu.lowering.loops.state import State, shape_of
from xetl_cpu.lowering.loops.stores import element_of
from xetl_cpu.lowering.tiles import may_write

_VALUES = (
    LoadTileOp,
    TileBroadcastOp,
    TileConvLayoutOp,
    TileTransposeOp,
    vector.BroadcastOp,
    vector.StepOp,
    vector.FmaOp,
)
"""What is computed for some elements wherever these are wanted; arithmetic is, too."""

_MOST = 16
"""Registers: half of those of AVX-512. AVX2 spills some, which is one load and one
store of a trip; a buffer is that and a loop."""


def fit_registers(state: State, loop: scf.ForOp) -> bool:
    """Whether all vectors that a loop carries are rows that registers hold."""
    carried = [each for each in loop.body.block.args if is_vector(each.type)]
    used = 0
    for each in carried:
        rows, cols = shape_of(each)
        element = element_of(each)
        if rows != 1 or cols % state.lanes or integer_width(element) == 1:
            return False
        bytes_ = state.lanes * byte_width(element)
        used += cols // state.lanes * -(-bytes_ // state.target.vector_bytes)
    if not 0 < used <= _MOST:
        return False
    last = loop.body.block.last_op
    assert last is not None
    return all(
        op is last or _is_computed_in_place(op) for op in loop.body.block.ops
    ) and all(
        same_place or leaf not in carried
        for value in last.operands
        for leaf, same_place in leaves(state, value)
    )


def _is_computed_in_place(op: Operation) -> bool:
    """Whether an operation is one on elements, or none on vectors at all."""
    if op.regions or may_write(op):
        return False
    if isinstance(op, InitTileOp | UpdateTileOffsetOp):
        return op.indices is None
    if not any(is_vector(each.type) for each in (*op.operands, *op.results)):
        return True
    if isinstance(op, vector.ShapeCastOp):
        return shape_of(op.operands[0]) == shape_of(op.results[0])
    if len(op.results) != 1 or not is_vector(op.results[0].type):
        return False
    return isinstance(op, _VALUES) or op.name.startswith(("arith.", "math."))


def register_types(state: State, value: SSAValue) -> list[VectorType]:
    """The types of the registers that hold a row."""
    count = shape_of(value)[1] // state.lanes
    return [VectorType(element_of(value), [state.lanes])] * count


def load_registers(state: State, values: Sequence[SSAValue], op: Operation) -> None:
    """Compute rows into registers in front of ``op``."""
    build = Builder.before(op)
    longest = max(shape_of(value)[1] for value in values)
    columns = [build.index(n) for n in range(0, longest, state.lanes)]
    inside = Block()
    ev = Evaluator(state, _no_loops(build, inside, columns), whole=True)
    found = _chunks(ev, values, columns)
    state.reads.update(ev.loads.keys())
    if not ev.limits:
        for each in list(inside.ops):
            each.detach()
            build.add(each)
    else:
        found = _chosen(ev, found, values, (inside, columns, longest), build)
    rest = iter(found)
    for value in values:
        count = shape_of(value)[1] // state.lanes
        state.registers[value] = [next(rest) for _ in range(count)]


def _chosen(
    ev: Evaluator,
    found: list[SSAValue],
    values: Sequence[SSAValue],
    where: tuple[Block, list[SSAValue], int],
    build: Builder,
) -> list[SSAValue]:
    """Without masks if all that is loaded is inside of its matrix, else with them."""
    inside, columns, longest = where
    tests = [build.compare("sge", limit, longest) for limit in ev.limits.values()]
    is_inside = tests[0]
    for test in tests[1:]:
        is_inside = build.insert(arith.AndiOp(is_inside, test))
    masked = Block()
    nest = _no_loops(build, masked, columns)
    others = _chunks(Evaluator(ev.state, nest), values, columns)
    inside.add_op(scf.YieldOp(*found))
    masked.add_op(scf.YieldOp(*others))
    types = [each.type for each in found]
    chosen = scf.IfOp(is_inside, types, Region(inside), Region(masked))
    return list(build.add(chosen).results)


def _no_loops(build: Builder, inside: Block, columns: Sequence[SSAValue]) -> Nest:
    """A nest without loops: what depends on a column goes into a block."""
    places = (build, build, Builder.at_end(inside))
    levels = dict.fromkeys(columns, 2)
    return Nest(0, columns[0], None, None, places, levels)  # pyright: ignore[reportArgumentType]


def _chunks(
    ev: Evaluator, values: Sequence[SSAValue], columns: Sequence[SSAValue]
) -> list[SSAValue]:
    """The elements of all values, register by register."""
    lanes, found = ev.state.lanes, list[SSAValue]()
    for value, parts in ev.state.registers.items():
        for col, part in zip(columns, parts):
            ev.memo[id(value), At(0, col, COLUMNS, lanes).key()] = part
    for value in values:
        for col in columns[: shape_of(value)[1] // lanes]:
            found.append(ev.eval(value, At(0, col, COLUMNS, lanes)))
    return found


def store_registers(state: State, value: SSAValue, op: Operation) -> None:
    """Put the row that registers hold into a buffer, behind ``op``."""
    parts = state.registers.pop(value)
    if not list(value.uses):
        return
    buffer = state.allocate(shape_of(value), vector_type(value).element_type)
    build = Builder.after(op)
    for number, part in enumerate(parts):
        indices = [build.index(0), build.index(number * state.lanes)]
        build.add(vector.StoreOp(part, buffer.memref, indices))
    state.buffers[value] = buffer
    text = f"a row of {shape_of(value)[1]} elements is carried in registers"
    remark(op, "memory", f"{text}: {len(parts)} of them")
