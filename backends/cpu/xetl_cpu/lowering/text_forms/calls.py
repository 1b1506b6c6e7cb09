"""Calls as the code of what is called."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.upstream import func, gpu
from xetl_cpu.lowering.text_forms.writing import replace_by

_DEEPEST = 64
"""Calls inside calls; more are taken for a function that calls itself."""


def inline_calls(kernel: gpu.FuncOp) -> None:
    """Put the bodies of all functions that a kernel calls in the place of the calls.

    A function that calls itself keeps the call, which is refused later.
    """
    functions = _functions(kernel)
    for _ in range(_DEEPEST):
        calls = [op for op in kernel.walk() if isinstance(op, func.CallOp)]
        calls = [op for op in calls if _name(op) in functions]
        if not calls:
            return
        for call in calls:
            _inline(call, functions[_name(call)])


def _name(call: func.CallOp) -> str:
    return call.callee.string_value()


def _functions(kernel: gpu.FuncOp) -> dict[str, Operation]:
    """By name, what has a body in the modules around a kernel; the nearest first."""
    found: dict[str, Operation] = {}
    around = kernel.parent_op()
    while around is not None:
        for op in around.regions[0].block.ops:
            if isinstance(op, func.FuncOp | gpu.FuncOp) and op.body.blocks:
                found.setdefault(op.sym_name.data, op)
        around = around.parent_op()
    return found


def _inline(call: func.CallOp, callee: Operation) -> None:
    body = callee.clone().regions[0]
    block: Block = body.blocks[0]
    for argument, value in zip(list(block.args), call.operands):
        argument.replace_all_uses_with(value)
    last = block.last_op
    assert last is not None
    results: list[SSAValue] = list(last.operands)
    Rewriter.erase_op(last)
    target = call.parent
    assert target is not None
    for op in list(block.ops):
        op.detach()
        target.insert_op_before(op, call)
    replace_by(call, *results)
