"""Operands of a product in memory: in place, or in scratch if they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from xetl.dialects.base import Index, is_memref, memref_type
from xetl.dialects.upstream import arith, memref, scf
from xetl.dialects.xetile import TileType
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BrgemmTileOp, ViewAddressOp, element_name
from xetl_cpu.lowering.loops.materialization import materialize
from xetl_cpu.lowering.loops.state import (
    Buffer,
    Factor,
    Matrix,
    State,
    TileAt,
    reinterpret,
    view_of,
)
from xetl_cpu.lowering.tiles import root
from xetl_cpu.machine import LINE, Machine
from xetl_cpu.microkernels.blocking import FEW_PANELS, Blocking

Way: TypeAlias = Callable[[Builder], Sequence[SSAValue] | None]
"""One of the `either`."""

PANELS_IN_PLACE = 8
"""Panels of B up to which A's rows stay in place: a copy costs more than it gains.

In bf16 on silicon, GFLOP/s with a copy and without: 4096 x 4096 x 16 284 and 419, by 64
711 and 903, 1024 x 1024 by 32 451 and 880; by 16 panels it gains 3 %, or loses 20.
"""

_ROWS_IN_PLACE = 256
"""Rows of A up to which B is read in place, if it is near (`Machine.most_in_place`).

Emerald Rapids, one thread, f32, m x k x n, GFLOP/s packed and in place: 64 x 1000 x 960
118 and 162, 256 x 1000 x 960 146 and 162, 1000 x 1000 x 960 157 and 158.
"""

_FEWEST_STEPS = 128
"""The shortest run of k in place: shorter ones add up C too often.

The same, runs of 64, 128, 256 and 384: 64 x 2048 x 2048 124, 132, 129 and 111, 64 x
4096 x 4096 119, 123, - and 85 (packed 98).
"""

_FREE_WAYS = 4
"""Ways of L1 beside those of rows of A that share its sets: for B, C and stacks."""


def factor_of(
    state: State, op: BrgemmTileOp, value: SSAValue, transposed: bool, build: Builder
) -> Factor:
    """Return where an operand is in memory; compute a value into scratch first."""
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
    if buffer.is_column:
        base = reinterpret(build, base, 0, (rows, 1), (1, 1))
    matrix = Matrix(base, rows, cols)
    if transposed:
        matrix, rows, cols = matrix.transposed(), cols, rows
    return Factor(matrix, 0, 0, rows, cols)


def may_stay(blocking: Blocking, a: Factor) -> bool:
    """Whether A can stay in place: contiguous rows of the type that is multiplied.

    The kernels of a library need one fixed distance of rows, which only copies have.
    """
    if blocking.is_called or element_name(a.matrix.memref) != blocking.compute:
        return False
    return a.matrix.is_contiguous()


def has_bad_rows(
    state: State, build: Builder, blocking: Blocking, a: Factor, cols: Index
) -> SSAValue | None:
    """Return `share_sets` for rows that the launch has not copied; None: never."""
    base = a.matrix.memref.owner
    if isinstance(base, memref.ReinterpretCastOp):
        base = base.source.owner
    if isinstance(base, ViewAddressOp) or not may_stay(blocking, a):
        return None
    return share_sets(state.target.machine, build, blocking, a.matrix, cols)


def share_sets(
    machine: Machine, build: Builder, blocking: Blocking, a: Matrix, cols: Index
) -> SSAValue | None:
    """Whether rows of a strip of A share sets of L1, so that it has no room for more.

    Such rows are a multiple of a way's size apart. Return None if L1 has room, or if A
    is copied anyway. L2, too, then holds only a part of a block. One core of Zen 3,
    busy, f32, in turns: 1024 cubed 0.93 of OpenBLAS, by copies 0.99; 2048 0.94, 0.98;
    4096 0.88, 0.95.
    """
    few, l1 = PANELS_IN_PLACE * blocking.nr, machine.l1
    is_full = l1.ways < blocking.mr + _FREE_WAYS and blocking.block_n > few
    if not is_full or blocking.uses_tiles:
        return None
    _, (row_step, _) = view_of(a.memref, build)
    distance = build.times(row_step, blocking.compute_bytes)
    rest = build.remainder(distance, l1.size // l1.ways)
    return build.both(build.compare("eq", rest, 0), build.compare("sgt", cols, few))


def sums_leave_l2(machine: Machine, blocking: Blocking) -> bool:
    """Whether the sums of all rows do not stay in L2 from one run of k to the next."""
    row = blocking.ldc * blocking.arithmetic.accumulator_bytes
    return blocking.rows_padded * row > machine.l2.size // 2


def copied_row(build: Builder, blocking: Blocking, k: Index) -> SSAValue:
    """Return `Blocking.copied_row` of a ``k`` that is known at run time."""
    line = LINE // blocking.compute_bytes
    pairs = build.divided(build.ceil_divided(k, line), 2)
    return build.index(build.plus(build.times(pairs, 2 * line), line))


def suits_tiles(
    build: Builder, base: SSAValue, start: Index, blocking: Blocking
) -> SSAValue:
    """Whether rows of A start at cache lines, and an odd number of lines apart.

    ``start`` is the first column.  Otherwise rows of tiles share the sets of L1, or
    cross lines: measured on silicon, 63 to 72 % and 36 to 51 % of the peak, where 84
    are possible.
    """
    size = blocking.compute_bytes
    first, (row_step, _) = view_of(base, build)
    address = build.insert(memref.ExtractAlignedPointerAsIndexOp(base))
    address = build.plus(address, build.times(build.plus(first, start), size))
    distance = build.times(row_step, size)
    return build.both(
        build.compare("eq", build.remainder(distance, 2 * LINE), LINE),
        build.compare("eq", build.remainder(address, LINE), 0),
    )


def of_few_panels(
    build: Builder, blocking: Blocking, a: Factor, extents: tuple[Index, Index, Index]
) -> tuple[SSAValue, Index]:
    """Whether few panels are multiplied by A in place, and the run of k for that.

    A is then read once and need not stay in a cache: whole rows are better than pieces
    of rows (4096 x 4096 by 16 in bf16 on silicon: 355 to 415 GFLOP/s by pieces of 1,024
    and 2,048 bytes, 430 to 450 by rows; by 32 590 to 720, and 730 to 850).

    The rest behind whole steps of k is copied, and so is an A that ends before the tile
    does: copies have room for less. ``extents``: rows, k, cols.
    """
    rows, k, cols = extents
    facts = [
        build.compare("sle", cols, FEW_PANELS * blocking.nr),
        build.compare("sge", a.rows, build.maximum(rows, blocking.least_rows)),
        build.compare("sge", a.cols, k),
        build.compare("sge", k, blocking.k_step),
        build.compare("sle", build.times(k, cols), blocking.long_run),
    ]
    return build.both(*facts), build.minus(k, build.remainder(k, blocking.k_step))


def run_of(build: Builder, blocking: Blocking, k: Index) -> Index:
    """Return the run of k before C is updated, if nothing is packed."""
    at_once, usual = blocking.all_at_once, blocking.run
    if isinstance(k, int):
        return at_once if k <= at_once else usual
    return build.select(build.compare("sle", k, at_once), at_once, usual)


def clamped(build: Builder, wanted: SSAValue | None, extent: int) -> Index:
    """Return how much of a dimension of a tile is wanted; None: all."""
    if wanted is None:
        return extent
    return build.maximum(build.minimum(wanted, extent), 0)


class InPlace(NamedTuple):
    """Whether strips read B in place as fast as packed, and in which runs of k."""

    is_near: SSAValue
    run: SSAValue


def lies_near(
    state: State,
    build: Builder,
    blocking: Blocking,
    b: Factor,
    extents: tuple[Index, Index, Index],
) -> InPlace | None:
    """Return whether strips read a part of B in place as fast as packed; None: never.

    Its rows and what is between them fit L1. Or few rows are multiplied by a matrix
    that is near (`Machine.most_in_place`); a run of k takes a quarter of the sets of
    L2, or more if it would be too short.

    A panel is as wide as the register tile. The columns that it has too many must be in
    the array; those of the last row are read with masks, if there are masks. Elements
    behind the matrix are zeros, which only packing makes. ``extents``: rows, k, cols.
    """
    base, (rows, k, cols) = root(b.matrix.memref), extents
    is_plain = blocking.dtype == blocking.compute and blocking.k_pack == 1
    if not is_plain or blocking.is_called or not b.matrix.is_contiguous():
        return None
    if not isinstance(base, BlockArgument) or not is_memref(base.type):
        return None
    end = _end(build, base)
    first, (ldb, _) = view_of(b.matrix.memref, build)
    first = build.plus(first, build.plus(build.times(b.row, ldb), b.col))
    taken = build.times(k, ldb)
    whole_rows = 2 if state.target.has_masks else 1
    last = build.plus(first, build.minus(taken, build.times(ldb, whole_rows)))
    width = build.rounded_up(cols, blocking.nr)
    machine, bytes_ = state.target.machine, blocking.compute_bytes
    l1, l2 = (each.size // bytes_ for each in (machine.l1, machine.l2))
    most = machine.most_in_place(blocking.is_low) // bytes_
    # Rows share sets if their distance is a multiple of a large power of two.
    apart = build.pure(arith.AndiOp, build.index(ldb), build.minus(0, ldb))
    apart = build.maximum(apart, blocking.nr)
    size = build.times(b.matrix.rows, ldb)
    is_small = build.compare("sle", size, l2 // 2)
    sets = build.maximum(build.divided(l2 // 4, apart), _FEWEST_STEPS)
    is_near = build.both(
        build.compare("sle", rows, _ROWS_IN_PLACE),
        build.compare("sle", size, most),
        build.pure(
            arith.OriOp,
            is_small,
            build.compare("sle", build.times(apart, _FEWEST_STEPS), l2),
        ),
    )
    is_near = build.both(
        build.compare("sge", taken, 0),
        build.pure(arith.OriOp, is_near, build.compare("sle", taken, l1)),
        build.compare("sge", b.rows, k),
        build.compare("sge", b.cols, cols),
        build.compare("sle", build.plus(last, width), end),
    )
    return InPlace(is_near, build.select(is_small, build.maximum(k, 1), sets))


def _end(build: Builder, array: SSAValue) -> Index:
    """Return the number of elements from the start of an array to its end."""
    whole = build.add(memref.ExtractStridedMetadataOp(array)).results[2:]
    rank = memref_type(array).get_num_dims()
    end: Index = 1
    for size, step in zip(whole[:rank], whole[rank:], strict=True):
        end = build.plus(end, build.maximum(build.times(build.minus(size, 1), step), 0))
    return end


def either(
    build: Builder,
    condition: SSAValue,
    ways: tuple[Way, Way],
    type_: Attribute | None = None,
) -> Sequence[SSAValue]:
    """Emit the first way under ``if condition`` and the second under ``else``.

    ``type_``: the type that the first value, a memref, is cast to.
    """
    blocks, values = [Block(), Block()], list[SSAValue]()
    for block, way in zip(blocks, ways, strict=True):
        inside = Builder.at_end(block, build.location)
        values = [*(way(inside) or ())]
        if type_ is not None:
            values[0] = inside.insert(memref.CastOp(values[0], type_))
        inside.add(scf.YieldOp(*values))
    types = [value.type for value in values]
    return build.add(scf.IfOp(condition, types, *map(Region, blocks))).results
