"""tf32 as f32, of which products see 10 bits of fraction.

In memory and in registers a tf32 is an f32. It is rounded where a value becomes one
by `arith.truncf`, and where a product reads it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    FloatAttr,
    FloatTF32Type,
    FunctionType,
    MemRefType,
    VectorType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import element_type
from xetl.dialects.kinds_of_types import is_dense, is_memref, is_vector
from xetl.dialects.literals import with_type
from xetl.dialects.upstream import arith, gpu
from xetl.dialects.xetile import TileMmaOp, TileType
from xetl.ir.builder import Builder
from xetl_cpu.lowering.expand_text_forms.writing import replace_by

_DROPPED = 13
"""Bits of the fraction of an f32 that a tf32 has not."""


def as_f32(kernel: gpu.FuncOp) -> None:
    """Rewrite a kernel so that no tf32 is left."""
    operations = list(kernel.walk())
    products = [o for o in operations if _is_product(o)]
    casts = [o for o in operations if _is_rounding(o)]
    for op in operations:
        for value in _values(op):
            _replace(op, value)
    inputs = [argument.type for argument in kernel.body.block.args]
    kernel.function_type = FunctionType.from_lists(inputs, [])
    for op in products:
        w = Builder.before(op)
        for number in (0, 1):
            op.operands[number] = _rounded(w, op.operands[number])
    for op in casts:
        w, source = Builder.before(op), op.operands[0]
        if element_type(source.type) != f32:
            source = w.insert(arith.TruncfOp(source, op.results[0].type))
        replace_by(op, _rounded(w, source))
    for op in operations:
        if isinstance(op, arith.ExtfOp) and op.operands[0].type == op.result.type:
            replace_by(op, op.operands[0])


def _replace(op: Operation, value: SSAValue) -> None:
    new = _replaced(value.type)
    if new is value.type:
        return
    if isinstance(op, arith.ConstantOp):
        _retype(op, new)
    Rewriter.replace_value_with_new_type(value, new)


def _is_product(op: Operation) -> bool:
    return isinstance(op, TileMmaOp) and is_tf32(op.a.type)


def _is_rounding(op: Operation) -> bool:
    return isinstance(op, arith.TruncfOp) and is_tf32(op.result.type)


def is_tf32(type_: Attribute) -> bool:
    """True for tf32 and vectors of it."""
    return isinstance(element_type(type_), FloatTF32Type)


def _values(op: Operation) -> list[SSAValue]:
    arguments = [a for region in op.regions for b in region.blocks for a in b.args]
    return [*op.results, *arguments]


def _replaced(type_: Attribute) -> Attribute:
    """The type with f32 for tf32."""
    if isinstance(type_, FloatTF32Type):
        return f32
    if is_vector(type_) and is_tf32(type_):
        return VectorType(f32, type_.get_shape())
    if isinstance(type_, TileType) and isinstance(type_.element_type, FloatTF32Type):
        return TileType(type_.shape, f32, type_.encoding)
    if is_memref(type_) and isinstance(type_.element_type, FloatTF32Type):
        return MemRefType(f32, type_.get_shape(), type_.layout, type_.memory_space)
    return type_


def _retype(op: arith.ConstantOp, type_: Attribute) -> None:
    value = op.value
    if isinstance(value, FloatAttr):
        op.properties["value"] = FloatAttr(value.value.data, f32)
    elif is_dense(value) and is_vector(type_):
        # Both have 32 bits.
        op.properties["value"] = with_type(value, type_)


def _rounded(w: Builder, value: SSAValue) -> SSAValue:
    """To nearest even, in the bits; infinities and NaN stay."""
    type_ = value.type
    bits = VectorType(i32, type_.get_shape()) if is_vector(type_) else i32

    def number(each: int) -> SSAValue:
        return w.constant(each, bits)

    raw = w.insert(arith.BitcastOp(value, bits))
    odd = w.insert(arith.ShruiOp(raw, number(_DROPPED)))
    odd = w.insert(arith.AndiOp(odd, number(1)))
    half = number((1 << (_DROPPED - 1)) - 1)
    up = w.insert(arith.AddiOp(raw, w.insert(arith.AddiOp(odd, half))))
    cut = w.insert(arith.AndiOp(up, number(-(1 << _DROPPED))))
    special = number(0x7F800000)
    exponent = w.insert(arith.AndiOp(raw, special))
    finite = w.insert(arith.CmpiOp("ne", exponent, special))
    chosen = w.insert(arith.SelectOp(finite, cut, raw))
    return w.insert(arith.BitcastOp(chosen, type_))
