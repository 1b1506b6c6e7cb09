"""Rules for products, transposes, broadcasts, reductions and scans.

Source: XeTile RFC, operations with wg_map; docs/xetile.md, section 5.
"""

from __future__ import annotations

from itertools import product

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import ints_of, vector_type
from xetl.dialects.upstream import vector
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TileConvLayoutOp,
    TileMmaOp,
    TileReduceOp,
    TileScanOp,
    TileTransposeOp,
)
from xetl.dialects.xetile.value_verifiers import reduced_shape
from xetl.language.distribution import Layout, rounds
from xetl.transforms.distribute_to_subgroups.distributor import Distributor
from xetl.transforms.distribute_to_subgroups.elementwise import (
    compute_by_all,
    derive_or_compute_by_all,
    distribute_elementwise,
)
from xetl.transforms.distribute_to_subgroups.exchange import reduce_across
from xetl.transforms.distribute_to_subgroups.parts import (
    is_distributed,
    rebuilt,
)
from xetl.transforms.propagate_wg_maps.map_attributes import matrix_shape, transposed
from xetl.transforms.propagate_wg_maps.rules import relations
from xetl.transforms.remarks import remark


def distribute_mma(d: Distributor, op: TileMmaOp) -> None:
    """A product for each part of C; of both operands a subgroup needs all of K.

    So A is shared by those that stand side by side, and B by those below one another.
    """
    target = d.layout(op.result)
    sides = [d.parts(each.operand, each.backward(target)) for each in relations(op)]
    pairs: list[list[SSAValue]] = [list(pair) for pair in product(*sides[:2])]
    for addends in sides[2:]:
        for pair, c in zip(pairs, addends):
            pair.append(c)
    type_ = d.part_type(op.result)
    new = [d.team.add(rebuilt(op, operands, [type_])) for operands in pairs]
    d.give(op.result, [each.results[0] for each in new], target)


def distribute_transpose(
    d: Distributor, op: TileTransposeOp | vector.TransposeOp
) -> None:
    """Each part transposes alone, once its source is where the result is wanted."""
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
    type_ = d.part_type(result)
    new = [d.team.insert(rebuilt(op, [parts[i]], [type_])) for i in order]
    d.give(result, new, layout)


def distribute_shape_cast(d: Distributor, op: vector.ShapeCastOp) -> None:
    """A row that becomes a column is transposed; other shapes need the whole value."""
    before, after = matrix_shape(op.source), matrix_shape(op.result)
    if len(before) == 2 and 1 in before and after == before[::-1]:
        _transpose_parts(d, op)
    else:
        derive_or_compute_by_all(d, op)


def distribute_broadcast(
    d: Distributor, op: TileBroadcastOp | vector.BroadcastOp
) -> None:
    """Each part repeats what it has of the source."""
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
    type_ = d.part_type(op.result)
    new: list[SSAValue] = []
    for row in range(down):
        for column in range(right):
            at = min(row, source_rounds[0] - 1), min(column, source_rounds[1] - 1)
            part = parts[at[0] * source_rounds[1] + at[1]]
            new.append(d.team.insert(rebuilt(op, [part], [type_])))
    d.give(op.result, new, layout)


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
    parts, shape = d.parts(source), matrix_shape(source)
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
    extent = matrix_shape(op.source)[op.dim]
    if d.layout(op.result).sg_data[op.dim] == extent:
        distribute_elementwise(d, op)
    else:
        compute_by_all(d, op)
