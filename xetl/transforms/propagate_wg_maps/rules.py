"""Rules by which the maps of operands follow from the map of a result, or of a tile.

Each rule of the RFC is written once, as a `Relation`. The search for maps follows it in
both directions, the check of the mapped stage in one.
Source: XeTile RFC, "Workgroup Level XeTile extension"; docs/xetile.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from xetl.analysis.axes import defined_by, lines_of
from xetl.analysis.control_flow import targets
from xetl.dialects import traits, xetile
from xetl.dialects.base import around, shape_of, vector_type
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, scf, vector
from xetl.language.distribution import Layout, problem_with
from xetl.records import record
from xetl.transforms.propagate_wg_maps.map_attributes import (
    BRANCHES,
    is_matrix,
    map_of,
    matrix_shape,
    plain,
    same_owners,
    tile_map,
    transposed,
    with_data,
)
from xetl.transforms.stages import XETILE
from xetl.worklist import Worklist

Transfer = Callable[[Layout], Layout]


def same(layout: Layout) -> Layout:
    """Return the layout: the rule of elementwise operations."""
    return layout


@record(frozen=True)
class Relation:
    """The map of an operand follows from the one of ``anchor``.

    Attributes:
        anchor: a vector, or the tile that holds the operand's elements.
        backward: computes the operand's map from the anchor's.
        forward: computes a good map of the anchor from the operand's. None: the
            operand does not determine one.
        is_strict: whether the operand must have that map; otherwise it is only best.
    """

    operation: Operation
    index: int
    anchor: SSAValue
    backward: Transfer = same
    forward: Transfer | None = same
    is_strict: bool = True

    @property
    def operand(self) -> SSAValue:
        """The operand that the relation is about."""
        return self.operation.operands[self.index]


def is_mapped(value: SSAValue) -> bool:
    """Whether a value can have a map: a matrix, or a tile of rank 2."""
    type_ = value.type
    if isinstance(type_, xetile.TileType):
        return len(type_.shape) == 2
    return is_matrix(value)


def is_free(value: SSAValue) -> bool:
    """Whether a value costs nothing to make again, with any map.

    Such values are splats, index ranges and masks by bounds: each subgroup computes its
    part from the part's origin.
    """
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        return splat_value(op.value) is not None
    if isinstance(op, vector.BroadcastOp):
        return not shape_of(op.operands[0].type)
    if isinstance(op, vector.ShapeCastOp):
        return is_line(value) and _is_range(op.source)
    return isinstance(op, vector.CreateMaskOp)


def is_line(value: SSAValue) -> bool:
    """Whether a vector has one row or one column."""
    return sum(extent > 1 for extent in shape_of(value.type)) <= 1


def _is_range(value: SSAValue) -> bool:
    """Whether a vector of rank 1 is computed from index ranges and scalars alone."""
    waiting = Worklist([value])
    for current in waiting:
        if not shape_of(current.type):
            continue
        op = current.owner
        if len(shape_of(current.type)) != 1 or not isinstance(op, Operation):
            return False
        if isinstance(op, arith.ConstantOp):
            if splat_value(op.value) is None:
                return False
        elif not isinstance(op, vector.StepOp | vector.BroadcastOp):
            if not traits.is_elementwise(op):
                return False
            waiting += op.operands
    return True


def _is_elementwise(op: Operation) -> bool:
    """Whether an operation is elementwise, and all its vectors have the same shape."""
    if not traits.is_elementwise(op):
        return False
    shapes = {shape_of(value.type) for value in (*op.operands, *op.results)} - {()}
    return len(shapes) == 1 and is_matrix(op.results[0])


def ties(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Yield pairs of values that must have the same map: no conversion fits between."""
    if isinstance(op, xetile.UpdateTileOffsetOp) or _trait(op) is traits.AccessesTile:
        access: Any = op  # the tile need not be the first operand
        yield from ((each, access.tile) for each in op.results)
    elif isinstance(op, xetile.LoadTileOp) and len(op.results) > 1:
        yield from ((each, op.tile) for each in op.results)
    elif _is_elementwise(op):
        yield from ((each, op.results[0]) for each in op.results[1:])
    elif isinstance(op, scf.ForOp):
        yield from zip(op.body.block.args[1:], op.results)
    elif isinstance(op, scf.WhileOp):
        yield from zip(op.after.block.args, op.results)


def relations(op: Operation) -> Iterator[Relation]:
    """Yield the relations that give the maps of the operands of ``op``."""
    rule = _rule_of(op)
    return iter(()) if rule is None else rule(op)


def needs_whole(op: Operation) -> bool:
    """Whether every subgroup computes all of ``op``: it has no distributed form."""
    if isinstance(op, BRANCHES) or _rule_of(op) is not None:
        return False
    return not any(is_free(result) for result in op.results)


_Rule = Callable[[Any], Iterator[Relation]]


def _trait(op: Operation) -> type[traits.ElementTrait] | None:
    return traits.element_trait(type(op))


def _rule_of(op: Operation) -> _Rule | None:
    """Return the rule of an operation or its trait. None: it is not distributed."""
    found = _OF_OPERATIONS.get(type(op))
    if found is not None:
        return found
    trait = _trait(op)
    if trait is traits.Elementwise and not _is_elementwise(op):
        return None
    if trait is not None:
        return _OF_TRAITS[trait]
    return _of_transpose if _turns_line(op) else None


def _turns_line(op: Operation) -> bool:
    """Whether a shape_cast turns a row into a column or a column into a row."""
    if not isinstance(op, vector.ShapeCastOp) or not is_matrix(op.source):
        return False
    return is_line(op.source) and shape_of(op.source.type)[::-1] == shape_of(
        op.result.type
    )


def _all_operands(op: Operation, anchor: SSAValue) -> Iterator[Relation]:
    for index, operand in enumerate(op.operands):
        if is_matrix(operand):
            yield Relation(op, index, anchor)


def _of_same_place(op: Operation) -> Iterator[Relation]:
    """Relate all operands to the result (a tile or a vector), with the same map."""
    return _all_operands(op, op.results[0])


def _of_transpose(op: Operation) -> Iterator[Relation]:
    return iter([Relation(op, 0, op.results[0], transposed, transposed)])


def _of_mma(op: xetile.TileMmaOp) -> Iterator[Relation]:
    """Give a subgroup all of K: of A for its rows of C, of B for its columns of C."""
    depth = vector_type(op.a).get_shape()[1]
    for index, dim in enumerate((1, 0)):
        whole = partial(with_data, dims=[dim], sizes=[depth])
        yield Relation(op, index, op.result, whole, None)
    if op.c is not None:
        yield Relation(op, 2, op.result)


def _of_reduce(op: Any) -> Iterator[Relation]:
    """Give a subgroup all elements of each sum that it owns.

    The relation is not strict: subgroups can also exchange partial sums.
    """
    dims: tuple[int, ...] = op.dims
    source = shape_of(op.source.type)
    after = shape_of(op.result.type)
    groups = [source[dim] // after[dim] for dim in dims]

    def backward(result: Layout) -> Layout:
        sizes = [result.sg_data[dim] * n for dim, n in zip(dims, groups)]
        return with_data(result, dims, sizes)

    def forward(layout: Layout) -> Layout:
        pairs = list(zip(dims, groups))
        data = [layout.sg_data[dim] for dim in dims]
        sizes = [d // n if d % n == 0 else after[k] for d, (k, n) in zip(data, pairs)]
        return with_data(layout, dims, sizes)

    yield Relation(op, 0, op.result, backward, forward, is_strict=False)


def _of_lines(op: Any) -> Iterator[Relation]:
    """Give a subgroup whole lines along the dimensions whose extent changes."""
    source, result = shape_of(op.operands[0].type), shape_of(op.result.type)
    dims = lines_of(op)
    of_source, of_result = (
        partial(with_data, dims=dims, sizes=[shape[dim] for dim in dims])
        for shape in (source, result)
    )
    for index in range(len(op.operands)):
        yield Relation(op, index, op.result, of_source, of_result)


def _of_broadcast(op: Any) -> Iterator[Relation]:
    """Let all subgroups along a dimension of size 1 share its element."""
    of_source = partial(with_data, dims=op.dims, sizes=[1] * len(op.dims))
    yield Relation(op, 0, op.result, of_source, None)


def _of_control(op: Operation) -> Iterator[Relation]:
    """Relate an operand of a loop or terminator to the value that receives it."""
    for index in range(len(op.operands)):
        takers = targets(op, index)
        if takers and is_mapped(takers[-1]):
            yield Relation(op, index, takers[-1])


_OF_TRAITS: dict[type[traits.ElementTrait], _Rule] = {
    traits.Elementwise: _of_same_place,
    traits.Scans: _of_same_place,
    traits.Reduces: _of_reduce,
    traits.Repeats: _of_broadcast,
    traits.Transposes: _of_transpose,
    traits.AccessesTile: lambda op: _all_operands(op, op.tile),
}
_OF_OPERATIONS: dict[type[Operation], _Rule] = {
    xetile.TileMmaOp: _of_mma,
    xetile.TileConvLayoutOp: lambda _: iter(()),  # its source may have any map
    xetile.LoadTileOp: lambda op: iter(
        [Relation(op, 0, op.result)] if is_matrix(op.result) else []
    ),
    xetile.InitTileOp: _of_same_place,
    xetile.UpdateTileOffsetOp: _of_same_place,
    vector.ExtractStridedSliceOp: _of_lines,
    vector.InterleaveOp: _of_lines,
    scf.ForOp: _of_control,
    scf.WhileOp: _of_control,
    scf.YieldOp: _of_control,
    scf.ConditionOp: _of_control,
}
"""The rules of operations that no trait describes completely."""


def maps_agree(op: Operation) -> str | None:
    """Check that every vector of rank 2 has a legal map, and operands the wanted ones.

    Two maps are equal if each subgroup owns the same elements in both. The source of a
    reduction may have any map: subgroups exchange partial sums. Return the problem, or
    None.
    """
    values = [value for value in defined_by(op) if is_mapped(value)]
    if not values and not any(map(is_matrix, op.operands)):
        return None
    levels = (each.attributes.get(LEVEL) for each in around(op, Operation))
    if next(filter(None, levels), None) == StringAttr(SUBGROUP):
        return None
    for value in values:
        found = _map(value)
        if found is None:
            return f"`{op.name}`: a value of type {value.type} has no map"
        problem = problem_with(matrix_shape(value), found)
        if problem is not None:
            return f"`{op.name}`: {problem}"
    for relation in relations(op):
        anchor, found = _map(relation.anchor), _map(relation.operand)
        if anchor is None or found is None:
            return f"operand {relation.index} of `{op.name}` has no map"
        wanted = plain(relation.backward(anchor))
        shape = matrix_shape(relation.operand)
        if relation.is_strict and not same_owners(shape, found, wanted):
            return f"operand {relation.index} of `{op.name}` has {found}, not {wanted}"
    return None


def _map(value: SSAValue) -> Layout | None:
    found = (
        tile_map(value) if isinstance(value.type, xetile.TileType) else map_of(value)
    )
    return None if found is None else plain(found)


XETILE_MAPPED = XETILE.with_rule("xetile-mapped", maps_agree)
