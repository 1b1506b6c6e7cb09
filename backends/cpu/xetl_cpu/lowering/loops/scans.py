"""Scans: running sums along a dimension, or scans by a function.

Down columns, the loop goes row by row, and a row in scratch holds the running result.
Along rows, it goes vector by vector: a vector is scanned by itself, then combined with
the total of those before.  The loop-carried value waits for only one operation per
vector, because the total of a vector does not depend on the vectors before.  Source: W.
D. Hillis, G. L. Steele, Data Parallel Algorithms, CACM 29(12), 1986.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import is_vector, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileAssociativeScanOp, TileScanOp
from xetl.ir.builder import Builder, move_before
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl.worklist import Worklist
from xetl_cpu.dialect import HiddenOp
from xetl_cpu.lowering.loops.chunks import Chunks, chunk_at, put
from xetl_cpu.lowering.loops.combine import Combine
from xetl_cpu.lowering.loops.evaluator import Evaluator, constant_op
from xetl_cpu.lowering.loops.nest import COLUMNS, At, lane_mask
from xetl_cpu.lowering.loops.state import Buffer, State, element_of, shape_of
from xetl_cpu.lowering.loops.stores import write

Values = Sequence[SSAValue]


@record()
class _Scan:
    """A scan: its operand and its parameters.

    Attributes:
        sources, results: as many of each.
        elements: the types of the carried values.
        apply: combines earlier values with later ones, at a place.
        widen: casts an element to the type of the carried value.
        narrow: casts a carried value to the type of the result.
        begins: the initial value of each scan.
        is_neutral: whether initial values are neutral; if not, they are not combined.
        needed: the carried values that are read, to compute results that are read.
    """

    op: Operation
    sources: Values
    results: Values
    elements: Sequence[Attribute]
    apply: Callable[[Evaluator, At, Values, Values], Values]
    widen: Callable[[Builder, SSAValue], SSAValue]
    narrow: Callable[[Builder, SSAValue], SSAValue]
    begins: Sequence[float]
    is_neutral: bool
    needed: set[int]

    def load(self, ev: Evaluator, at: At) -> list[SSAValue]:
        """Return elements of the sources."""
        build = ev.nest.places[2]
        return [self.widen(build, ev.eval(source, at)) for source in self.sources]

    def moved(
        self, build: Builder, step: int, begins: Values, values: Values
    ) -> list[SSAValue]:
        """Return the value ``step`` lanes before each lane, or the initial value."""
        found, (lanes,) = list[SSAValue](), vector_type(values[0]).get_shape()
        for begin, value in zip(begins, values):
            before = begin if self.is_neutral else value
            mask = [lanes + n - step if n >= step else n for n in range(lanes)]
            found.append(build.insert(vector.ShuffleOp(before, value, mask=mask)))
        return found

    def joined(
        self, ev: Evaluator, at: At, first: SSAValue, before: Values, values: Values
    ) -> list[SSAValue]:
        """Combine values with those before; keep lanes where ``first`` holds."""
        found = self.apply(ev, at, before, values)
        if self.is_neutral:
            return list(found)
        pairs, build = zip(values, found), ev.nest.places[2]
        return [build.insert(arith.SelectOp(first, *pair)) for pair in pairs]

    def put(self, ev: Evaluator, values: Values, to: Sequence[Buffer], at: At) -> None:
        """Store elements of the results that are read."""
        build = ev.nest.places[2]
        for result, value, buffer in zip(self.results, values, to):
            if list(result.uses):
                put(ev, self.narrow(build, value), buffer, at)


def scan_tile(state: State, op: TileScanOp) -> None:
    """Lower a scan by kind; narrow floats are accumulated in a wider type."""
    combine = Combine(op.kind.data, element_of(op.source))

    def apply(ev: Evaluator, at: At, before: Values, values: Values) -> Values:
        return [combine.apply(ev.nest.places[2], *before, *values)]

    values, how = ([op.source], [op.result]), (combine.widen, combine.narrow_back)
    begins = [combine.identity()]
    scan = _Scan(op, *values, [combine.element], apply, *how, begins, True, {0})
    _lower(state, scan, op.dim)


def scan_by_function(state: State, op: TileAssociativeScanOp) -> None:
    """Lower a scan by a function, evaluated for vectors of elements of each value."""
    arguments, sources = op.combine.block.args, op.sources
    # Scalars do not depend on elements, because the function is elementwise.
    body = [each for each in op.combine.block.ops if each.results]
    numbers = [each for each in body if not is_vector(each.results[0].type)]
    move_before(numbers, op)
    elements = [element_of(source) for source in sources]

    def apply(ev: Evaluator, at: At, before: Values, values: Values) -> Values:
        given = zip(arguments, [*before, *values])
        inside = replace(ev, memo={(id(each), at.key()): have for each, have in given})
        return [inside.eval(value, at) for value in op.combined]

    def same(_: Builder, value: SSAValue) -> SSAValue:
        return value

    begins, needed = [0.0] * len(elements), _needed(op)
    how = elements, apply, same, same, begins
    _lower(state, _Scan(op, sources, op.res, *how, False, needed), op.dim)


def _needed(op: TileAssociativeScanOp) -> set[int]:
    found = {n for n, result in enumerate(op.res) if list(result.uses)}
    while True:
        reads = _reads([op.combined[n] for n in found])
        more = {n for n in range(len(op.res)) if op.combine.block.args[n] in reads}
        if more <= found:
            return found
        found |= more


def _reads(values: Values) -> set[SSAValue]:
    """Return the values, and all values that they are computed from."""
    waiting = Worklist(values)
    for value in waiting:
        if isinstance(value.owner, Operation):
            waiting += value.owner.operands
    return waiting.seen


def _lower(state: State, scan: _Scan, dim: int) -> None:
    op, (rows, cols) = scan.op, shape_of(scan.sources[0])
    to = [state.allocate((rows, cols), element_of(each)) for each in scan.results]
    is_row = dim == 1 or cols == 1
    way = f"along rows, in vectors of {state.lanes}" if is_row else "row by row"
    remark(op, "loop", f"a pass over {rows} x {cols} elements, {way}")
    if (rows, cols)[dim] == 1:
        for source, buffer in zip(scan.sources, to):
            write(state, source, buffer, op)
    elif is_row:
        extents = (rows, cols) if dim == 1 else (1, rows)
        _along_rows(state.for_columns(extents[1]), scan, to, extents)
    else:
        _down_columns(state, scan, to, (rows, cols))
    state.buffers.update(zip(scan.results, to))


def _along_rows(
    state: State, scan: _Scan, to: Sequence[Buffer], extents: tuple[int, int]
) -> None:
    """Scan along rows; a column is scanned as a row with stride."""
    lanes = state.lanes
    build, pairs = Builder.before(scan.op), zip(scan.elements, scan.begins)
    begins = [build.insert(constant_op(*pair, lanes)) for pair in pairs]

    def body(ev: Evaluator, carried: Values) -> list[SSAValue]:
        build, at = ev.nest.places[2], chunk_at(ev)
        at = at.transposed() if to[0].is_column else at
        values, step = scan.load(ev, at), 1
        while step < min(lanes, extents[1]):
            before = scan.moved(build, step, begins, values)
            hidden = ev.nest.places[0].insert(HiddenOp(ev.nest.places[0].index(step)))
            few = lane_mask(ev.nest.places[0], hidden, lanes)
            values = scan.joined(ev, at, few, before, values)
            step *= 2
        if extents[1] <= lanes:  # there is no other vector
            scan.put(ev, values, to, at)
            return list(carried)
        last = [lanes - 1] * lanes
        totals = [build.insert(vector.ShuffleOp(v, v, mask=last)) for v in values]
        first = build.compare("eq", ev.nest.inner, 0)
        scan.put(ev, scan.joined(ev, at, first, carried, values), to, at)
        return scan.joined(ev, at, first, carried, totals)

    Chunks(state, scan.op, extents, body, inits=begins, each=len(begins)).emit()


def _down_columns(
    state: State, scan: _Scan, to: Sequence[Buffer], shape: tuple[int, int]
) -> None:
    """Scan down columns; the running row is in the wide type, results are rounded."""
    rows, cols = shape
    partial = {n: state.allocate((1, cols), scan.elements[n]) for n in scan.needed}

    def at_partial(ev: Evaluator) -> At:
        return At(0, ev.nest.inner, COLUMNS, state.lanes)

    def fill(ev: Evaluator, _: Values) -> list[SSAValue]:
        for n, buffer in partial.items():
            value = ev.constant(scan.elements[n], scan.begins[n], state.lanes)
            put(ev, value, buffer, at_partial(ev))
        return []

    def add(ev: Evaluator, _: Values) -> list[SSAValue]:
        build, at = ev.nest.places[2], chunk_at(ev)
        values = scan.load(ev, at)
        before = list(values)
        indices = [build.index(0), build.index(ev.nest.inner)]
        for n, buffer in partial.items():
            type_ = VectorType(scan.elements[n], [state.lanes])
            load = vector.LoadOp(buffer.memref, indices, type_)
            before[n] = build.insert(load)
        first = ev.nest.places[1].compare("eq", ev.nest.outer, 0)
        found = scan.joined(ev, at, first, before, values)
        for n, buffer in partial.items():
            put(ev, found[n], buffer, at_partial(ev))
        scan.put(ev, found, to, at)
        return []

    Chunks(state, scan.op, (1, cols), fill).emit()
    Chunks(state, scan.op, (rows, cols), add).emit()
