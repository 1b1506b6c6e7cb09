"""f32 with the precision of tf32: what the matrix unit multiplies."""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from xetl.dialects.base import with_element
from xetl.dialects.upstream import arith
from xetl_xegpu.lowering.lanes.state import Lanes

_CUT = 13
"""Bits of the mantissa of f32 that tf32 does not have."""
_QUIET = 1 << 22
"""The bit that keeps a NaN a NaN, whatever is cut."""


def rounded_to_tf32(lanes: Lanes, piece: SSAValue) -> SSAValue:
    """f32 rounded to nearest even, to ten bits of mantissa; it stays f32."""
    words = with_element(piece.type, i32)

    def word(number: int) -> SSAValue:
        return lanes.constant(number, words)

    whole = lanes.emit(arith.BitcastOp(piece, words))
    last = lanes.emit(arith.ShruiOp(whole, word(_CUT)))
    odd = lanes.emit(arith.AndiOp(last, word(1)))
    half = lanes.emit(arith.AddiOp(odd, word((1 << (_CUT - 1)) - 1)))
    near = lanes.emit(arith.AddiOp(whole, half))
    quiet = lanes.emit(arith.OriOp(whole, word(_QUIET)))
    is_nan = lanes.emit(arith.CmpfOp("uno", piece, piece))
    chosen = lanes.emit(arith.SelectOp(is_nan, quiet, near))
    short = lanes.emit(arith.AndiOp(chosen, word(-1 << _CUT)))
    return lanes.emit(arith.BitcastOp(short, piece.type))
