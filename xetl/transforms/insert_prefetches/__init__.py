"""insert-prefetches: loops around products prefetch the tiles of later steps.

*What*: for each tile that such a loop loads for a product and moves, prefetch in the
body the tile of some steps later (`choose_distance`), and in front of the loop the
tiles of its first steps except step 0. If the tile is distributed over subgroups, each
subgroup prefetches a share of its own (`choose_share`), not all that it will load: data
that several subgroups load is prefetched once. For two tiles the shares are twice as
large if they then have one size (`shares_of`), and each subgroup prefetches one of the
two.
*Why*: a load that hits the first cache takes a tenth of the time. Nothing else hides
the latency of memory, as a subgroup has no registers for a second set of tiles.
*Left alone*: kernels with their own ``prefetch_tile``; arrays that the kernel also
writes (a cache may keep overwritten data); tiles in shared memory, tiles of an address,
tiles whose steps are not constant, and loops without products.

Before: ``scf.for %k ... { %a = load_tile %t ...; tile_mma %a, ... }``
After:  ``prefetch_tile %t1; scf.for %k ... { %p = init_tile %A[%row, %k + 3 * 32];
        %a = load_tile %t ...; prefetch_tile %p; tile_mma %a, ... }``

Source: XeTile RFC, appendix 2.1 ("cooperative prefetch").

The distance: prefetched data must have arrived when its step begins, so the distance is
the latency of memory divided by the least cycles of a step. The least cycles are the
time of the step's products on one engine, as if one subgroup had the engine for itself:
the other subgroups wait for the same tiles, perhaps at the same time. So a step of
32x64x32 of 16 bits takes 256 cycles of pvc, whose memory takes 700: three steps, as in
the RFC's GEMM (and Intel's own). The matrix units of bmg take twice as long: two steps.
Three limits apply: the first cache must hold the prefetched tiles beside the step
itself, for all workgroups of a core; the loop must reach the step; and there are at
most eight steps, as the first ones are code in front of the loop. The numbers are those
of `xetl.devices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.analysis.control_flow import constant_trips
from xetl.analysis.memory import is_pure, may_alias, roots_of, written_memory
from xetl.devices import ROW_BYTES, Device, find_device
from xetl.dialects import xetile
from xetl.dialects.base import operations_in, vector_type
from xetl.dialects.upstream import arith, gpu, scf
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile.types import GLOBAL
from xetl.ir.builder import Builder, Pass
from xetl.language.distribution import Layout
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl.transforms.insert_prefetches.moving_tiles import MovingTile, moving_tile
from xetl.transforms.propagate_wg_maps.choose import (
    Shape,
    cheapest_map,
    goes_to_matrix_unit,
    owned_shape,
    product_cycles,
)
from xetl.transforms.propagate_wg_maps.graph import bits_of
from xetl.transforms.propagate_wg_maps.map_attributes import tile_map
from xetl.worklist import Worklist

MOST_STEPS = 8


@record(frozen=True)
class Distance:
    """A prefetch distance in steps (0: no prefetch), and the reason for it."""

    steps: int
    why: str


def choose_distance(
    loop: scf.ForOp,
    products: Sequence[xetile.TileMmaOp],
    tiles: Sequence[xetile.TileType],
    subgroups: int,
    device: Device,
) -> Distance:
    """Choose the prefetch distance for a loop.

    Args:
        tiles: the types of the tiles that the loop loads and moves, of the workgroup.
    """
    latency = device.speed.memory_latency
    if not latency:
        return Distance(0, f"on `{device.name}` a prefetch is nothing")
    cycles = max(1, round(sum(_cycles(op, device) for op in products)))
    wanted = min(ceil(latency / cycles), MOST_STEPS)
    why = f"memory takes about {latency} cycles, a step at least {cycles}"
    # The number of steps that a core's cache holds, for all workgroups that share it.
    step = sum(prod(t.shape) * bit_width(t.element_type) // 8 for t in tiles)
    sharers = max(1, device.most_subgroups // subgroups)
    room = device.core_memory_bytes // max(1, step * sharers)
    if room <= wanted:
        wanted, why = room - 1, f"the first cache has room for {room} steps"
    length = constant_trips(loop)
    if length is not None and length <= wanted:
        wanted, why = length - 1, f"the loop has {length} steps"
    return Distance(max(wanted, 0), why)


def _cycles(op: xetile.TileMmaOp, device: Device) -> float:
    shape = vector_type(op.result).get_shape()
    rows, columns = shape[0], shape[1]
    if op.wg_map_c is not None:
        rows, columns = owned_shape((rows, columns), xetile.layout_of(op.wg_map_c))
    depth = vector_type(op.a).get_shape()[1]
    on_unit = goes_to_matrix_unit(op, device)
    return product_cycles(
        device, rows, columns, depth, bits_of(op.a), on_matrix_unit=on_unit
    )


def share_of(tile: SSAValue, device: Device, turns: int = 1) -> xetile.TileType:
    """Return the type of a tile; ``turns`` subgroups prefetch one share of it."""
    type_, layout = xetile.tile_type(tile), tile_map(tile)
    new = None
    if layout is not None:
        shape = type_.shape[0], type_.shape[1]
        share = choose_share(shape, bits_of(tile), layout.subgroups // turns, device)
        rows, columns = share.sg_layout
        new = xetile.attribute_of(replace(share, sg_layout=(rows * turns, columns)))
    encoding = xetile.TileAttr(order=type_.order, wg_map=new)
    return xetile.TileType(type_.shape, type_.element_type, encoding)


_LEAST_BITS = 16
"""The least bits of an element for shares that two subgroups share. [measured] With
them a GEMM of i8 takes 51 instructions a step on bmg, without them 48: the compiler
keeps its steps in bytes."""


def shares_of(
    tiles: Sequence[SSAValue], device: Device, *, may_alternate: bool
) -> list[xetile.TileType]:
    """Return the types of `share_of`; with ``may_alternate`` two subgroups share one.

    A backend then lets each of the two prefetch one of two tiles, so shares are twice
    as large, and messages half as many. [measured] ocloc 26.27, pvc: with this,
    attention with heads of 128 takes 609 instructions a step, without it 573; a GEMM
    takes 49 and 53.
    """
    counts = [_subgroups(tile) for tile in tiles]
    may_alternate &= len(tiles) == 2 and counts[0] == counts[-1]
    may_alternate &= all(bits_of(tile) >= _LEAST_BITS for tile in tiles)
    if may_alternate and counts[0] % 2 == 0:
        halves = [share_of(tile, device, 2) for tile in tiles]
        if len({(_own(half), half.element_type) for half in halves}) == 1:
            return halves
    return [share_of(tile, device) for tile in tiles]


def _own(share: xetile.TileType) -> Shape:
    assert share.wg_map is not None
    shape = share.shape[0], share.shape[1]
    return owned_shape(shape, xetile.layout_of(share.wg_map))


def choose_share(shape: Shape, bits: int, subgroups: int, device: Device) -> Layout:
    """Choose the map of a tile to prefetch."""
    most_rows = max(device.blocks_of("prefetch", max(8, bits)).rows, default=1)

    def cost(layout: Layout) -> tuple[int, int]:
        rows, columns = owned_shape(shape, layout)
        lines = -(-columns * bits // (8 * ROW_BYTES))
        return lines * -(-rows // most_rows), lines * rows

    return cheapest_map(shape, subgroups, cost)


TOPIC = "prefetch"


@dataclass(frozen=True)
class InsertPrefetchesPass(Pass):
    """See the module docstring; ``distance`` in steps, 0: none, negative: choose it."""

    device: str = "pvc"
    distance: int = -1

    def rewrite(self, op: ModuleOp) -> None:
        device = find_device(self.device)
        given = None if self.distance < 0 else self.distance
        for kernel in operations_in(op, gpu.FuncOp):
            _Kernel(kernel, device, given).rewrite()


@record(frozen=True)
class _Load:
    op: xetile.LoadTileOp
    tile: MovingTile


class _Kernel:
    """The rewriting of one kernel, at stage ``xetile-mapped`` or of subgroups."""

    def __init__(self, kernel: gpu.FuncOp, device: Device, given: int | None) -> None:
        self._kernel = kernel
        self._device = device
        self._given = given
        self._written = [
            root
            for op in kernel.walk()
            if (memory := written_memory(op)) is not None
            for root in roots_of(memory)
        ]

    def rewrite(self) -> None:
        """Add prefetches to all loops, unless the kernel has prefetches of its own."""
        loops = operations_in(self._kernel, scf.ForOp)
        found = [(loop, _products(loop)) for loop in loops]
        found = [(loop, products) for loop, products in found if products]
        for op in operations_in(self._kernel, xetile.PrefetchTileOp):
            if found:
                remark(op, TOPIC, "the kernel's own prefetches stay as they are")
            return
        for loop, products in found:
            self._rewrite(loop, products)

    def _rewrite(self, loop: scf.ForOp, products: list[xetile.TileMmaOp]) -> None:
        loads = list(self._loads(loop, products))
        if not loads:
            return
        types = [xetile.tile_type(each.op.tile) for each in loads]
        subgroups = max(_subgroups(each.op.tile) for each in loads)
        if self._given is not None:
            distance = Distance(self._given, "XETL_PREFETCH says so")
        else:
            distance = choose_distance(loop, products, types, subgroups, self._device)
        if distance.steps < 1:
            remark(loop, TOPIC, f"no tile is asked for ahead: {distance.why}")
            return
        share = f", each of {subgroups} subgroups for a share" if subgroups > 1 else ""
        remark(
            loop,
            TOPIC,
            f"the loop asks for tiles {distance.steps} steps ahead{share}: "
            f"{distance.why} (XETL_PREFETCH gives another distance, 0 for none)",
        )
        tiles = [each.op.tile for each in loads]
        may_alternate = len(products) == 1
        shares = shares_of(tiles, self._device, may_alternate=may_alternate)
        for load, type_ in zip(loads, shares):
            _insert(load, distance.steps, type_)

    def _loads(
        self, loop: scf.ForOp, products: list[xetile.TileMmaOp]
    ) -> Iterator[_Load]:
        """Yield the loads for products whose tile the loop moves; each tile once."""
        seen: set[SSAValue] = set()
        for load in _behind(products, loop):
            tile = load.tile
            if tile in seen or not self._may_be_asked_for(tile):
                continue
            seen.add(tile)
            moving = moving_tile(tile, loop)
            if moving is not None and moving.start.has_rows:
                yield _Load(load, moving)

    def _may_be_asked_for(self, tile: SSAValue) -> bool:
        type_ = xetile.tile_type(tile)
        if type_.memory_space != GLOBAL or type_.scattered or type_.array_length > 1:
            return False
        roots = roots_of(tile)
        return not any(may_alias(a, b) for a in roots for b in self._written)


def _products(loop: scf.ForOp) -> list[xetile.TileMmaOp]:
    """Return the products of plain vectors directly in the body of a loop."""
    if not isinstance(loop.step.type, IndexType):
        return []
    found = [op for op in loop.body.block.ops if isinstance(op, xetile.TileMmaOp)]
    return [op for op in found if len(op.result.type.get_shape()) == 2]


def _behind(
    products: list[xetile.TileMmaOp], loop: scf.ForOp
) -> list[xetile.LoadTileOp]:
    """Return the loads in the body that the operands of products depend on."""
    found: list[xetile.LoadTileOp] = []
    waiting = Worklist(side for op in reversed(products) for side in (op.b, op.a))
    for value in waiting:
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not loop.body.block:
            continue
        if isinstance(op, xetile.LoadTileOp):
            found.append(op)
        elif is_pure(op) and not isinstance(op, xetile.TileMmaOp):
            waiting += op.operands
    return found


def _subgroups(tile: SSAValue) -> int:
    layout = tile_map(tile)
    return 1 if layout is None else layout.subgroups


def _insert(load: _Load, distance: int, type_: xetile.TileType) -> None:
    """Insert prefetches of the tile in the loop, and for its first steps before it."""
    loop = load.tile.loop
    for step in range(1, distance):
        point = InsertPoint.before(loop)
        _ask(load, loop.lower_bound, step, type_, point)
    _ask(load, loop.body.block.args[0], distance, type_, InsertPoint.after(load.op))


def _ask(
    load: _Load,
    counter: SSAValue,
    steps: int,
    type_: xetile.TileType,
    point: InsertPoint,
) -> None:
    """Insert a prefetch of the tile ``steps`` steps after ``counter``."""
    loop = load.tile.loop
    build = Builder(point, loop.location)
    number = build.insert(arith.ConstantOp.index(steps))
    on = build.insert(arith.MuliOp(number, loop.step))
    then = build.insert(arith.AddiOp(counter, on))
    tile = load.tile.at(then, type_, point)
    build.add(xetile.PrefetchTileOp(tile, location=load.op.location))
