"""Rows that become columns, and values that repeat along a dimension.

Source: XeTile RFC, "tile_transpose" and "tile_broadcast" with wg_map; docs/xetile.md,
section 5.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import ints_of
from xetl.dialects.upstream import vector
from xetl.dialects.xetile import TileBroadcastOp, TileTransposeOp
from xetl.language.distribution import Layout, rounds
from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.elementwise import derive_or_compute_by_all
from xetl.transforms.subgroups.parts import is_distributed, rebuilt, shape_of


def transposed(layout: Layout) -> Layout:
    """The layout of the source of a transpose, from that of its result."""
    return Layout(
        layout.sg_layout[::-1],
        layout.sg_data[::-1],
        order=tuple(1 - dim for dim in layout.order),
    )


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
    down, right = rounds(shape_of(source), turned)
    order = [row * right + column for column in range(right) for row in range(down)]
    type_ = d.part_type(result)
    new = [d.team.insert(rebuilt(op, [parts[i]], [type_])) for i in order]
    d.give(result, new, layout)


def distribute_shape_cast(d: Distributor, op: vector.ShapeCastOp) -> None:
    """A row that becomes a column is transposed; other shapes need the whole value."""
    before, after = shape_of(op.source), shape_of(op.result)
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
    before = shape_of(op.source)
    sizes = [1 if e == 1 else s for e, s in zip(before, layout.sg_data)]
    wanted = Layout(layout.sg_layout, tuple(sizes), order=layout.order)
    parts = d.parts(op.source, wanted)
    source_rounds = rounds(before, wanted)
    down, right = rounds(shape_of(op.result), layout)
    type_ = d.part_type(op.result)
    new: list[SSAValue] = []
    for row in range(down):
        for column in range(right):
            at = min(row, source_rounds[0] - 1), min(column, source_rounds[1] - 1)
            part = parts[at[0] * source_rounds[1] + at[1]]
            new.append(d.team.insert(rebuilt(op, [part], [type_])))
    d.give(op.result, new, layout)
