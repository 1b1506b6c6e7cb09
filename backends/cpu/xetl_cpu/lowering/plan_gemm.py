"""plan-gemm: each product gets its plan, ``#xsmm.plan<...>``.

Before: ``xsmm.brgemm.tile`` as raised. After: the same with ``plan``, the numbers by
which it is packed, cut and multiplied. Passes and the emission of micro-kernels that
come later read it, and choose nothing themselves; it may be written by hand as well.
The numbers are chosen by `microkernels/blocking.py` from the facts of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl_cpu.dialect import BrgemmTileOp, element_name
from xetl_cpu.microkernels import choose_blocking
from xetl_cpu.plan_attribute import PlanAttr
from xetl_cpu.targets import find_target


@dataclass(frozen=True)
class PlanGemmPass(ModulePass):
    """See the module docstring."""

    target: str = "host"

    name = "plan-gemm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        machine = find_target(self.target)
        for product in op.walk():
            if isinstance(product, BrgemmTileOp) and product.plan is None:
                tile, dtype = product.user_tile(), element_name(product.a)
                product.plan = PlanAttr(choose_blocking(machine, dtype, *tile))
