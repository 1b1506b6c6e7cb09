"""Operations of `vector` that move elements, on vectors of any rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, ints_of, is_dense, is_vector, vector_type
from xetl.dialects.literals import splat_bytes
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder
from xetl.language.strides import row_major
from xetl.transforms.legalize_text.products import PAIR
from xetl.transforms.legalize_vectors import shapes
from xetl.transforms.rewriting import Rule, Values
from xetl_cpu.dialect import ConstantMemoryOp
from xetl_cpu.lowering.expand_text_forms import scratch
from xetl_cpu.lowering.loops.moves import in_turn


def _shape(value: SSAValue) -> tuple[int, ...]:
    return vector_type(value).get_shape()


# Whole vectors ----------------------------------------------------------------------


def _transpose(w: Builder, op: vector.TransposeOp) -> Values:
    shape = _shape(op.source)
    if (*op.dims,) == (0, 2, 1) and shape[2] == PAIR:
        return [shapes.cast(w, _apart(w, op.source, shape), _shape(op.result))]
    steps = row_major(shape)
    strides = [steps[dim] for dim in op.dims]
    return [scratch.take(w, op.source, _shape(op.result), strides)]


def _apart(w: Builder, source: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Return pairs of rows, (h, w, 2), as the matrix of these rows, (2 h, w)."""
    rows, columns, _ = shape
    block = shapes.cast(w, source, (rows, PAIR * columns))
    sides = [
        w.insert(vector.ExtractStridedSliceOp(block, [0, n], shape[:2], [1, PAIR]))
        for n in range(PAIR)
    ]
    return w.insert(vector.ShuffleOp(*sides, mask=in_turn(rows)))


def _broadcast(w: Builder, op: vector.BroadcastOp) -> Values | None:
    (source,) = op.operands
    if not is_vector(source.type):
        return None
    return [broadcast(w, source, _shape(op.results[0]))]


def broadcast(w: Builder, source: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Broadcast to ``shape``: add leading dimensions, repeat dimensions of extent 1."""
    found = shapes.broadcasted(w, source, shape)
    if found is not None:
        return found
    have = _shape(source)
    have = (*[1] * (len(shape) - len(have)), *have)
    steps = zip(row_major(have), have, shape)
    strides = [step if old == new else 0 for step, old, new in steps]
    return scratch.take(w, source, shape, strides)


def _shape_cast(_: Builder, op: vector.ShapeCastOp) -> Values | None:
    return op.operands if op.operands[0].type == op.results[0].type else None


def _bitcast(w: Builder, op: vector.BitcastOp) -> Values:
    """Cast elements of equal width one by one, others through memory."""
    source, type_ = op.operands[0], vector_type(op.results[0])
    shape = type_.get_shape()
    if _shape(source) == shape:
        return [w.insert(arith.BitcastOp(source, type_))]
    memory, matrix = scratch.spill(w, source), shapes.matrix_shape(shape)
    return [
        shapes.cast(w, scratch.read_as(w, memory, matrix, type_.element_type), shape)
    ]


# Single elements and slices ---------------------------------------------------------


def _offset(w: Builder, shape: Sequence[int], position: Sequence[Index]) -> Index:
    """Return the offset of a position from the first element."""
    offset: Index = 0
    for place, step in zip(position, row_major(shape)):
        offset = w.plus(offset, w.times(place, step))
    return offset


def _extract(w: Builder, op: vector.ExtractOp) -> Values | None:
    shape, position = _shape(op.source), op.position
    offset = _offset(w, shape, position)
    if is_vector(op.result.type):
        rest = shape[len(position) :]
        new = scratch.take(w, op.source, rest, row_major(rest), offset)
        return [shapes.cast(w, new, _shape(op.result))]
    if not isinstance(offset, int):
        memory = scratch.spill(w, op.source)
        return [w.insert(memref.LoadOp(memory, [w.index(offset)]))]
    matrix = shapes.as_matrix(w, op.source)
    where = divmod(offset, _shape(matrix)[1])
    if (op.source.type, position) == (matrix.type, where):
        return None
    return [w.insert(vector.ExtractOp(matrix, where))]


def _insert(w: Builder, op: vector.InsertOp) -> Values:
    shape, position = _shape(op.dest), op.position
    memory = scratch.spill(w, op.dest)
    offset = _offset(w, shape, position)
    if is_vector(op.value.type):
        part = _shape(op.value)
        scratch.put(w, op.value, memory, row_major(part), offset)
    else:
        w.add(memref.StoreOp(op.value, memory, [w.index(offset)]))
    return [scratch.fill(w, memory, shape)]


def _extract_strided_slice(
    w: Builder, op: vector.ExtractStridedSliceOp
) -> Values | None:
    shape, offsets = _shape(op.source), op.offsets
    steps = list(_strides(op))
    steps += [1] * (len(shape) - len(steps))
    if len(shape) <= 2:
        return None
    strides = [a * b for a, b in zip(row_major(shape), steps)]
    offset = _offset(w, shape, offsets)
    return [scratch.take(w, op.source, _shape(op.result), strides, offset)]


def _insert_strided_slice(w: Builder, op: vector.InsertStridedSliceOp) -> Values:
    shape = _shape(op.dest)
    memory = scratch.spill(w, op.dest)
    part = _shape(op.value)
    steps = row_major(shape)[len(shape) - len(part) :]
    strides = [a * b for a, b in zip(steps, _strides(op))]
    offset = _offset(w, shape, op.offsets)
    scratch.put(w, op.value, memory, strides, offset)
    return [scratch.fill(w, memory, shape)]


def _strides(op: Any) -> tuple[int, ...]:
    return tuple(each.value.data for each in op.stride_list)


def _shuffle(w: Builder, op: vector.ShuffleOp) -> Values | None:
    """Copy runs of neighbouring rows at once; leave shuffles of alternating rows."""
    if len(_shape(op.result)) == 2 and ints_of(op.mask) == in_turn(_shape(op.v1)[0]):
        return None
    mask, shape = [max(row, 0) for row in ints_of(op.mask)], _shape(op.result)
    size, element = prod(shape[1:]), op.result.type.element_type
    first = _shape(op.v1)[0]
    both = scratch.allocate(w, (first + _shape(op.v2)[0]) * size, element)
    scratch.put(w, op.v1, both, row_major(_shape(op.v1)))
    scratch.put(w, op.v2, both, row_major(_shape(op.v2)), first * size)
    target = scratch.allocate(w, prod(shape), element)
    for start, length, step in runs(mask):
        source = scratch.Place(both, mask[start] * size, (step * size, 1))
        place = scratch.Place(target, start * size, (size, 1))
        scratch.copy(w, (length, size), source, place)
    return [scratch.fill(w, target, shape)]


def runs(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Cut numbers into runs of equal steps; return (first index, length, step)s."""
    found: list[tuple[int, int, int]] = []
    start = 0
    while start < len(numbers):
        end, step = start + 1, 1
        if end < len(numbers) and numbers[end] >= numbers[start]:
            step = numbers[end] - numbers[start]
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        found.append((start, end - start, step))
        start = end
    return found


def _from_elements(w: Builder, op: vector.FromElementsOp) -> Values:
    shape = _shape(op.result)
    memory = scratch.allocate(w, prod(shape), op.result.type.element_type)
    for place, element in enumerate(op.elements):
        w.add(memref.StoreOp(element, memory, [w.index(place)]))
    return [scratch.fill(w, memory, shape)]


# Masks and constants ----------------------------------------------------------------


def _constant(w: Builder, op: arith.ConstantOp) -> Values | None:
    """Load a constant with different elements from constant memory."""
    value, type_ = op.value, op.result.type
    if not is_vector(type_) or not is_dense(value) or splat_bytes(value) is not None:
        return None
    return [scratch.fill(w, constant_memory(w, value), type_.get_shape())]


def constant_memory(w: Builder, value: DenseIntOrFPElementsAttr) -> SSAValue:
    """Return memory that holds the elements of a constant."""
    type_ = MemRefType(value.get_element_type(), [len(value)])
    return w.insert(ConstantMemoryOp(type_, value=value))


RULES: dict[type[Operation], Rule] = {
    vector.TransposeOp: _transpose,
    vector.BroadcastOp: _broadcast,
    vector.ShapeCastOp: _shape_cast,
    vector.BitcastOp: _bitcast,
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.ExtractStridedSliceOp: _extract_strided_slice,
    vector.InsertStridedSliceOp: _insert_strided_slice,
    vector.ShuffleOp: _shuffle,
    vector.FromElementsOp: _from_elements,
    arith.ConstantOp: _constant,
}
