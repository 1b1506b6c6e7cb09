"""Products: ``xsmm.brgemm.tile`` as packed block GEMMs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr, i1
from xdsl.ir import Region, SSAValue

from xetl.dialects.base import Index, memref_type
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder
from xetl.records import record
from xetl_cpu.dialect import (
    BlockGemmOp,
    BrgemmTileOp,
    Later,
    Output,
    element_attribute,
    pack,
)
from xetl_cpu.lowering.loops.accumulators import accumulator, initial, starts_itself
from xetl_cpu.lowering.loops.direct_stores import Taken, take_store
from xetl_cpu.lowering.loops.factors import (
    PANELS_IN_PLACE,
    InPlace,
    Way,
    clamped,
    copied_row,
    either,
    factor_of,
    has_bad_rows,
    lies_near,
    may_stay,
    of_few_panels,
    run_of,
    suits_tiles,
    sums_leave_l2,
)
from xetl_cpu.lowering.loops.kept_copies import Trip, trip_of
from xetl_cpu.lowering.loops.plain_products import (
    clear,
    may_stream,
    multiply_in_place,
    repeat_last_row,
    streams,
)
from xetl_cpu.lowering.loops.state import (
    Buffer,
    Factor,
    Matrix,
    State,
    reinterpret,
    view_of,
)
from xetl_cpu.microkernels.blocking import Blocking


def lower_brgemm(state: State, op: BrgemmTileOp) -> None:
    """Accumulate in scratch, in chunks of k; see docs/design/0002-cpu.md."""
    blocking, (m, n, depth) = op.blocking(), op.shape()
    op.check_width()
    starts = starts_itself(op, blocking)
    # Only the wanted part is cleared: the tile may be much wider (`grow-tiles`).
    is_cleared = op.acc is None and blocking.is_skinny
    is_new = starts or is_cleared
    result = accumulator(state, op) if is_new else initial(state, op)
    build = Builder.before(op)
    a = factor_of(state, op, op.a, op.trans_a is not None, build)
    b = factor_of(state, op, op.b, op.trans_b is not None, build)
    total = depth if op.count is None else build.times(op.count, depth)
    # Past the end of both operands, the products are 0 * 0.
    k = build.minimum(total, build.maximum(a.cols, b.rows))
    extents = (clamped(build, op.rows, m), k, clamped(build, op.cols, n))
    state.buffers[op.result] = result
    if is_cleared:
        clear(build, blocking, result, extents)
    to = take_store(state, op, blocking) if starts else None
    trip = trip_of(op, build) if op in state.of_one_a else None
    shares = None
    if op.packed is not None:  # else there are too few uses of a copy
        shares = has_bad_rows(state, build, blocking, a, extents[2])
    if shares is not None:
        shares = build.conjunction(shares, op.is_packed)
    lies = None
    if op.packed is None or op.is_packed is not None:
        lies = lies_near(state, build, blocking, b, extents)
    product = _Product(
        state, op, blocking, a, b, extents, result, starts, to, trip, shares, lies
    )
    is_own = product.packs(build)
    if is_own is None or not may_stream(blocking, a, b):
        product.emit(build, is_own)
        return
    there = streams(build, blocking, a, b, extents)
    ways = (product.stream, partial(product.emit, is_own=is_own))
    either(build, build.both(is_own, there), ways)


@record()
class _Product:
    """A product whose operands are in memory.

    Attributes:
        extents: rows, k, cols.
        result: the accumulators.
        starts: whether the accumulators hold no values yet.
        to: the store of the result, if registers are stored to the user's tile.
        trip: the iteration of a loop that shares A, if the product is in one.
        shares_sets: whether A is copied for the distance of its rows; None: never.
        lies: whether strips read B in place if it is not packed; None: never.
    """

    state: State
    op: BrgemmTileOp
    blocking: Blocking
    a: Factor
    b: Factor
    extents: tuple[Index, Index, Index]
    result: Buffer
    starts: bool
    to: Taken | None
    trip: Trip | None
    shares_sets: SSAValue | None
    lies: InPlace | None

    def packs(self, build: Builder) -> SSAValue | None:
        """Return whether the program packs B for itself; None: never."""
        if self.op.packed is not None and self.op.is_packed is None:
            return None
        others = [self.op.is_packed, self.lies and self.lies.is_near]
        found = [_not(build, each) for each in others if each is not None]
        return build.both(*found) if found else build.constant(1, i1)

    def stream(self, build: Builder) -> None:
        """Emit the product with B in place, of few rows: sums are in scratch first."""
        result, (rows, _, cols) = self.result, self.extents
        if self.starts:
            clear(build, self.blocking, result, self.extents)
        if self.a.matrix.is_contiguous():
            multiply_in_place(build, self.op, self.a, self.b, self.extents, result)
        else:
            self._stream_chunks(build)
        if self.to is not None:  # a product of no steps stores them
            repeat_last_row(build, self.blocking, result, self.extents)
            rest = replace(self, extents=(rows, 0, cols), starts=False)
            chunk = rest._chunk(build, build.index(0), 1, None)
            panels = [build.index(0), build.index(0), *self._no_gaps(build)]
            chunk.multiply_columns([result.memref, *panels], chunk.in_place(build))

    def _stream_chunks(self, build: Builder) -> None:
        """Emit the product in chunks of k, whose few rows of A are copied first."""
        (rows, k, cols), most = self.extents, self.blocking.chunk
        inner, at = build.repeat(0, k, most)
        chunk = replace(self, trip=None)._chunk(inner, at, most, None)
        copy, length = chunk.copy_a(inner)[0], chunk.length
        a = Factor(Matrix(copy, rows, length), 0, 0, rows, length)
        left = inner.minus(self.b.rows, at)
        b = replace(self.b, row=inner.plus(self.b.row, at), rows=left)
        multiply_in_place(inner, self.op, a, b, (rows, length, cols), self.result)

    def _no_gaps(self, build: Builder) -> list[SSAValue]:
        """Return what packed panels have for `_b_in_place`'s distance and columns."""
        if self.lies is None:
            return []
        nr = self.blocking.nr
        return [build.index(nr), build.index(build.rounded_up(self.extents[2], nr))]

    def emit(self, build: Builder, is_own: SSAValue | None) -> None:
        """Emit the product by blocks of rows if A is copied, or as one block.

        If A is copied (for AMX, to widen it, or for its rows' distance), or if sums
        would leave L2, a block of rows fits L2, and all blocks use the same memory for
        sums. B is packed by the program once, for all rows.
        """
        if not self._is_by_blocks():
            self._emit_chunks(build, is_own)
            return
        (rows, k, _), most = self.extents, self.blocking.mc
        wanted = self.shares_sets
        if self._sums_leave_l2() and wanted is None:
            is_long = build.compare("sgt", k, self.blocking.all_at_once)
            wanted = build.conjunction(is_long, self.op.is_packed)
        if wanted is not None:
            most = build.maximum(build.select(wanted, most, rows), 1)
        elif is_own is not None:
            most = build.maximum(build.select(is_own, rows, most), 1)
        inner, first = build.repeat(0, rows, most)
        self._rows_from(inner, first, most)._emit_chunks(inner, is_own)

    def _is_by_blocks(self) -> bool:
        """Whether blocks of rows may be computed one after the other."""
        blocking = self.blocking
        copies = blocking.uses_tiles, blocking.copies_a, self.shares_sets is not None
        is_tall = (
            any((*copies, self._sums_leave_l2())) and blocking.block_m > blocking.mc
        )
        return is_tall and self.to is not None and self.op.packed is not None

    def _sums_leave_l2(self) -> bool:
        """Whether blocks of rows are needed although A stays in place."""
        blocking = self.blocking
        is_plain = not (blocking.uses_tiles or blocking.copies_a)
        return is_plain and sums_leave_l2(self.state.target.machine, blocking)

    def _rows_from(self, build: Builder, first: SSAValue, most: Index) -> _Product:
        """Return the product of at most ``most`` rows from ``first`` on."""
        a, to, (rows, k, cols) = self.a, self.to, self.extents
        assert to is not None
        some = build.minimum(build.minus(rows, first), most)
        left = build.maximum(build.minus(a.rows, first), 0)
        a = replace(a, row=build.plus(a.row, first), rows=left)
        to = to.moved(build, first, 0)
        return replace(self, a=a, to=to, extents=(some, k, cols), trip=None)

    def _emit_chunks(self, build: Builder, is_own: SSAValue | None) -> None:
        """Emit the product in chunks of k."""
        k, most = self.extents[1], self._most(build, is_own)
        # Zeros have to be written, too: if k is 0, one empty chunk runs.
        end = build.maximum(k, 1) if self.starts else k
        inner, at = build.repeat(0, end, most)
        self._chunk(inner, at, most, is_own).multiply()

    def _chunk(
        self, build: Builder, at: SSAValue, most: Index, is_own: SSAValue | None
    ) -> _Chunk:
        """Return the chunk of up to ``most`` steps of k from ``at`` on."""
        return _Chunk(
            **vars(self),
            build=build,
            at=at,
            length=build.minimum(build.minus(self.extents[1], at), most),
            following=build.plus(at, most),
            most=most,
            is_own=is_own,
        )

    def _columns(self) -> Index:
        """Return the columns that use this A, in all iterations of its loop."""
        return self.extents[2] if self.trip is None else self.trip.columns

    def _most(self, build: Builder, is_own: SSAValue | None) -> Index:
        """Return the length of chunks: what the program packs has to stay in cache."""
        blocking, k, lies = self.blocking, self.extents[1], self.lies
        may_run = may_stay(blocking, self.a) or self._is_by_blocks()
        most: Index = blocking.chunk
        if may_run and not (self.op.packed is None and lies is None):
            most = run_of(build, blocking, k)
            if blocking.uses_tiles:
                extents = (*self.extents[:2], self._columns())
                is_few, whole = of_few_panels(build, blocking, self.a, extents)
                most = build.select(is_few, whole, most)
            if is_own is not None:
                most = build.select(is_own, blocking.chunk, most)
        if lies is None:
            return most
        is_there = lies.is_near
        if self.op.is_packed is not None:
            is_there = build.both(is_there, _not(build, self.op.is_packed))
        return build.select(is_there, build.minimum(most, lies.run), most)


def _not(build: Builder, condition: SSAValue) -> SSAValue:
    return build.insert(arith.XoriOp(condition, build.constant(1, i1)))


@record()
class _Chunk(_Product):
    """One chunk of k: its packing and its block GEMM.

    Attributes:
        at: where the chunk starts along k; ``following``: where the next one starts.
        most: the maximum length of chunks.
        is_own: whether the program packs B for itself; None: never.
    """

    build: Builder
    at: SSAValue
    length: Index
    following: Index
    most: Index
    is_own: SSAValue | None

    def multiply(self) -> None:
        """Multiply A in place if its memory allows it, else a copy.

        The part of B that a program packs for AMX tiles has to stay in its cache until
        the strips of A read it, however wide the task is: so columns are processed in
        parts.
        """
        most = self._columns_at_once()
        if most is None:
            self.multiply_columns(self._panels(), self._place_of_a())
            return
        place = self._place_of_a()
        some = self._columns_from(*self.build.repeat(0, self.extents[2], most), most)
        some.multiply_columns(some._panels(), place)

    def _columns_at_once(self) -> Index | None:
        """Return how many columns are packed and multiplied at once; None: all."""
        build, blocking, (_, _, cols) = self.build, self.blocking, self.extents
        most = blocking.packed_columns
        if self.is_own is None or not blocking.uses_tiles or blocking.block_n <= most:
            return None
        if self.op.packed is None:
            return most
        return build.maximum(build.select(self.is_own, most, cols), 1)

    def _columns_from(self, build: Builder, first: SSAValue, most: Index) -> _Chunk:
        """Return the product of at most ``most`` columns from ``first`` on."""
        b, to, (rows, k, cols) = self.b, self.to, self.extents
        left = build.maximum(build.minus(b.cols, first), 0)
        b = replace(b, col=build.plus(b.col, first), cols=left)
        base = self.result.memref
        start, _ = view_of(base, build)
        skip: Index = first
        if to is not None:  # sums lie panel after panel
            to = to.moved(build, 0, first)
            skip = build.times(first, self.blocking.rows_padded)
        shape, ldc = memref_type(base).get_shape(), self.blocking.ldc
        start = build.plus(start, skip)
        base = reinterpret(build, base, start, (shape[0], shape[1]), (ldc, 1))
        extents = (rows, k, build.minimum(build.minus(cols, first), most))
        result = replace(self.result, memref=base)
        return replace(self, build=build, b=b, to=to, extents=extents, result=result)

    def multiply_columns(
        self, panels: Sequence[SSAValue], place: Sequence[SSAValue]
    ) -> None:
        """Emit the block GEMM of panels of B (`_panels`); ``place``: where A is."""
        build, (rows, _, cols) = self.build, self.extents
        extents = map(build.index, (rows, self._padded_length(build)))
        blocks = build.index(build.ceil_divided(cols, self.blocking.nr))
        gemm = BlockGemmOp(
            *(*place, *extents, *panels[:3], blocks, self.result.memref),
            build.compare("sgt", self.at, 0) if self.starts else None,
            *(self._output() or [None] * len(Output._fields)),
            *(self._later() or [None] * len(Later._fields)),
            *(panels[3:] or (None, None)),
            regions=[Region() if self.to is None else self.to.epilogue()],
            plan=self.blocking,
            location=self.op.location,
        )
        build.add(gemm)

    def _output(self) -> Output | None:
        """Return the user's tile, which the last chunk is stored to."""
        build, (_, k, cols) = self.build, self.extents
        if self.to is None:
            return None
        to = self.to.tile
        is_last = build.compare("sge", self.following, k)
        place = (build.index(to.row), build.index(to.col), build.index(cols))
        return Output(to.matrix.memref, *place, is_last)

    def _later(self) -> Later | None:
        """Return the next chunk of B's tile; after the last one, that of the next tile.

        If a loop adds more products, the tile below follows instead.
        """
        b, build, following = self.b, self.build, self.following
        matrix, col = b.matrix, b.col
        is_known = matrix.is_contiguous() or matrix.transposed().is_contiguous()
        if self.is_own is None or not is_known:
            return None
        if self.op.acc is None:
            is_last = build.compare("sge", following, self.extents[1])
            following = build.select(is_last, 0, following)
            beside = build.select(is_last, self.blocking.block_n, 0)
            col = build.plus(col, beside)
        place = (build.index(build.plus(b.row, following)), build.index(col))
        return Later(matrix.memref, *place, self.is_own)

    def _padded_length(self, build: Builder) -> Index:
        """Return the length in whole steps: packed memory has zeros behind its end."""
        return build.rounded_up(self.length, self.blocking.k_step)

    def _panels(self) -> Sequence[SSAValue]:
        """Return panels of this chunk of B: memory, offset of the first, distance.

        If B may be in place, return the distance of rows and the columns, too.
        """
        if self.is_own is None:
            return self._packed_b(self.build)
        element, is_packed = element_attribute(self.blocking.compute), self.op.is_packed
        type_ = MemRefType(element, [DYNAMIC_INDEX])
        ready: Way = self._packed_b if is_packed is not None else self._b_in_place
        if self.lies is None and is_packed is None:
            return self._pack_b(self.build)
        if self.lies is not None and is_packed is not None:
            ways = (self._packed_b, self._b_in_place)
            ready = partial(either, condition=is_packed, ways=ways, type_=type_)
        return either(self.build, self.is_own, (self._pack_b, ready), type_)

    def _b_in_place(self, build: Builder) -> list[SSAValue]:
        """Return this chunk of B where it is; see `lies_near`."""
        b = self.b
        source = b.matrix.memref
        first, (ldb, _) = view_of(source, build)
        row = build.plus(b.row, self.at)
        first = build.plus(first, build.plus(build.times(row, ldb), b.col))
        whole = reinterpret(build, source, 0, (build.times(b.rows, ldb),), (1,))
        place = first, self.blocking.nr, ldb, self.extents[2]
        return [whole, *map(build.index, place)]

    def _pack_b(self, build: Builder) -> list[SSAValue]:
        """Pack the chunk to per-thread scratch."""
        b, blocking = self.b, self.blocking
        stride = blocking.panel_elements(blocking.chunk)
        panels = blocking.panels
        if blocking.uses_tiles:
            panels = min(panels, blocking.packed_columns // blocking.nr)
        to = self._scratch(panels * stride)
        first = build.plus(b.row, self.at)
        extents = (self._padded_length(build), self.extents[2])
        numbers = (first, b.col, self._valid(b.rows), b.cols, *extents)
        pack(build, "b", blocking, b.matrix.memref, numbers, to, 0, stride)
        return [to, build.index(0), build.index(stride), *self._no_gaps(build)]

    def _packed_b(self, build: Builder) -> list[SSAValue]:
        """Return the chunk in memory that was packed for many programs."""
        blocking, op = self.blocking, self.op
        assert op.packed is not None
        assert op.packed_panel is not None
        assert op.panel_stride is not None
        assert op.packed_k is not None
        first = build.times(op.packed_panel, op.panel_stride)
        skip = build.times(build.plus(op.packed_k, self.at), blocking.nr)
        place = (op.packed, build.index(build.plus(first, skip)), op.panel_stride)
        return [*place, *self._no_gaps(build)]

    def _place_of_a(self) -> Sequence[SSAValue]:
        """Return where this chunk of A starts: memory, row, column."""
        blocking = self.blocking
        if not may_stay(blocking, self.a):
            return self.copy_a(self.build)
        element, layout = element_attribute(blocking.compute), [None, 1]
        type_ = MemRefType(
            element, [DYNAMIC_INDEX] * 2, StridedLayoutAttr(layout, None)
        )
        ways = (self.in_place, self.copy_a)
        return either(self.build, self._is_whole(), ways, type_)

    def in_place(self, build: Builder) -> list[SSAValue]:
        a, k0 = self.a, build.plus(self.a.col, self.at)
        return [a.matrix.memref, build.index(a.row), build.index(k0)]

    def _is_whole(self) -> SSAValue:
        """Return whether all rows and whole steps of A exist, at suitable addresses."""
        a, build, blocking = self.a, self.build, self.blocking
        facts = [
            build.compare("sge", a.rows, self._padded_rows(build)),
            build.compare("sge", self._valid(a.cols), self.length),
        ]
        if blocking.k_step > 1:
            rest = build.remainder(self.length, blocking.k_step)
            facts.append(build.compare("eq", rest, 0))
        if blocking.uses_tiles:
            most = PANELS_IN_PLACE * blocking.nr
            few = build.compare("sle", self._columns(), most)
            start = build.plus(a.col, self.at)
            lies_well = suits_tiles(build, a.matrix.memref, start, blocking)
            facts.append(build.insert(arith.OriOp(few, lies_well)))
        if self.shares_sets is not None:
            facts.append(_not(build, self.shares_sets))
        return build.both(*facts)

    def copy_a(self, build: Builder) -> list[SSAValue]:
        a, blocking = self.a, self.blocking
        most = [blocking.chunk, blocking.all_at_once]
        if isinstance(self.most, int):
            most = [self.most]
        room = max(map(blocking.copied_row, most))
        to, stride = self._scratch(blocking.rows_padded, room), build.index(room)
        if blocking.uses_tiles or len(most) > 1:  # rows as near as they may be
            stride = copied_row(build, blocking, self.length)
            to = reinterpret(build, to, 0, (blocking.rows_padded, room), (stride, 1))
        extents = (self._padded_rows(build), self._padded_length(build))
        k0 = build.plus(a.col, self.at)
        numbers = (a.row, k0, a.rows, self._valid(a.cols), *extents)
        if self.trip is not None:
            build = self.trip.where_new(build, self.extents[1], self.most)
        pack(build, "a", blocking, a.matrix.memref, numbers, to, 0, stride)
        return [to, self.build.index(0), self.build.index(0)]

    def _valid(self, extent: Index) -> Index:
        """Return how much of an extent of k is in this chunk."""
        there = self.build.maximum(self.build.minus(extent, self.at), 0)
        return self.build.minimum(there, self.length)

    def _padded_rows(self, build: Builder) -> Index:
        """Return the rows of A that the micro-kernel reads, perhaps more than exist."""
        rows, least = self.extents[0], self.blocking.least_rows
        return rows if least == 1 else build.maximum(rows, least)

    def _scratch(self, *shape: int) -> SSAValue:
        element = element_attribute(self.blocking.compute)
        return self.state.scratch_memref([*shape], element)
