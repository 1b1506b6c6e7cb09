"""Blocked values that are used by operations which do not commute with blocks.

`unblock-values` drops blocks if only tiles and elementwise operations use blocked
values. If an operation of `vector` reads a blocked value, or some of its dimensions are
reduced, blocks are kept: a value is packed by moving its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import defined_by
from xetl.dialects import xetile
from xetl.dialects.base import ints_of, is_vector, vector_type
from xetl.dialects.upstream import gpu
from xetl.ir.builder import Builder
from xetl.transforms.legalize_vectors.shapes import cast, permuted, reduced
from xetl.transforms.unblock_values import unblocked_tile, values_that_stay_blocked
from xetl_cpu.lowering.expand_text_forms.parts import broadcast
from xetl_cpu.lowering.expand_text_forms.scratch import replace_by

_RANK = 4


def is_blocked(value: SSAValue) -> bool:
    """True for vectors that may be blocked."""
    return is_vector(value.type) and value.type.get_num_dims() == _RANK


def make_blocks(kernel: gpu.FuncOp) -> None:
    """Keep the blocks of a kernel, if they cannot be dropped."""
    if not values_that_stay_blocked(kernel):
        return
    for op in list(kernel.walk()):
        for value in defined_by(op):
            if isinstance(value.type, xetile.TileType) and value.type.inner_blocks:
                Rewriter.replace_value_with_new_type(value, unblocked_tile(value.type))
    for op in list(kernel.walk()):
        if not any(is_blocked(value) for value in (*op.operands, *op.results)):
            continue
        if isinstance(op, _ON_UNBLOCKED):
            _around(op)
        elif (rule := _RULES.get(type(op))) is not None:
            replace_by(op, rule(Builder.before(op), op))


# Making them ------------------------------------------------------------------------


def _packed(w: Builder, value: SSAValue, type_: Any) -> SSAValue:
    """Permute (h, w) to (h/b0, w/b1, b0, b1)."""
    rows, columns, height, width = type_.get_shape()
    parts = cast(w, value, (rows, height, columns, width))
    return permuted(w, parts, (0, 2, 1, 3))


def _unpacked(w: Builder, value: SSAValue) -> SSAValue:
    """Permute (h/b0, w/b1, b0, b1) to (h, w); return other values as they are."""
    if not is_blocked(value):
        return value
    rows, columns, height, width = vector_type(value).get_shape()
    parts = permuted(w, value, (0, 2, 1, 3))
    return cast(w, parts, (rows * height, columns * width))


def _around(op: Operation) -> None:
    """Run an operation on unblocked values: unpack its operands, pack its results."""
    w, old = Builder.before(op), [result.type for result in op.results]
    for number, operand in enumerate(op.operands):
        op.operands[number] = _unpacked(w, operand)
    following = op.next_op
    assert following is not None
    behind = Builder.before(following)
    behind.location = op.location
    for result, type_ in zip(list(op.results), old):
        if not is_blocked(result):
            continue
        assert is_vector(type_)
        rows, columns, height, width = type_.get_shape()
        plain = VectorType(type_.element_type, [rows * height, columns * width])
        new = Rewriter.replace_value_with_new_type(result, plain)
        _use_behind(new, _packed(behind, new, type_), op, following)


def _use_behind(
    new: SSAValue, packed: SSAValue, op: Operation, following: Operation
) -> None:
    """Let all users read the packed value, except the operations that pack it."""
    makers: set[Operation] = set()
    each = op.next_op
    while each is not None and each is not following:
        makers.add(each)
        each = each.next_op
    new.replace_uses_with_if(packed, lambda use: use.operation not in makers)


def _reduce(w: Builder, op: xetile.TileReduceOp) -> SSAValue:
    found = reduced(w, op.source, op.kind.data, op.dims)
    return cast(w, found, op.result.type.get_shape())


_ON_UNBLOCKED = (
    *(xetile.LoadTileOp, xetile.StoreTileOp, xetile.AtomicRmwTileOp),
    xetile.TileMmaOp,
)
_RULES: dict[type[Operation], Callable[[Builder, Any], SSAValue]] = {
    xetile.TilePackOp: lambda w, op: _packed(w, op.source, op.result.type),
    xetile.TileUnpackOp: lambda w, op: _unpacked(w, op.source),
    xetile.TileReduceOp: _reduce,
    xetile.TileBroadcastOp: lambda w, op: broadcast(
        w, op.source, op.result.type.get_shape()
    ),
    xetile.TileTransposeOp: lambda w, op: permuted(
        w, op.source, ints_of(op.permutation)
    ),
}
