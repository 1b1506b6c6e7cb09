"""Take `breakpoint()` out of kernels that are compiled.

*What*: each ``xetile.breakpoint`` goes, with a remark.
*Why*: only the interpreter can stop; the values it would show must not keep others
from being fused.
*Left alone*: everything else.

before: xetile.breakpoint(%i) {names = ["i"]} : index
after:
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl.dialects.xetile import BreakpointOp
from xetl.transforms.remarks import remark


class DropBreakpointsPass(ModulePass):
    """See the module."""

    name = "drop-breakpoints"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for each in [each for each in op.walk() if isinstance(each, BreakpointOp)]:
            remark(
                each,
                "breakpoint",
                "ignored in compiled code; `kernel.interpret` or XETL_INTERPRET=1 stops"
                " there",
            )
            each.detach()
            each.erase()
