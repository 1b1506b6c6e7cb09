"""Constants: what a lane holds of a number for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerType,
    i32,
)
from xdsl.ir import Attribute, SSAValue

from xetl.dialects.base import element_type
from xetl.dialects.kinds_of_types import is_dense
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu.lowering.lanes.held import LANES, Spread, lane_vector
from xetl_xegpu.lowering.lanes.state import Lanes
from xetl_xegpu.lowering.lanes.vectors import collected, filled, length_of

Number = int | float


def constant(lanes: Lanes, op: arith.ConstantOp) -> None:
    """One number everywhere, or the numbers of this lane."""
    layout = lanes.layout(op.result)
    value = splat_value(op.value)
    if value is not None:
        number = value
        if layout.spread in (Spread.PACKED, Spread.GROUPS):
            held_bits = bit_width(layout.element)
            number = _repeated(number, element_type(op.result.type), held_bits)
        lanes.hold(op.result, *[lanes.constant(number, t) for t in layout.types])
        return
    assert is_dense(op.value)
    numbers = cast(Sequence[Number], op.value.get_values())
    if layout.spread is Spread.SAME:
        rows = [[number] for number in numbers]
    elif layout.spread is Spread.COLUMNS:
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
        here = lanes.emit(arith.CmpiOp("eq", lanes.lane, lanes.constant(lane, i32)))
        new = _listed(lanes, column, element)
        from_here = filled(lanes, here, length_of(new))
        piece = lanes.emit(arith.SelectOp(from_here, new, piece))
    return piece


def _listed(lanes: Lanes, numbers: list[Number], element: Attribute) -> SSAValue:
    if len({repr(number) for number in numbers}) == 1:
        return lanes.constant(numbers[0], lane_vector(element, len(numbers)))
    return collected(lanes, [lanes.constant(number, element) for number in numbers])


def _repeated(number: Number, element: Attribute, bits: int) -> int:
    """The integer of ``bits`` bits that holds the number in each of its parts."""
    if isinstance(element, IntegerType):
        size, raw = element.compile_time_size, element.pack([int(number)])
    else:
        assert isinstance(element, AnyFloat)
        size, raw = element.compile_time_size, element.pack([number])
    part = int.from_bytes(raw, "little")
    return sum(part << 8 * at for at in range(0, bits // 8, size))
