"""place-values: each value that several operations read gets its place.

A value is computed where it is read, together with what it is made of: it never leaves
registers. One that several loops read is computed by each of them again, which costs
its operations for each vector of it; or once, into a buffer, which costs a store and a
load for each reader. The first is done below `EXPENSIVE` operations. A row that is
spread to many has many readers (a column as a row is gathered: X[i, k] - Y[j, k] of 8
numbers k and 1000 x 1000 pairs took 2.0 ms, now 0.33). What a nested region reads
stands in a buffer, and so does a column that rows are combined with: it is computed
down its rows, in vectors. Rows that a loop carries stay in registers if its body does
nothing but compute their elements; it runs for as many at a time as fit.

    %m = arith.subf %v, %w : vector<1x64xf32>
    %e = math.exp %m : vector<1x64xf32>
    ->
    %m = arith.subf %v, %w {cpu.registers = "2 readers, 5 operations ..."}
    %e = math.exp %m {cpu.buffer = "2 readers, 15 operations a vector: computed once"}

The text is the reason, for who asks: `convert-xetile-to-loops` does what the name says.

Before: stage ``xsmm``.  Left alone: values of one reader, and what has code of its own
(products, reductions, scans): its results stand in buffers.

Vectors have as many elements as an f32 register of the target. Where there are no
masks, programs that only copy rows of shorter elements fill registers with them
([measured] Zen 3, bf16 in L3: 1.5 times as fast); those that compute functions of 16
bits as well, for two registers are rounded and packed into one faster than one by one
(the same: 3 to 13 % less time; softmax gains 1 %, but loses down columns). Or there are
fewer:

A processor that computes its registers in halves has the same speed with vectors half
as long, but what comes from memory it then gets faster.  [measured] Zen 4, one core,
256 MB of f32 in pages of 4 KB: sums by loads of 64 bytes run at 0.83 to 0.92 of the
speed of those by loads of 32, which are as fast as the best of plain loops (one or two
streams, 1 to 8 sums, software prefetches at 0.5 to 8 KB; several streams gain 4 % if
they are megabytes apart).  In the caches both are equal.

So programs that only add up rows that they load use halves.  What computes more, or
stores as much as it loads (partial sums of columns do), keeps whole registers: of them
it needs fewer instructions.  So does a loop that carries more than halves can hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from xetl.codegen.types import byte_width
from xetl.dialects import xetile
from xetl.dialects.base import (
    integer_width,
    is_dense,
    is_vector,
    operations_in,
    vector_type,
)
from xetl.dialects.upstream import arith, scf, vector
from xetl.ir.builder import Pass
from xetl_cpu.lowering.loops.state import is_elementwise, shape_of
from xetl_cpu.lowering.tiles import may_write
from xetl_cpu.targets import Target, find_target

MOST_CARRIED = 16
"""Registers that a loop carries: half of those of AVX-512. AVX2 spills some, which is
one load and one store of a trip; a buffer is that and a loop."""

_LEAST_LOADED = 4
"""Elements loaded for each that is stored, at least."""

_LONG_ROW = 512
"""[measured] Elements of a row beside which up to 15 branches at its end are nothing:
Zen 3, sums of bf16, in vectors of 16 instead of 8: of 777 2 to 10 % slower, of 1024 up
to 10 % faster, of 100 at half the speed."""

_CHEAP = (
    arith.ConstantOp,
    arith.AddfOp,
    arith.AddiOp,
    arith.MulfOp,
    vector.BroadcastOp,
    xetile.TileBroadcastOp,
    vector.ShapeCastOp,
    scf.ForOp,
    scf.YieldOp,
)


def lanes_of(body: Block, target: Target) -> int:
    """Elements of a vector in the loops of a program, whatever their type."""
    lanes = target.lanes("f32")
    ops = [op for each in body.ops for op in each.walk()]
    if not target.has_masks:
        return max(lanes, target.vector_bytes // _widest_moved(ops))
    if not target.halves_vectors:
        return lanes
    loads = [op.results[0] for op in ops if isinstance(op, xetile.LoadTileOp)]
    stores = [op.value for op in ops if isinstance(op, xetile.StoreTileOp)]
    sums = [op for op in ops if isinstance(op, xetile.TileReduceOp)]
    if not (loads and sums and all(map(_is_cheap, ops))):
        return lanes
    if _LEAST_LOADED * max(map(_size, stores), default=0) > min(map(_size, loads)):
        return lanes
    widths = [byte_width(vector_type(each).element_type) for each in loads]
    halves = min(lanes, target.vector_bytes // 2 // min(widths))
    carried = [each for op in ops if isinstance(op, scf.ForOp) for each in op.results]
    rows = [vector_type(each).get_shape() for each in carried if is_vector(each.type)]
    is_much = sum(row[-1] for row in rows) > MOST_CARRIED * halves
    return lanes if is_much else halves


def _widest_moved(ops: Iterable[Operation]) -> int:
    """Bytes of the longest element that a program moves; 4: it does not go along rows.

    2 at least if it computes: no value then takes more than two registers.
    """
    widest, computes = 1, False
    for op in ops:
        values = [v for v in (*op.operands, *op.results) if is_vector(v.type)]
        vectors = [v for v in values if not _counts_lanes(v)]
        widths = [byte_width(vector_type(v).element_type) for v in vectors]
        if not vectors:
            continue
        if max(widths) > 4 or _goes_down(op):
            return 4
        if isinstance(op, xetile.LoadTileOp | xetile.StoreTileOp):
            widest = max(widest, *widths)
        elif isinstance(op, _SPREADS) or is_elementwise(op) or _reduces_row(op):
            computes = True
        else:
            return 4
    return max(widest, 2) if computes else widest


def _reduces_row(op: Operation) -> bool:
    """Whether it reduces rows that are long enough for an end without masks."""
    if not isinstance(op, xetile.TileReduceOp):
        return False
    return op.dims == (1,) and shape_of(op.source)[1] >= _LONG_ROW


def _counts_lanes(value: SSAValue) -> bool:
    """Whether these are numbers of lanes that are shortened at once, as constants."""
    casts = (isinstance(use.operation, arith.IndexCastOp) for use in value.uses)
    return isinstance(value.owner, vector.StepOp) and all(casts)


def _is_cheap(op: Operation) -> bool:
    """Whether it moves or adds up, or has nothing to do with vectors."""
    if isinstance(op, xetile.TileReduceOp):
        return op.kind.data == "add" and 1 in op.dims
    if isinstance(op, (*_CHEAP, xetile.LoadTileOp, xetile.StoreTileOp)):
        return True
    return not any(is_vector(each.type) for each in (*op.operands, *op.results))


def _size(value: SSAValue) -> int:
    return prod(vector_type(value).get_shape())


_SPREADS = (xetile.TileBroadcastOp, vector.BroadcastOp, vector.ShapeCastOp)

BUFFER, REGISTERS = "cpu.buffer", "cpu.registers"
"""The attributes: where a value lives, with the reason as a text."""

EXPENSIVE = 8
"""Above this many simple operations a value with two readers is computed once."""

_COST = {"arith.divf": 4, "math.sqrt": 5, "math.rsqrt": 8}

_FREE = (vector.BroadcastOp, vector.StepOp)
_VIEWS = (xetile.TileBroadcastOp, xetile.TileConvLayoutOp, xetile.TileTransposeOp)
_LOADS = (xetile.LoadTileOp, xetile.LoadGatherOp)
_MOVES = (vector.InterleaveOp, vector.ExtractStridedSliceOp)


@dataclass(frozen=True)
class PlaceValuesPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine = find_target(self.target)
        for loop in operations_in(op, scf.ParallelOp):
            body = loop.body.block
            _Places(machine, lanes_of(body, machine)).choose(body)


class _Places:
    """The values of a program that live in buffers."""

    def __init__(self, machine: Target, lanes: int) -> None:
        self.machine, self.lanes = machine, lanes
        self.buffers: set[SSAValue] = set()

    def choose(self, block: Block) -> None:
        """Annotate a block in order; what registers carry stays in registers."""
        for op in block.ops:
            if isinstance(op, scf.ForOp) and rows_at_once(op, self.machine, self.lanes):
                op.attributes[REGISTERS] = StringAttr("rows that it carries fit")
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self.choose(inner)
            if _is_computed_where_read(op) and not is_free(op.results[0]):
                self._place(op)

    def _place(self, op: Operation) -> None:
        """All readers are known where a value is defined."""
        (value,) = op.results
        readers = [use.operation for use in value.uses]
        why = ""
        if any(reader.parent is not op.parent for reader in readers):
            why = "computed once, for a nested block reads it"
        elif _is_computed_column(op) and any(
            isinstance(reader, xetile.TileBroadcastOp) for reader in readers
        ):
            why = "computed once, down its rows"
        elif (rows := _rows_that_read(value, readers)) * len(readers) > 1:
            own, many = self.cost(value), f"{len(readers)} readers"
            price = f"{f'{rows} rows' if rows > 1 else many}, {own} operations a vector"
            if own >= EXPENSIVE:
                why = f"{price}: computed once"
            elif len(readers) > 1:
                text = f"{price}: computed by each, in registers"
                op.attributes[REGISTERS] = StringAttr(text)
        if why:
            op.attributes[BUFFER] = StringAttr(why)
            self.buffers.add(value)

    def cost(self, value: SSAValue) -> int:
        """Simple vector operations it takes to compute one vector of the value."""
        op = value.owner
        if value in self.buffers or not isinstance(op, Operation):
            return 1
        if isinstance(op, (arith.ConstantOp, *_FREE)):
            return 0
        if isinstance(op, xetile.LoadTileOp):
            return 2
        if isinstance(op, xetile.LoadGatherOp):
            return EXPENSIVE
        if not _is_computed_where_read(op):
            return 1
        own = _COST.get(op.name, 10 if op.name.startswith("math.") else 1)
        own = 0 if isinstance(op, (*_VIEWS, vector.ShapeCastOp)) else own
        own = EXPENSIVE if _gathers(op) and op.operands[0] not in self.buffers else own
        return own + sum(self.cost(v) for v in op.operands if is_vector(v.type))


def stays_in_registers(block: Block, machine: Target) -> bool:
    """Whether no value needs a buffer, of a block that computes elements only."""
    places = _Places(machine, lanes_of(block, machine))
    values = [v for op in block.ops for v in op.results if is_vector(v.type)]
    often = [v for v in values if len([*v.uses]) > 1]
    return all(places.cost(v) < EXPENSIVE for v in often)


def is_free(value: SSAValue) -> bool:
    """True for values that cost nothing to compute again, even in a loop."""
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        return is_dense(op.value) and op.value.is_splat()
    if isinstance(op, arith.IndexCastOp):
        return is_free(op.operands[0])
    if isinstance(op, vector.ShapeCastOp | xetile.TileConvLayoutOp):
        old, new = shape_of(op.operands[0]), shape_of(op.results[0])
        return old == new and is_free(op.operands[0])
    return isinstance(op, _FREE)


def is_coordinate_swap(op: vector.ShapeCastOp) -> bool:
    """True for a reshape between 1xN and Nx1, or to the same shape."""
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    return old == new or (old == (new[1], new[0]) and 1 in old)


def _is_computed_where_read(op: Operation) -> bool:
    """Whether any elements of the result can be computed without the others."""
    if len(op.results) != 1 or not is_vector(op.results[0].type):
        return False
    if isinstance(op, vector.ShapeCastOp):
        return is_coordinate_swap(op)
    places = *_FREE, *_VIEWS, *_LOADS, *_MOVES
    return isinstance(op, places) or is_elementwise(op)


def _is_computed_column(op: Operation) -> bool:
    """A column is computed down its rows, not one element for each row."""
    rows, cols = shape_of(op.results[0])
    return cols == 1 and rows > 1 and op.name.startswith(("arith.", "math."))


def _rows_that_read(value: SSAValue, readers: Iterable[Operation]) -> int:
    """To how many rows a row is spread at most; 1: it is none, or to no others."""
    spread = [op for op in readers if isinstance(op, xetile.TileBroadcastOp)]
    is_row = is_vector(value.type) and shape_of(value)[0] == 1
    return max((shape_of(op.result)[0] for op in spread if is_row), default=1)


def _gathers(op: Operation) -> bool:
    """Whether a row is read from a column, whose elements lie apart in memory."""
    load = op.operands[0].owner if isinstance(op, vector.ShapeCastOp) else None
    if not isinstance(load, xetile.LoadTileOp):
        return False
    (rows, cols), init = shape_of(load.results[0]), load.tile.owner
    is_dense = isinstance(init, xetile.InitTileOp) and init.mixed_strides[:1] == (1,)
    return rows > 1 == cols and not is_dense


def rows_at_once(loop: scf.ForOp, machine: Target, lanes: int) -> int:
    """So many rows of all vectors that a loop carries are held by registers; or 0.

    If these are not all rows, the loop is to run once for each group of them.
    """
    body = loop.body.block
    carried = [each for each in body.args if is_vector(each.type)]
    if not carried or len({shape_of(each)[0] for each in carried}) > 1:
        return 0
    rows, used = shape_of(carried[0])[0], 0
    for each in carried:
        columns, element = shape_of(each)[1], vector_type(each).element_type
        if columns % lanes or integer_width(element) == 1:
            return 0
        registers = -(-lanes * byte_width(element) // machine.vector_bytes)
        used += columns // lanes * registers
    if used > MOST_CARRIED or not _computes_in_place(body, carried):
        return 0
    if rows > 1 and any(map(_goes_down, body.ops)):
        return 0
    found = max(
        n for n in range(1, rows + 1) if not rows % n and n * used <= MOST_CARRIED
    )
    others = [each for each in loop.results if not is_vector(each.type)]
    return 0 if found < rows and any(list(each.uses) for each in others) else found


def _goes_down(op: Operation) -> bool:
    """Whether it may read elements that are neighbours in a column, not in a row."""
    if isinstance(op, xetile.LoadTileOp):
        return xetile.tile_type(op.tile).order != (1, 0)
    return isinstance(op, xetile.TileTransposeOp)


def _moves_elements(op: Operation) -> bool:
    if isinstance(op, vector.ShapeCastOp):
        return shape_of(op.operands[0]) != shape_of(op.results[0])
    return isinstance(op, (xetile.LoadGatherOp, *_MOVES))


def _loads_numbers(op: Operation) -> bool:
    """Whether it is a branch that only makes numbers: one that exists is loaded."""
    return not any(
        may_write(each)
        or (each.regions and not isinstance(each, scf.IfOp))
        or any(is_vector(v.type) for v in (*each.operands, *each.results))
        for each in op.walk()
    )


def _computes_in_place(body: Block, carried: Iterable[SSAValue]) -> bool:
    """Whether a body does nothing else, and reads what is carried where it writes."""
    made = set[SSAValue](carried)
    for op in body.ops:
        if op.next_op is None:
            break
        if may_write(op) or (op.regions and not _loads_numbers(op)):
            return False
        if isinstance(op, xetile.InitTileOp | xetile.UpdateTileOffsetOp):
            if op.indices is not None:
                return False
        elif any(is_vector(each.type) for each in (*op.operands, *op.results)):
            if not _is_computed_where_read(op) or _moves_elements(op):
                return False
            if any(operand in made for operand in op.operands):
                if not is_elementwise(op):
                    return False
                made.add(op.results[0])
    return True
