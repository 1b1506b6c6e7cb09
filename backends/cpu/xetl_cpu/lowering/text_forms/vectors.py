"""Operations of `vector` on matrices as those of `xetile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, MemRefType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import is_dense, is_vector
from xetl.dialects.upstream import arith, memref, vector
from xetl.dialects.xetile import (
    InitTileOp,
    LoadTileOp,
    TileBroadcastOp,
    TileReduceOp,
    TileTransposeOp,
    TileType,
)
from xetl_cpu.lowering.loops.combine import operation_of
from xetl_cpu.lowering.text_forms.replacing import replace

_MOST_CONSTANTS = 4096


def _transpose(op: vector.TransposeOp) -> None:
    if op.dims == (1, 0):
        replace(op, [TileTransposeOp(op.source)])
    elif op.dims == (0, 1) or op.dims == (0,):
        replace(op, [], [op.source])


def _as_matrix(value: SSAValue) -> list[Operation]:
    """A row of a vector of rank 1, as operations to insert; none for a matrix."""
    type_ = vector_type(value)
    if type_.get_num_dims() == 2:
        return []
    row = VectorType(type_.element_type, [1, *type_.get_shape()])
    return [vector.ShapeCastOp(value, row)]


def _last(new: Sequence[Operation], otherwise: SSAValue) -> SSAValue:
    return new[-1].results[0] if new else otherwise


def _broadcast(op: vector.BroadcastOp) -> None:
    (source,) = op.operands
    type_ = vector_type(op.results[0])
    if not is_vector(source.type) or max(_rank(type_), _rank(source.type)) > 2:
        return
    if source.type == type_:
        replace(op, [], [source])
        return
    new = _as_matrix(source)
    matrix = _last(new, source)
    shape = (1, *type_.get_shape())[-2:]
    found = vector_type(matrix).get_shape()
    dims = [d for d in (0, 1) if shape[d] != found[d]]
    full = VectorType(type_.element_type, list(shape))
    if dims:
        new.append(TileBroadcastOp(matrix, dims, full))
    if _rank(type_) == 1:
        new.append(vector.ShapeCastOp(_last(new, matrix), type_))
    replace(op, new)


def _rank(type_: Attribute) -> int:
    return type_.get_num_dims() if is_vector(type_) else 0


def _reduce(
    op: Operation, kind: str, dims: Sequence[int], acc: SSAValue | None
) -> None:
    """Reduce with the dimensions kept, drop them, combine with ``acc``."""
    source, result = op.operands[0], op.results[0].type
    if _rank(source.type) > 2:
        return
    new = _as_matrix(source)
    matrix = _last(new, source)
    if _rank(source.type) == 1:
        dims = [0, 1]
    new.append(TileReduceOp(kind, matrix, sorted(dims)))
    if is_vector(result):
        new.append(vector.ShapeCastOp(new[-1].results[0], result))
        element = result.element_type
    else:
        new.append(vector.ExtractOp(new[-1].results[0], [0, 0]))
        element = result
    if acc is not None:
        combine = operation_of(kind, element)
        new.append(combine(new[-1].results[0], acc))
    replace(op, new)


def _multi_reduction(op: vector.MultiReductionOp) -> None:
    if op.dims:
        _reduce(op, op.kind.kind, op.dims, op.acc)


def _reduction(op: vector.ReductionOp) -> None:
    _reduce(op, op.kind.kind, [0], op.acc)


def _create_mask(op: vector.CreateMaskOp) -> None:
    """Compare the number of each row and column with its bound."""
    shape = vector_type(op.results[0]).get_shape()
    if len(shape) > 2:
        return
    numbers = VectorType(IndexType(), list(shape))
    new: list[Operation] = []
    masks: list[SSAValue] = []
    for dim, (extent, bound) in enumerate(zip(shape, op.bounds)):
        steps = vector.StepOp(VectorType(IndexType(), [extent]))
        new.append(steps)
        if len(shape) == 2:
            column = VectorType(IndexType(), [extent, 1] if dim == 0 else [1, extent])
            cast = vector.ShapeCastOp(steps.result, column)
            spread = TileBroadcastOp(cast.result, [1 - dim], numbers)
            new += [cast, spread]
        limit = vector.BroadcastOp(bound, numbers)
        compare = arith.CmpiOp("slt", new[-1].results[0], limit.results[0])
        new += [limit, compare]
        masks.append(compare.result)
    if len(masks) == 2:
        new.append(arith.AndiOp(*masks))
    replace(op, new)


def _constant(op: arith.ConstantOp) -> None:
    """A constant of different elements is written to memory and read from there."""
    value, type_ = op.value, op.result.type
    if not is_vector(type_) or not is_dense(value) or value.is_splat():
        return
    shape = (1, *type_.get_shape())[-2:]
    if _rank(type_) > 2 or shape[0] * shape[1] > _MOST_CONSTANTS:
        return
    element = type_.element_type
    memory = memref.AllocaOp(MemRefType(element, list(shape)))
    new: list[Operation] = [memory]
    places = [arith.ConstantOp.index(i) for i in range(max(shape))]
    new += places
    for number, each in enumerate(value.iter_attrs()):
        scalar = arith.ConstantOp(each, element)
        at = [places[i].result for i in divmod(number, shape[1])]
        new += [scalar, memref.StoreOp(scalar.result, memory.results[0], at)]
    tile = InitTileOp(memory.results[0], [0, 0], TileType(shape, element))
    load = LoadTileOp(tile.result)
    new += [tile, load]
    if _rank(type_) == 1:
        new.append(vector.ShapeCastOp(load.results[0], type_))
    replace(op, new)


RULES: dict[type[Operation], Callable[[Any], None]] = {
    vector.TransposeOp: _transpose,
    vector.BroadcastOp: _broadcast,
    vector.MultiReductionOp: _multi_reduction,
    vector.ReductionOp: _reduction,
    vector.CreateMaskOp: _create_mask,
    arith.ConstantOp: _constant,
}
