"""tile_reduce and tile_scan: within a subgroup where it has all there is to combine.

Source: XeTile RFC, "tile_reduce" with wg_map; docs/xetile.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.xetile import TileReduceOp, TileScanOp
from xetl.dialects.xetile.value_verifiers import reduced_shape
from xetl.language.distribution import Layout, rounds
from xetl.transforms.subgroups.combining import combine, narrowed, widened
from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.elementwise import distribute_elementwise
from xetl.transforms.subgroups.exchange import reduce_across
from xetl.transforms.subgroups.parts import rebuilt, shape_of
from xetl.transforms.subgroups.replicated import compute_by_all


def distribute_reduce(d: Distributor, op: TileReduceOp) -> None:
    """Combine what a subgroup has; with what others have if that is not all."""
    if op.reduction_size is not None:
        _reduce_groups(d, op, op.reduction_size.value.data)
        return
    source, target = d.layout(op.source), d.layout(op.result)
    shape = shape_of(op.source)
    owned = rounds(shape, source)
    if all(owned[dim] * source.sg_data[dim] == shape[dim] for dim in op.dims):
        left = _reduced(source, op.dims, None)
        d.give(op.result, _reduce_parts(d, op, owned), left)
        return
    kind = op.kind.data
    parts = reduce_across(
        d.team, kind, d.parts(op.source), shape, source, op.dims, target
    )
    d.give(op.result, parts, target)


def _reduced(layout: Layout, dims: Sequence[int], size: int | None) -> Layout:
    """How the result of a reduction within subgroups is spread."""
    data = reduced_shape(layout.sg_data, dims, size)
    return Layout(layout.sg_layout, tuple(data), order=layout.order)


def _reduce_parts(
    d: Distributor, op: TileReduceOp, owned: Sequence[int]
) -> list[SSAValue]:
    """Each part of the result from all parts of the source that lie along ``dims``."""
    parts = d.parts(op.source)
    groups: dict[tuple[int, ...], list[SSAValue]] = {}
    for part, turn in zip(parts, product(*map(range, owned))):
        left = tuple(0 if dim in op.dims else i for dim, i in enumerate(turn))
        groups.setdefault(left, []).append(part)
    return [_reduce_group(d, op, group) for group in groups.values()]


def _reduce_group(
    d: Distributor, op: TileReduceOp, group: Sequence[SSAValue]
) -> SSAValue:
    team, kind = d.team, op.kind.data
    if len(group) > 1:  # of one part the reduction itself rounds only once
        group = [widened(team, kind, part) for part in group]
    reduced = [_rebuilt_on(d, op, part, None) for part in group]
    element = vector_type(op.result).element_type
    return narrowed(team, combine(team, kind, reduced), element)


def _rebuilt_on(
    d: Distributor, op: TileReduceOp, part: SSAValue, size: int | None
) -> SSAValue:
    type_ = vector_type(part)
    shape = reduced_shape(type_.get_shape(), op.dims, size)
    result = VectorType(type_.element_type, shape)
    return d.team.add(rebuilt(op, [part], [result])).results[0]


def _reduce_groups(d: Distributor, op: TileReduceOp, size: int) -> None:
    """Neighbours in groups of ``size``: no part may cut a group."""
    source = d.layout(op.source)
    if any(source.sg_data[dim] % size for dim in op.dims):
        compute_by_all(d, op)
        return
    new = [_rebuilt_on(d, op, part, size) for part in d.parts(op.source)]
    d.give(op.result, new, _reduced(source, op.dims, size))


def distribute_scan(d: Distributor, op: TileScanOp) -> None:
    """Along lines that a subgroup has in one part; others need the whole value."""
    extent = shape_of(op.source)[op.dim]
    if d.layout(op.result).sg_data[op.dim] == extent:
        distribute_elementwise(d, op)
    else:
        compute_by_all(d, op)
