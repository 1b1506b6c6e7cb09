"""tile_reduce and tile_scan: within a subgroup where it has all there is to combine.

Source: XeTile RFC, "tile_reduce" with wg_map; docs/xetile.md, section 5.
"""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType

from xetl.dialects.base import vector_type
from xetl.dialects.xetile import TileConvLayoutOp, TileReduceOp, TileScanOp
from xetl.dialects.xetile.value_verifiers import reduced_shape
from xetl.language.distribution import Layout
from xetl.transforms.remarks import remark
from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.elementwise import distribute_elementwise
from xetl.transforms.subgroups.exchange import reduce_across
from xetl.transforms.subgroups.parts import rebuilt, shape_of
from xetl.transforms.subgroups.replicated import compute_by_all


def distribute_reduce(d: Distributor, op: TileReduceOp) -> None:
    """Combine what a subgroup has, and then with what others have."""
    if op.reduction_size is not None:
        _reduce_groups(d, op, op.reduction_size.value.data)
        return
    # A layout wanted for the sake of the reduction would move all elements.
    owner = op.source.owner
    source = op.source
    if isinstance(owner, TileConvLayoutOp) and is_combined_first(owner):
        source = owner.source
    layout, target = d.layout(source), d.layout(op.result)
    parts, shape = d.parts(source), shape_of(source)
    kind = op.kind.data
    new = reduce_across(d.team, kind, parts, shape, layout, op.dims, target)
    d.give(op.result, new, target)


def convert_layout(d: Distributor, op: TileConvLayoutOp) -> None:
    """Other parts of the same value, unless all that is wanted of it is less."""
    if is_combined_first(op):
        remark(op, "subgroups", "what it is combined to moves, not the whole value")
    else:
        d.give(op.result, d.parts(op.source, d.layout(op.result)))


def is_combined_first(op: TileConvLayoutOp) -> bool:
    """Whether only reductions use a conversion: these need not wait for it.

    They stand beside it: one in a loop would move something each time.
    """
    users = [use.operation for use in op.result.uses]
    return bool(users) and all(
        isinstance(user, TileReduceOp)
        and user.reduction_size is None
        and user.parent is op.parent
        for user in users
    )


def _reduce_groups(d: Distributor, op: TileReduceOp, size: int) -> None:
    """Neighbours in groups of ``size``: no part may cut a group."""
    source = d.layout(op.source)
    if any(source.sg_data[dim] % size for dim in op.dims):
        compute_by_all(d, op)
        return
    data = tuple(reduced_shape(source.sg_data, op.dims, size))
    type_ = VectorType(vector_type(op.result).element_type, data)
    new = [d.team.add(rebuilt(op, [part], [type_])) for part in d.parts(op.source)]
    layout = Layout(source.sg_layout, data, order=source.order)
    d.give(op.result, [each.results[0] for each in new], layout)


def distribute_scan(d: Distributor, op: TileScanOp) -> None:
    """Along lines that a subgroup has in one part; others need the whole value."""
    extent = shape_of(op.source)[op.dim]
    if d.layout(op.result).sg_data[op.dim] == extent:
        distribute_elementwise(d, op)
    else:
        compute_by_all(d, op)
