"""Products: ``xsmm.brgemm.tile`` as packed block GEMMs."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Region, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.xetile import StoreTileOp, TileType
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import (
    BlockGemmOp,
    BrgemmTileOp,
    Later,
    Output,
    element_attribute,
    pack,
)
from xetl_cpu.lowering.demand import way_to_store
from xetl_cpu.lowering.loops.materialization import materialize, snapshot_loads_before
from xetl_cpu.lowering.loops.plain_products import (
    all_exist,
    may_stream,
    multiply_in_place,
    zeros,
)
from xetl_cpu.lowering.loops.state import (
    Buffer,
    Factor,
    Matrix,
    State,
    TileAt,
    reinterpret,
    view_of,
)
from xetl_cpu.lowering.loops.stores import element_of, write
from xetl_cpu.lowering.tiles import may_alias, tile_root
from xetl_cpu.machine import LINE
from xetl_cpu.microkernels import Blocking
from xetl_cpu.microkernels.gemv import is_skinny
from xetl_cpu.microkernels.small_m_gemm import is_low


def accumulator(state: State, op: BrgemmTileOp) -> Buffer:
    """Scratch for the result, in the shape the micro-kernel wants."""
    blocking, (m, n, _) = op.blocking(), op.shape()
    shape = [blocking.rows_padded, blocking.ldc]
    element = element_attribute(blocking.arithmetic.accumulator)
    return Buffer(state.scratch_memref(shape, element), (m, n))


def lower_brgemm(state: State, op: BrgemmTileOp) -> None:
    """Accumulate in scratch, chunk by chunk of k; see docs/design/0002-cpu.md."""
    blocking, (m, n, depth) = op.blocking(), op.shape()
    starts = _starts_itself(op, blocking)
    # Zeros are as many as are wanted: the tile may be wider by far (`tile-gemm`).
    is_cleared = op.acc is None and is_skinny(blocking)
    is_new = starts or is_cleared
    result = accumulator(state, op) if is_new else _start(state, op)
    build = Builder.before(op)
    a = _factor(state, op, op.a, op.trans_a is not None, build)
    b = _factor(state, op, op.b, op.trans_b is not None, build)
    total = depth if op.count is None else build.times(op.count, depth)
    # Where both operands are padding, the products are 0 * 0.
    k = build.minimum(total, build.maximum(a.cols, b.rows))
    extents = (_clamped(build, op.rows, m), k, _clamped(build, op.cols, n))
    state.buffers[op.result] = result
    if is_cleared:
        _clear(build, blocking, result, extents[2])
    to = take_store(state, op, blocking) if starts else None
    product = _Product(state, op, blocking, a, b, extents, result, starts, to)
    is_packed = op.packed is not None
    if op.is_packed is not None:
        packed, build = _branches(build, op.is_packed)
        product.emit(packed, is_packed=True)
        is_packed = False
    if not is_packed and may_stream(blocking, a, b):
        there = all_exist(build, a, b, extents)
        in_place, build = _branches(build, there)
        multiply_in_place(in_place, op, a, b, extents, result)
    product.emit(build, is_packed=is_packed)


@record()
class _Product:
    """A product whose operands are in memory.

    Attributes:
        extents: rows, k, cols.
        result: the accumulators.
        starts: whether what is in them does not count.
        to: the user's tile, if the result goes there from registers.
    """

    state: State
    op: BrgemmTileOp
    blocking: Blocking
    a: Factor
    b: Factor
    extents: tuple[Index, Index, Index]
    result: Buffer
    starts: bool
    to: TileAt | None

    def emit(self, build: Builder, *, is_packed: bool) -> None:
        """Chunk by chunk of k, on panels for many programs or on the program's own."""
        blocking, (rows, k, cols) = self.blocking, self.extents
        panels = build.ceil_divided(cols, blocking.nr)
        # What the program packs has to stay in its cache.
        packs_nothing = is_packed and _may_stay(blocking, self.a)
        most = _run(build, blocking, k) if packs_nothing else blocking.chunk
        # Zeros have to be written, too: one chunk of nothing where there is no k.
        loop = build.for_loop(0, build.maximum(k, 1) if self.starts else k, most)
        inner = Builder.at_end(loop.body.block)
        at = loop.body.block.args[0]
        length = inner.minimum(inner.minus(k, at), most)
        accumulate = inner.compare("sgt", at, 0) if self.starts else None
        output = None if self.to is None else self._output(inner, self.to, at, most)
        chunk = _Chunk(
            self.state,
            self.op,
            blocking,
            inner,
            at,
            length,
            most,
            accumulate,
            output,
            None if is_packed else self._later(inner, at, most),
        )
        source = chunk.packed_b() if is_packed else chunk.pack_b(self.b)
        chunk.multiply(self.a, rows, panels, source, self.result)
        inner.add(scf.YieldOp())

    def _output(self, build: Builder, to: TileAt, at: SSAValue, most: Index) -> Output:
        """The user's tile, for the last chunk."""
        _, k, cols = self.extents
        is_last = build.compare("sge", build.plus(at, most), k)
        place = (build.index(to.row), build.index(to.col), build.index(cols))
        return Output(to.matrix.memref, *place, is_last)

    def _later(self, build: Builder, at: SSAValue, most: Index) -> Later | None:
        """The next chunk of B's tile, or the first one of the tile beside it.

        Where a loop goes on adding, what follows is rather the tile below.
        """
        b, blocking = self.b, self.blocking
        matrix = b.matrix
        if not (matrix.is_contiguous() or matrix.transposed().is_contiguous()):
            return None
        following = build.plus(at, most)
        if self.op.acc is not None:
            row = build.index(build.plus(b.row, following))
            return Later(matrix.memref, row, build.index(b.col))
        is_last = build.compare("sge", following, self.extents[1])
        row = build.plus(b.row, build.select(is_last, 0, following))
        col = build.plus(b.col, build.select(is_last, blocking.block_n, 0))
        return Later(matrix.memref, build.index(row), build.index(col))


def _run(build: Builder, blocking: Blocking, k: Index) -> Index:
    """How much of k is done before C is updated, where nothing is packed."""
    at_once, usual = blocking.all_at_once, blocking.run
    if isinstance(k, int):
        return at_once if k <= at_once else usual
    return build.select(build.compare("sle", k, at_once), at_once, usual)


def _starts_itself(op: BrgemmTileOp, blocking: Blocking) -> bool:
    """Whether the first chunk of k need not find zeros to add to."""
    streams = is_skinny(blocking) or is_low(blocking)
    return op.acc is None and not blocking.is_called and not streams


def _may_stay(blocking: Blocking, a: Factor) -> bool:
    """Rows are contiguous and already of the type that is computed with.

    A library's kernels are made for one distance of rows, which only copies have.
    """
    if blocking.is_called or blocking.dtype != blocking.compute:
        return False
    return a.matrix.is_contiguous()


def _start(state: State, op: BrgemmTileOp) -> Buffer:
    """The buffer with the initial accumulator in it."""
    if op.acc is not None:
        carried = state.buffers.get(op.acc)
        if carried is not None and op.acc in state.in_place:
            return carried
        home = state.homes.get(op.acc)
        if home is not None and carried is None:
            write(state, op.acc, home, op)
            return home
    result = accumulator(state, op)
    source = op.acc if op.acc is not None else zeros(state, op)
    write(state, source, result, op)
    return result


def _clear(build: Builder, blocking: Blocking, result: Buffer, cols: Index) -> None:
    """Set columns of the accumulators to zero, up to the end of a vector."""
    element = element_attribute(blocking.arithmetic.accumulator)
    nothing = arith.ConstantOp.splat(0, VectorType(element, [blocking.lanes]))
    zero = build.insert(nothing)
    for row in range(blocking.block_m):
        loop = build.for_loop(0, cols, blocking.lanes)
        inner = Builder.at_end(loop.body.block)
        where = [inner.index(row), loop.body.block.args[0]]
        inner.add(vector.StoreOp(zero, result.memref, where))
        inner.add(scf.YieldOp())


def _clamped(build: Builder, wanted: SSAValue | None, extent: int) -> Index:
    if wanted is None:
        return extent
    return build.maximum(build.minimum(wanted, extent), 0)


def _factor(
    state: State, op: BrgemmTileOp, value: SSAValue, transposed: bool, build: Builder
) -> Factor:
    """Where an operand is in memory; a value is computed into scratch first."""
    if isinstance(value.type, TileType):
        tile = state.tiles[value]
        assert isinstance(tile, TileAt)
        tile = tile.transposed() if transposed else tile
        rows = build.maximum(build.minus(tile.matrix.rows, tile.row), 0)
        cols = build.maximum(build.minus(tile.matrix.cols, tile.col), 0)
        return Factor(tile.matrix, tile.row, tile.col, rows, cols)
    buffer = materialize(state, value, op)
    return _buffer_factor(buffer, transposed, build)


def _buffer_factor(buffer: Buffer, transposed: bool, build: Builder) -> Factor:
    rows, cols = buffer.shape
    base = buffer.memref
    type_ = base.type
    assert is_memref(type_)
    if buffer.is_column:
        base = _as_matrix(base, rows, build)
    matrix = Matrix(base, rows, cols)
    if transposed:
        matrix, rows, cols = matrix.transposed(), cols, rows
    return Factor(matrix, 0, 0, rows, cols)


def _as_matrix(column: SSAValue, rows: int, build: Builder) -> SSAValue:
    """A rank-1 buffer as a rows x 1 matrix."""
    return reinterpret(build, column, 0, (rows, 1), (1, 1))


@record()
class _Chunk:
    """One chunk of k: its packing and its block GEMM.

    ``most``: how long it may be; only what packs B knows it when it is compiled.
    ``accumulate``, ``output``, ``later``: as for `BlockGemmOp`.
    """

    state: State
    op: BrgemmTileOp
    blocking: Blocking
    build: Builder
    at: SSAValue
    length: Index
    most: Index
    accumulate: SSAValue | None
    output: Output | None
    later: Later | None

    def padded_length(self, build: Builder) -> Index:
        """The length in whole steps: what is packed has zeros behind its end."""
        return build.rounded_up(self.length, self.blocking.k_step)

    def pack_b(self, b: Factor) -> tuple[SSAValue, Index, Index]:
        """Panels of this chunk in per-thread scratch: (memref, offset, stride)."""
        blocking, build = self.blocking, self.build
        assert isinstance(self.most, int)
        stride = blocking.panel_elements(self.most)
        to = self._scratch(blocking.panels * stride)
        k_valid = self._valid(self._rest(b.rows))
        first = build.plus(b.row, self.at)
        extents = (self.padded_length(build), blocking.block_n)
        numbers = (first, b.col, k_valid, b.cols, *extents)
        pack(build, "b", blocking, b.matrix.memref, numbers, to, 0, stride)
        return to, 0, stride

    def packed_b(self) -> tuple[SSAValue, Index, Index]:
        """Panels of this chunk in what was packed for many programs."""
        blocking, build, op = self.blocking, self.build, self.op
        assert op.packed is not None
        assert op.packed_tile is not None
        assert op.panel_stride is not None
        tile = build.times(
            op.packed_tile, build.times(op.panel_stride, blocking.panels)
        )
        assert op.packed_k is not None
        skip = build.times(build.plus(op.packed_k, self.at), blocking.nr)
        return op.packed, build.plus(tile, skip), op.panel_stride

    def multiply(
        self,
        a: Factor,
        rows: Index,
        panels: Index,
        source: tuple[SSAValue, Index, Index],
        result: Buffer,
    ) -> None:
        """The block GEMM, on A in place where its memory allows, else on a copy."""
        build = self.build
        k0, there = build.plus(a.col, self.at), self._rest(a.cols)
        k_valid = self._valid(there)
        if _may_stay(self.blocking, a):
            then, other = _branches(build, self._is_whole(a, rows, there))
            memory = a.matrix.memref
            self._gemm(then, memory, (a.row, k0), rows, panels, source, result)
        else:
            other = build
        copy = self._pack_a(other, a, (k0, k_valid), rows)
        self._gemm(other, copy, (0, 0), rows, panels, source, result)

    def _is_whole(self, a: Factor, rows: Index, k_valid: Index) -> SSAValue:
        """Whether all that is read of A exists, in whole steps, and lies well."""
        build, blocking = self.build, self.blocking
        facts = [
            build.compare("sge", a.rows, _padded_rows(build, blocking, rows)),
            build.compare("sge", k_valid, self.length),
        ]
        if blocking.k_step > 1:
            rest = build.remainder(self.length, blocking.k_step)
            facts.append(build.compare("eq", rest, 0))
        if blocking.uses_tiles:
            facts += self._suits_tiles(a)
        enough, *others = facts
        for other in others:
            enough = build.insert(arith.AndiOp(enough, other))
        return enough

    def _suits_tiles(self, a: Factor) -> list[SSAValue]:
        """Whether rows of A begin on lines, an odd number of lines apart.

        Rows of tiles share the sets of L1 otherwise, or lie across lines: measured on
        silicon, 63 to 72 % and 36 to 51 % of the peak, where 84 are possible.
        """
        build, size, base = self.build, self.blocking.compute_bytes, a.matrix.memref
        start, (row_step, _) = view_of(base, build)
        address = build.insert(memref.ExtractAlignedPointerAsIndexOp(base))
        first = build.plus(build.plus(start, a.col), self.at)
        address = build.plus(address, build.times(first, size))
        distance = build.times(row_step, size)
        return [
            build.compare("eq", build.remainder(distance, 2 * LINE), LINE),
            build.compare("eq", build.remainder(address, LINE), 0),
        ]

    def _pack_a(
        self, build: Builder, a: Factor, chunk: tuple[Index, Index], rows: Index
    ) -> SSAValue:
        """Copy this chunk of A: ``chunk`` is where it starts and what exists of it."""
        k0, k_valid = chunk
        blocking = self.blocking
        most = self.most if isinstance(self.most, int) else blocking.all_at_once
        stride = blocking.copied_row(most)
        to = self._scratch(blocking.rows_padded, stride)
        rows, k = _padded_rows(build, blocking, rows), self.padded_length(build)
        numbers = (a.row, k0, a.rows, k_valid, rows, k)
        pack(build, "a", blocking, a.matrix.memref, numbers, to, 0, stride)
        return to

    def _gemm(
        self,
        build: Builder,
        a: SSAValue,
        at: tuple[Index, Index],
        rows: Index,
        panels: Index,
        source: tuple[SSAValue, Index, Index],
        result: Buffer,
    ) -> None:
        packed, start, stride = source
        scalars = [build.index(v) for v in (*at, rows, self.padded_length(build))]
        tail = [build.index(v) for v in (start, stride, panels)]
        gemm = BlockGemmOp(
            *(a, *scalars, packed, *tail, result.memref, self.accumulate),
            *(self.output or [None] * len(Output._fields)),
            *(self.later or [None] * len(Later._fields)),
            plan=self.blocking,
            location=self.op.location,
        )
        build.add(gemm)

    def _rest(self, extent: Index) -> Index:
        """How much of an extent lies in this chunk or behind it."""
        return self.build.maximum(self.build.minus(extent, self.at), 0)

    def _valid(self, there: Index) -> Index:
        """How much of what is there may be packed: the rest of a step is padding."""
        if self.blocking.k_step == 1:
            return there  # only the chunk is packed anyway
        return self.build.minimum(there, self.length)

    def _scratch(self, *shape: int) -> SSAValue:
        element = element_attribute(self.blocking.compute)
        return self.state.scratch_memref([*shape], element)


def _padded_rows(build: Builder, blocking: Blocking, rows: Index) -> Index:
    """Of A: a micro-kernel may ask for more than there are."""
    least = blocking.least_rows
    return rows if least == 1 else build.maximum(rows, least)


def _branches(build: Builder, condition: SSAValue) -> tuple[Builder, Builder]:
    """The insides of ``if condition:`` and of its ``else:``."""
    blocks = [Block(), Block()]
    ends = [scf.YieldOp(), scf.YieldOp()]
    for block, end in zip(blocks, ends):
        block.add_op(end)
    build.add(scf.IfOp(condition, [], Region(blocks[0]), Region(blocks[1])))
    return Builder.before(ends[0]), Builder.before(ends[1])


_ROUNDED = ("f16", "bf16")


def take_store(state: State, op: BrgemmTileOp, blocking: Blocking) -> TileAt | None:
    """The tile that the result is stored to, if the micro-kernel can do it.

    Then the store is done, too: nothing is left to do when it is met.
    """
    store = _store_behind(op)
    if store is None or not _is_converted(store, op, blocking, state):
        return None
    tile = state.tiles[store.tile]
    if not isinstance(tile, TileAt) or not tile.non_negative:
        return None
    if not tile.matrix.is_contiguous() or _is_read(op, store):
        return None
    snapshot_loads_before(state, store, at=op)
    state.stored.add(store)
    remark(op, "store", "the result is stored from registers")
    return tile


def _store_behind(op: BrgemmTileOp) -> StoreTileOp | None:
    """The only reader, right behind the product or behind the cast between them."""
    way = way_to_store(op)
    if way is None or op.rows is None or op.cols is None:
        return None
    before, store = way
    followed = zip(before, [*before[1:], store])
    return store if all(one.next_op is other for one, other in followed) else None


def _is_converted(
    store: StoreTileOp, op: BrgemmTileOp, blocking: Blocking, state: State
) -> bool:
    """Whether the micro-kernel has the conversion to what is stored."""
    source, to = (str(element_of(value)) for value in (op.result, store.value))
    if source != blocking.arithmetic.accumulator:
        return False
    if to == "bf16" and not state.target.has_bf16_dot:
        return False
    return to == source or (source == "f32" and to in _ROUNDED)


def _is_read(op: BrgemmTileOp, store: StoreTileOp) -> bool:
    """Whether the product may still read what it has stored already."""
    to = tile_root(store.tile)
    return any(
        isinstance(value.type, TileType) and may_alias(tile_root(value), to)
        for value in (op.a, op.b)
    )
