"""Operations of `vector` that say with older or shorter words what others say."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IndexType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, vector, vector_shuffles
from xetl_cpu.lowering.loops.combine import operation_of
from xetl_cpu.lowering.text_forms import scratch
from xetl_cpu.lowering.text_forms.parts import broadcast
from xetl_cpu.lowering.text_forms.writing import Writer, in_place_of, replace_by


def _shape(value: SSAValue) -> tuple[int, ...]:
    return vector_type(value).get_shape()


def _interleave(op: vector_shuffles.InterleaveOp) -> None:
    """Every other element is one of the first vector, between them the second's."""
    w, shape = in_place_of(op), _shape(op.result)
    memory = scratch.allocate(w, prod(shape), op.result.type.element_type)
    strides = [*scratch.row_major(shape)[:-1], 2]
    scratch.put(w, op.lhs, memory, strides)
    scratch.put(w, op.rhs, memory, strides, 1)
    replace_by(op, scratch.fill(w, memory, shape))


def _deinterleave(op: vector_shuffles.DeinterleaveOp) -> None:
    w, shape = in_place_of(op), _shape(op.source)
    half = (*shape[:-1], shape[-1] // 2)
    strides = [*scratch.row_major(shape)[:-1], 2]
    parts = [scratch.take(w, op.source, half, strides, first) for first in (0, 1)]
    replace_by(op, *parts)


def _outerproduct(op: vector_shuffles.OuterproductOp) -> None:
    """Each of one times each of the other (or a number), combined with ``acc``."""
    w, type_ = in_place_of(op), vector_type(op.result)
    left, right = op.lhs, op.rhs
    if is_vector(right.type):
        rows, columns = type_.get_shape()
        left = broadcast(w, scratch.cast(w, left, (rows, 1)), (rows, columns))
        right = broadcast(w, right, (rows, columns))
    else:
        right = w.insert(vector.BroadcastOp(right, type_))
    is_float = isinstance(type_.element_type, AnyFloat)
    kind = "add" if op.kind is None else op.kind.kind
    if op.acc is not None and is_float and kind == "add":
        replace_by(op, w.insert(vector.FmaOp(left, right, op.acc)))
        return
    product = w.insert((arith.MulfOp if is_float else arith.MuliOp)(left, right))
    if op.acc is not None:
        combine = operation_of(kind, type_.element_type)
        product = w.insert(combine(op.acc, product))
    replace_by(op, product)


def _splat(op: vector_shuffles.SplatOp) -> None:
    w = in_place_of(op)
    replace_by(op, w.insert(vector.BroadcastOp(op.input, op.result.type)))


def _position(w: Writer, op: Any) -> list[SSAValue]:
    if op.position is None:
        return []
    if isinstance(op.position.type, IndexType):
        return [op.position]
    return [w.insert(arith.IndexCastuiOp(op.position, IndexType()))]


def _extractelement(op: vector_shuffles.ExtractelementOp) -> None:
    w = in_place_of(op)
    replace_by(op, w.insert(vector.ExtractOp(op.vector, _position(w, op))))


def _insertelement(op: vector_shuffles.InsertelementOp) -> None:
    w = in_place_of(op)
    replace_by(op, w.insert(vector.InsertOp(op.source, op.dest, _position(w, op))))


def _to_elements(op: vector_shuffles.ToElementsOp) -> None:
    w = in_place_of(op)
    count = prod(_shape(op.source))
    row = scratch.cast(w, op.source, (count,))
    elements = [w.insert(vector.ExtractOp(row, [place])) for place in range(count)]
    replace_by(op, *elements)


RULES: dict[type[Operation], Callable[[Any], None]] = {
    vector_shuffles.InterleaveOp: _interleave,
    vector_shuffles.DeinterleaveOp: _deinterleave,
    vector_shuffles.OuterproductOp: _outerproduct,
    vector_shuffles.SplatOp: _splat,
    vector_shuffles.ExtractelementOp: _extractelement,
    vector_shuffles.InsertelementOp: _insertelement,
    vector_shuffles.ToElementsOp: _to_elements,
}
