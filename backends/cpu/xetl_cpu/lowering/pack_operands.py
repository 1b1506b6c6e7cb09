"""pack-operands: B is packed once for a launch, in parallel, before the programs run.

Why: all programs of a column of the grid read the same panels of B. Packed once, they
are read linearly by all of them; packed by each program, the copy costs 1/BM of the
arithmetic: 10 % at BM = 64.

Before: ``scf.parallel (%x, %y) { xsmm.brgemm(%a, %b at [0, %y * 256], ...) }``
After::

    %packed, %is_missing = cpu.packed_memory(...)
    scf.parallel (%tile, %chunk) { xsmm.pack ... }
    scf.parallel (%x, %y) { xsmm.brgemm(...) packed (%packed, tile %y) }

A launch may pass in memory that holds the packed operand; then nothing has to be
packed. Only operands that are part of an argument can be passed in; the others use a
`memref.alloc`.

A loop in the program may also count the tiles (attention's keys), the parts of k (its
values) or a few matrices (``W[tap]``). If one axis of the grid chooses the matrix
(``X[b]``, a head, a part of k), programs run in groups along that axis: the matrices of
a group are packed in parallel, then the programs of the group run while the packed data
is still in the caches.

Left alone: operands that the kernel writes or computes, operands whose offset along n
is not a number times the tile width, and operands that no two programs share. Each
program packs these chunk by chunk.

An A whose rows are not contiguous, or share sets of L1 (`share_sets`), is also copied
once for a launch, row by row, and the products then read the copy in place. Otherwise
each program would copy its part, chunk by chunk of k, as often as there are programs
along n (``A.T @ B`` with tiles of 64, 1024 cubed: 0.69 of the speed of ``A @ B``). Left
alone: an A that a program computes or writes, matrices of a batch, and element types
that are widened for the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import is_defined_outside
from xetl.dialects.base import Index, is_memref, operations_in
from xetl.dialects.upstream import arith, func, memref, scf
from xetl.dialects.upstream.memref import ExtractAlignedPointerAsIndexOp
from xetl.dialects.xetile import InitTileOp, TileType, tile_type
from xetl.ir.builder import Builder, Pass, move_before
from xetl.records import record
from xetl.transforms.cse import merge_equal
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, ThreadCountOp, element_attribute, pack
from xetl_cpu.lowering.loops import state
from xetl_cpu.lowering.loops.factors import copied_row, share_sets
from xetl_cpu.lowering.packing.panels import (
    Packing,
    emit_packing,
    measure,
    pays_before,
    read_packed,
    reserve,
    reserve_first,
    share,
)
from xetl_cpu.lowering.packing.plans import is_written, plan_or_say_why
from xetl_cpu.lowering.tiles import tile_sizes
from xetl_cpu.machine import Machine
from xetl_cpu.microkernels.blocking import Blocking
from xetl_cpu.targets import find_target


@dataclass(frozen=True)
class PackOperandsPass(Pass):
    """See the module docstring. Packed operands must fit the caches of ``target``."""

    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine = find_target(self.target).machine
        for function in operations_in(op, func.FuncOp):
            _pack_for_programs(function, machine)
            merge_equal(function.body.block)


def _pack_for_programs(function: func.FuncOp, machine: Machine) -> None:
    """Before each loop over programs, pack the operands that many of them read."""
    for loop in operations_in(function, scf.ParallelOp):
        copies = _copies(loop, machine)
        packings = _plans(loop)
        axes = [one.plan.group_axis(loop) for one in packings]
        batched = [one for one, axis in zip(packings, axes) if axis is not None]
        axis = batched[0].plan.group_axis(loop) if batched else None
        size = 1 if axis is None else group_size(loop, axis, batched, machine)
        # All memory is reserved first: its size must be known before any code runs.
        for packing in packings:
            matrices = size if packing in batched else packing.plan.trips() or 1
            is_shared = any(one.shared is packing for one in packings)
            reserve(packing, matrices, 0 if is_shared else machine.l2.size // 2)
        group = None if axis is None else form_groups(loop, axis, size)
        ahead = Builder.before(loop) if group is None else group.ahead
        for copy in copies:
            _emit_rows(copy, ahead)
        for packing in packings:
            if group is not None and packing in batched:
                emit_packing(packing, group.build, group.extent)
            else:
                emit_packing(packing, ahead, packing.plan.trips())
            read_packed(packing)
    reserve_first(function)


def _copies(loop: scf.ParallelOp, machine: Machine) -> list[_RowCopy]:
    """Reserve memory for each A with rows that are strided or may share sets of L1."""
    copies: list[_RowCopy] = []
    for op in operations_in(loop, BrgemmTileOp):
        copy = None if op.blocking().is_skinny else _reserve_rows(op, loop, machine)
        copies += [] if copy is None else [copy]
    return copies


def _plans(loop: scf.ParallelOp) -> list[Packing]:
    """Return the packings for the products of a loop over programs, and their sizes."""
    packings: list[Packing] = []
    group: int | None = None
    for op in operations_in(loop, BrgemmTileOp):
        if _stays(op):
            continue
        blocking = op.blocking()
        plan = plan_or_say_why(op, loop, blocking, group)
        if plan is None:
            continue
        shared = (share(one, op, plan) for one in packings if one.shared is None)
        found = next((one for one in shared if one is not None), None)
        packings.append(found or measure(op, plan, loop, blocking))
        group = plan.group_axis(loop) if group is None else group
    return packings


def _stays(op: BrgemmTileOp) -> bool:
    """Whether b is used too rarely to be packed, and a product can read it in place."""
    type_ = op.b.type
    init = op.b.owner
    if not isinstance(type_, TileType) or not isinstance(init, InitTileOp):
        return False
    if not op.blocking().is_skinny:
        return False
    if not is_memref(init.source.type):
        return False
    strides = state.static_strides(init.source.type)
    if op.blocking().arithmetic.is_bytes:  # only its columns are streamed
        strides = strides[-1:] if op.trans_b is not None else strides[-2:-1]
    if 1 not in strides:
        return False
    remark(op, "packing", "b is not packed: few rows are multiplied by it")
    return True


_PROGRAMS = 64
"""Programs of a group, at least: enough for all threads."""


@record()
class Group:
    """A serial loop around the loop over programs.

    Attributes:
        extent: how many numbers along the axis are in this group.
        build: inserts the packing of each group.
        ahead: inserts the packing for all groups.
    """

    extent: Index
    build: Builder
    ahead: Builder


def form_groups(loop: scf.ParallelOp, axis: int, size: Index) -> Group:
    """Let programs run in groups of ``size`` numbers along an axis of the grid."""
    build = Builder.before(loop)
    number, grid = loop.body.block.args[axis], loop.upper_bounds[axis]
    group, end = build.for_loop(0, grid, size), scf.YieldOp()
    group.body.block.add_op(end)
    (first,) = group.body.block.args
    first.name_hint = "first_of_group"
    move_before([loop], end)
    inside = Builder.before(loop)
    extent = inside.minimum(inside.minus(grid, first), size)
    loop.operands[len(loop.upper_bounds) + axis] = inside.index(extent)
    place = arith.AddiOp(first, number)
    Builder.before(next(iter(loop.body.block.ops))).add(place)
    number.replace_uses_with_if(place.result, lambda use: use.operation is not place)
    return Group(extent, inside, Builder.before(group))


def group_size(
    loop: scf.ParallelOp, axis: int, packings: Sequence[Packing], machine: Machine
) -> Index:
    """Return how many numbers along the axis a group has, at least one.

    A group has as many matrices as fit half of L2, because its programs read them many
    times. With several threads, all of them wait at the end of a group, and one may be
    late: then a group has as many matrices as fit the part of L3 that a core has, and
    enough programs for all threads.
    """
    build = Builder.before(loop)
    taken: Index = 1
    for packing in [one for one in packings if one.shared is None]:
        size = build.times(packing.elements(build), packing.blocking.compute_bytes)
        is_packed = pays_before(packing, build)
        size = size if is_packed is None else build.select(is_packed, size, 0)
        taken = build.plus(taken, size)
    extents = enumerate(loop.upper_bounds)
    programs = build.product(each for other, each in extents if other != axis)
    is_one = build.compare("eq", build.insert(ThreadCountOp()), 1)
    most = build.select(is_one, machine.l2.size // 2, machine.l3_of_core)
    fitting = build.divided(most, taken)
    needed = build.select(is_one, 1, _PROGRAMS)
    needed = build.divided(needed, build.maximum(programs, 1))
    size = build.minimum(build.maximum(fitting, needed), loop.upper_bounds[axis])
    return build.maximum(size, 1)


_ROWS, _CHUNK = 64, 256
"""Rows of A, and steps of k, that one task copies."""

_WHOLE_ROWS = 8
"""Contiguous rows of A that one task copies."""


@record()
class _RowCopy:
    """The copy of one A: the source matrix (m, k), and the destination.

    Attributes:
        op: the product, which already reads the copy.
        row_stride: elements from one row of the copy to the next.
        rows: the number of rows that are copied.
    """

    op: BrgemmTileOp
    source: state.Matrix
    buffer: SSAValue
    row_stride: Index
    rows: Index


def _reserve_rows(
    op: BrgemmTileOp, loop: scf.ParallelOp, machine: Machine
) -> _RowCopy | None:
    """Reserve memory for the copy, if A is worth one, and let the product read it."""
    init, blocking = op.a.owner, op.blocking()
    if not isinstance(init, InitTileOp) or not _may_copy(op, init, loop, blocking):
        return None
    build = Builder.before(loop)
    matrix = state.matrix_of(init, build)
    if op.trans_a is not None:
        matrix = matrix.transposed()
    is_needed, rows = None, matrix.rows
    if matrix.is_contiguous():
        is_needed = _shares_sets(op, loop, machine, matrix)
        if is_needed is None:
            return None
        rows = build.select(is_needed, rows, 0)
    else:
        remark(op, "packing", "a is copied once, row by row, before the programs run")
    stride = copied_row(build, blocking, matrix.cols)
    count = build.index(build.times(rows, stride))
    type_ = MemRefType(element_attribute(blocking.compute), [DYNAMIC_INDEX])
    buffer = build.insert(memref.AllocOp([count], (), type_))
    buffer.name_hint = "rows"
    sizes = (matrix.rows, matrix.cols)
    if is_needed is None:
        whole = state.reinterpret(build, buffer, 0, sizes, (stride, 1))
    else:
        first, (row_step, _) = state.view_of(matrix.memref, build)
        address = build.insert(ExtractAlignedPointerAsIndexOp(matrix.memref))
        skip = build.times(first, blocking.compute_bytes)
        ours = build.insert(ExtractAlignedPointerAsIndexOp(buffer))
        address = build.select(is_needed, ours, build.plus(address, skip))
        stride = build.select(is_needed, stride, row_step)
        tile = tile_type(init.result)
        whole = state.view_address(
            build, build.index(address), tile, sizes, (stride, 1)
        )
    new = _on_copy(op, init, whole, (*sizes, stride))
    return _RowCopy(new, matrix, buffer, stride, rows)


def _shares_sets(
    op: BrgemmTileOp, loop: scf.ParallelOp, machine: Machine, matrix: state.Matrix
) -> SSAValue | None:
    """Return whether rows share sets and are read often; None if that is never so."""
    init, build = op.b.owner, Builder.before(loop)
    sizes = tile_sizes(init) if isinstance(init, InitTileOp) else None
    cols = None if sizes is None else sizes[0 if op.trans_b is not None else 1]
    if cols is None or not is_defined_outside(cols, loop):
        return None
    is_bad = share_sets(machine, build, op.blocking(), matrix, cols)
    if is_bad is None:
        return None
    many_rows = build.compare("sgt", matrix.rows, op.blocking().block_m)
    return build.both(is_bad, many_rows)


def _may_copy(
    op: BrgemmTileOp, init: InitTileOp, loop: scf.ParallelOp, blocking: Blocking
) -> bool:
    """Whether A is one matrix for all programs, of the type that is multiplied."""
    if blocking.dtype != blocking.compute or blocking.is_called or op.count is None:
        return False
    sizes = tile_sizes(init)
    if init.indices is not None or sizes is None or len(init.mixed_offsets) != 2:
        return False
    fixed = [init.source, *sizes, *init.mixed_strides]
    if not all(is_defined_outside(value, loop) for value in fixed):
        return False
    return not is_written(init.source, loop)


def _emit_rows(copy: _RowCopy, build: Builder) -> None:
    """Build a parallel loop over (rows, chunk of k) that copies A."""
    source, stride = copy.source, copy.row_stride
    most = (_ROWS, _CHUNK)
    if source.is_contiguous():
        most = (_WHOLE_ROWS, build.maximum(source.cols, 1))
    extents = map(build.ceil_divided, (copy.rows, source.cols), most)
    inner, (task, part) = build.parallel([*extents])
    row, first = map(inner.times, (task, part), most)
    rows = inner.minimum(inner.minus(source.rows, row), most[0])
    k = inner.minimum(inner.minus(source.cols, first), most[1])
    at = inner.plus(inner.times(row, stride), first)
    numbers = (row, first, rows, k, rows, k)
    blocking = copy.op.blocking()
    pack(inner, "a", blocking, source.memref, numbers, copy.buffer, at, stride)


def _on_copy(
    op: BrgemmTileOp,
    init: InitTileOp,
    whole: SSAValue,
    extents: tuple[Index, Index, Index],
) -> BrgemmTileOp:
    """Let the product read the copy; ``extents``: rows, columns, distance of rows."""
    rows, cols, stride = extents
    offsets = list(init.mixed_offsets)
    type_ = init.result.type
    assert isinstance(type_, TileType)
    shape = list(type_.shape)
    if op.trans_a is not None:
        offsets.reverse()
        shape.reverse()
    tile = InitTileOp(
        whole,
        offsets,
        TileType(shape, type_.element_type),
        sizes=[rows, cols],
        strides=[stride, 1],
        location=init.location,
    )
    new = op.changed(a=tile.result, trans_a=None)
    Rewriter.replace_op(op, [tile, new])
    return new
