"""insert-prefetches: loops around products prefetch the tiles of later steps.

*What*: for each tile that such a loop loads for a product and moves, the body asks for
the tile of some steps later (`choose_distance`), and in front of the loop for those
of its first steps but the very first.  Where the tile is spread over subgroups, each
asks for a share of its own (`choose_share`), instead of all that it will load:
what several subgroups load is asked for once.  Of two tiles shares are twice as large
where they have one size then (`shares_of`), and each subgroup asks for one of both.
*Why*: a load that finds its data in the first cache takes a tenth of the time; nothing
else hides memory's latency, as a subgroup has no registers for a second set of tiles.
*Left alone*: kernels that say ``prefetch_tile`` themselves; arrays that the kernel also
writes (a cache may keep what has been overwritten); tiles of shared memory, of an
address, in steps that are not constant, in loops without products.

Before: ``scf.for %k ... { %a = load_tile %t ...; tile_mma %a, ... }``
After:  ``prefetch_tile %t1; scf.for %k ... { %p = init_tile %A[%row, %k + 3 * 32];
        %a = load_tile %t ...; prefetch_tile %p; tile_mma %a, ... }``

Source: XeTile RFC, appendix 2.1 ("cooperative prefetch").

The distance.  What is asked for must have come when its step begins: the distance is
the latency of memory by the cycles that a step takes at least.  That least is the time
of its products on one engine, as if a subgroup had the engine for itself: the others
wait for the same tiles and may well wait at the same time, so nothing is hoped for from
them.  So a step of 32x64x32 of 16 bits takes 256 cycles of pvc, whose memory takes 700:
three steps, as the RFC's GEMM has it (and Intel's own); bmg's matrix units take twice
as long, two.  No more is asked for than the first cache holds beside the step itself,
for all workgroups of a core; nor what the loop never comes to; nor more than eight
steps, whose first ones stand in front of the loop.  The numbers are of `xetl.devices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.analysis.control_flow import constant_trips
from xetl.analysis.memory import is_pure, may_alias, roots_of, written_memory
from xetl.devices import ROW_BYTES, Device, find_device
from xetl.dialects import xetile
from xetl.dialects.base import is_memref, operations_in, vector_type
from xetl.dialects.memref_layout import strides_of
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

MOST_STEPS = 8


@record(frozen=True)
class Distance:
    """A decision.

    Attributes:
        steps: how far ahead; 0: nothing is asked for.
    """

    steps: int
    why: str


def choose_distance(
    loop: scf.ForOp,
    products: Sequence[xetile.TileMmaOp],
    tiles: Sequence[xetile.TileType],
    subgroups: int,
    device: Device,
) -> Distance:
    """The distance for a loop.

    Args:
        tiles: that it loads and moves, of the whole workgroup.
    """
    latency = device.speed.memory_latency
    if not latency:
        return Distance(0, f"on `{device.name}` a prefetch is nothing")
    cycles = max(1, round(sum(_cycles(op, device) for op in products)))
    wanted = min(ceil(latency / cycles), MOST_STEPS)
    why = f"memory takes about {latency} cycles, a step at least {cycles}"
    # Steps that a core's cache holds, of all workgroups that share it.
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
    """The type of a tile of which each subgroup asks for its share.

    Args:
        turns: how many subgroups ask for the same.
    """
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
"""Of elements whose shares two subgroups share. [measured] A GEMM of i8 takes 51
instructions a step so on bmg, 48 without: the compiler keeps its steps in bytes."""


def shares_of(
    tiles: Sequence[SSAValue], device: Device, *, may_alternate: bool
) -> list[xetile.TileType]:
    """Types as of `share_of`; with ``may_alternate`` two subgroups may share a share.

    Of two tiles a backend then lets each ask for one, so shares are twice as large, and
    messages half as many. [measured] ocloc 26.27: attention, heads of 128, pvc, takes
    609 instructions a step so, 573 without; a GEMM 49 and 53.
    """
    layouts = [tile_map(tile) for tile in tiles]
    counts = [1 if layout is None else layout.subgroups for layout in layouts]
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
    """The map of a tile that is asked for."""
    most_rows = max(device.blocks_of("prefetch", max(8, bits)).rows, default=1)

    def cost(layout: Layout) -> tuple[int, int]:
        rows, columns = owned_shape(shape, layout)
        lines = -(-columns * bits // (8 * ROW_BYTES))
        return lines * -(-rows // most_rows), lines * rows

    return cheapest_map(shape, subgroups, cost)


TOPIC = "prefetch"


@dataclass(frozen=True)
class InsertPrefetchesPass(Pass):
    """See the module docstring.

    Attributes:
        distance: in steps, as the user gave it; 0: none; negative: it is chosen.
    """

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
    """One kernel on its way.

    Args:
        kernel: at stage ``xetile-mapped``, or at the level of subgroups.
    """

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
        """Look at all loops; the user's own prefetches mean that he knows better."""
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
        subgroups = max(map(_subgroups, loads))
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
        """Loads for products, of tiles that the loop moves; each tile once."""
        seen: set[SSAValue] = set()
        for load in _behind(products, loop):
            tile = load.tile
            if tile in seen or not self._may_be_asked_for(tile):
                continue
            seen.add(tile)
            moving = moving_tile(tile, loop)
            if moving is not None and _has_rows(moving):
                yield _Load(load, moving)

    def _may_be_asked_for(self, tile: SSAValue) -> bool:
        type_ = xetile.tile_type(tile)
        if type_.memory_space != GLOBAL or type_.scattered or type_.array_length > 1:
            return False
        roots = roots_of(tile)
        return not any(may_alias(a, b) for a in roots for b in self._written)


def _products(loop: scf.ForOp) -> list[xetile.TileMmaOp]:
    """Those that stand in the body itself, of plain vectors."""
    if not isinstance(loop.step.type, IndexType):
        return []
    found = [op for op in loop.body.block.ops if isinstance(op, xetile.TileMmaOp)]
    return [op for op in found if len(op.result.type.get_shape()) == 2]


def _behind(
    products: list[xetile.TileMmaOp], loop: scf.ForOp
) -> list[xetile.LoadTileOp]:
    """The loads in the body whose values products take, as they are or changed."""
    found: list[xetile.LoadTileOp] = []
    seen: set[SSAValue] = set()
    waiting = [side for op in reversed(products) for side in (op.b, op.a)]
    while waiting:
        value = waiting.pop()
        if value in seen or not isinstance(value, OpResult):
            continue
        seen.add(value)
        op = value.op
        if op.parent is not loop.body.block:
            continue
        if isinstance(op, xetile.LoadTileOp):
            found.append(op)
        elif is_pure(op) and not isinstance(op, xetile.TileMmaOp):
            waiting += op.operands
    return found


def _has_rows(tile: MovingTile) -> bool:
    """Whether it is a part of an array whose rows have no gaps."""
    source = tile.start.source
    if not is_memref(source.type):
        return False
    given = tile.start.mixed_strides or strides_of(source.type) or (None,)
    return given[-1] == 1


def _subgroups(load: _Load) -> int:
    layout = tile_map(load.op.tile)
    return 1 if layout is None else layout.subgroups


def _insert(load: _Load, distance: int, type_: xetile.TileType) -> None:
    """Ask for the tile in the loop, and in front of it for its first steps."""
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
    """Ask for the tile of some steps behind a number that the loop counts."""
    loop = load.tile.loop
    build = Builder(point, loop.location)
    number = build.insert(arith.ConstantOp.index(steps))
    on = build.insert(arith.MuliOp(number, loop.step))
    then = build.insert(arith.AddiOp(counter, on))
    tile = load.tile.at(then, type_, point)
    build.add(xetile.PrefetchTileOp(tile, location=load.op.location))
