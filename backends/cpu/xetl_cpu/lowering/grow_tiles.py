"""grow-tiles: programs beside one another become one, with larger tiles.

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      %n = arith.muli %y, 8
      store_tile f(load_tile %X[%m, %n]), %Y[%m, %n]      # tiles of 8 x 8
    }
    ->
    scf.parallel (%x, %y) = ... to (%gx, ceil(%gy / 8)) {
      %n = arith.muli %y, 64
      store_tile f(load_tile %X[%m, %n]), %Y[%m, %n]      # 8 x 64; %Y ends at %gy * 8
    }

Why: a row that is shorter than a vector costs as much as one that is as long as
several, and a column of one element is gathered and scattered.  Rows of 64 elements
and more become up to 256 long, by a number known at run time: what is done once for a
row of four vectors still counts in L2 (256 x 256 in f32 by 64 x 64, an addition on Zen
5: 5.1 us, then 4.2).  Where no value needs a buffer (`collapse_rows.py`), they become
up to 16,384 long.

Programs of a product become tasks, for the user's tile is no cache block:

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

A panel of B is read from L2 or beyond for each program, and is packed for each that
does not share it; memory gives long pieces of B's rows faster than short ones (1 x 4096
x 4096 in f32 by 512 columns: 12 GB/s, by 4096: 27 GB/s, one core of Zen 4).

Programs with a loop that adds rows up to one that it carries, of 64 elements and more,
become one with a row that fills a quarter of L1, or fewer as above.

Columns come first, then rows. How many programs a task has is known at run time; the
tile is of the most there may be, and ends earlier. The columns that are read are then
``min(%cols, %stride)``: by this ``plan-gemm`` and ``pack-operands`` know the task's
width. Where a program's place is ``%x % %tiles``, a task has a power of two of programs
that divides ``%tiles`` and the grid, and is at ``%t % (%tiles / %some)``.

Sums of products that are computed with stand in memory: with AMX, tasks go through
their columns in trips (`trips.py`).

Before: ``plan-gemm``, whose numbers are then those of the task.  Left alone: programs
that do anything else than computing each column (or row) of their tiles from the same
ones of others, or that have other loops; rows of tiles of few rows (their plans are
others), short rows of B, columns where a library computes the product: it computes
whole tiles.
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
"""[measured] Elements of a row; with fewer, what is done once for it counts."""

_MOST = 1 << 15
"""Elements of the largest tile: it stays in L2 if it has to stand in memory."""

_LONGEST = 1 << 14
"""Elements of a row of programs whose values stay in registers (256 x 256, an addition,
Granite Rapids: by 4096 7.0 us, by 16,384 6.85)."""

_ROWS = _COLUMNS = 256
"""Of a task: wider blocks gain nothing (`benchmarks/gemm.py --part tiles`)."""

_ROW_TASKS = 2
"""For each of several threads at least, of rows that become longer."""

_PIECE = 512
"""Bytes of a row of a tile of B, at least: a task that packs B itself takes as many."""

_TASKS = 8
"""For each of several threads at least; of products that memory bounds, one."""

_TILE_TASKS = 2
"""The same of those on AMX tiles: narrower tasks copy A more often (bf16, two threads,
by 8 tasks and by 2: 1024 cubed 2011 and 3157 GFLOP/s, 256 x 1024 x 4096 1657 and 2169;
but 197 x 768 x 3072, whose six tasks are not alike, 1756 and 1439)."""

_LOW_COLUMNS, _LOW_TASKS = 512, 4
"""Of few rows that stream B, if so much of C stays in L1: memory nearly bounds them."""

_STRIP = 2 * AMX_TILE
"""Columns of a panel on tiles."""

_SUM_BYTES = 4
"""Of an element of a product."""


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
    """What of a program belongs to its number, if programs can become one."""
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
    """Whether it reduces what it loads into a row, all of it where it is read."""
    *body, _ = loop.body.block.ops
    large = [v for op in body for v in op.results if _has_rows(v)]
    sums = [op for op in body if isinstance(op, TileReduceOp)]
    loads = [op for op in body if isinstance(op, LoadTileOp)]
    is_all = len(sums) == len(loads) == len(loop.results) == 1
    # By these it ends where a task does.
    inits = [each.tile.owner for each in loads]
    ends = all(isinstance(each, InitTileOp) and each.mixed_sizes for each in inits)
    return is_all and ends and all(len(list(each.uses)) == 1 for each in large)


def _has_rows(value: SSAValue) -> bool:
    return is_vector(value.type) and shape_of(value.type)[0] > 1


def _widest_sums(target: Target) -> int:
    """Elements of a row of sums that fills a quarter of L1.

    Memory gives long pieces of rows faster: 4096 x 4096 in f32 on Granite Rapids, in
    pieces of 256, 1024, 2048 and 4096, 18, 21, 26 and 27 GB/s (loops in C).
    """
    width = target.machine.l1.size // 4 // _SUM_BYTES
    return 1 << width.bit_length() - 1


class _Task(NamedTuple):
    """How many programs become one, and tasks there are for a thread.

    Attributes:
        most: programs of a task.
        tasks: at least, for each of several threads.
        is_wide: whether matrices may well be narrower; then the task is as they are.
        piece: programs whose tiles become one, if a task has several such.
    """

    most: int
    tasks: int
    is_wide: bool = False
    piece: int = 0


def _make_tasks(loop: scf.ParallelOp, target: Target) -> None:
    """Along the columns of products, then along the rows."""
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
    """What all products agree on; what is computed of them takes a quarter of L2.

    ``may_go``: whether a task may do its columns in trips, and a trip takes that.
    """
    products = [*slices.products]
    rule = _of_columns if dim == -1 else _of_rows
    task = min(rule(product, target) for product in products)
    if way_to_store(products[0]) is not None:
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
    """Of a program that has its own kind of plan, at most; with AMX one tile."""
    return LOW_ROWS if on_tiles(product, target) is None else AMX_TILE


def _of_rows(product: BrgemmTileOp, target: Target) -> _Task:
    """Of A: a task that needs B alone packs it chunk by chunk, in its cache."""
    (m, n, _), type_ = product.shape(), product.b.type
    if m <= _low_rows(product, target) or not isinstance(type_, TileType):
        return _Task(1, 1)
    is_long = n * byte_width(type_.element_type) >= _PIECE
    tasks = _TASKS if on_tiles(product, target) is None else _TILE_TASKS
    return _Task(_ROWS // m if is_long else 1, tasks)


def _of_columns(product: BrgemmTileOp, target: Target) -> _Task:
    """Of B; where it is streamed, C's part stays in half of L1."""
    m, n, _ = product.shape()
    init, dtype = product.b.owner, element_name(product.b)
    if m > SKINNY_ROWS and target.calls == INLINE:
        wide = _columns_on_tiles(product, target)
        is_low = m <= _low_rows(product, target)
        if wide and is_low:
            return _Task(wide // n, 1, is_wide=True)
        if not is_low or target.machine.l1.size < _LOW_COLUMNS * m * _SUM_BYTES:
            most = max(_COLUMNS, wide)
            is_wide = most > _COLUMNS
            return _Task(most // n, _TILE_TASKS if is_wide else _TASKS, is_wide)
        return _Task(_LOW_COLUMNS // n, _LOW_TASKS)
    is_by_rows = isinstance(init, InitTileOp) and init.mixed_strides[-1:] == (1,)
    is_float = dtype in ("f32", "f64", "bf16", "f16")
    if not is_by_rows or not is_float or product.trans_b is not None:
        return _Task(1, 1)
    width = target.machine.l1.size // 2 // (_SUM_BYTES * m)
    return _Task((1 << width.bit_length() - 1) // n, 1)


def _columns_on_tiles(product: BrgemmTileOp, target: Target) -> int:
    """How wide tasks are if AMX computes them: L2 has room for the sums of a block.

    Else 0.  A is copied for each task, so that wide ones gain, even where sums leave L2
    for what streams through it: panel after panel they come back as fast as they go
    (measured on silicon, bf16: 4096 cubed by 1,024 and 2,048 columns 1119 and 1354
    GFLOP/s).  But no wider than a page, for which few rows wait: memory gives pages
    faster than pieces (16 x 4096 x 4096: 1.4 as fast).
    """
    how, (m, _, _) = on_tiles(product, target), product.shape()
    if how is None:
        return 0
    rows = m if m <= AMX_TILE else _ROWS
    wide = target.machine.l2.size // (_SUM_BYTES * rows)
    return min(1 << wide.bit_length() - 1, PAGE // how.compute_bytes)


def _share(loop: scf.ParallelOp, how: _Task, number: SSAValue) -> Index:
    """The programs that a task has along ``number``, computed before all."""
    build = Builder.before(loop)
    programs = build.product(loop.upper_bounds)
    threads = build.insert(ThreadCountOp())
    alone = build.compare("sle", threads, 1)
    fitting = build.divided(programs, build.times(threads, how.tasks))
    fitting = build.select(alone, how.most, fitting)
    if how.is_wide and isinstance(number, BlockArgument):
        fitting = build.minimum(fitting, loop.upper_bounds[number.index])
    return build.maximum(build.minimum(fitting, how.most), 1)


@record()
class Remainder:
    """``%x - %x // %tiles * %tiles`` of a program's number, 0 or more.

    Attributes:
        place: the remainder, or what is 0 instead where there are no tiles.
    """

    number: BlockArgument
    place: SSAValue
    quotient: Operation
    product: Operation


def remainders(loop: scf.ParallelOp) -> list[Remainder]:
    """Of programs that differ by their remainder and quotient alone."""
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
    """What the front end makes of it: 0, where the divisor is not 0 but 1."""
    users = [use.operation for use in remainder.uses]
    select = users[0] if len(users) == 1 else None
    is_guard = isinstance(select, arith.SelectOp) and remainder is select.false_value
    return select.results[0] if is_guard and select is not None else remainder


def _is_for_minus_one(op: Operation, divisor: SSAValue) -> bool:
    """Whether ``-x`` is chosen only where the divisor is not -1 but 1."""
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
    """Let up to ``times`` programs, ``most`` at most, become one; returns how many.

    That is a power of two by which the tiles and the grid can be divided: then no task
    goes beyond a row of tiles, or the grid.
    """
    build, divisor = Builder.before(loop), remainder.product.operands[1]
    at = len(loop.upper_bounds) + remainder.number.index
    both = build.pure(arith.OriOp, loop.operands[at], divisor)
    dividing = build.pure(arith.AndiOp, both, build.minus(0, both))
    some: Index = 1
    for power in range(1, most.bit_length()):
        is_less = build.compare("slt", times, 1 << power)
        some = build.select(is_less, some, 1 << power)
    # It is no less than 1: this proves it.
    some = build.index(build.maximum(build.minimum(dividing, some), 1))
    loop.operands[at] = build.index(build.divided(loop.operands[at], some))
    fewer = build.index(build.divided(divisor, some))
    for op in (remainder.quotient, remainder.product):
        op.operands[1] = fewer
    return some
