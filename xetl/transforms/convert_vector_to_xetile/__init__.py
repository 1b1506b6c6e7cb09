"""Matrices of MLIR's `vector` dialect become tiles.

*What*: transfers of matrices become loads and stores of tiles, parts of a memref their
offsets; `vector.contract` becomes `tile_mma`, transposes, broadcasts and reductions
their counterparts.  Loops and elementwise operations are the same on both sides.
*Why*: programs that were tiled and vectorised elsewhere come in through `vector`; the
two say the same (XeTile RFC, appendix 1).
*Left alone*: masks, vectors that are no matrices, memory that is contiguous in no
dimension, padding that is no constant, products of a batch or of another kind.

before: %s = memref.subview %m[%i, %k] [64, 32] [1, 1]
        %v = vector.transfer_read %s[%c0, %c0], %zero : memref<64x32xf16, ...>
after:  %t = xetile.init_tile %m[%i, %k] -> !xetile.tile<64x32xf16>
        %v = xetile.load_tile %t
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.base import shape_of, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.reduction_kinds import operation_of
from xetl.dialects.upstream import vector
from xetl.dialects.upstream.elementwise import is_float
from xetl.dialects.xetile import (
    TileBroadcastOp,
    TileMmaOp,
    TileReduceOp,
    TileTransposeOp,
)
from xetl.ir.builder import Builder
from xetl.transforms.convert_vector_to_xetile import transfers


def contract(op: vector.ContractOp) -> None:
    """A product of two matrices, however its sides are stored."""
    if not _is_product(op):
        return
    lhs, rhs, acc = op.maps
    (k,) = {dim for dim, kind in enumerate(op.iterators) if kind == "reduction"}
    rows, columns = acc
    build = Builder.before(op)
    # The side that has the rows of the result comes first.
    left, right = ((op.lhs, lhs), (op.rhs, rhs))[:: 1 if rows in lhs else -1]
    a = _turned(build, left[0], left[1] == (k, rows))
    b = _turned(build, right[0], right[1] == (columns, k))
    _replace(op, build.insert(TileMmaOp(a, b, op.acc)))


def _is_product(op: vector.ContractOp) -> bool:
    """Whether this is (m, k) by (k, n), in any order, of types a tile_mma takes."""
    lhs, rhs, acc = op.maps
    kinds = sorted(op.iterators)
    if op.kind.kind != "add" or kinds != ["parallel", "parallel", "reduction"]:
        return False
    shared = set(lhs) & set(rhs)
    ranks_fit = all(len(dims) == 2 for dims in op.maps)
    if not ranks_fit or set(acc) != set(lhs) ^ set(rhs) or len(shared) != 1:
        return False
    element = vector_type(op.lhs).element_type
    same = element == vector_type(op.rhs).element_type
    return same and is_float(element) == is_float(op.result.type)


def transpose(op: vector.TransposeOp) -> None:
    """Rows become columns."""
    if op.dims == (1, 0):
        _replace(op, Builder.before(op).add(TileTransposeOp(op.source)).result)


def broadcast(op: vector.BroadcastOp) -> None:
    """A row, a column or one element is repeated; a number stays what it was."""
    source, shape = op.source, op.result.type.get_shape()
    if not is_vector(source.type) or len(shape) != 2:
        return
    build = Builder.before(op)
    matrix = _as_matrix(build, source)
    pairs = zip(shape_of(matrix.type), shape)
    dims = [dim for dim, (old, new) in enumerate(pairs) if old != new]
    if dims:
        matrix = build.insert(TileBroadcastOp(matrix, dims, op.result.type))
    _replace(op, matrix)


def reduce(op: vector.MultiReductionOp) -> None:
    """A reduction keeps its dimension as 1; what it started from is combined after."""
    source = vector_type(op.source)
    if source.get_num_dims() != 2 or not op.dims:
        return
    build = Builder.before(op)
    reduced = build.insert(TileReduceOp(op.kind.kind, op.source, op.dims))
    if is_vector(op.result.type):
        value = build.insert(vector.ShapeCastOp(reduced, op.result.type))
    else:
        value = build.insert(vector.ExtractOp(reduced, [0, 0]))
    combine = operation_of(op.kind.kind, source.element_type)
    _replace(op, build.insert(combine(value, op.acc)))


def _turned(build: Builder, value: SSAValue, is_turned: bool) -> SSAValue:
    return build.insert(TileTransposeOp(value)) if is_turned else value


def _as_matrix(build: Builder, value: SSAValue) -> SSAValue:
    type_ = vector_type(value)
    if type_.get_num_dims() == 2:
        return value
    row = VectorType(type_.element_type, (1, *type_.get_shape()))
    return build.insert(vector.ShapeCastOp(value, row))


def _replace(op: Operation, value: SSAValue) -> None:
    if value.name_hint is None:
        value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()


_RULES: dict[type[Operation], Callable[[Any], None]] = {
    vector.TransferReadOp: transfers.read,
    vector.TransferWriteOp: transfers.write,
    vector.ContractOp: contract,
    vector.TransposeOp: transpose,
    vector.BroadcastOp: broadcast,
    vector.MultiReductionOp: reduce,
}


class ConvertVectorToXetilePass(ModulePass):
    """See the module docstring."""

    name = "convert-vector-to-xetile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        for each in list(op.walk()):
            rule = _RULES.get(type(each))
            if rule is not None:
                rule(each)
