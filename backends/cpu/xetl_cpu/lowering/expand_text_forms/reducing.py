"""Reductions in groups, products of a batch and of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileMmaOp, TileReduceOp
from xetl.ir.builder import Builder
from xetl.transforms.legalize_vectors.reductions import reduced
from xetl.transforms.legalize_vectors.shapes import cast
from xetl_cpu.lowering.expand_text_forms import scratch
from xetl_cpu.lowering.expand_text_forms.scratch import Place
from xetl_cpu.lowering.expand_text_forms.writing import loop_nest, replace_by


def _tile_reduce(op: TileReduceOp) -> None:
    """In groups of ``reduction_size``: a dimension more, which is reduced."""
    if op.reduction_size is None:
        return
    w, size, value = Builder.before(op), op.reduction_size.value.data, op.source
    for dim in op.dims:
        shape = vector_type(value).get_shape()
        groups = shape[dim] // size
        wide = cast(w, value, (*shape[:dim], groups, size, *shape[dim + 1 :]))
        value = reduced(w, wide, op.kind.data, [dim + 1])
        value = cast(w, value, (*shape[:dim], groups, *shape[dim + 1 :]))
    replace_by(op, value)


def _multi_reduction(op: vector.MultiReductionOp) -> None:
    """Matrices are combined: each is a row."""
    w, (count, rows, columns) = Builder.before(op), vector_type(op.source).get_shape()
    matrix = cast(w, op.source, (count, rows * columns))
    found = w.insert(TileReduceOp(op.kind.kind, matrix, [0]))
    replace_by(op, cast(w, found, (rows, columns)))


# Products ---------------------------------------------------------------------------


def _contract(op: vector.ContractOp) -> None:
    """``a @ b + c`` for each of a batch: the results one below another."""
    w = Builder.before(op)
    operands = (op.lhs, op.rhs, op.acc)
    batch, m, n = vector_type(op.acc).get_shape()
    shapes = [vector_type(value).get_shape()[1:] for value in operands]
    memories = [scratch.spill(w, value) for value in operands]
    target = scratch.allocate(w, batch * m * n, vector_type(op.acc).element_type)

    def one(inner: Builder, counters: list[Index]) -> None:
        (number,) = counters
        values: list[SSAValue] = []
        for memory, (rows, columns) in zip(memories, shapes):
            offset = inner.times(number, rows * columns)
            place = Place(memory, offset, (columns, 1))
            values.append(scratch.read(inner, place, (rows, columns)))
        place = Place(target, inner.times(number, m * n), (n, 1))
        scratch.write(inner, inner.insert(TileMmaOp(*values)), place)

    loop_nest(w, [batch], one)
    replace_by(op, scratch.fill(w, target, (batch, m, n)))


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
    vector.ContractOp: _contract,
    TileReduceOp: _tile_reduce,
    TileMmaOp: _tile_mma,
}
