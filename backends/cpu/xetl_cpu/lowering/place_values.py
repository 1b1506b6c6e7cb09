"""place-values: chooses where each value with several readers lives.

A value is computed where it is read, together with its operands: it never leaves
registers. If several loops read a value, there are two ways. Each loop computes it
again, which costs its operations for each vector. Or it is computed once into a buffer,
which costs a store, and a load for each reader. The first way is chosen below
`EXPENSIVE` operations. A row that is broadcast to many rows has many readers (a column
gathered as a row: X[i, k] - Y[j, k] of 8 numbers k and 1000 x 1000 pairs took 2.0 ms,
now 0.33). A value that only one loop of stores reads (`joined_stores`) stays in its
registers. A value that a nested region reads is in a buffer. So is a column that rows
are combined with: it is computed down its rows, in vectors. Loop-carried rows stay in
registers if the loop only computes their elements; the loop runs for as many rows at a
time as fit.

    %m = arith.subf %v, %w : vector<1x64xf32>
    %e = math.exp %m : vector<1x64xf32>
    ->
    %m = arith.subf %v, %w {cpu.registers = "2 readers, 5 operations ..."}
    %e = math.exp %m {cpu.buffer = "2 readers, 15 operations a vector: computed once"}

The text is the reason, for users; `convert-xetile-to-loops` follows the attribute.

Before: stage ``xsmm``.  Left alone: values of one reader, and values that are computed
by code of their own (products, reductions, scans): their results are in buffers.

A vector has as many elements as an f32 register of the target, with two exceptions. On
targets without masks, programs that only copy rows of shorter elements fill registers
with them ([measured] Zen 3, bf16 in L3: 1.5 times as fast). So do programs that compute
functions of 16-bit elements: two registers are rounded and packed into one faster than
one by one (the same: 3 to 13 % less time; softmax gains 1 %, but loses down columns).
The second exception has fewer elements:

A processor that computes its registers in halves has the same speed with vectors half
as long, but then reads memory faster.  [measured] Zen 4, one core, 256 MB of f32 in
pages of 4 KB: sums by loads of 64 bytes run at 0.83 to 0.92 of the speed of sums by
loads of 32 bytes, which are as fast as the best plain loops (one or two streams, 1 to 8
sums, software prefetches at 0.5 to 8 KB; several streams gain 4 % if they are megabytes
apart).  In the caches both are equal.

So programs that only add up rows that they load use halves.  Programs that compute
more, or store as much as they load (partial sums of columns do), use whole registers,
because that takes fewer instructions.  So do loops that carry more than halves can
hold.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
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
from xetl.dialects.literals import splat_bytes
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Pass
from xetl.worklist import Worklist
from xetl_cpu.lowering.joined_stores import (
    JOINED,
    joined_stores,
    operations_of,
    read_by_one,
)
from xetl_cpu.lowering.loops import state
from xetl_cpu.lowering.tiles import may_alias, may_write, root, tile_root, written_root
from xetl_cpu.targets import Target, find_target

MOST_CARRIED = 16
"""Registers that a loop carries, at most: half of those of AVX-512. AVX2 spills some,
which is one load and one store of an iteration; a buffer is that and a loop."""

_LEAST_LOADED = 4
"""Loaded elements for each stored element, at least."""

_LONG_ROW = 512
"""[measured] Elements of a row from which on up to 15 branches at its end do not
matter: Zen 3, sums of bf16, in vectors of 16 instead of 8: of 777 2 to 10 % slower, of
1024 up to 10 % faster, of 100 at half the speed."""

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
    """Return the elements of a vector in the loops of a program, for all types."""
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
    """Return the bytes of the longest element that a program moves along rows.

    Return 2 at least if the program computes: then no value takes more than two
    registers. Return 4 if the program does not go along rows.
    """
    widest, computes = 1, False
    for op in ops:
        values = [v for v in (*op.operands, *op.results) if is_vector(v.type)]
        vectors = [v for v in values if _size(v) > 1 and not _counts_lanes(v)]
        widths = [byte_width(vector_type(v).element_type) for v in vectors]
        if not vectors or isinstance(op, scf.ForOp | scf.IfOp | scf.YieldOp):
            continue
        if max(widths) > 4 or _goes_down(op):
            return 4
        if isinstance(op, xetile.LoadTileOp | xetile.StoreTileOp):
            widest = max(widest, *widths)
        elif isinstance(op, _SPREADS) or state.is_elementwise(op) or _reduces_row(op):
            computes = True
        else:
            return 4
    return max(widest, 2) if computes else widest


def _reduces_row(op: Operation) -> bool:
    """Whether it reduces rows that are long enough for an end without masks.

    The result of a loop or a branch has no such end: it is in registers or a buffer.
    """
    if not isinstance(op, xetile.TileReduceOp) or op.dims != (1,):
        return False
    is_left = isinstance(op.source.owner, scf.ForOp | scf.IfOp)
    return is_left or state.shape_of(op.source)[1] >= _LONG_ROW


def _counts_lanes(value: SSAValue) -> bool:
    """Whether these are lane numbers that are narrowed at once, as constants."""
    casts = (isinstance(use.operation, arith.IndexCastOp) for use in value.uses)
    return isinstance(value.owner, vector.StepOp) and all(casts)


def _is_cheap(op: Operation) -> bool:
    """Whether it only moves or adds up vectors, or has no vectors."""
    if isinstance(op, xetile.TileReduceOp):
        return op.kind.data == "add" and 1 in op.dims
    if isinstance(op, (*_CHEAP, xetile.LoadTileOp, xetile.StoreTileOp)):
        return True
    return not any(is_vector(each.type) for each in (*op.operands, *op.results))


def _size(value: SSAValue) -> int:
    return prod(vector_type(value).get_shape())


_SPREADS = (xetile.TileBroadcastOp, vector.BroadcastOp, vector.ShapeCastOp)

BUFFER, REGISTERS = "cpu.buffer", "cpu.registers"
"""The attributes that say where a value lives; their text is the reason."""

EXPENSIVE = 8
"""Above this many simple operations a value with two readers is computed once."""

_MOST = 999
"""The cap of a cost: costs double where a value is read twice."""

_WIDENED = 5
"""The cost of widening where a shuffle and a shift do it, for which few ports exist.

[measured] `layer_norm` in bf16, 1024 x 1024: Zen 4 takes 217 us if differences from the
mean are in a buffer, 255 if each reader computes them; as AVX2, which splits vectors in
elements at even and at odd places unless a buffer has an order, 306 and 268.
"""


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
        self._costs: dict[SSAValue, int] = {}

    def choose(self, block: Block) -> None:
        """Annotate a block in order; loop-carried rows in registers stay there."""
        last = joined_stores(block)
        of_one_loop = read_by_one(block, last)
        for op in block.ops:
            if last.get(op, op) is not op:
                op.attributes[JOINED] = StringAttr("stored by the loop of the next one")
            if isinstance(op, scf.ForOp) and rows_at_once(op, self.machine, self.lanes):
                op.attributes[REGISTERS] = StringAttr("rows that it carries fit")
                for store in operations_in(op, xetile.StoreTileOp):
                    store.attributes[JOINED] = StringAttr("stored by the loop's end")
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self.choose(inner)
            if state.is_computed_where_read(op) and not is_free(op.results[0]):
                self._place(op, of_one_loop)

    def _place(self, op: Operation, of_one_loop: Container[SSAValue]) -> None:
        """Choose the place of a value by its readers and the costs of its operands."""
        (value,) = op.results
        own, shape = self.cost(value), state.shape_of(value)
        # Along narrow rows, a buffer is filled with vectors that are mostly empty.
        empty = self.lanes // shape[1] if state.is_narrow(shape, self.lanes) else 1
        readers = [use.operation for use in value.uses]
        why = ""
        if any(reader.parent is not op.parent for reader in readers):
            why = "computed once, for a nested block reads it"
        elif _is_computed_column(op) and any(
            isinstance(reader, xetile.TileBroadcastOp) for reader in readers
        ):
            why = "computed once, down its rows"
        elif (rows := _rows_that_read(value, readers)) * len(readers) > 1:
            many = f"{len(readers)} readers"
            price = f"{f'{rows} rows' if rows > 1 else many}, {own} operations a vector"
            if rows == 1 and value in of_one_loop:
                text = f"{price}: computed once, in registers of one loop"
                op.attributes[REGISTERS] = StringAttr(text)
            elif own >= EXPENSIVE * empty:
                why = f"{price}: computed once"
            elif self._outlives_what_it_reads(op):
                why = f"{price}: computed once, before what it reads is overwritten"
            elif len(readers) > 1:
                text = f"{price}: computed by each, in registers"
                op.attributes[REGISTERS] = StringAttr(text)
        if why:
            op.attributes[BUFFER] = StringAttr(why)
            self.buffers.add(value)

    def _outlives_what_it_reads(self, op: Operation) -> bool:
        """Whether a loaded operand, which nothing else reads, is overwritten too early.

        Then one of both has a buffer, and this value has as many readers or more.
        """
        waiting, loaded = Worklist([*op.operands]), list[SSAValue | None]()
        for each in waiting:
            maker = each.owner
            if not isinstance(maker, Operation) or each in self.buffers:
                continue
            if len([*each.uses]) > 1:
                continue
            if isinstance(maker, xetile.LoadTileOp | xetile.LoadGatherOp):
                loaded.append(tile_root(maker.tile))
            elif state.is_elementwise(maker):
                waiting += maker.operands
        readers = {use.operation for use in op.results[0].uses}
        following = op.next_op if loaded else None
        while following is not None and readers:
            readers.discard(following)
            if readers and may_write(following):
                to = written_root(following)
                if any(may_alias(one, to) for one in loaded):
                    return True
            following = following.next_op
        return False

    def cost(self, value: SSAValue) -> int:
        """Return how many simple vector operations compute one vector of the value."""
        if value in self.buffers:
            return 1
        if value not in self._costs:
            self._costs[value] = min(self._cost(value), _MOST)
        return self._costs[value]

    def _cost(self, value: SSAValue) -> int:
        op = value.owner
        if not isinstance(op, Operation):
            return 1
        if isinstance(op, xetile.LoadGatherOp) or _loads_apart(op):
            return EXPENSIVE
        if isinstance(op, xetile.TileBroadcastOp) and state.shape_of(op.source)[1] == 1:
            return 0  # one number of each row
        if not state.is_computed_where_read(op):
            return 1
        own = operations_of(op)
        if isinstance(op, arith.ExtfOp) and self.machine.has_masks:
            own = _WIDENED
        own = EXPENSIVE if _gathers(op) and op.operands[0] not in self.buffers else own
        return own + sum(self.cost(v) for v in op.operands if is_vector(v.type))


def stays_in_registers(block: Block, machine: Target) -> bool:
    """Whether no value of an elementwise block needs a buffer."""
    places = _Places(machine, lanes_of(block, machine))
    values = [v for op in block.ops for v in op.results if is_vector(v.type)]
    costs = {v: places.cost(v) for v in values}
    return all(costs[v] < EXPENSIVE for v in values if len([*v.uses]) > 1)


def is_free(value: SSAValue) -> bool:
    """True for values that cost nothing to compute again, even in a loop."""
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        return is_dense(op.value) and splat_bytes(op.value) is not None
    if isinstance(op, arith.IndexCastOp):
        return is_free(op.operands[0])
    if isinstance(op, vector.ShapeCastOp | xetile.TileConvLayoutOp):
        old, new = state.shape_of(op.operands[0]), state.shape_of(op.results[0])
        return old == new and is_free(op.operands[0])
    return isinstance(op, state.FREE)


def _is_computed_column(op: Operation) -> bool:
    """Whether this is a column that is computed down its rows, in vectors."""
    rows, cols = state.shape_of(op.results[0])
    return cols == 1 and rows > 1 and op.name.startswith(("arith.", "math."))


def _rows_that_read(value: SSAValue, readers: Iterable[Operation]) -> int:
    """Return the most rows that a row is broadcast to; 1 if it is not broadcast."""
    spread = [op for op in readers if isinstance(op, xetile.TileBroadcastOp)]
    is_row = is_vector(value.type) and state.shape_of(value)[0] == 1
    return max((state.shape_of(op.result)[0] for op in spread if is_row), default=1)


def _loads_apart(op: Operation) -> bool:
    """Whether it loads one row whose elements may be apart in memory."""
    if not isinstance(op, xetile.LoadTileOp):
        return False
    (rows, cols), init = state.shape_of(op.results[0]), op.tile.owner
    if rows > 1 or cols == 1 or not isinstance(init, xetile.InitTileOp):
        return False
    return init.mixed_strides[-1:] not in ((), (1,))


def _gathers(op: Operation) -> bool:
    """Whether it reads a row from a column whose elements are apart in memory."""
    load = op.operands[0].owner if isinstance(op, vector.ShapeCastOp) else None
    if not isinstance(load, xetile.LoadTileOp):
        return False
    (rows, cols), init = state.shape_of(load.results[0]), load.tile.owner
    is_dense = isinstance(init, xetile.InitTileOp) and init.mixed_strides[:1] == (1,)
    return rows > 1 == cols and not is_dense


def rows_at_once(loop: scf.ForOp, machine: Target, lanes: int) -> int:
    """Return how many rows of all loop-carried vectors fit registers, or 0.

    If these are not all rows, the loop has to run once for each group of rows.
    """
    body = loop.body.block
    carried = [each for each in body.args if is_vector(each.type)]
    stored = [op.value for op in operations_in(loop, xetile.StoreTileOp)]
    heights = {state.shape_of(each)[0] for each in (*carried, *stored)}
    lanes = lanes_of_rows(loop, lanes)
    if not carried or len(heights) > 1 or lanes == 1:
        return 0
    (rows,), used = heights, 0
    for each in carried:
        columns, element = state.shape_of(each)[1], vector_type(each).element_type
        if integer_width(element) == 1:
            return 0
        registers = -(-lanes * byte_width(element) // machine.vector_bytes)
        used += columns // lanes * registers
    in_place = _computes_in_place(body, carried) and _may_store_last(body)
    if used > MOST_CARRIED or not in_place:
        return 0
    if rows > 1 and any(map(_goes_down, body.ops)):
        return 0
    found = max(
        n for n in range(1, rows + 1) if not rows % n and n * used <= MOST_CARRIED
    )
    others = [each for each in loop.results if not is_vector(each.type)]
    is_whole = bool(stored) or any(list(each.uses) for each in others)
    return 0 if found < rows and is_whole else found


def lanes_of_rows(loop: scf.ForOp, lanes: int) -> int:
    """Return the lanes of vectors that make up all rows that a loop carries."""
    rows = [v for v in loop.body.block.args if is_vector(v.type)]
    rows += [op.value for op in operations_in(loop, xetile.StoreTileOp)]
    ends = (state.shape_of(each)[1] for each in rows)
    return min((lanes, *(columns & -columns for columns in ends)))


def _goes_down(op: Operation) -> bool:
    """Whether it may read elements that are neighbours in a column, not in a row."""
    if isinstance(op, xetile.LoadTileOp | xetile.StoreTileOp):
        return xetile.tile_type(op.tile).order != (1, 0)
    return isinstance(op, xetile.TileTransposeOp)


def _moves_elements(op: Operation) -> bool:
    if isinstance(op, vector.ShapeCastOp):
        return state.shape_of(op.operands[0]) != state.shape_of(op.results[0])
    return isinstance(op, (xetile.LoadGatherOp, *state.MOVES))


def _loads_numbers(op: Operation) -> bool:
    """Whether it is a branch that yields scalars only, as a load of an option does."""
    return not any(
        may_write(each)
        or (each.regions and not isinstance(each, scf.IfOp))
        or any(is_vector(v.type) for v in (*each.operands, *each.results))
        for each in op.walk()
    )


def _may_store_last(body: Block) -> bool:
    """Whether no operation behind a store may read what it stores.

    The end of the body then does all stores.
    """
    written = list[SSAValue | None]()
    for op in body.ops:
        if any(may_alias(one, to) for one in _arrays_read(op) for to in written):
            return False
        if isinstance(op, xetile.StoreTileOp):
            written.append(tile_root(op.tile))
    return True


def _arrays_read(op: Operation) -> Iterator[SSAValue | None]:
    for each in op.walk():
        if isinstance(each, xetile.LoadTileOp | xetile.LoadGatherOp):
            yield tile_root(each.tile)
        elif isinstance(each, memref.LoadOp):
            yield root(each.memref)


def _computes_in_place(body: Block, carried: Iterable[SSAValue]) -> bool:
    """Whether the body only computes elements of carried values at the same places."""
    made = set[SSAValue](carried)
    *inside, _ = body.ops
    for op in inside:
        if isinstance(op, xetile.StoreTileOp):
            continue
        if may_write(op) or (op.regions and not _loads_numbers(op)):
            return False
        if isinstance(op, xetile.InitTileOp | xetile.UpdateTileOffsetOp):
            if op.indices is not None:
                return False
        elif any(is_vector(each.type) for each in (*op.operands, *op.results)):
            if not state.is_computed_where_read(op) or _moves_elements(op):
                return False
            if any(operand in made for operand in op.operands):
                if not state.is_elementwise(op):
                    return False
                made.add(op.results[0])
    return True
