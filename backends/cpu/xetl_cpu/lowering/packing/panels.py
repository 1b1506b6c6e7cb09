"""Memory for packed operands, and the loops that pack them before programs run.

An operand of which a program needs one tile is packed by each program if hardly any
programs share it: packed before them, it would go through memory twice, but packed in a
program it stays in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import multiple_of
from xetl.dialects.base import Index, operations_in
from xetl.dialects.upstream import arith, func, memref, scf
from xetl.dialects.xetile import InitTileOp
from xetl.ir.builder import Builder, move_before
from xetl.records import record
from xetl_cpu import dialect
from xetl_cpu.lowering.loops.state import Matrix, matrix_of
from xetl_cpu.lowering.packing import plans
from xetl_cpu.lowering.tiles import piece_along_n, tile_sizes
from xetl_cpu.machine import PAGE
from xetl_cpu.microkernels.blocking import Blocking

_DTYPES = ("f64", "f32", "f16", "bf16", "i32", "i16", "i8")
"""The position of a dtype here is its number in the header of packed memory."""

_FEW_ROWS = 128
"""Rows of C up to which several programs each pack the same panels, if no thread can
pack for all of its programs."""


_SHORT_ROW, _ROW = 256, 512
"""Rows of a tile of B with fewer bytes are packed together by a thread, until they have
the second number of bytes: each row is in another page (bf16, tiles of 64: 1 to 4
%)."""


@record(eq=False)
class Packing:
    """A packed operand: its size, and its memory.

    Attributes:
        plan: what is packed.
        depth: the extent of one product along k.
        total: the largest extent of a matrix along k.
        per_panel: elements of a panel.
        tiles: the largest number of tiles of a matrix along n.
        source: the operand as a (k, n) matrix, if all programs use one matrix.
        is_missing: whether it has to be packed; None: always.
        is_there: whether programs find it packed; None: always.
        by_thread: whether threads pack tile by tile; None: never.
        shared: the packing of another product that this product reads as well.
    """

    op: dialect.BrgemmTileOp
    plan: plans.Plan
    loop: scf.ParallelOp
    blocking: Blocking
    depth: int
    total: Index
    per_panel: Index
    tiles: Index
    source: Matrix | None
    buffer: SSAValue | None = None
    is_missing: SSAValue | None = None
    is_there: SSAValue | None = None
    by_thread: SSAValue | None = None
    shared: Packing | None = None

    def elements(self, build: Builder) -> Index:
        """Return the elements of one matrix."""
        return build.times(self.tiles, self.tile_elements(build))

    def tile_elements(self, build: Builder) -> Index:
        """Return the elements of one tile."""
        return build.times(self.per_panel, self.panels(build))

    def panels(self, build: Builder) -> Index:
        """Return the panels of one tile."""
        return build.ceil_divided(self.plan.width, self.blocking.nr)

    @property
    def row(self) -> int:
        """Bytes of a row of a tile, if panels of tiles are side by side; else 0."""
        how, plan = self.blocking, self.plan
        if not isinstance(plan.width, int) or plan.tile is None or plan.n_dim == 0:
            return 0
        return 0 if plan.width % how.nr else plan.width * how.compute_bytes

    @property
    def of_a_page(self) -> int:
        """The number of tiles that one page of B's row covers."""
        return max(1, PAGE // self.row) if self.row else 1

    @property
    def together(self) -> int:
        """The number of tiles that a thread packs at once."""
        is_short = 0 < self.row < _SHORT_ROW and self.blocking.k_step == 1
        return _ROW // self.row if is_short else 1

    def layout(self) -> list[int]:
        """Return the facts, besides source and extents, that decide packed elements."""
        how, (of_a, of_b) = self.blocking, self.blocking.arithmetic.unsigned
        dtypes = [_DTYPES.index(how.dtype), _DTYPES.index(how.compute)]
        return [how.nr, how.k_pack, how.k_step, 2 * of_a + of_b, *dtypes]


def measure(
    op: dialect.BrgemmTileOp, plan: plans.Plan, loop: scf.ParallelOp, blocking: Blocking
) -> Packing:
    """Compute the sizes of a packing before the programs."""
    build = Builder.before(loop)
    *_, depth = op.shape()
    assert op.count is not None
    if plan.step is None:
        total = build.times(plans.bound(op.count, loop, build), depth)
    else:
        steps = _most_tiles(plan, 1 - plan.n_dim, depth, loop, build)
        total = build.times(steps, depth)
    per_panel = build.times(build.rounded_up(total, blocking.whole_lines), blocking.nr)
    tiles: Index = 1
    if plan.tile is not None:
        tiles = _most_tiles(plan, plan.n_dim, plan.width, loop, build)
        axis = plan.axis(loop)
        if axis is not None:
            tiles = build.minimum(loop.upper_bounds[axis], tiles)
    source = None
    if plan.batch is None:
        # An operand computed in the program may still be the same for all programs.
        copy = plans.copier(loop, build, {})
        source = _source_of_one(plan, copy, build)
        if plan.k_start is not None:
            (k_start,) = plans.copied([plan.k_start], copy)
            plan = replace(plan, k_start=k_start)
    return Packing(op, plan, loop, blocking, depth, total, per_panel, tiles, source)


def share(first: Packing, op: dialect.BrgemmTileOp, plan: plans.Plan) -> Packing | None:
    """Return the packing ``first`` for ``op``, if both need the same; else None."""
    ours, theirs = op.shape()[2], first.op.shape()[2]
    fits = (
        plans.same_plan(plan, first.plan)
        and op.plan == first.op.plan
        and plans.same_index(op.count, first.op.count)
        and ours == theirs
        and op.b.type == first.op.b.type
    )
    return replace(first, op=op, plan=plan, shared=first) if fits else None


def _most_tiles(
    plan: plans.Plan, dim: int, extent: Index, loop: scf.ParallelOp, build: Builder
) -> Index:
    """Return one tile more than a matrix has: it stands for all tiles past the end.

    Return fewer if the loops over the tiles end earlier.
    """
    sizes = tile_sizes(plan.init)
    assert sizes is not None
    size = build.maximum(plans.bound(sizes[dim], loop, build), 0)
    tiles = build.plus(build.ceil_divided(size, extent), 1)
    end = plans.reach(plan.init, dim, loop, build)
    if end is None:
        return tiles
    return build.minimum(tiles, build.maximum(build.ceil_divided(end, extent), 1))


def reserve(packing: Packing, matrices: Index, most_by_thread: int) -> None:
    """Reserve memory for matrices; a launch may pass it in if this is an argument.

    ``most_by_thread``: the most bytes of a tile that each thread packs for itself; 0:
    none.
    """
    if packing.shared is not None:
        packing.buffer = packing.shared.buffer
        packing.is_there = packing.shared.is_there
        return
    build = Builder.before(packing.loop)
    size = build.times(packing.elements(build), matrices)
    own_size = size
    plan = packing.plan
    if most_by_thread and can_pack_by_thread(plan, packing.loop):
        each = build.times(packing.tile_elements(build), packing.together)
        most = most_by_thread // packing.blocking.compute_bytes
        is_small = build.compare("sle", each, most)
        packing.by_thread = is_better = pays_by_thread(packing, is_small, build)
        of_threads = build.times(build.insert(dialect.ThreadCountOp()), each)
        own_size = build.select(is_better, of_threads, size)
    is_wanted = pays_before(packing, build)
    argument = plan.argument() if plan.may_be_brought() else None
    if argument is None:
        packing.is_missing = packing.is_there = is_own = is_wanted
        if is_wanted is not None:
            own_size = build.select(is_wanted, own_size, 0)
        alloc = memref.AllocOp([build.index(own_size)], (), _memory_type(packing))
        packing.buffer = build.insert(alloc)
    else:
        assert is_wanted is not None
        sizes = (build.index(size), build.index(own_size))
        memory = _memory_of_launch(packing, argument, sizes, is_wanted, build)
        packing.buffer, packing.is_missing = memory.memory, memory.is_missing
        packing.is_there, is_own = memory.is_there, memory.is_own
    if packing.by_thread is not None and is_own is not None:
        packing.by_thread = build.both(packing.by_thread, is_own)
    packing.buffer.name_hint = "packed"
    if packing.by_thread is not None:
        packing.by_thread.name_hint = "by_thread"


def reserve_first(function: func.FuncOp) -> None:
    """Move memory of the launch, and code for its size, before any task."""
    block = function.body.block
    tasks = [op for op in block.ops if op.regions]
    moved = [op for op in block.ops if not op.regions and op is not block.last_op]
    if tasks:
        move_before(filter(tasks[0].is_before_in_block, moved), tasks[0])


def _memory_of_launch(
    packing: Packing,
    argument: int,
    counts: tuple[SSAValue, SSAValue],
    is_wanted: SSAValue,
    build: Builder,
) -> dialect.PackedMemoryOp:
    """Get memory for a packed argument; ``counts``: its elements, those reserved."""
    source, plan = packing.source, packing.plan
    assert source is not None
    assert plan.k_start is not None
    sizes = (source.rows, source.cols, packing.total)
    numbers = (*sizes, plan.k_start, packing.tiles, plan.width)
    facts, type_ = map(build.index, numbers), _memory_type(packing)
    memory = dialect.PackedMemoryOp(
        *(*counts, source.memref, is_wanted, [*facts], type_),
        argument=argument,
        layout=packing.layout(),
    )
    for name in ("is_missing", "is_there", "is_own"):
        getattr(memory, name).name_hint = name
    return build.add(memory)


def _memory_type(packing: Packing) -> MemRefType:
    return MemRefType(
        dialect.element_attribute(packing.blocking.compute), [DYNAMIC_INDEX]
    )


def pays_before(packing: Packing, build: Builder) -> SSAValue | None:
    """Return whether packing before the programs pays; None: always."""
    plan = packing.plan
    is_alone = plan.may_be_brought() or plan.trips() is not None
    is_alone |= plan.step is None and plan.is_of_program(packing.loop)
    return _many_share(packing, build) if is_alone else None


def _many_share(packing: Packing, build: Builder) -> SSAValue:
    """Whether several programs read each tile, so that packing before them pays."""
    loop, plan = packing.loop, packing.plan
    axis, extents = plan.axis(loop), enumerate(loop.upper_bounds)
    own = (axis, plan.group_axis(loop))
    sharers = build.product(each for number, each in extents if number not in own)
    if not plan.is_of_program(loop):
        return build.compare("sgt", sharers, 0)  # each program reads many tiles
    if plan.tile is not None and axis is None:
        sharers = build.divided(sharers, build.maximum(packing.tiles, 1))
    least = 1 if packing.by_thread else max(1, _FEW_ROWS // packing.blocking.block_m)
    return build.compare("sgt", sharers, least)


def read_packed(packing: Packing) -> None:
    """Let the product read the packed operand."""
    op, plan, build = packing.op, packing.plan, Builder.before(packing.op)
    offsets = plan.init.mixed_offsets
    number: Index = 0
    if plan.tile is not None:
        number = _number(plan, build)
        number = build.minimum(number, build.minus(packing.tiles, 1))
    if packing.by_thread is not None:
        number = _pack_when_met_first(packing, number, build)
    if plan.batch is not None:
        number = build.plus(build.times(plan.batch, packing.tiles), number)
    panel = build.times(number, packing.panels(build))
    piece = piece_along_n(op)
    if piece is not None:
        panel = build.plus(panel, build.divided(piece, packing.blocking.nr))
    first: Index = 0
    if plan.step is not None:
        last = build.minus(packing.total, packing.depth)
        first = build.minimum(offsets[1 - plan.n_dim], last)
    new = op.changed(
        packed=packing.buffer,
        packed_panel=build.index(panel),
        panel_stride=build.index(packing.per_panel),
        packed_k=build.index(first),
        is_packed=packing.is_there,
    )
    Rewriter.replace_op(op, new)


def _number(plan: plans.Plan, build: Builder) -> Index:
    """Return the number of the tile that a program needs."""
    offset, width = plan.init.mixed_offsets[plan.n_dim], plan.width
    assert plan.tile is not None
    if not isinstance(width, int) or multiple_of(offset, width) is plan.tile:
        return plan.tile
    return build.divided(offset, width)


def emit_packing(packing: Packing, build: Builder, matrices: Index | None) -> None:
    """Build a parallel loop over (tile of n, chunk of k), and over several matrices.

    If tiles are narrow, a task packs several of them, in shorter chunks: it reads whole
    pages of the operand (bf16 on an Intel server core, by 512 bytes of a row: 16 GB/s,
    by 4096: 25).
    """
    if packing.shared is not None:
        return
    tiles, chunk = packing.tiles, packing.blocking.chunk
    some = packing.of_a_page
    if some > 1:
        tiles = build.ceil_divided(tiles, some)
        lines = packing.blocking.whole_lines
        chunk = max(chunk // some // lines, 1) * lines
    if packing.is_missing is not None:
        tiles = build.select(packing.is_missing, tiles, 0)
    if packing.by_thread is not None:
        tiles = build.select(packing.by_thread, 0, tiles)
    extents = [tiles, build.ceil_divided(packing.total, chunk)]
    extents += [] if matrices is None else [matrices]
    inner, numbers = build.parallel(extents)
    _emit_pack(packing, chunk, some, numbers, inner)


def _emit_pack(
    packing: Packing,
    chunk: int,
    some: int,
    numbers: Sequence[BlockArgument],
    inner: Builder,
) -> None:
    """Pack one chunk of one tile; ``numbers`` are those of tile, chunk and matrix."""
    plan = packing.plan
    group, part, *matrix = numbers
    tile = inner.times(group, some)
    k_start: Index = 0 if plan.k_start is None else plan.k_start
    number: Index = tile
    source = packing.source
    if source is None:
        assert plan.batch is not None
        copy = plans.copier(packing.loop, inner, {plan.batch: matrix[0]})
        (k_start,) = plans.copied([k_start], copy)
        source = _source_of_one(plan, copy, inner)
        number = inner.plus(inner.times(matrix[0], packing.tiles), tile)
    skip = inner.times(part, chunk)
    length = inner.minimum(inner.minus(packing.total, skip), chunk)
    piece = _Piece(source, tile, inner.plus(k_start, skip), length)
    start = inner.plus(
        inner.times(number, packing.tile_elements(inner)),
        inner.times(skip, packing.blocking.nr),
    )
    _pack(packing, piece, start, inner, some)


def _pack_when_met_first(packing: Packing, tile: Index, build: Builder) -> Index:
    """Let a program pack its tile, and those beside it, if its thread has not yet.

    Return the number of the tile in the packed memory.
    """
    source, k_start = packing.source, packing.plan.k_start
    assert packing.by_thread is not None
    assert source is not None
    assert k_start is not None
    together = packing.together
    thread = build.insert(dialect.ThreadNumberOp())
    group = build.divided(tile, together)
    first = mine = build.times(thread, together)
    if together > 1:
        mine = build.plus(first, build.minus(tile, build.times(group, together)))
    mine = build.select(packing.by_thread, mine, tile)
    inside = build.when(packing.by_thread)
    inner = inside.when(inside.insert(dialect.IsNewOp(inside.index(group))))
    piece = _Piece(source, group, k_start, packing.total)
    width = inner.times(packing.plan.width, together)
    wide = replace(packing, plan=replace(packing.plan, width=width))
    _pack(wide, piece, inner.times(first, packing.tile_elements(inner)), inner)
    return mine


class _Piece(NamedTuple):
    """A part of a tile of ``source``: ``length`` steps of k from ``first`` on."""

    source: Matrix
    tile: Index
    first: Index
    length: Index


def _pack(
    packing: Packing, piece: _Piece, start: Index, inner: Builder, some: int = 1
) -> None:
    """Pack a piece of ``some`` tiles at ``start`` of the packed memory."""
    blocking, (source, tile, first, length) = packing.blocking, piece
    width = packing.plan.width
    column = inner.times(tile, width)
    if some > 1:
        last = inner.minus(packing.tiles, tile)
        width = inner.times(width, inner.minimum(last, some))
    k_valid = inner.maximum(inner.minus(source.rows, first), 0)
    if blocking.k_step > 1:
        # Packed elements behind that, up to a whole step, are padding.
        k_valid = inner.minimum(k_valid, length)
        length = inner.rounded_up(length, blocking.k_step)
    n_valid = inner.maximum(inner.minus(source.cols, column), 0)
    numbers = (first, column, k_valid, n_valid, length, width)
    assert packing.buffer is not None
    to = (packing.buffer, start, packing.per_panel)
    dialect.pack(inner, "b", blocking, source.memref, numbers, *to)


def _source_of_one(
    plan: plans.Plan, copy: Callable[[SSAValue], SSAValue], inner: Builder
) -> Matrix:
    """Return the operand in the batch that ``copy`` computes, as a (k, n) matrix."""
    init = plan.init
    clone = InitTileOp(
        copy(init.source),
        [0, 0],
        init.result.type,
        sizes=plans.copied(init.mixed_sizes, copy),
        strides=plans.copied(init.mixed_strides, copy),
    )
    matrix = matrix_of(clone, inner)
    return matrix.transposed() if plan.n_dim == 0 else matrix


def can_pack_by_thread(plan: plans.Plan, loop: scf.ParallelOp) -> bool:
    """Whether a program's number chooses the tile of B, and one thread can pack it."""
    if plan.step is not None or plan.batch is not None:
        return False
    is_number = plan.tile is None or plan.axis(loop) is not None
    return is_number and not operations_in(loop, dialect.FibersOp)


def pays_by_thread(packing: Packing, is_small: SSAValue, build: Builder) -> SSAValue:
    """Whether threads meet tiles in order, and either each has one or tiles are small.

    If there are fewer tiles than threads, several threads pack the same tile, which
    pays if a tile stays in the cache of a core. The last axis of the grid grows
    slowest: if it counts the tiles, programs of one tile follow one another. Tiles that
    are packed together count as one.
    """
    plan, loop = packing.plan, packing.loop
    tiles = build.divided(packing.tiles, packing.together)
    axis = plan.axis(loop)
    slower = 1 if axis is None else build.product(loop.upper_bounds[axis + 1 :])
    enough = build.compare("sle", build.insert(dialect.ThreadCountOp()), tiles)
    is_cheap = build.insert(arith.OriOp(enough, is_small))
    in_order = build.compare("eq", slower, 1)
    return build.both(in_order, is_cheap)
