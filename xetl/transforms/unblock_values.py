"""unblock-values: replace blocked values of rank 4 by the rank-2 values they stand for.

Why: inner blocks describe how memory and matrix instructions of a GPU split a tile. On
a CPU, tiles are split later and in another way. The blocks that a text was written
with may not be those of the device.

A blocked value P is a view of V: P[a, b, c, d] = V[a * b0 + c, b * b1 + d]. Most
operations commute with this view (`_commutes`).

Before: ``%p = xetile.tile_pack %v {inner_blocks = [16, 16]} : 64x32 -> 4x2x16x16``
After:  uses of ``%p`` use ``%v``; tiles lose ``inner_blocks``

Left alone: values of rank 2, and blocked values that an operation uses by single
dimensions of rank 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis import axes
from xetl.analysis.control_flow import carried_together
from xetl.dialects import xetile
from xetl.dialects.base import dense_i64, is_vector, vector_type
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, scf, vector
from xetl.ir.builder import Pass


class UnblockValuesPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        unblock(op, unblocked_tile)


def unblock(
    op: Operation, of_tile: Callable[[xetile.TileType], xetile.TileType]
) -> None:
    """Replace all blocked vectors and tiles inside ``op``.

    Operations that do not commute with blocking keep their values.

    Args:
        of_tile: returns the new type of a blocked tile.
    """
    operations = list(op.walk())
    if not any(
        is_blocked(value.type) for o in operations for value in axes.defined_by(o)
    ):
        return
    stuck = values_that_stay_blocked(op)
    for each in operations:
        if not any(v in stuck for v in (*each.operands, *each.results)):
            _rewrite(each, of_tile, stuck)


def unblocked_tile(type_: xetile.TileType) -> xetile.TileType:
    """Return the tile type without ``inner_blocks``."""
    return type_.replace(inner_blocks=())


def _rewrite(
    op: Operation,
    of_tile: Callable[[xetile.TileType], xetile.TileType],
    stuck: Set[SSAValue],
) -> None:
    if isinstance(op, xetile.TilePackOp | xetile.TileUnpackOp):
        Rewriter.replace_op(op, [], [op.source])
        return
    if isinstance(op, xetile.TileReduceOp):
        op.reduction_dims = dense_i64(_dims(op, op.dims))
    if isinstance(op, xetile.TileBroadcastOp):
        op.broadcast_dims = dense_i64(_dims(op, op.dims))
    if isinstance(op, xetile.TileTransposeOp):
        op.permutation = dense_i64((1, 0))
    if isinstance(op, axes.Slice) and is_blocked(op.result.type):
        rows, columns = vector_type(op.result).get_shape()[2:]
        axes.count_elements(op, (rows, columns))
    for value in axes.defined_by(op):
        type_ = value.type
        if value in stuck or not is_blocked(type_):
            continue
        if isinstance(type_, xetile.TileType):
            new = of_tile(type_)
        else:
            rows, columns, height, width = vector_type(value).get_shape()
            shape = rows * height, columns * width
            new = VectorType(vector_type(value).element_type, shape)
        if isinstance(op, arith.ConstantOp):
            number = splat_value(op.value)
            assert number is not None  # others are stuck
            op.properties["value"] = make_splat(number, new)
        Rewriter.replace_value_with_new_type(value, new)


def _dims(
    op: xetile.TileReduceOp | xetile.TileBroadcastOp, dims: tuple[int, ...]
) -> tuple[int, ...]:
    """Return dimensions of the rank-2 value: d and d + 2 of the blocked one are d."""
    if not is_blocked(op.result.type):
        return dims
    return tuple(dim for dim in dims if dim < 2)


_ALWAYS = (
    *(xetile.InitTileOp, xetile.UpdateTileOffsetOp, xetile.LoadTileOp),
    *(xetile.StoreTileOp, xetile.PrefetchTileOp, xetile.AtomicRmwTileOp),
    *(xetile.TileMmaOp, xetile.TilePackOp, xetile.TileUnpackOp, xetile.TileTransposeOp),
)
_CARRYING = (scf.ForOp, scf.IfOp, scf.WhileOp)
_ENDS = (scf.YieldOp, scf.ConditionOp)


def is_blocked(type_: Attribute) -> bool:
    """Whether this may be the type of a blocked value or tile."""
    if isinstance(type_, xetile.TileType):
        return type_.inner_blocks is not None
    return is_vector(type_) and type_.get_num_dims() == 4


def values_that_stay_blocked(root: Operation) -> set[SSAValue]:
    """Return the vectors of rank 4 and the tiles in ``root`` that must stay blocked."""
    classes = axes.Classes()
    stuck: list[SSAValue] = []
    values: list[SSAValue] = []
    for op in root.walk():
        for group in _met_together(op):
            for other in group[1:]:
                classes.join((group[0], 0), (other, 0))
        met = [v for v in (*op.operands, *op.results) if is_blocked(v.type)]
        arguments = [v for v in axes.arguments_of(op) if is_blocked(v.type)]
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
    if isinstance(op, xetile.TileReduceOp | xetile.TileBroadcastOp):
        # Dimensions d and d + 2 are one dimension of the rank-2 value.
        outer = {dim for dim in (0, 1) if dim in op.dims and dim + 2 in op.dims}
        return len(op.dims) == 2 * len(outer)
    if isinstance(op, arith.ConstantOp):
        return splat_value(op.value) is not None
    if isinstance(op, axes.Slice):
        return axes.takes_inner_dimensions_whole(op)
    if isinstance(op, vector.BroadcastOp):
        return not is_vector(op.source.type)
    return isinstance(op, (*_ALWAYS, *_CARRYING)) or is_elementwise(op)
