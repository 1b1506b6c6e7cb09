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
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values


def _column(b: Builder, value: SSAValue) -> SSAValue:
    """``v[..., None]``."""
    type_ = vector_type(value)
    shape = [*type_.get_shape(), 1]
    return b.insert(vector.ShapeCastOp(value, VectorType(type_.element_type, shape)))


def _interleave(b: Builder, op: vector.InterleaveOp) -> Values:
    type_ = vector_type(op.lhs)
    pairs = VectorType(type_.element_type, [*type_.get_shape(), 2])
    whole: SSAValue = b.constant(0, pairs)
    for place, side in enumerate((op.lhs, op.rhs)):
        offsets = [0] * type_.get_num_dims() + [place]
        column = _column(b, side)
        whole = b.insert(vector.InsertStridedSliceOp(column, whole, offsets))
    return [b.insert(vector.ShapeCastOp(whole, op.result.type))]


def _deinterleave(b: Builder, op: vector.DeinterleaveOp) -> Values:
    half = op.results[0].type
    assert is_vector(half)
    shape = half.get_shape()
    pairs = VectorType(half.element_type, [*shape, 2])
    whole = b.insert(vector.ShapeCastOp(op.source, pairs))
    found: list[SSAValue] = []
    for place in (0, 1):
        offsets = [0] * len(shape) + [place]
        part = vector.ExtractStridedSliceOp(whole, offsets, [*shape, 1])
        found.append(b.insert(vector.ShapeCastOp(b.insert(part), half)))
    return [*found]


def _outerproduct(b: Builder, op: vector.OuterproductOp) -> Values:
    kind = op.kind
    if isinstance(kind, CombiningKindAttr) and kind.kind != "add":
        raise VerifyException(f"an outer product is added, not `{kind.kind}`")
    type_ = op.result.type
    left = op.lhs if not is_vector(op.rhs.type) else _column(b, op.lhs)
    left = b.insert(vector.BroadcastOp(left, type_))
    right = b.insert(vector.BroadcastOp(op.rhs, type_))
    floats = is_float(type_)
    times = arith.MulfOp if floats else arith.MuliOp
    plus = arith.AddfOp if floats else arith.AddiOp
    found = b.insert(times(left, right))
    if op.acc is not None:
        found = b.insert(plus(found, op.acc))
    return [found]


def _splat(b: Builder, op: vector.SplatOp) -> Values:
    return [b.insert(vector.BroadcastOp(op.input, op.result.type))]


def _position(b: Builder, given: SSAValue | None) -> list[SSAValue | int]:
    if given is None:
        return []
    if isinstance(given.type, IndexType):
        return [given]
    return [b.insert(arith.IndexCastOp(given, IndexType()))]


def _extractelement(b: Builder, op: vector.ExtractelementOp) -> Values:
    place = _position(b, op.position)
    return [b.insert(vector.ExtractOp(op.vector, place))]


def _insertelement(b: Builder, op: vector.InsertelementOp) -> Values:
    place = _position(b, op.position)
    return [b.insert(vector.InsertOp(op.source, op.dest, place))]


def _to_elements(b: Builder, op: vector.ToElementsOp) -> Values:
    type_: VectorType[Attribute] = vector_type(op.source)
    places = product(*map(range, type_.get_shape()))
    return [*[b.insert(vector.ExtractOp(op.source, list(place))) for place in places]]


RULES: dict[type[Operation], Rule] = {
    vector.InterleaveOp: _interleave,
    vector.DeinterleaveOp: _deinterleave,
    vector.OuterproductOp: _outerproduct,
    vector.SplatOp: _splat,
    vector.ExtractelementOp: _extractelement,
    vector.InsertelementOp: _insertelement,
    vector.ToElementsOp: _to_elements,
}
