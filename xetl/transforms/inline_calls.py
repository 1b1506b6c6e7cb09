"""Put the body of a function where it is called.

*What*: calls of functions of the same module, from the inside out; functions that
nobody calls any more go, unless they are kernels.
*Why*: which subgroup owns what, and where a barrier must stand, is decided for a kernel
as a whole.  Kernels from Python come without calls; a text may have some.
*Left alone*: functions that call themselves, have several blocks, or no body.

before: %x = func.call @twice(%a)
after:  %x = arith.addf %a, %a
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import operations_in
from xetl.dialects.upstream import func, gpu
from xetl.ir.builder import Pass

Function: TypeAlias = func.FuncOp | gpu.FuncOp


class InlineCallsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for holder in operations_in(op, ModuleOp, gpu.ModuleOp):
            found = [op for op in holder.body.block.ops if isinstance(op, Function)]
            functions = {op.sym_name.data: op for op in found}
            called = {name for f in functions.values() for name in _callees(f)}
            for name in functions:
                _inline_into(functions, name, ())
            for name in called - {n for f in functions.values() for n in _callees(f)}:
                function = functions[name]
                if not (isinstance(function, gpu.FuncOp) and function.is_kernel):
                    Rewriter.erase_op(function)


def _calls(function: Function) -> list[func.CallOp]:
    return operations_in(function, func.CallOp)


def _callees(function: Function) -> set[str]:
    return {call.callee.root_reference.data for call in _calls(function)}


def _inline_into(
    functions: Mapping[str, Function], name: str, around: tuple[str, ...]
) -> None:
    """Inline all calls in a function, callees first; ``around`` are being inlined."""
    around = (*around, name)
    for call in _calls(functions[name]):
        callee = call.callee.root_reference.data
        if callee not in functions or callee in around:
            continue
        _inline_into(functions, callee, around)
        # What still calls one of those around would do so for ever.
        function = functions[callee]
        if len(function.body.blocks) == 1 and not _callees(function) & {*around}:
            _inline(call, function)


def _inline(call: func.CallOp, function: Function) -> None:
    values: dict[SSAValue, SSAValue] = dict(
        zip(function.body.block.args, call.arguments)
    )
    for op in function.body.block.ops:
        if isinstance(op, func.ReturnOp | gpu.ReturnOp):
            for old, new in zip(call.results, op.operands):
                old.replace_all_uses_with(values.get(new, new))
            break
        new = op.clone(values)
        for inner in new.walk():
            # Errors show the line of the function, and that of the call.
            callee, caller = inner.location, call.location
            known = FileLineColLoc | CallSiteLoc
            inner.location = (
                CallSiteLoc(callee, caller)
                if isinstance(callee, known) and isinstance(caller, known)
                else caller
            )
        Rewriter.insert_op(new, InsertPoint.before(call))
    Rewriter.erase_op(call)
