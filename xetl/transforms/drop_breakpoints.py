"""Remove `breakpoint()` and `assume(...)` from kernels that are compiled.

*What*: erases each ``xetile.breakpoint``, with a remark, and each ``xetile.assert``
that comes from `assume`.
*Why*: only the interpreter stops at breakpoints and checks assumptions. Their operands
must not prevent fusion.
*Left alone*: everything else.

before: xetile.breakpoint(%i) {names = ["i"]} : index
after:
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from xetl.dialects.base import operations_in
from xetl.dialects.xetile import AssertOp, BreakpointOp
from xetl.ir.builder import Pass
from xetl.transforms.diagnostics import remark


class DropBreakpointsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for each in operations_in(op, BreakpointOp, AssertOp):
            if isinstance(each, BreakpointOp):
                remark(
                    each,
                    "breakpoint",
                    "ignored in compiled code; `kernel.interpret` or XETL_INTERPRET=1"
                    " stops there",
                )
            elif each.assumed is None:
                continue
            Rewriter.erase_op(each)
