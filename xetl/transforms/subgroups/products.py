"""tile_mma: rows of A times columns of B, for each part of C that a subgroup owns.

Source: XeTile RFC, "tile_mma" with wg_map; docs/xetile.md, section 5.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.upstream import arith
from xetl.dialects.xetile import TileMmaOp
from xetl.language.distribution import Layout, rounds
from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.parts import rebuilt, same_parts, shape_of


def distribute_mma(d: Distributor, op: TileMmaOp) -> None:
    """A product for each part of A and B that meet in a part of C, summed along K."""
    target = d.layout(op.result)
    left, right = _operand_layouts(d, op, target)
    a_parts, b_parts = d.parts(op.a, left), d.parts(op.b, right)
    c_parts = None if op.c is None else d.parts(op.c, target)
    rows, depth = rounds(shape_of(op.a), left)
    columns = rounds(shape_of(op.b), right)[1]
    found: list[SSAValue] = []
    for number, (row, column) in enumerate(product(range(rows), range(columns))):
        steps = [
            (a_parts[row * depth + k], b_parts[k * columns + column])
            for k in range(depth)
        ]
        c = None if c_parts is None else c_parts[number]
        found.append(_sum(d, op, steps, c))
    d.give(op.result, found, target)


def _operand_layouts(
    d: Distributor, op: TileMmaOp, target: Layout
) -> tuple[Layout, Layout]:
    """How A and B must be spread: along K as they are, where that can be.

    A subgroup needs all of K; in several parts if both sides come so.
    """
    a, b = shape_of(op.a), shape_of(op.b)
    depth = d.layout(op.a).sg_data[1]
    left, right = _with_depth(target, depth)
    owned = rounds(a, left)[1] * depth, rounds(b, right)[0] * depth
    if owned == (a[1], a[1]) and (
        same_parts(a, d.layout(op.a), left) and same_parts(b, d.layout(op.b), right)
    ):
        return left, right
    return _with_depth(target, a[1])


def _with_depth(target: Layout, depth: int) -> tuple[Layout, Layout]:
    rows, columns = target.sg_data
    plain = Layout(target.sg_layout, target.sg_data, order=target.order)
    left = replace(plain, sg_data=(rows, depth))
    return left, replace(plain, sg_data=(depth, columns))


def _sum(
    d: Distributor,
    op: TileMmaOp,
    steps: list[tuple[SSAValue, SSAValue]],
    c: SSAValue | None,
) -> SSAValue:
    """``c`` and all products; rounded once, whatever the number of steps."""
    type_ = d.part_type(op.result)
    wide = type_ if len(steps) == 1 else _summed_in(type_)
    if c is not None and wide != type_:
        c = d.team.add(arith.ExtfOp(c, wide)).result
    for a, b in steps:
        operands = [a, b] if c is None else [a, b, c]
        c = d.team.add(rebuilt(op, operands, [wide])).results[0]
    assert c is not None
    return c if wide == type_ else d.team.add(arith.TruncfOp(c, type_)).result


def _summed_in(type_: VectorType[Attribute]) -> VectorType[Attribute]:
    """The type in which sums of elements of ``type_`` run."""
    is_narrow = isinstance(type_.element_type, Float16Type | BFloat16Type)
    return VectorType(f32, type_.get_shape()) if is_narrow else type_
