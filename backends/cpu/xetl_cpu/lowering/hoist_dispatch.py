"""hoist-dispatch: kernels are looked up once, at the head of their function.

Dispatches have no operands and no effect, so they move out of all loops; equal ones are
merged.  Constants move along, so that the head of the function looks as in seed 003.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith, func
from xetl.dialects.xsmm import DispatchOp
from xetl.ir.builder import Pass

Key = tuple[str, tuple[tuple[str, Attribute], ...]]


class HoistDispatchPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for function in operations_in(op, func.FuncOp):
            _hoist(function)


def _hoist(function: func.FuncOp) -> None:
    known: dict[Key, DispatchOp] = {}
    found = operations_in(function, DispatchOp)
    if not found:
        return
    head = function.body.block
    stay = (arith.ConstantOp, DispatchOp)
    first = next(op for op in head.ops if not isinstance(op, stay))
    for op in found:
        same = known.setdefault(_key(op), op)
        op.detach()
        if same is op:
            head.insert_op_before(op, first)
        else:
            op.kernel.replace_all_uses_with(same.kernel)
            op.erase()


def _key(op: DispatchOp) -> Key:
    return op.name, tuple(sorted(op.properties.items(), key=lambda pair: pair[0]))
