"""Sums, products, largest and smallest: in the lane over rows, then over the lanes.

f16 and bf16 are summed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import element_type, shape_of, with_element
from xetl.dialects.reduction_kinds import operation_of, sums_run_in
from xetl.dialects.upstream import arith, vector
from xetl_xegpu import simt
from xetl_xegpu.lowering.lanes.held import Spread
from xetl_xegpu.lowering.lanes.state import Lanes
from xetl_xegpu.lowering.lanes.vectors import elements_of, length_of, part, recut


def multi_reduction(lanes: Lanes, op: vector.MultiReductionOp) -> None:
    """Rows in the lane, columns over the lanes; then the value it starts from."""
    _reduce(lanes, op, op.kind.kind, op.dims, [op.acc])


def reduction(lanes: Lanes, op: vector.ReductionOp) -> None:
    """All elements of a value of rank 1."""
    _reduce(lanes, op, op.kind.kind, (0,), op.operands[1:])


def _reduce(
    lanes: Lanes,
    op: vector.MultiReductionOp | vector.ReductionOp,
    kind: str,
    dims: Sequence[int],
    start: Sequence[SSAValue],
) -> None:
    source = op.operands[0]
    layout, shape = lanes.layout(source), shape_of(source.type)
    if layout.spread not in (Spread.SAME, Spread.COLUMNS) or len(shape) > 2:
        raise lanes.refuse_value(source)
    pieces = [_widened(lanes, kind, piece) for piece in lanes.pieces(source)]
    columns = len(shape) - 1
    if set(dims) - {columns} or (columns == 0 and layout.spread is Spread.SAME):
        pieces = [_in_lane(lanes, kind, pieces)]
    if columns in dims and layout.spread is Spread.COLUMNS:
        pieces = [lanes.emit(simt.ReduceOp(kind, piece)) for piece in pieces]
    for value in start:
        others = [_widened(lanes, kind, piece) for piece in lanes.pieces(value)]
        pieces = recut(lanes, pieces, [length_of(piece) for piece in others])
        pieces = [_combined(lanes, kind, a, b) for a, b in zip(pieces, others)]
    (result,) = op.results
    types = lanes.layout(result).types
    lanes.hold(result, *[_narrowed(lanes, p, t) for p, t in zip(pieces, types)])


def _combined(lanes: Lanes, kind: str, left: SSAValue, right: SSAValue) -> SSAValue:
    make = operation_of(kind, element_type(left.type))
    return lanes.emit(make(left, right))


def _in_lane(lanes: Lanes, kind: str, pieces: Sequence[SSAValue]) -> SSAValue:
    """All elements of some pieces combined: by halves, as long as they are vectors."""
    wide = [piece for piece in pieces if length_of(piece) > 1]
    rest = elements_of(lanes, [piece for piece in pieces if length_of(piece) == 1])
    for piece in wide:
        left = piece
        while length_of(left) > 1:
            half = length_of(left) // 2
            halves = [part(lanes, left, start, half) for start in (0, half)]
            left = _combined(lanes, kind, *halves)
        rest.append(left)
    found = rest[0]
    for element in rest[1:]:
        found = _combined(lanes, kind, found, element)
    return found


def _widened(lanes: Lanes, kind: str, piece: SSAValue) -> SSAValue:
    element = element_type(piece.type)
    wide = sums_run_in(kind, element)
    if wide == element:
        return piece
    return lanes.emit(arith.ExtfOp(piece, with_element(piece.type, wide)))


def _narrowed(lanes: Lanes, piece: SSAValue, type_: Attribute) -> SSAValue:
    return piece if piece.type == type_ else lanes.emit(arith.TruncfOp(piece, type_))
