"""Reductions of vectors of any rank, and products of them, as those of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, element_type, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.reduction_kinds import operation_of
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileMmaOp, TileReduceOp
from xetl.ir.builder import Builder
from xetl_cpu.lowering.text_forms import scratch
from xetl_cpu.lowering.text_forms.parts import permuted
from xetl_cpu.lowering.text_forms.scratch import Place
from xetl_cpu.lowering.text_forms.writing import loop_nest, replace_by


def reduced(w: Builder, value: SSAValue, kind: str, dims: Sequence[int]) -> SSAValue:
    """Reduce some dimensions: a matrix of one row or column with what remains."""
    shape = vector_type(value).get_shape()
    parts = [
        (gone, prod(shape[dim] for dim in group))
        for gone, group in groupby(range(len(shape)), lambda dim: dim in dims)
    ]
    parts = [part for part in parts if part[1] > 1]
    flags = [gone for gone, _ in parts]
    if flags in ([True, False], [False, True]):
        matrix = scratch.cast(w, value, (parts[0][1], parts[1][1]))
        return w.insert(TileReduceOp(kind, matrix, [0 if flags[0] else 1]))
    if flags == [True]:
        matrix = scratch.as_matrix(w, value)
        return w.insert(TileReduceOp(kind, matrix, [0, 1]))
    if True not in flags:
        return scratch.cast(w, value, (1, prod(shape)))
    kept = [dim for dim in range(len(shape)) if dim not in dims]
    value = permuted(w, value, [*kept, *dims])
    rows = prod(shape[dim] for dim in kept)
    matrix = scratch.cast(w, value, (rows, prod(shape) // rows))
    return w.insert(TileReduceOp(kind, matrix, [1]))


def _reduce(op: Any, dims: Sequence[int]) -> None:
    """Reduce, then combine with ``acc``: that is an operation of its own."""
    w, kind, result = Builder.before(op), op.kind.kind, op.results[0].type
    value = reduced(w, op.source, kind, dims)
    if is_vector(result):
        value = scratch.cast(w, value, result.get_shape())
    else:
        value = w.insert(vector.ExtractOp(value, [0, 0]))
    if op.acc is not None:
        combine = operation_of(kind, element_type(result))
        value = w.insert(combine(value, op.acc))
    replace_by(op, value)


def _multi_reduction(op: vector.MultiReductionOp) -> None:
    _reduce(op, op.dims)


def _reduction(op: vector.ReductionOp) -> None:
    _reduce(op, [0])


def _tile_reduce(op: TileReduceOp) -> None:
    """In groups of ``reduction_size``: a dimension more, which is reduced."""
    if op.reduction_size is None:
        return
    w, size, value = Builder.before(op), op.reduction_size.value.data, op.source
    for dim in op.dims:
        shape = vector_type(value).get_shape()
        groups = shape[dim] // size
        wide = scratch.cast(w, value, (*shape[:dim], groups, size, *shape[dim + 1 :]))
        value = reduced(w, wide, op.kind.data, [dim + 1])
        value = scratch.cast(w, value, (*shape[:dim], groups, *shape[dim + 1 :]))
    replace_by(op, value)


# Products ---------------------------------------------------------------------------


def _contract(op: vector.ContractOp) -> None:
    """A product of matrices for each index that all three have."""
    w = Builder.before(op)
    lhs, rhs, acc = op.maps
    batch = [dim for dim in acc if dim in lhs and dim in rhs]
    rows = [dim for dim in acc if dim in lhs and dim not in rhs]
    columns = [dim for dim in acc if dim in rhs and dim not in lhs]
    deep = [dim for dim in lhs if dim not in acc and dim in rhs]
    a = _summed(w, op.lhs, lhs, [*batch, *rows, *deep])
    b = _summed(w, op.rhs, rhs, [*batch, *deep, *columns])
    order = [*batch, *rows, *columns]
    c = op.acc
    if not is_vector(c.type):
        c = w.insert(vector.BroadcastOp(c, VectorType(c.type, [1, 1])))
    else:
        c = permuted(w, c, [acc.index(dim) for dim in order])
    extents = _extents(op)
    counts = [prod(extents[d] for d in dims) for dims in (batch, rows, deep, columns)]
    found = _products(w, (a, b, c), *counts)
    if not is_vector(op.result.type):
        replace_by(op, w.insert(vector.ExtractOp(found, [0, 0])))
        return
    found = scratch.cast(w, found, [extents[dim] for dim in order])
    replace_by(op, permuted(w, found, [order.index(dim) for dim in acc]))


def _extents(op: vector.ContractOp) -> dict[int, int]:
    found: dict[int, int] = {}
    for dims, value in zip(op.maps, (op.lhs, op.rhs)):
        found |= zip(dims, vector_type(value).get_shape())
    return found


def _summed(
    w: Builder, value: SSAValue, dims: Sequence[int], wanted: Sequence[int]
) -> SSAValue:
    """An operand with its dimensions in order; what nobody else has is summed up."""
    alone = [place for place, dim in enumerate(dims) if dim not in wanted]
    if alone:
        shape = vector_type(value).get_shape()
        value = reduced(w, value, "add", alone)
        dims = [dim for dim in dims if dim in wanted]
        kept = [n for place, n in enumerate(shape) if place not in alone]
        value = scratch.cast(w, value, kept)
    return permuted(w, value, [list(dims).index(dim) for dim in wanted])


def _products(
    w: Builder,
    operands: tuple[SSAValue, SSAValue, SSAValue],
    batch: int,
    m: int,
    k: int,
    n: int,
) -> SSAValue:
    """``a @ b + c`` for each of a batch: the results one below another."""
    shapes = ((m, k), (k, n), (m, n))
    if batch == 1:
        a, b, c = (scratch.cast(w, v, shape) for v, shape in zip(operands, shapes))
        return _product(w, a, b, c)
    element = vector_type(operands[2]).element_type
    memories = [scratch.spill(w, value) for value in operands]
    target = scratch.allocate(w, batch * m * n, element)

    def one(inner: Builder, counters: list[Index]) -> None:
        (number,) = counters
        values: list[SSAValue] = []
        for memory, (rows, columns) in zip(memories, shapes):
            offset = inner.times(number, rows * columns)
            place = Place(memory, offset, (columns, 1))
            values.append(scratch.read(inner, place, (rows, columns)))
        place = Place(target, inner.times(number, m * n), (n, 1))
        scratch.write(inner, _product(inner, *values), place)

    loop_nest(w, [batch], one)
    return scratch.fill(w, target, (batch * m, n))


def _product(w: Builder, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    return w.insert(TileMmaOp(a, b, c))


def _tile_mma(op: TileMmaOp) -> None:
    """16 bits of a result are those of an f32, rounded once."""
    type_ = op.result.type
    if not isinstance(type_.element_type, Float16Type | BFloat16Type):
        return
    w, wide = Builder.before(op), VectorType(f32, type_.get_shape())
    operands = list(op.operands)
    if op.c is not None:
        operands[2] = w.insert(arith.ExtfOp(op.c, wide))
    total = TileMmaOp.create(
        operands=operands, result_types=[wide], properties=dict(op.properties)
    )
    replace_by(op, w.insert(arith.TruncfOp(w.insert(total), type_)))


RULES: dict[type[Operation], Callable[[Any], None]] = {
    vector.MultiReductionOp: _multi_reduction,
    vector.ReductionOp: _reduction,
    vector.ContractOp: _contract,
    TileReduceOp: _tile_reduce,
    TileMmaOp: _tile_mma,
}
