"""The operations of MLIR's `index` dialect as those of `arith`, for every backend."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import Operation

from xetl.dialects.upstream import arith, index

_BINARY: dict[type[Operation], Any] = {
    index.AddOp: arith.AddiOp,
    index.SubOp: arith.SubiOp,
    index.MulOp: arith.MuliOp,
    index.DivsOp: arith.DivsiOp,
    index.DivuOp: arith.DivuiOp,
    index.CeildivsOp: arith.CeildivsiOp,
    index.CeildivuOp: arith.CeildivuiOp,
    index.FloordivsOp: arith.FloordivsiOp,
    index.RemsOp: arith.RemsiOp,
    index.RemuOp: arith.RemuiOp,
    index.MaxsOp: arith.MaxsiOp,
    index.MaxuOp: arith.MaxuiOp,
    index.MinsOp: arith.MinsiOp,
    index.MinuOp: arith.MinuiOp,
    index.ShlOp: arith.ShliOp,
    index.ShrsOp: arith.ShrsiOp,
    index.ShruOp: arith.ShruiOp,
    index.AndOp: arith.AndiOp,
    index.OrOp: arith.OriOp,
    index.XorOp: arith.XoriOp,
}
_CASTS: dict[type[Operation], Any] = {
    index.CastsOp: arith.IndexCastOp,
    index.CastuOp: arith.IndexCastuiOp,
}
_INDEX_BITS = 64

INDEX_OPERATIONS: tuple[type[Operation], ...] = (
    *_BINARY,
    *_CASTS,
    index.ConstantOp,
    index.BoolConstantOp,
    index.CmpOp,
    index.SizeofOp,
)
"""What `as_arith` takes: all of the dialect."""


def as_arith(op: Operation) -> Operation:
    """The operation of `arith` that is equal to one of `index`, on its operands."""
    if isinstance(op, index.ConstantOp):
        return arith.ConstantOp.index(op.value.value.data)
    if isinstance(op, index.BoolConstantOp):
        return arith.ConstantOp.integer(abs(op.value.value.data), i1)
    if isinstance(op, index.CmpOp):
        return arith.CmpiOp(op.predicate_name, op.lhs, op.rhs)
    if isinstance(op, index.SizeofOp):
        return arith.ConstantOp.index(_INDEX_BITS)
    if type(op) in _CASTS:
        return _CASTS[type(op)](op.operands[0], op.results[0].type)
    return _BINARY[type(op)](*op.operands)
