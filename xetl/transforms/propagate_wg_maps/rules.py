"""How the maps of operands follow from the map of a result, or of a tile.

Each rule of the RFC stands once, as a `Relation`; the search for maps follows it in
both directions, the check of the mapped stage in one.
Source: XeTile RFC, "Workgroup Level XeTile extension"; docs/xetile.md, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from xetl.analysis.control_flow import targets
from xetl.dialects.base import shape_of, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.xetile import (
    AtomicRmwTileOp,
    InitTileOp,
    LoadGatherOp,
    LoadTileOp,
    StoreScatterOp,
    StoreTileOp,
    TileBroadcastOp,
    TileConvLayoutOp,
    TileMmaOp,
    TileReduceOp,
    TileScanOp,
    TileTransposeOp,
    TileType,
    UpdateTileOffsetOp,
)
from xetl.language.distribution import Layout
from xetl.transforms.propagate_wg_maps.map_attributes import (
    BRANCHES,
    is_matrix,
    transposed,
    with_data,
)

Transfer = Callable[[Layout], Layout]
MapOf = Callable[[SSAValue], Layout | None]
_ELEMENTWISE = frozenset({"arith", "math"})


def same(layout: Layout) -> Layout:
    """The rule of operations that work element by element."""
    return layout


@dataclass(frozen=True)
class Relation:
    """The map of an operand follows from the one of ``anchor``.

    Attributes:
        operation: whose operand it is.
        index: of the operand.
        anchor: a vector, or the tile that holds the operand's elements.
        backward: the operand's map from the anchor's.
        forward: a good map of the anchor from the operand's; None: it says nothing.
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
    """Whether there is a map of this value: a matrix, or a tile that holds one."""
    type_ = value.type
    if isinstance(type_, TileType):
        return len(type_.shape) == 2
    return is_matrix(value)


def is_free(value: SSAValue) -> bool:
    """Whether a value costs nothing to make again, with any map.

    Repeated numbers, index ranges and masks by bounds: each subgroup makes the part
    that it wants from where it begins.
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
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        current = waiting.pop()
        if current in seen or not shape_of(current.type):
            continue
        seen.add(current)
        op = current.owner
        if len(shape_of(current.type)) != 1 or not isinstance(op, Operation):
            return False
        if isinstance(op, arith.ConstantOp):
            if splat_value(op.value) is None:
                return False
        elif not isinstance(op, vector.StepOp | vector.BroadcastOp):
            if op.dialect_name() not in _ELEMENTWISE:
                return False
            waiting += op.operands
    return True


def is_elementwise(op: Operation) -> bool:
    """Whether all vectors of an operation have one shape, and each element is alone."""
    known = op.dialect_name() in _ELEMENTWISE or isinstance(op, vector.FmaOp)
    if not known or isinstance(op, arith.ConstantOp) or not op.results:
        return False
    shapes = {shape_of(value.type) for value in (*op.operands, *op.results)} - {()}
    return len(shapes) == 1 and is_matrix(op.results[0])


def ties(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """Values that have one map always: nothing can be put between them."""
    if isinstance(op, UpdateTileOffsetOp | LoadGatherOp | AtomicRmwTileOp):
        yield op.result, op.tile
    elif isinstance(op, LoadTileOp) and len(op.results) > 1:
        yield from ((each, op.tile) for each in op.results)
    elif is_elementwise(op):
        yield from ((each, op.results[0]) for each in op.results[1:])
    elif isinstance(op, scf.ForOp):
        yield from zip(op.body.block.args[1:], op.results)
    elif isinstance(op, scf.WhileOp):
        yield from zip(op.after.block.args, op.results)


def relations(op: Operation) -> Iterator[Relation]:
    """What the maps of the operands of ``op`` follow from."""
    if isinstance(op, TileMmaOp):
        return _of_mma(op)
    if isinstance(op, TileReduceOp):
        return _of_reduce(op)
    if isinstance(op, TileBroadcastOp):
        return _of_broadcast(op)
    if isinstance(op, TileTransposeOp):
        return iter([Relation(op, 0, op.result, transposed, transposed)])
    if isinstance(op, TileConvLayoutOp):
        return iter(())
    if is_elementwise(op) or isinstance(op, TileScanOp):
        return _all_operands(op, op.results[0])
    if _turns_line(op):
        return iter([Relation(op, 0, op.results[0], transposed, transposed)])
    return _of_memory_or_control(op)


def _turns_line(op: Operation) -> bool:
    """Whether a shape_cast makes a row a column, or the other way round."""
    if not isinstance(op, vector.ShapeCastOp) or not is_matrix(op.source):
        return False
    return is_line(op.source) and shape_of(op.source.type)[::-1] == shape_of(
        op.result.type
    )


def needs_whole(op: Operation) -> bool:
    """Whether every subgroup computes all of ``op``: it has no distributed form."""
    known = (
        *(TileMmaOp, TileReduceOp, TileBroadcastOp, TileTransposeOp, TileScanOp),
        *(LoadTileOp, StoreTileOp, LoadGatherOp, StoreScatterOp, AtomicRmwTileOp),
        *(InitTileOp, UpdateTileOffsetOp, scf.ForOp, scf.WhileOp, *BRANCHES),
        *(scf.YieldOp, scf.ConditionOp, TileConvLayoutOp),
    )
    if isinstance(op, known) or is_elementwise(op) or _turns_line(op):
        return False
    return not any(is_free(result) for result in op.results)


def _all_operands(op: Operation, anchor: SSAValue) -> Iterator[Relation]:
    for index, operand in enumerate(op.operands):
        if is_matrix(operand):
            yield Relation(op, index, anchor)


def _of_mma(op: TileMmaOp) -> Iterator[Relation]:
    """A has all of K for the rows of C, B for its columns."""
    depth = vector_type(op.a).get_shape()[1]

    def left(c: Layout) -> Layout:
        return with_data(c, [1], [depth])

    def right(c: Layout) -> Layout:
        return with_data(c, [0], [depth])

    yield Relation(op, 0, op.result, left, None)
    yield Relation(op, 1, op.result, right, None)
    if op.c is not None:
        yield Relation(op, 2, op.result)


def _of_reduce(op: TileReduceOp) -> Iterator[Relation]:
    """A subgroup has all elements of each sum that it owns.

    Where it has not, subgroups add up what they have: only sums change hands.
    """
    source, dims = op.source_type.get_shape(), op.dims
    after = op.result.type.get_shape()
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


def _of_broadcast(op: TileBroadcastOp) -> Iterator[Relation]:
    """The one element along a dimension is shared by all subgroups along it."""
    dims = op.dims

    def backward(result: Layout) -> Layout:
        return with_data(result, dims, [1] * len(dims))

    yield Relation(op, 0, op.result, backward, None)


def _of_memory_or_control(op: Operation) -> Iterator[Relation]:
    if isinstance(op, LoadTileOp):
        # A load has no vector to follow: the other way round, its tile follows it.
        return iter([Relation(op, 0, op.result)] if is_matrix(op.result) else [])
    if isinstance(op, StoreTileOp | StoreScatterOp | LoadGatherOp | AtomicRmwTileOp):
        return _all_operands(op, op.tile)
    if isinstance(op, InitTileOp | UpdateTileOffsetOp):
        return _all_operands(op, op.result)
    return _of_control(op)


def _of_control(op: Operation) -> Iterator[Relation]:
    """What enters a loop or leaves a region has the map of what takes it."""
    if not isinstance(op, scf.ForOp | scf.WhileOp | scf.YieldOp | scf.ConditionOp):
        return
    for index in range(len(op.operands)):
        takers = targets(op, index)
        if takers and is_mapped(takers[-1]):
            yield Relation(op, index, takers[-1])


def values_of(op: Operation) -> Iterator[SSAValue]:
    """What an operation defines: its results, and what its regions take."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
