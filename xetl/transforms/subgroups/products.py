"""tile_mma: rows of A times columns of B, for each part of C that a subgroup owns.

Source: XeTile RFC, "tile_mma" with wg_map; docs/xetile.md, section 5.
"""

from __future__ import annotations

from itertools import product

from xdsl.ir import SSAValue

from xetl.dialects.xetile import TileMmaOp
from xetl.language.distribution import Layout
from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.parts import rebuilt, shape_of


def distribute_mma(d: Distributor, op: TileMmaOp) -> None:
    """A product for each part of C; of both operands a subgroup needs all of K.

    So A is shared by those that stand side by side, and B by those below one another.
    """
    target = d.layout(op.result)
    rows, columns = target.sg_data
    depth = shape_of(op.a)[1]
    left = d.parts(op.a, _like(target, (rows, depth)))
    right = d.parts(op.b, _like(target, (depth, columns)))
    pairs: list[list[SSAValue]] = [list(pair) for pair in product(left, right)]
    if op.c is not None:
        for pair, c in zip(pairs, d.parts(op.c, target)):
            pair.append(c)
    type_ = d.part_type(op.result)
    new = [d.team.add(rebuilt(op, operands, [type_])) for operands in pairs]
    d.give(op.result, [each.results[0] for each in new], target)


def _like(layout: Layout, sg_data: tuple[int, int]) -> Layout:
    """The same subgroups in the same places, with other data."""
    return Layout(layout.sg_layout, sg_data, order=layout.order)
