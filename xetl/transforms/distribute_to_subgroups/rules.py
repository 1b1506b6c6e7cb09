"""Rules: the part of each operation that one subgroup does.

* Elementwise operations, and operations that every subgroup, or one, does alone.
* Tiles in memory: a subgroup describes, loads and stores the parts that it owns. Bounds
  and padding are those of the base matrix: partial tiles at an edge need no code here.
* Products, transposes, broadcasts, reductions and scans.

Source: XeTile RFC, "Workgroup Level XeTile extension", operations with wg_map;
docs/xetile.md, sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, zip_longest
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

from xetl.analysis.axes import lines_of
from xetl.dialects import xetile
from xetl.dialects.base import Indices, int_array, ints_of, is_vector, vector_type
from xetl.dialects.upstream import arith, gpu, vector
from xetl.dialects.xetile.verifiers import reduced_shape
from xetl.language.distribution import Layout, rounds
from xetl.transforms.diagnostics import remark
from xetl.transforms.distribute_to_subgroups.context import (
    guarded,
    is_distributed,
    is_leader,
    rebuilt,
    refuse_private_tile,
    without_maps,
)
from xetl.transforms.distribute_to_subgroups.distributor import Distributor, Rule
from xetl.transforms.distribute_to_subgroups.exchange import reduce_across, share
from xetl.transforms.distribute_to_subgroups.slicing import derived_parts
from xetl.transforms.propagate_wg_maps.map_attributes import (
    matrix_shape,
    transposed,
    with_data,
)
from xetl.transforms.propagate_wg_maps.rules import relations


def distribute_elementwise(d: Distributor, op: Operation) -> None:
    """Apply the operation to each part; all parts use the same scalars."""
    layout = d.layout(op.results[0])
    count = d.count(op.results[0])
    operands = [d.parts_for(operand, layout, count) for operand in op.operands]
    _apply(d, op, list(zip(*operands)), layout)


def _apply(
    d: Distributor, op: Operation, parts: Sequence[Sequence[SSAValue]], layout: Layout
) -> None:
    """Apply the operation to the operands of each part of its results."""
    types = [d.part_type(result) for result in op.results]
    new = [d.team.add(rebuilt(op, [*operands], types)).results for operands in parts]
    for number, result in enumerate(op.results):
        d.give(result, [results[number] for results in new], layout)


def derive_or_compute_by_all(d: Distributor, op: Operation) -> None:
    """Compute the parts from their origins if `derived_parts` can; else by all."""
    (result,) = op.results
    parts = derived_parts(d.team, result, d.layout(result))
    if parts is None:
        compute_by_all(d, op)
    else:
        d.give_parts(result, parts, d.layout(result))


def compute_by_all(d: Distributor, op: Operation) -> None:
    """Let every subgroup compute the whole result from whole operands."""
    if d.team.subgroups > 1 and any(is_distributed(each) for each in op.operands):
        remark(op, "subgroups", "every subgroup computes this from the whole value")
    operands = [d.whole(each) for each in op.operands]
    new = d.team.add(rebuilt(op, operands, [result.type for result in op.results]))
    for old, result in zip(op.results, new.results):
        d.give_whole(old, result)


def do_by_one(d: Distributor, op: Operation) -> None:
    """Let one subgroup do the operation; all subgroups get its results."""
    operands = [d.whole(each) for each in op.operands]
    types = [result.type for result in op.results]
    used = [each for each in op.results if each.uses]

    def build() -> list[SSAValue]:
        new = d.team.add(rebuilt(op, operands, types))
        return [new.results[each.index] for each in used]

    leader = is_leader(d.team)
    found = guarded(d.team, leader, [each.type for each in used], build)
    for old, new in zip(used, found):
        d.give_whole(old, new if leader is None else from_leader(d, new))


def from_leader(d: Distributor, value: SSAValue) -> SSAValue:
    """Return the leader's value of any rank in all subgroups."""
    add = d.team.add
    if not is_vector(value.type):
        single = VectorType(value.type, [1, 1])
        shared = _share(d, add(vector.BroadcastOp(value, single)).result)
        return add(vector.ExtractOp(shared, [0, 0])).result
    type_ = vector_type(value)
    row = VectorType(type_.element_type, [1, type_.element_count()])
    shared = _share(d, add(vector.ShapeCastOp(value, row)).result)
    return add(vector.ShapeCastOp(shared, type_)).result


def _share(d: Distributor, value: SSAValue) -> SSAValue:
    shape = vector_type(value).get_shape()
    (shared,) = share(d.team, [value], shape, d.everything(shape))
    return shared


def _number(value: int) -> Rule:
    def replace(d: Distributor, op: Operation) -> None:
        new = d.team.insert(arith.ConstantOp.index(value))
        op.results[0].replace_all_uses_with(new)

    return replace


def _block_id(d: Distributor, op: gpu.DimensionOp) -> None:
    """Replace a global id by the block id: there is one work-item in a block."""
    new = d.team.insert(gpu.BlockIdOp(op.dimension))
    op.result.replace_all_uses_with(new)


IDENTITY_RULES: dict[type[Operation], Rule] = {
    gpu.ThreadIdOp: _number(0),
    gpu.SubgroupIdOp: _number(0),
    gpu.BlockDimOp: _number(1),
    gpu.NumSubgroupsOp: _number(1),
    gpu.GlobalIdOp: _block_id,
}


def init_tile(d: Distributor, op: xetile.InitTileOp) -> None:
    """Make a tile for each part: add the origin of the part to the offsets."""
    refuse_private_tile(op)
    layout = d.layout(op.result)
    if op.indices is None:
        offsets = [_moved_to(d, op, layout, i) for i in range(d.count(op.result))]
        parts = [_init_part(d, op, each, None) for each in offsets]
    else:
        indices = d.parts_for(op.indices, layout, 1)
        parts = [_init_part(d, op, (), each) for each in indices]
    d.give(op.result, parts)


def _moved_to(
    d: Distributor, op: xetile.InitTileOp, layout: Layout, part: int
) -> Indices:
    """Return the offsets of a part; all but the last two select the matrix."""
    *leading, row, column = op.mixed_offsets
    down, right = d.team.origin(op.result.type.shape, layout, part)
    return (*leading, d.team.plus(row, down), d.team.plus(column, right))


def _init_part(
    d: Distributor, op: xetile.InitTileOp, offsets: Indices, indices: SSAValue | None
) -> SSAValue:
    new = xetile.InitTileOp(
        op.source,
        offsets,
        d.part_type(op.result),
        op.mixed_sizes,
        op.mixed_strides,
        indices,
        attributes=without_maps(op.attributes),
    )
    return d.team.insert(new)


def update_tile_offset(d: Distributor, op: xetile.UpdateTileOffsetOp) -> None:
    """Move all parts by the same offsets, scattered parts by their own indices."""
    tiles = d.parts(op.tile)
    steps: Sequence[SSAValue | None] = [None] * len(tiles)
    if op.indices is not None:
        steps = d.parts_for(op.indices, d.layout(op.tile), len(tiles))
    moved = [
        d.team.insert(xetile.UpdateTileOffsetOp(tile, op.mixed_offsets, indices=step))
        for tile, step in zip(tiles, steps)
    ]
    d.give(op.result, moved)


def load_tile(d: Distributor, op: xetile.LoadTileOp) -> None:
    """Load each part; several results lie side by side, from left to right."""
    layout = d.layout(op.tile)
    for number, value in enumerate(op.results):
        tiles = d.parts(op.tile)
        if number:
            right = [0, number * op.tile_type.shape[1]]
            tiles = [d.team.insert(xetile.UpdateTileOffsetOp(t, right)) for t in tiles]
        types = [[xetile.tile_type(tile).vector_type()] for tile in tiles]
        loads = [rebuilt(op, [tile], type_) for tile, type_ in zip(tiles, types)]
        d.give_parts(value, [d.team.insert(each) for each in loads], layout)


def prefetch_tile(d: Distributor, op: xetile.PrefetchTileOp) -> None:
    """Prefetch each part; all owners of a shared part do so, which does no harm."""
    for tile in d.parts(op.tile):
        d.team.add(rebuilt(op, [tile], []))


def access_tile(d: Distributor, op: Any) -> None:
    """Access each part of a tile with the parts of all vectors.

    Only the first owner of a part writes it. The other owners get the result (the old
    elements of an atomic) if it is used.
    """
    layout, tiles = d.layout(op.tile), d.parts(op.tile)
    operands = [
        tiles if operand is op.tile else d.parts_for(operand, layout, len(tiles))
        for operand in op.operands
    ]
    types = [xetile.tile_type(tile).vector_type() for tile in tiles if op.results]
    effects = get_effects(op) or ()
    writes = any(effect.kind is MemoryEffectKind.WRITE for effect in effects)
    used = bool(op.results) and (not writes or bool(op.result.uses))

    def build() -> list[SSAValue]:
        pairs = zip_longest(zip(*operands), types)
        new = [d.team.add(rebuilt(op, o, [t] if t else [])) for o, t in pairs]
        return [each.results[0] for each in new] if used else []

    shape = op.tile_type.shape
    owner = d.team.first_owner(shape, layout) if writes else None
    found = guarded(d.team, owner, types if used else [], build)
    if not used:
        return
    if owner is not None and len(shape) == 1:
        found = [from_leader(d, found[0])]
    elif owner is not None:
        found = share(d.team, found, shape, layout)
    d.give_parts(op.result, found, layout)


def distribute_mma(d: Distributor, op: xetile.TileMmaOp) -> None:
    """Compute a product for each part of C; a subgroup needs all of K of A and B.

    So the subgroups of one row share parts of A, and those of one column parts of B.
    """
    target = d.layout(op.result)
    sides = [d.parts(each.operand, each.backward(target)) for each in relations(op)]
    pairs: list[list[SSAValue]] = [list(pair) for pair in product(*sides[:2])]
    for addends in sides[2:]:
        for pair, c in zip(pairs, addends):
            pair.append(c)
    _apply(d, op, pairs, target)


def distribute_transpose(
    d: Distributor, op: xetile.TileTransposeOp | vector.TransposeOp
) -> None:
    """Transpose each part; its source is first moved to the owner of the result."""
    if ints_of(op.permutation) == (1, 0):
        _transpose_parts(d, op)
    else:
        d.give(op.results[0], d.parts(op.source, d.layout(op.results[0])))


def _transpose_parts(d: Distributor, op: Operation) -> None:
    (source,), (result,) = op.operands, op.results
    layout = d.layout(result)
    turned = transposed(layout)
    parts = d.parts(source, turned)
    down, right = rounds(matrix_shape(source), turned)
    order = [row * right + column for column in range(right) for row in range(down)]
    _apply(d, op, [[parts[i]] for i in order], layout)


def distribute_shape_cast(d: Distributor, op: vector.ShapeCastOp) -> None:
    """Transpose a row to a column or back; other casts need the whole value."""
    before, after = matrix_shape(op.source), matrix_shape(op.result)
    if len(before) == 2 and 1 in before and after == before[::-1]:
        _transpose_parts(d, op)
    else:
        derive_or_compute_by_all(d, op)


def distribute_broadcast(
    d: Distributor, op: xetile.TileBroadcastOp | vector.BroadcastOp
) -> None:
    """Broadcast the source elements of each part."""
    if not is_distributed(op.source):
        derive_or_compute_by_all(d, op)
        return
    layout = d.layout(op.result)
    before = matrix_shape(op.source)
    sizes = [1 if e == 1 else s for e, s in zip(before, layout.sg_data)]
    wanted = Layout(layout.sg_layout, tuple(sizes), order=layout.order)
    parts = d.parts(op.source, wanted)
    source_rounds = rounds(before, wanted)
    down, right = rounds(matrix_shape(op.result), layout)
    sources: list[list[SSAValue]] = []
    for row, column in product(range(down), range(right)):
        at = min(row, source_rounds[0] - 1), min(column, source_rounds[1] - 1)
        sources.append([parts[at[0] * source_rounds[1] + at[1]]])
    _apply(d, op, sources, layout)


def distribute_reduce(d: Distributor, op: xetile.TileReduceOp) -> None:
    """Reduce a subgroup's own parts first, then over the subgroups."""
    if op.reduction_size is not None:
        _reduce_groups(d, op, op.reduction_size.value.data)
        return
    # A conversion only for this reduction would move all elements: skip it.
    owner = op.source.owner
    source = op.source
    if isinstance(owner, xetile.TileConvLayoutOp) and is_combined_first(owner):
        source = owner.source
    layout, target = d.layout(source), d.layout(op.result)
    parts, shape = d.parts(source), matrix_shape(source)
    kind = op.kind.data
    new = reduce_across(d.team, kind, parts, shape, layout, op.dims, target)
    d.give(op.result, new, target)


def convert_layout(d: Distributor, op: xetile.TileConvLayoutOp) -> None:
    """Move a value to another layout, unless only its reductions are needed."""
    if is_combined_first(op):
        remark(op, "subgroups", "what it is combined to moves, not the whole value")
    else:
        d.give(op.result, d.parts(op.source, d.layout(op.result)))


def is_combined_first(op: xetile.TileConvLayoutOp) -> bool:
    """Whether only reductions in the same block use a conversion.

    These can read its source. A reduction in a loop inside would move its partial
    results in each iteration.
    """
    users = [use.operation for use in op.result.uses]
    return bool(users) and all(
        isinstance(user, xetile.TileReduceOp)
        and user.reduction_size is None
        and user.parent is op.parent
        for user in users
    )


def _reduce_groups(d: Distributor, op: xetile.TileReduceOp, size: int) -> None:
    """Reduce groups of ``size`` neighbours; compute by all if a part cuts a group."""
    source = d.layout(op.source)
    if any(source.sg_data[dim] % size for dim in op.dims):
        compute_by_all(d, op)
        return
    data = tuple(reduced_shape(source.sg_data, op.dims, size))
    type_ = VectorType(vector_type(op.result).element_type, data)
    new = [d.team.add(rebuilt(op, [part], [type_])) for part in d.parts(op.source)]
    layout = Layout(source.sg_layout, data, order=source.order)
    d.give(op.result, [each.results[0] for each in new], layout)


def distribute_lines(d: Distributor, op: Any) -> None:
    """Compute on lines that lie in one part; other lines need the whole value."""
    layout, dims = d.layout(op.result), lines_of(op)
    result, source = matrix_shape(op.result), matrix_shape(op.operands[0])
    if any(layout.sg_data[dim] != result[dim] for dim in dims):
        compute_by_all(d, op)
        return
    wanted = with_data(layout, dims, [source[dim] for dim in dims])
    type_ = d.part_type(op.result)
    operands = [d.parts(operand, wanted) for operand in op.operands]
    new = [rebuilt(op, list(parts), [type_]) for parts in zip(*operands)]
    for each in new:
        if isinstance(each, vector.ExtractStridedSliceOp):
            each.size_list = int_array(layout.sg_data)
    d.give(op.result, [d.team.insert(each) for each in new], layout)
