"""Lowering of constants, arithmetic, casts, reductions and products to lanes.

f16 and bf16 are not widened here: operations on them have the same meaning at stage
`lanes` as before, computed in f32 and rounded once; their sums run in f32. tf32 is f32
in a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import base
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import identity_of, operation_of, sums_run_in
from xetl.dialects.upstream import arith, math, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.ir.builder import remade
from xetl.transforms.diagnostics import refusal
from xetl_xegpu import simt
from xetl_xegpu.dialect import DpasOp
from xetl_xegpu.simt.block_ops import PIECE

from .pieces import (
    collected,
    elements_of,
    filled,
    joined,
    length_of,
    part,
    recast,
    recut,
)
from .shuffles import lane_of, lanes_in_turn, source_of_lanes
from .state import LANES, Distribution, Lanes, lane_element

Number = int | float


def constant(lanes: Lanes, op: arith.ConstantOp) -> None:
    """Lower a constant: a splat, or the numbers of this lane."""
    layout = lanes.layout(op.result)
    value = splat_value(op.value)
    if value is not None:
        number = value
        if layout.spread in (Distribution.PACKED, Distribution.GROUPS):
            held_bits = bit_width(layout.element)
            number = _repeated(number, base.element_type(op.result.type), held_bits)
        lanes.hold(op.result, *[lanes.constant(number, t) for t in layout.types])
        return
    assert base.is_dense(op.value)
    numbers = cast(Sequence[Number], op.value.get_values())
    if layout.spread is Distribution.SAME:
        rows = [[number] for number in numbers]
    elif layout.spread is Distribution.COLUMNS:
        rows = [list(numbers[i : i + LANES]) for i in range(0, len(numbers), LANES)]
    else:
        raise lanes.refuse_value(op.result)
    pieces: list[SSAValue] = []
    for length in layout.lengths:
        pieces.append(_of_columns(lanes, rows[:length], layout.element))
        rows = rows[length:]
    lanes.hold(op.result, *pieces)


def _of_columns(lanes: Lanes, rows: list[list[Number]], element: Attribute) -> SSAValue:
    """A piece from the numbers of its columns: chosen by the number of the lane."""
    columns = [[row[column] for row in rows] for column in range(len(rows[0]))]
    piece = _listed(lanes, columns[0], element)
    for lane, column in enumerate(columns):
        if repr(column) == repr(columns[0]):
            continue
        here = lanes.compare("eq", lanes.lane, lanes.constant(lane, builtin.i32))
        new = _listed(lanes, column, element)
        from_here = filled(lanes, here, length_of(new))
        piece = lanes.insert(arith.SelectOp(from_here, new, piece))
    return piece


def _listed(lanes: Lanes, numbers: list[Number], element: Attribute) -> SSAValue:
    if len({repr(number) for number in numbers}) == 1:
        return lanes.constant(numbers[0], simt.lanes_type(element, len(numbers)))
    return collected(lanes, [lanes.constant(number, element) for number in numbers])


def _repeated(number: Number, element: Attribute, bits: int) -> int:
    """The integer of ``bits`` bits that holds the number in each of its parts."""
    if isinstance(element, builtin.IntegerType):
        raw = element.pack([int(number)])
    else:
        assert isinstance(element, builtin.AnyFloat)
        raw = element.pack([number])
    part = int.from_bytes(raw, "little")
    return sum(part << 8 * at for at in range(0, bits // 8, len(raw)))


_ELEMENT_BY_ELEMENT = (Distribution.SAME, Distribution.COLUMNS, Distribution.HALVES)
"""Distributions in which an element of a piece is an element of the value."""


def _piece_by_piece(lanes: Lanes, op: Operation) -> list[list[SSAValue]]:
    """Return the pieces of the operands, grouped by position."""
    for value in (*op.operands, *op.results):
        if lanes.layout(value).spread not in _ELEMENT_BY_ELEMENT:
            raise lanes.refuse_value(value)
    operands = [lanes.pieces(operand) for operand in op.operands]
    count = max(map(len, operands))
    spread = [p if len(p) == count else p * count for p in operands]
    return [list(pieces) for pieces in zip(*spread)]


def compute(lanes: Lanes, op: Operation) -> None:
    """Apply the operation to the pieces of a lane."""
    held: list[Sequence[SSAValue]] = []
    for group in _piece_by_piece(lanes, op):
        elements = [lane_element(base.element_type(r.type)) for r in op.results]
        types = [base.with_element(group[0].type, each) for each in elements]
        held.append(lanes.add(remade(op, group, types)).results)
    for result, pieces in zip(op.results, zip(*held)):
        lanes.hold(result, *pieces)


SLOW = (
    *(arith.DivfOp, arith.RemfOp, math.SqrtOp, math.RsqrtOp, math.CbrtOp),
    *(math.ExpOp, math.Expm1Op, math.LogOp, math.Log2Op, math.Log10Op, math.Log1pOp),
    *(math.TanhOp, math.ErfOp, math.ErfcOp, math.SinOp, math.CosOp, math.TanOp),
    *(math.PowfOp, math.Atan2Op),
)
"""Operations of ten or more instructions, more than shuffles of their results take."""
_FEW = 4


def compute_apart(lanes: Lanes, op: Operation) -> None:
    """Lower an operation. If all lanes hold the value, they may share the work.

    ``vector<8x1xf32>``, such as sums of rows, is eight numbers in each lane: lane l
    computes the l-th one, and the results are shuffled. This is done if the operation
    is slow, or if lane l has the l-th number of an operand already. It is not done
    beside products, where it needs too many registers: attention of f32 would spill.
    """
    result = op.results[0]
    layout = lanes.layout(result)
    count = sum(layout.lengths)
    is_shared = layout.spread is Distribution.SAME and _FEW <= count <= LANES
    if lanes.multiplies or not is_shared or len(op.results) > 1:
        compute(lanes, op)
        return
    pieces = [lanes.pieces(operand) for operand in op.operands]
    ready = [source_of_lanes(lanes, each) for each in pieces]
    alike = [_same_for_all(lanes, each) for each in pieces]
    is_ready = any(ready) and all(one or other for one, other in zip(ready, alike))
    if not (is_ready or isinstance(op, SLOW)):
        compute(lanes, op)
        return
    given = [
        one or other or lanes_in_turn(lanes, elements_of(lanes, each))
        for one, other, each in zip(ready, alike, pieces)
    ]
    type_ = lane_element(base.element_type(result.type))
    mine = lanes.insert(remade(op, given, [type_]))
    elements = [lane_of(lanes, mine, lane) for lane in range(count)]
    lanes.hold(result, *recut(lanes, elements, layout.lengths))


def _same_for_all(lanes: Lanes, pieces: Sequence[SSAValue]) -> SSAValue | None:
    """Return the only number of a value as a scalar, or None if there are several."""
    owners = [piece.owner for piece in pieces]
    if all(isinstance(owner, vector.BroadcastOp) for owner in owners):
        sources = {o.operands[0] for o in owners if isinstance(o, Operation)}
        if len(sources) == 1:
            return sources.pop()
    numbers = [o.value for o in owners if isinstance(o, arith.ConstantOp)]
    number = splat_value(numbers[0]) if len(numbers) == len(pieces) == 1 else None
    if number is None:
        return None
    return lanes.constant(number, base.element_type(pieces[0].type))


def select(lanes: Lanes, op: arith.SelectOp) -> None:
    """Lower a select, also one with a scalar condition."""
    chosen: list[SSAValue] = []
    for condition, left, right in _piece_by_piece(lanes, op):
        wide = condition
        if length_of(condition) != length_of(left):
            wide = filled(lanes, condition, length_of(left))
        chosen.append(lanes.insert(arith.SelectOp(wide, left, right)))
    lanes.hold(op.result, *chosen)


def cast_float(lanes: Lanes, op: arith.ExtfOp | arith.TruncfOp) -> None:
    """Lower a cast of floats; tf32 is f32 here."""
    if isinstance(base.element_type(op.result.type), builtin.FloatTF32Type):
        wide = lanes.pieces(op.operands[0])
        lanes.hold(op.result, *[_rounded(lanes, piece) for piece in wide])
    elif isinstance(base.element_type(op.operands[0].type), builtin.FloatTF32Type):
        lanes.hold(op.result, *lanes.pieces(op.operands[0]))
    else:
        compute(lanes, op)


def bitcast(lanes: Lanes, op: arith.BitcastOp) -> None:
    """Lower a bitcast, which does nothing if both types have one layout."""
    (source,) = op.operands
    if lanes.layout(source) == lanes.layout(op.result):
        lanes.hold(op.result, *lanes.pieces(source))
    else:
        compute(lanes, op)


def multi_reduction(lanes: Lanes, op: vector.MultiReductionOp) -> None:
    """Reduce rows in the lane, columns over lanes; combine with the accumulator."""
    kind, dims = op.kind.kind, op.dims
    layout, shape = lanes.layout(op.source), base.shape_of(op.source.type)
    if layout.spread not in (Distribution.SAME, Distribution.COLUMNS) or len(shape) > 2:
        raise lanes.refuse_value(op.source)
    pieces = [_widened(lanes, kind, piece) for piece in lanes.pieces(op.source)]
    columns = len(shape) - 1
    if set(dims) - {columns} or (columns == 0 and layout.spread is Distribution.SAME):
        pieces = [_in_lane(lanes, kind, pieces)]
    if columns in dims and layout.spread is Distribution.COLUMNS:
        pieces = [_over_lanes(lanes, kind, piece) for piece in pieces]
    others = [_widened(lanes, kind, piece) for piece in lanes.pieces(op.acc)]
    pieces = recut(lanes, pieces, [length_of(piece) for piece in others])
    start = op.acc.owner.value if isinstance(op.acc.owner, arith.ConstantOp) else None
    element = base.element_type(op.acc.type)
    if start is None or repr(splat_value(start)) != repr(identity_of(kind, element)):
        pieces = [_combined(lanes, kind, a, b) for a, b in zip(pieces, others)]
    element = lanes.layout(op.result).element
    lanes.hold(op.result, *[lanes.narrowed(piece, element) for piece in pieces])


def _over_lanes(lanes: Lanes, kind: str, piece: SSAValue) -> SSAValue:
    """Reduce a piece over the lanes: eight rows at once, then a lane has each."""
    is_at_once = piece.type == _EIGHT_ROWS and kind in simt.KINDS_OF_ROWS
    if lanes.multiplies or not is_at_once:
        return lanes.insert(simt.ReduceOp(piece, kind=kind))
    mine = lanes.insert(simt.ReduceRowsOp(piece, kind=kind))
    return collected(lanes, [lane_of(lanes, mine, lane) for lane in range(PIECE)])


_EIGHT_ROWS = simt.lanes_type(builtin.f32, PIECE)


def _combined(lanes: Lanes, kind: str, left: SSAValue, right: SSAValue) -> SSAValue:
    make = operation_of(kind, base.element_type(left.type))
    return lanes.insert(make(left, right))


def _in_lane(lanes: Lanes, kind: str, pieces: Sequence[SSAValue]) -> SSAValue:
    """Combine all elements of some pieces; vectors are folded by halves."""
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
    return lanes.widened(piece, sums_run_in(kind, base.element_type(piece.type)))


_DEPTH_BITS = 256
"""Bits of a row of A."""

_ROWS_BY_COLUMNS = [(0, 2), (2, 1), (0, 1)]
_SUM_OVER_LAST = ["parallel", "parallel", "reduction"]


def dpas(lanes: Lanes, op: DpasOp) -> None:
    """Lower a product to one instruction; the lane packs B if it is not packed."""
    element = base.element_type(op.lhs.type)
    rows, depth = base.shape_of(op.lhs.type)
    is_tf32 = lanes.layout(op.lhs).spread is Distribution.HALVES
    bits = 32 if is_tf32 else bit_width(element)
    if depth * bits != _DEPTH_BITS or rows > PIECE or rows not in (1, 2, 4, 8):
        raise refusal(
            op,
            f"no instruction multiplies {op.lhs.type} and {op.rhs.type}",
            "A has 8, 4, 2 or 1 rows of 256 bits, B 16 columns",
        )
    names = op.codes or [_name(element, sign, is_tf32) for sign in op.unsigned]
    left, right = lanes.one(op.lhs), lanes.pieces(op.rhs)
    if is_tf32:
        a = _rounded(lanes, left)
        b = joined(lanes, [_rounded(lanes, piece) for piece in right])
    else:
        a = recast(lanes, left, builtin.i16)
        b = joined(lanes, [recast(lanes, piece, builtin.i32) for piece in right])
    (type_,) = lanes.layout(op.result).types
    c = lanes.constant(0, type_) if op.acc is None else lanes.one(op.acc)
    made = simt.DpasOp(a, b, c, a_type=names[0], b_type=names[1])
    lanes.hold(op.result, lanes.insert(made))


def contract(lanes: Lanes, op: vector.ContractOp) -> None:
    """Lower a product of rows and a 16x16 matrix, which the lanes compute."""
    (m, k), right = base.shape_of(op.lhs.type), base.shape_of(op.rhs.type)
    element = base.element_type(op.result.type)
    if (
        list(op.maps) != _ROWS_BY_COLUMNS
        or list(op.iterators) != _SUM_OVER_LAST
        or op.kind.kind != "add"
        or m not in (1, 2, 4, PIECE)
        or (k, right) != (LANES, (LANES, LANES))
        or element not in (builtin.f32, builtin.f64)
        or {base.element_type(each.type) for each in op.operands} != {element}
    ):
        raise refusal(
            op,
            "lanes multiply 8, 4, 2 or 1 rows of 16 by 16x16 numbers of f32 or f64",
            "cut and pad larger and other products",
        )
    upper, lower = lanes.pieces(op.rhs)
    a, c = lanes.one(op.lhs), lanes.one(op.acc)
    lanes.hold(op.result, lanes.insert(simt.LaneProductOp(a, upper, lower, c)))


def _rounded(lanes: Lanes, piece: SSAValue) -> SSAValue:
    """Round to the ten bits of tf32, because the matrix unit would truncate."""
    return lanes.beside(piece, "tf32", lambda: lanes.insert(simt.RoundToTf32Op(piece)))


def _name(element: Attribute, is_unsigned: bool, is_tf32: bool) -> str:
    if is_tf32:
        return "tf32"
    if base.integer_width(element) == 8:
        return "u8" if is_unsigned else "i8"
    return element.name
