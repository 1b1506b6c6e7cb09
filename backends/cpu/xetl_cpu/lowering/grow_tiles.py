"""grow-tiles: neighbouring programs become one, with larger tiles.

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      %n = arith.muli %y, 8
      store_tile f(load_tile %X[%m, %n]), %Y[%m, %n]      # tiles of 8 x 8
    }
    ->
    scf.parallel (%x, %y) = ... to (%gx, ceil(%gy / 8)) {
      %n = arith.muli %y, 64
      store_tile f(load_tile %X[%m, %n]), %Y[%m, %n]      # 8 x 64; %Y ends at %gy * 8
    }

Why: a row that is shorter than a vector costs as much as a row of several vectors, and
a column of one element needs gathers and scatters. Rows of 64 elements and more become
up to 256 long, by a factor known at run time: the cost per row of four vectors still
counts in L2 (256 x 256 in f32 by 64 x 64, an addition on Zen 5: 5.1 us, then 4.2). If
no value needs a buffer (`collapse_rows.py`), rows become up to 16,384 long.

Programs of a product become tasks, because the user's tile is not a cache block:

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      %m = arith.muli %x, 64
      %c = xsmm.brgemm.tile (A at [%m, 0], 64 x 32), %b      -> vector<64x64xf32>
      store_tile f(%c), (C at [%m, %n], [%rows, %cols])
    }
    ->
    %some = max(1, min(4, %gx * %gy / (8 * threads)))        one thread: 4
    %stride = %some * 64
    scf.parallel (%t, %y) = ... to (ceil(%gx / %some), %gy) {
      %m = arith.muli %t, %stride
      %end = min(%m + %stride, %gx * 64)
      %c = xsmm.brgemm.tile (A at [%m, 0], 256 x 32), %b     -> vector<256x64xf32>
      store_tile f(%c), (C at [%m, %n], [min(%rows, %end), %cols])
    }

Otherwise each program reads its panel of B from L2 or beyond, and packs it if no other
program shares it. Memory reads long pieces of B's rows faster than short ones (1 x 4096
x 4096 in f32 by 512 columns: 12 GB/s, by 4096: 27 GB/s, one core of Zen 4).

Programs with a loop that adds rows of 64 elements and more to a loop-carried row are
merged until that row fills a quarter of L1, or fewer, as above.

Columns are merged first, then rows. The number of programs of a task is known at run
time; the tile has the size for the largest number, and its matrix ends earlier. The
columns that are read are then ``min(%cols, %stride)``: ``plan-gemm`` and
``pack-operands`` read the width of the task from this. If the position of a program is
``%x % %tiles``, a task has a power of two of programs that divides ``%tiles`` and the
grid, and its position is ``%t % (%tiles / %some)``.

Sums that are operands of further computation are in memory, unless the micro-kernel
does it (`loops/direct_stores.py`): with AMX, tasks go through their columns in pieces
(`trips.py`).

Before: ``plan-gemm``, whose numbers are then those of the task.  Left alone: programs
whose columns (or rows) are not each computed from the same columns (or rows) of other
tiles, or that have other loops; rows of tiles of few rows (these have plans of another
kind); short rows of B; columns if a library computes the product: it computes whole
tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis.affine import divisor_of, is_defined_outside
from xetl.codegen.types import byte_width
from xetl.dialects.base import Index, constant_index, is_vector, operations_in
from xetl.dialects.upstream import arith, scf
from xetl.dialects.xetile import InitTileOp, LoadTileOp, TileReduceOp, TileType
from xetl.ir.builder import Builder, Pass
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import BrgemmTileOp, ThreadCountOp, element_name
from xetl_cpu.lowering.collapse_rows import LINES
from xetl_cpu.lowering.slices import Slices, shape_of, spread
from xetl_cpu.lowering.tiles import is_non_negative, on_tiles, way_to_store
from xetl_cpu.lowering.trips import Place, go_in_trips, may_go_in_trips
from xetl_cpu.machine import PAGE
from xetl_cpu.microkernels.blocking import AMX_TILE, LOW_ROWS, SKINNY_ROWS
from xetl_cpu.targets import INLINE, Target, find_target

_WIDTH = 64
"""[measured] Elements of a row; in shorter rows, the cost per row counts."""

_MOST = 1 << 15
"""Elements of the largest tile: the tile stays in L2 if it has to be in memory."""

_LONGEST = 1 << 14
"""Elements of a row of programs whose values stay in registers (256 x 256, an addition,
Granite Rapids: by 4096 7.0 us, by 16,384 6.85)."""

_ROWS = _COLUMNS = 256
"""Rows or columns of a task (`benchmarks/gemm.py --part tiles`: wider ones are no
faster)."""

_ROW_TASKS = 2
"""Tasks for each of several threads, at least, if rows become longer."""

_PIECE = 512
"""Bytes of a row of a tile of B, at least; a task that packs B itself takes as many."""

_TASKS = 8
"""Tasks for each of several threads, at least; 1 for products that memory bounds."""

_TILE_TASKS = 2
"""The same for products on AMX tiles: narrower tasks copy A more often (bf16, two
threads, by 8 tasks and by 2: 1024 cubed 2011 and 3157 GFLOP/s, 256 x 1024 x 4096 1657
and 2169; but 197 x 768 x 3072, whose six tasks differ in size, 1756 and 1439)."""

_LOW_COLUMNS, _LOW_TASKS = 512, 4
"""Columns and tasks for few rows that stream B, if so many columns of C fit L1: such
products are nearly bound by memory."""

_STRIP = 2 * AMX_TILE
"""Columns of a panel on AMX tiles."""

_SUM_BYTES = 4
"""Bytes of an element of a product."""


@dataclass(frozen=True)
class GrowTilesPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        target = find_target(self.target)
        for loop in operations_in(op, scf.ParallelOp):
            if operations_in(loop, BrgemmTileOp):
                _make_tasks(loop, target)
            else:
                for number in loop.body.block.args:
                    _grow(loop, number, target)


def _follow(loop: scf.ParallelOp, number: SSAValue) -> Slices | None:
    """Return the values that depend on a program's number; None: do not merge."""
    slices = Slices(number)
    body = [op for op in loop.body.block.ops if not isinstance(op, scf.ReduceOp)]
    return slices if slices.extent > 0 and all(map(slices.follow, body)) else None


def _grow(loop: scf.ParallelOp, number: BlockArgument, target: Target) -> None:
    slices = _follow(loop, number)
    if slices is None or not all(map(_only_sums, slices.loops)):
        return
    extent = slices.extent
    tiles = [op.tile for op in slices.accesses]
    sizes = [prod(shape_of(tile.type)) for tile in tiles]
    wide = [n for n, t in zip(sizes, tiles) if slices.lies_along(t)]
    if max(wide, default=0) < max(sizes, default=1):
        return
    is_long = extent >= _WIDTH  # two stores might share a value, which is in L1 now
    width = _COLUMNS if is_long and len(slices.stores) == 1 else _WIDTH
    times = min(width // extent, _MOST // max(sizes))
    if LINES in loop.attributes and is_long:
        times = _LONGEST // extent
    if slices.loops:
        times = _widest_sums(target) // extent if is_long else 1
    if times > 1:
        text = f"{times} neighbours run as one: {extent * times} instead of {extent}"
        for store in slices.stores:
            remark(store, "programs", f"up to {text}" if is_long else text)
        task = _Task(times, _ROW_TASKS)
        some = _share(loop, task, number) if is_long else times
        slices.grow(times)
        spread(loop, number, slices, some)
        if not is_long:
            _grow(loop, number, target)


def _only_sums(loop: scf.ForOp) -> bool:
    """Whether a loop only reduces all of each tile that it loads into a carried row."""
    *body, _ = loop.body.block.ops
    values = [v for op in body for v in op.results]
    large = [v for v in values if is_vector(v.type) and shape_of(v.type)[0] > 1]
    sums = [op for op in body if isinstance(op, TileReduceOp)]
    loads = [op for op in body if isinstance(op, LoadTileOp)]
    is_all = len(sums) == len(loads) == len(loop.results) == 1
    # A task ends where the sizes of these tiles do.
    inits = [each.tile.owner for each in loads]
    ends = all(isinstance(each, InitTileOp) and each.mixed_sizes for each in inits)
    return is_all and ends and all(len(list(each.uses)) == 1 for each in large)


def _widest_sums(target: Target) -> int:
    """Return the elements of a row of sums that fills a quarter of L1.

    Memory reads long pieces of rows faster: 4096 x 4096 in f32 on Granite Rapids, in
    pieces of 256, 1024, 2048 and 4096, 18, 21, 26 and 27 GB/s (loops in C).
    """
    width = target.machine.l1.size // 4 // _SUM_BYTES
    return 1 << width.bit_length() - 1


class _Task(NamedTuple):
    """How many programs are merged into a task, and how many tasks a thread needs.

    Attributes:
        most: programs of a task, at most.
        tasks: tasks for each of several threads, at least.
        piece: programs whose tiles are merged, if a task has several such pieces.
    """

    most: int
    tasks: int
    piece: int = 0


def _make_tasks(loop: scf.ParallelOp, target: Target) -> None:
    """Merge programs of products along the columns, then along the rows."""
    most, places = 1, list[tuple[Place, int]]()
    for dim in (-1, -2):
        computed = {each.place: each for each in remainders(loop)}
        for number in (*loop.body.block.args, *computed):
            slices = _follow(loop, number)
            if slices is None or {*slices.products.values()} != {dim} or slices.loops:
                continue
            may = number not in computed and may_go_in_trips(loop, slices.starts)
            how = _task(slices, dim, target, may)
            if how.most > 1:
                most *= how.most
                slices.grow(how.piece or how.most)
                some = _share(loop, how, number)
                if number in computed:
                    some = divide_grid(loop, computed[number], some, how.most)
                place = spread(loop, number, slices, some)
                if 0 < how.piece < how.most:
                    places.append((place, how.piece * slices.extent))
    for place, columns in places:
        go_in_trips(loop, place, columns)
    for product in operations_in(loop, BrgemmTileOp) if most > 1 else ():
        text = f"up to {most} programs run as one, with a larger tile"
        remark(product, "programs", text)


def _task(slices: Slices, dim: int, target: Target, may_go: bool) -> _Task:
    """Return the task that suits all products; what is computed of them fills L2 / 4.

    ``may_go``: whether a task may compute its columns in pieces, each of that size.
    """
    products = [*slices.products]
    rule = _of_columns if dim == -1 else _of_rows
    task = min(rule(product, target) for product in products)
    fuses = len(products) == 1 and on_tiles(products[0], target) is not None
    fuses = fuses and target.calls == INLINE
    if way_to_store(products[0], on_tiles=fuses) is not None:
        return task
    elements = sum(prod(shape_of(each.result.type)) for each in products)
    fitting = target.machine.l2.size // 4 // _SUM_BYTES // elements
    rows = min(each.shape()[0] for each in products)
    by_amx = all(on_tiles(each, target) for each in products)
    piece = max(1, min(fitting // max(1, _ROWS // rows), task.most))
    is_whole = piece * slices.extent % _STRIP == 0
    if dim == -1 and may_go and by_amx and rows > AMX_TILE and is_whole:
        return task._replace(piece=piece)
    return task._replace(most=min(task.most, fitting))


def _low_rows(product: BrgemmTileOp, target: Target) -> int:
    """Return the most rows with a plan for few rows; with AMX, the rows of one tile."""
    return LOW_ROWS if on_tiles(product, target) is None else AMX_TILE


def _of_rows(product: BrgemmTileOp, target: Target) -> _Task:
    """Return the task along rows: it packs B chunk by chunk, in its own cache."""
    (m, n, _), type_ = product.shape(), product.b.type
    if m <= _low_rows(product, target) or not isinstance(type_, TileType):
        return _Task(1, 1)
    is_long = n * byte_width(type_.element_type) >= _PIECE
    tasks = _TASKS if on_tiles(product, target) is None else _TILE_TASKS
    return _Task(_ROWS // m if is_long else 1, tasks)


def _of_columns(product: BrgemmTileOp, target: Target) -> _Task:
    """Return the task along columns; if B is streamed, C's part fits half of L1."""
    m, n, _ = product.shape()
    init, dtype = product.b.owner, element_name(product.b)
    if m > SKINNY_ROWS and target.calls == INLINE:
        wide = _columns_on_tiles(product, target)
        is_low = m <= _low_rows(product, target)
        if wide and is_low:
            return _Task(wide // n, 1)
        if not is_low or target.machine.l1.size < _LOW_COLUMNS * m * _SUM_BYTES:
            most = max(_COLUMNS, wide)
            return _Task(most // n, _TILE_TASKS if most > _COLUMNS else _TASKS)
        return _Task(_LOW_COLUMNS // n, _LOW_TASKS)
    is_by_rows = isinstance(init, InitTileOp) and init.mixed_strides[-1:] == (1,)
    is_float = dtype in ("f32", "f64", "bf16", "f16")
    if not is_by_rows or not is_float or product.trans_b is not None:
        return _Task(1, 1)
    width = target.machine.l1.size // 2 // (_SUM_BYTES * m)
    return _Task((1 << width.bit_length() - 1) // n, 1)


def _columns_on_tiles(product: BrgemmTileOp, target: Target) -> int:
    """Return the columns of a task on AMX: the sums of a block fit L2. Else return 0.

    Each task copies A, so wide tasks gain, even if data that streams through L2 evicts
    sums: panel after panel they are read back as fast as they are written (measured on
    silicon, bf16: 4096 cubed by 1,024 and 2,048 columns 1119 and 1354 GFLOP/s). A task
    is at most as wide as a page, and a product of few rows waits for memory: it reads
    pages faster than pieces (16 x 4096 x 4096: 1.4 as fast).
    """
    how, (m, _, _) = on_tiles(product, target), product.shape()
    if how is None:
        return 0
    rows = m if m <= AMX_TILE else _ROWS
    wide = target.machine.l2.size // (_SUM_BYTES * rows)
    return min(1 << wide.bit_length() - 1, PAGE // how.compute_bytes)


def _share(loop: scf.ParallelOp, how: _Task, number: SSAValue) -> Index:
    """Compute, before the loop, the number of programs of a task along ``number``."""
    build = Builder.before(loop)
    programs = build.product(loop.upper_bounds)
    threads = build.insert(ThreadCountOp())
    alone = build.compare("sle", threads, 1)
    fitting = build.divided(programs, build.times(threads, how.tasks))
    fitting = build.select(alone, how.most, fitting)
    if isinstance(number, BlockArgument):
        # Matrices may be narrower than that: what is packed is as wide as the tile.
        fitting = build.minimum(fitting, loop.upper_bounds[number.index])
    return build.maximum(build.minimum(fitting, how.most), 1)


@record()
class Remainder:
    """``%x - %x // %tiles * %tiles`` of the number of a program: 0 or more.

    Attributes:
        place: the remainder, or the select that replaces it by 0 if there are no tiles.
    """

    number: BlockArgument
    place: SSAValue
    quotient: Operation
    product: Operation


def remainders(loop: scf.ParallelOp) -> list[Remainder]:
    """Return the remainders, if programs depend only on remainder and quotient."""
    found: list[Remainder] = []
    for op in loop.body.block.ops:
        divisor = divisor_of(op.results[0]) if isinstance(op, arith.SubiOp) else None
        if divisor is None or not is_non_negative(divisor):
            continue
        number, product = op.operands[0], op.operands[1].owner
        assert isinstance(product, Operation)
        quotient = product.operands[0].owner
        assert isinstance(quotient, Operation)
        if number not in loop.body.block.args or not is_defined_outside(divisor, loop):
            continue
        assert isinstance(number, BlockArgument)
        others = {use.operation for use in number.uses} - {op, quotient}
        is_alone = {use.operation for use in product.results[0].uses} == {op}
        if is_alone and all(_is_for_minus_one(each, divisor) for each in others):
            place = _guarded(op.results[0])
            found.append(Remainder(number, place, quotient, product))
    return found


def _guarded(remainder: SSAValue) -> SSAValue:
    """Return the remainder, or the select of 0 that replaces it if the divisor is 0."""
    users = [use.operation for use in remainder.uses]
    select = users[0] if len(users) == 1 else None
    is_guard = isinstance(select, arith.SelectOp) and remainder is select.false_value
    return select.results[0] if is_guard and select is not None else remainder


def _is_for_minus_one(op: Operation, divisor: SSAValue) -> bool:
    """Whether this is ``-x``, selected only if the divisor is -1, which became 1."""
    guard = divisor.owner
    if not isinstance(op, arith.SubiOp) or not isinstance(guard, arith.SelectOp):
        return False
    users = [use.operation for use in op.results[0].uses]
    return constant_index(guard.true_value) == 1 and all(
        isinstance(each, arith.SelectOp) and each.condition is guard.condition
        for each in users
    )


def divide_grid(
    loop: scf.ParallelOp, remainder: Remainder, times: Index, most: int
) -> SSAValue:
    """Merge up to ``times`` programs, ``most`` at most, and return how many.

    The number is a power of two that divides the tiles and the grid: then no task goes
    beyond a row of tiles, or beyond the grid.
    """
    build, divisor = Builder.before(loop), remainder.product.operands[1]
    at = len(loop.upper_bounds) + remainder.number.index
    both = build.pure(arith.OriOp, loop.operands[at], divisor)
    dividing = build.pure(arith.AndiOp, both, build.minus(0, both))
    some: Index = 1
    for power in range(1, most.bit_length()):
        is_less = build.compare("slt", times, 1 << power)
        some = build.select(is_less, some, 1 << power)
    # This proves to later passes that the number is 1 or more.
    some = build.index(build.maximum(build.minimum(dividing, some), 1))
    loop.operands[at] = build.index(build.divided(loop.operands[at], some))
    fewer = build.index(build.divided(divisor, some))
    for op in (remainder.quotient, remainder.product):
        op.operands[1] = fewer
    return some
