"""Arithmetic, comparisons, casts, constants: each lane on its pieces.

f16 and bf16 are not widened here: at stage `lanes` an operation on them means what it
means before, computed in f32 and rounded once.  tf32 is f32 to a lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatTF32Type
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, with_element
from xetl.dialects.upstream import arith, math, vector
from xetl_xegpu.lowering.lanes.held import Spread, lane_element
from xetl_xegpu.lowering.lanes.state import Lanes
from xetl_xegpu.lowering.lanes.tf32 import rounded_to_tf32
from xetl_xegpu.lowering.lanes.vectors import filled, length_of

_ELEMENT_BY_ELEMENT = (Spread.SAME, Spread.COLUMNS, Spread.HALVES)
"""Where an element of a piece is an element of the value."""


def _piece_by_piece(lanes: Lanes, op: Operation) -> list[list[SSAValue]]:
    """The pieces of the operands, those that meet together."""
    for value in (*op.operands, *op.results):
        if lanes.layout(value).spread not in _ELEMENT_BY_ELEMENT:
            raise lanes.refuse_value(value)
    operands = [lanes.pieces(operand) for operand in op.operands]
    count = max(map(len, operands))
    spread = [p if len(p) == count else p * count for p in operands]
    return [list(pieces) for pieces in zip(*spread)]


def compute(lanes: Lanes, op: Operation) -> None:
    """The same operation on what a lane holds."""
    held: list[Sequence[SSAValue]] = []
    for group in _piece_by_piece(lanes, op):
        types = [
            with_element(group[0].type, lane_element(element_type(result.type)))
            for result in op.results
        ]
        new = type(op).create(
            operands=group, result_types=types, properties=op.properties
        )
        held.append(lanes.add(new).results)
    for result, pieces in zip(op.results, zip(*held)):
        lanes.hold(result, *pieces)


def select(lanes: Lanes, op: arith.SelectOp) -> None:
    """One condition may choose for all elements."""
    chosen: list[SSAValue] = []
    for condition, left, right in _piece_by_piece(lanes, op):
        wide = condition
        if length_of(condition) != length_of(left):
            wide = filled(lanes, condition, length_of(left))
        chosen.append(lanes.emit(arith.SelectOp(wide, left, right)))
    lanes.hold(op.result, *chosen)


def cast_float(lanes: Lanes, op: arith.ExtfOp | arith.TruncfOp) -> None:
    """From and to tf32, which has no type of its own here."""
    if isinstance(element_type(op.result.type), FloatTF32Type):
        (source,) = op.operands
        wide = lanes.pieces(source)
        lanes.hold(op.result, *[rounded_to_tf32(lanes, piece) for piece in wide])
    elif isinstance(element_type(op.operands[0].type), FloatTF32Type):
        lanes.hold(op.result, *lanes.pieces(op.operands[0]))
    else:
        compute(lanes, op)


def bitcast(lanes: Lanes, op: arith.BitcastOp) -> None:
    """Nothing, where a lane holds both types alike."""
    (source,) = op.operands
    if lanes.layout(source) == lanes.layout(op.result):
        lanes.hold(op.result, *lanes.pieces(source))
    else:
        compute(lanes, op)


def fma(lanes: Lanes, op: vector.FmaOp) -> None:
    """As `math.fma`, which takes scalars too."""
    made = [lanes.emit(math.FmaOp(a, b, c)) for a, b, c in _piece_by_piece(lanes, op)]
    lanes.hold(op.result, *made)
