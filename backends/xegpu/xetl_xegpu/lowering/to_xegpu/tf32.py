"""tf32, which is an f32 in memory and in registers.

It is rounded to 10 bits of fraction where a value becomes one by `arith.truncf`;
products of tf32 round their operands themselves.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatTF32Type, f32, i32
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects.base import element_type, vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith
from xetl_xegpu.lowering.to_xegpu.elementwise import each_part
from xetl_xegpu.lowering.to_xegpu.values import vector_of
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule

_DROPPED = 13
"""Bits of the fraction of an f32 that a tf32 has not."""
_QUIET = 1 << 22
"""What keeps a NaN a NaN, whatever is cut."""


def is_tf32(type_: Attribute) -> bool:
    """Whether these are tf32, or vectors of them."""
    return isinstance(element_type(type_), FloatTF32Type)


def rounded(c: Converter, part: SSAValue) -> SSAValue:
    """A fragment of f32 to the nearest tf32, ties to even."""
    shape = vector_type(part).get_shape()
    words, emit = vector_of(i32, *shape), c.emit
    bits = emit.value(arith.BitcastOp(part, words))
    behind = emit.value(arith.ShruiOp(bits, emit.constant(_DROPPED, words)))
    odd = emit.value(arith.AndiOp(behind, emit.constant(1, words)))
    half = emit.constant((1 << (_DROPPED - 1)) - 1, words)
    up = emit.value(arith.AddiOp(bits, emit.value(arith.AddiOp(odd, half))))
    nan = emit.value(arith.CmpfOp("uno", part, part))
    quiet = emit.value(arith.OriOp(bits, emit.constant(_QUIET, words)))
    chosen = emit.value(arith.SelectOp(nan, quiet, up))
    kept = emit.value(arith.AndiOp(chosen, emit.constant(-1 << _DROPPED, words)))
    return emit.value(arith.BitcastOp(kept, vector_of(f32, *shape)))


def _truncf(c: Converter, op: arith.TruncfOp) -> None:
    if not is_vector(op.result.type):
        c.keep(op)
        return
    if not is_tf32(op.result.type):
        each_part(c, op)
        return
    parts = list(c.pieces(op.source).parts)
    wide = vector_type(parts[0]).element_type
    if wide != f32:
        parts = [
            c.emit.value(arith.TruncfOp(p, vector_of(f32, *vector_type(p).get_shape())))
            for p in parts
        ]
    c.give_parts(op.result, [rounded(c, part) for part in parts])


def _extf(c: Converter, op: arith.ExtfOp) -> None:
    if not is_vector(op.result.type):
        c.keep(op)
    elif is_tf32(op.source.type) and element_type(op.result.type) == f32:
        c.give_parts(op.result, c.pieces(op.source).parts)
    else:
        each_part(c, op)


RULES: dict[type[Operation], Rule] = {
    arith.TruncfOp: _truncf,
    arith.ExtfOp: _extf,
}
