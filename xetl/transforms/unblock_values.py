"""unblock-values: blocked rank-4 values become the rank-2 values they stand for.

Why: inner blocks say how a GPU's memory and matrix instructions cut a tile. A CPU's
registers and caches are blocked later and otherwise, so the blocks only stand in the
way; and blocks of values that a text was written with are not those of the device.

A blocked value P is V seen as P[a, b, c, d] = V[a * b0 + c, b * b1 + d]. Everything a
blocked value may meet commutes with that view.

Before: ``%p = xetile.tile_pack %v {inner_blocks = [16, 16]} : 64x32 -> 4x2x16x16``
After:  uses of ``%p`` use ``%v``; tiles lose ``inner_blocks``

Left alone: values of rank 2.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from xetl.dialects.base import dense_i64
from xetl.dialects.kinds_of_types import is_dense, is_vector
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TilePackOp,
    TileReduceOp,
    TileTransposeOp,
    TileType,
    TileUnpackOp,
)
from xetl.errors import InternalError


class UnblockValuesPass(ModulePass):
    """See the module docstring."""

    name = "unblock-values"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        unblock(op, unblocked_tile)


def unblock(op: Operation, of_tile: Callable[[TileType], TileType]) -> None:
    """Make all vectors plain that ``op`` holds, and of each tile type ``of_tile``."""
    operations = list(op.walk())
    if not any(_is_blocked(value.type) for o in operations for value in _values(o)):
        return
    for each in operations:
        _rewrite(each, of_tile)


def unblocked_tile(type_: TileType) -> TileType:
    """The same tile without ``inner_blocks``."""
    encoding = type_.encoding.replace(wg_map=type_.encoding.wg_map, inner_blocks=())
    return TileType(type_.shape, type_.element_type, encoding)


def _values(op: Operation) -> list[SSAValue]:
    """What an operation defines: results, and arguments of its blocks."""
    arguments = [
        argument
        for region in op.regions
        for block in region.blocks
        for argument in block.args
    ]
    return [*op.results, *arguments]


def _is_blocked(type_: Attribute) -> bool:
    if isinstance(type_, TileType):
        return type_.inner_blocks is not None
    return is_vector(type_) and type_.get_num_dims() == 4


def _unblocked_vector(type_: Attribute) -> Attribute:
    """The type of the value that a blocked one stands for."""
    assert is_vector(type_)
    rows, cols, height, width = type_.get_shape()
    return VectorType(type_.element_type, [rows * height, cols * width])


def _rewrite(op: Operation, of_tile: Callable[[TileType], TileType]) -> None:
    if isinstance(op, TilePackOp | TileUnpackOp):
        op.result.replace_all_uses_with(op.source)
        op.detach()
        op.erase()
        return
    if isinstance(op, TileReduceOp):
        op.reduction_dims = dense_i64(_dims(op, op.dims))
    if isinstance(op, TileBroadcastOp):
        op.broadcast_dims = dense_i64(_dims(op, op.dims))
    if isinstance(op, TileTransposeOp):
        op.permutation = dense_i64((1, 0))
    for value in _values(op):
        type_ = value.type
        if not _is_blocked(type_):
            continue
        if isinstance(type_, TileType):
            new = of_tile(type_)
        else:
            new = _unblocked_vector(type_)
        if isinstance(op, arith.ConstantOp):
            _retype_constant(op, new)
        Rewriter.replace_value_with_new_type(value, new)


def _dims(op: TileReduceOp | TileBroadcastOp, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dimensions of a blocked value as those of the value: d and d + 2 are one."""
    if not _is_blocked(op.result.type):
        return dims
    whole = tuple(d for d in (0, 1) if d in dims and d + 2 in dims)
    if len(dims) != 2 * len(whole):
        raise InternalError(f"`{op.name}` along {list(dims)} of a blocked value")
    return whole


def _retype_constant(op: arith.ConstantOp, type_: Attribute) -> None:
    number = splat_value(op.value)
    if number is None or not is_dense(op.value):
        raise InternalError("a blocked constant of different elements")
    op.properties["value"] = make_splat(number, type_)
