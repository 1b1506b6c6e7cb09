"""Shuffles and outer products of vectors by shape casts, slices and broadcasts."""

from __future__ import annotations

from itertools import product

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import vector_type
from xetl.dialects.combining import CombiningKindAttr
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, vector
from xetl.dialects.upstream.elementwise import is_float
from xetl.transforms.forms.steps import Expansion, Rule, Steps


def _column(steps: Steps, value: SSAValue) -> SSAValue:
    """``v[..., None]``."""
    type_ = vector_type(value)
    shape = [*type_.get_shape(), 1]
    return steps.add(vector.ShapeCastOp(value, VectorType(type_.element_type, shape)))


def _interleave(op: vector.InterleaveOp) -> Expansion:
    steps = Steps()
    type_ = vector_type(op.lhs)
    pairs = VectorType(type_.element_type, [*type_.get_shape(), 2])
    whole: SSAValue = steps.number(0, pairs)
    for place, side in enumerate((op.lhs, op.rhs)):
        offsets = [0] * type_.get_num_dims() + [place]
        column = _column(steps, side)
        whole = steps.add(vector.InsertStridedSliceOp(column, whole, offsets))
    return steps.done(steps.add(vector.ShapeCastOp(whole, op.result.type)))


def _deinterleave(op: vector.DeinterleaveOp) -> Expansion:
    steps = Steps()
    half = op.results[0].type
    assert is_vector(half)
    shape = half.get_shape()
    pairs = VectorType(half.element_type, [*shape, 2])
    whole = steps.add(vector.ShapeCastOp(op.source, pairs))
    found: list[SSAValue] = []
    for place in (0, 1):
        offsets = [0] * len(shape) + [place]
        part = vector.ExtractStridedSliceOp(whole, offsets, [*shape, 1])
        found.append(steps.add(vector.ShapeCastOp(steps.add(part), half)))
    return steps.done(*found)


def _outerproduct(op: vector.OuterproductOp) -> Expansion:
    kind = op.kind
    if isinstance(kind, CombiningKindAttr) and kind.kind != "add":
        raise VerifyException(f"an outer product is added, not `{kind.kind}`")
    steps, type_ = Steps(), op.result.type
    left = op.lhs if not is_vector(op.rhs.type) else _column(steps, op.lhs)
    left = steps.add(vector.BroadcastOp(left, type_))
    right = steps.add(vector.BroadcastOp(op.rhs, type_))
    floats = is_float(type_)
    times = arith.MulfOp if floats else arith.MuliOp
    plus = arith.AddfOp if floats else arith.AddiOp
    found = steps.add(times(left, right))
    if op.acc is not None:
        found = steps.add(plus(found, op.acc))
    return steps.done(found)


def _splat(op: vector.SplatOp) -> Expansion:
    steps = Steps()
    return steps.done(steps.add(vector.BroadcastOp(op.input, op.result.type)))


def _position(steps: Steps, given: SSAValue | None) -> list[SSAValue | int]:
    if given is None:
        return []
    if isinstance(given.type, IndexType):
        return [given]
    return [steps.add(arith.IndexCastOp(given, IndexType()))]


def _extractelement(op: vector.ExtractelementOp) -> Expansion:
    steps = Steps()
    place = _position(steps, op.position)
    return steps.done(steps.add(vector.ExtractOp(op.vector, place)))


def _insertelement(op: vector.InsertelementOp) -> Expansion:
    steps = Steps()
    place = _position(steps, op.position)
    return steps.done(steps.add(vector.InsertOp(op.source, op.dest, place)))


def _to_elements(op: vector.ToElementsOp) -> Expansion:
    steps = Steps()
    type_: VectorType[Attribute] = vector_type(op.source)
    places = product(*map(range, type_.get_shape()))
    return steps.done(
        *[steps.add(vector.ExtractOp(op.source, list(place))) for place in places]
    )


RULES: dict[type[Operation], Rule] = {
    vector.InterleaveOp: _interleave,
    vector.DeinterleaveOp: _deinterleave,
    vector.OuterproductOp: _outerproduct,
    vector.SplatOp: _splat,
    vector.ExtractelementOp: _extractelement,
    vector.InsertelementOp: _insertelement,
    vector.ToElementsOp: _to_elements,
}
