"""Remove `breakpoint()` and `assume(...)` from kernels that are compiled.

*What*: each ``xetile.breakpoint`` goes, with a remark, and each ``xetile.assert`` of
what is assumed.
*Why*: only the interpreter can stop, and it alone asks whether promises are kept; the
values they look at must not keep others from being fused.
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
    """See the module."""

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
