"""Products on the matrix unit: operands as its instruction takes them."""

from __future__ import annotations

from xdsl.dialects.builtin import f32, f64, i16, i32
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import element_type, shape_of
from xetl.dialects.kinds_of_types import integer_width
from xetl.dialects.upstream import vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu import simt
from xetl_xegpu.dialect import DpasOp
from xetl_xegpu.lowering.lanes.held import LANES, PIECE, Spread
from xetl_xegpu.lowering.lanes.state import Lanes
from xetl_xegpu.lowering.lanes.tf32 import rounded_to_tf32
from xetl_xegpu.lowering.lanes.vectors import joined, recast

_DEPTH_BITS = 256
"""Of a row of A."""

_ROWS_BY_COLUMNS = [(0, 2), (2, 1), (0, 1)]
_SUM_OVER_LAST = ["parallel", "parallel", "reduction"]


def dpas(lanes: Lanes, op: DpasOp) -> None:
    """One instruction; B that is not packed yet is paired in the lane."""
    element = element_type(op.lhs.type)
    rows, depth = shape_of(op.lhs.type)
    is_tf32 = lanes.layout(op.lhs).spread is Spread.HALVES
    bits = 32 if is_tf32 else bit_width(element)
    if depth * bits != _DEPTH_BITS or rows > PIECE or rows not in (1, 2, 4, 8):
        raise lanes.refuse(
            op,
            f"no instruction multiplies {op.lhs.type} and {op.rhs.type}",
            "A has 8, 4, 2 or 1 rows of 256 bits, B 16 columns",
        )
    names = [_name(element, sign, is_tf32) for sign in op.unsigned]
    left, right = lanes.one(op.lhs), lanes.pieces(op.rhs)
    if is_tf32:
        a = _rounded(lanes, left)
        b = joined(lanes, [_rounded(lanes, piece) for piece in right])
    else:
        a = recast(lanes, left, i16)
        b = joined(lanes, [recast(lanes, piece, i32) for piece in right])
    made = simt.DpasOp(a, b, _accumulator(lanes, op), names[0], names[1])
    lanes.hold(op.result, lanes.emit(made))


def contract(lanes: Lanes, op: vector.ContractOp) -> None:
    """Rows by a 16x16 matrix, by the lanes themselves."""
    (m, k), right = shape_of(op.lhs.type), shape_of(op.rhs.type)
    element = element_type(op.result.type)
    if (
        list(op.maps) != _ROWS_BY_COLUMNS
        or list(op.iterators) != _SUM_OVER_LAST
        or op.kind.kind != "add"
        or m not in (1, 2, 4, PIECE)
        or (k, right) != (LANES, (LANES, LANES))
        or element not in (f32, f64)
        or {element_type(each.type) for each in op.operands} != {element}
    ):
        raise lanes.refuse(
            op,
            "lanes multiply 8, 4, 2 or 1 rows of 16 by 16x16 numbers of f32 or f64",
            "cut and pad larger and other products",
        )
    upper, lower = lanes.pieces(op.rhs)
    a, c = lanes.one(op.lhs), lanes.one(op.acc)
    lanes.hold(op.result, lanes.emit(simt.LaneProductOp(a, upper, lower, c)))


def _rounded(lanes: Lanes, piece: SSAValue) -> SSAValue:
    """The ten bits that are multiplied, rounded: the matrix unit would cut them off."""
    return lanes.beside(piece, "tf32", lambda: rounded_to_tf32(lanes, piece))


def _name(element: Attribute, is_unsigned: bool, is_tf32: bool) -> str:
    if is_tf32:
        return "tf32"
    if integer_width(element) == 8:
        return "u8" if is_unsigned else "i8"
    return element.name


def _accumulator(lanes: Lanes, op: DpasOp) -> SSAValue:
    if op.acc is not None:
        return lanes.one(op.acc)
    (type_,) = lanes.layout(op.result).types
    return lanes.constant(0, type_)
