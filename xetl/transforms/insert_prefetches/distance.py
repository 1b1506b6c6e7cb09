"""A model of how many steps before its use a loop prefetches a tile.

What is asked for must have come when its step begins: the distance is the latency of
memory by the cycles that a step takes at least.  That least is the time of its products
on one engine, as if a subgroup had the engine for itself: the others wait for the same
tiles and may well wait at the same time, so nothing is hoped for from them.  So a step
of 32x64x32 of 16 bits takes 256 cycles of pvc, whose memory takes 700: three steps, as
the RFC's GEMM has it (and Intel's own); bmg's matrix units take twice as long, two.

No more is asked for than the first cache holds beside the step itself, for all
workgroups of a core; nor what the loop never comes to; nor more than eight steps, whose
first ones stand in front of the loop.

Source: `xetl.devices` for the numbers; XeTile RFC, appendix 2.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

from xdsl.ir import SSAValue

from xetl.devices import ROW_BYTES, Device
from xetl.dialects.base import vector_type
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import scf
from xetl.dialects.upstream.elementwise import bit_width
from xetl.dialects.xetile import (
    TileAttr,
    TileMmaOp,
    TileType,
    attribute_of,
    layout_of,
    tile_type,
)
from xetl.language.distribution import Layout
from xetl.records import record
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
        why: in the user's words.
    """

    steps: int
    why: str


def choose_distance(
    loop: scf.ForOp,
    products: Sequence[TileMmaOp],
    tiles: Sequence[TileType],
    subgroups: int,
    device: Device,
) -> Distance:
    """The distance for a loop.

    Args:
        loop: whose tiles are asked for.
        products: in its body.
        tiles: that it loads and moves, of the whole workgroup.
        subgroups: of the workgroup.
        device: that runs it.
    """
    latency = device.speed.memory_latency
    if not latency:
        return Distance(0, f"on `{device.name}` a prefetch is nothing")
    cycles = max(1, round(sum(_cycles(op, device) for op in products)))
    wanted = min(ceil(latency / cycles), MOST_STEPS)
    why = f"memory takes about {latency} cycles, a step at least {cycles}"
    room = _room(tiles, subgroups, device)
    if room <= wanted:
        wanted, why = room - 1, f"the first cache has room for {room} steps"
    length = _constant_length(loop)
    if length is not None and length <= wanted:
        wanted, why = length - 1, f"the loop has {length} steps"
    return Distance(max(wanted, 0), why)


def _cycles(op: TileMmaOp, device: Device) -> float:
    shape = vector_type(op.result).get_shape()
    rows, columns = shape[0], shape[1]
    if op.wg_map_c is not None:
        rows, columns = owned_shape((rows, columns), layout_of(op.wg_map_c))
    depth = vector_type(op.a).get_shape()[1]
    on_unit = goes_to_matrix_unit(op, device)
    return product_cycles(
        device, rows, columns, depth, bits_of(op.a), on_matrix_unit=on_unit
    )


def _room(tiles: Sequence[TileType], subgroups: int, device: Device) -> int:
    """Steps that a core's cache holds, of all workgroups that share it."""
    step = sum(prod(t.shape) * bit_width(t.element_type) // 8 for t in tiles)
    sharers = max(1, device.most_subgroups // subgroups)
    return device.core_memory_bytes // max(1, step * sharers)


def _constant_length(loop: scf.ForOp) -> int | None:
    lower, upper, step = map(
        constant_index, (loop.lower_bound, loop.upper_bound, loop.step)
    )
    if lower is None or upper is None or not step:
        return None
    return max(0, -(-(upper - lower) // step))


def share_of(tile: SSAValue, device: Device) -> TileType:
    """The type of a tile of which each subgroup asks for its share."""
    type_, layout = tile_type(tile), tile_map(tile)
    new = None
    if layout is not None:
        shape = type_.shape[0], type_.shape[1]
        new = attribute_of(choose_share(shape, bits_of(tile), layout.subgroups, device))
    encoding = TileAttr(order=type_.order, wg_map=new)
    return TileType(type_.shape, type_.element_type, encoding)


def choose_share(shape: Shape, bits: int, subgroups: int, device: Device) -> Layout:
    """The map of a tile that is asked for."""
    most_rows = max(device.blocks_of("prefetch", max(8, bits)).rows, default=1)

    def cost(layout: Layout) -> tuple[int, int]:
        rows, columns = owned_shape(shape, layout)
        lines = -(-columns * bits // (8 * ROW_BYTES))
        return lines * -(-rows // most_rows), lines * rows

    return cheapest_map(shape, subgroups, cost)
