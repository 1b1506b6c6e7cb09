"""Blocked values that may be seen as plain ones, and those that may not.

A blocked value P stands for V, P[a, b, c, d] = V[a * b0 + c, b * b1 + d], as long as
whatever meets it does to P what it does to V.  What looks at the four dimensions one by
one (a shape_cast, a reduction of one of them, a caller) does not; then neither the
value nor any that is computed with it may change its rank.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.upstream.elementwise import ElementwiseOp
from xetl.dialects.xetile import (
    AtomicRmwTileOp,
    InitTileOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreTileOp,
    TileBroadcastOp,
    TileMmaOp,
    TilePackOp,
    TileReduceOp,
    TileTransposeOp,
    TileType,
    TileUnpackOp,
    UpdateTileOffsetOp,
)
from xetl.transforms.blocks.axes import Classes, arguments_of, carried_together
from xetl.transforms.blocks.slicing import Slice, takes_inner_dimensions_whole

_ALWAYS = (
    *(InitTileOp, UpdateTileOffsetOp, LoadTileOp, StoreTileOp, PrefetchTileOp),
    *(AtomicRmwTileOp, TileMmaOp, TilePackOp, TileUnpackOp, TileTransposeOp),
    *(ElementwiseOp, arith.SelectOp, vector.FmaOp),
)
_CARRYING = (scf.ForOp, scf.IfOp, scf.WhileOp)
_ENDS = (scf.YieldOp, scf.ConditionOp)


def is_blocked(type_: Attribute) -> bool:
    """Whether this may be the type of something in blocks."""
    if isinstance(type_, TileType):
        return type_.inner_blocks is not None
    return is_vector(type_) and type_.get_num_dims() == 4


def stuck_values(root: Operation) -> set[SSAValue]:
    """Vectors of rank 4, and tiles, of ``root`` that must stay as they are."""
    classes = Classes()
    stuck: list[SSAValue] = []
    values: list[SSAValue] = []
    for op in root.walk():
        for group in _met_together(op):
            for other in group[1:]:
                classes.join((group[0], 0), (other, 0))
        met = [v for v in (*op.operands, *op.results) if is_blocked(v.type)]
        arguments = [v for v in arguments_of(op) if is_blocked(v.type)]
        values += [*op.results, *arguments]
        if (met or arguments) and not _commutes(op):
            stuck += [*met, *arguments]
    roots = {classes.find((value, 0)) for value in stuck}
    return {v for v in values if classes.find((v, 0)) in roots}


def _met_together(op: Operation) -> Iterator[tuple[SSAValue, ...]]:
    if isinstance(op, _CARRYING):
        yield from carried_together(op)
    elif not isinstance(op, _ENDS):
        yield tuple(v for v in (*op.operands, *op.results) if is_blocked(v.type))


def _commutes(op: Operation) -> bool:
    if isinstance(op, _ENDS):
        return isinstance(op.parent_op(), _CARRYING)
    if isinstance(op, TileReduceOp | TileBroadcastOp):
        # A dimension and the inner one of its blocks are one dimension of the value.
        outer = {dim for dim in (0, 1) if dim in op.dims and dim + 2 in op.dims}
        return len(op.dims) == 2 * len(outer)
    if isinstance(op, arith.ConstantOp):
        return splat_value(op.value) is not None
    if isinstance(op, Slice):
        return takes_inner_dimensions_whole(op)
    if isinstance(op, vector.BroadcastOp):
        return not is_vector(op.source.type)
    return isinstance(op, (*_ALWAYS, *_CARRYING))
