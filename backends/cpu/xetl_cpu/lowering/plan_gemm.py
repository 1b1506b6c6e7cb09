"""plan-gemm: each product gets its plan, ``#xsmm.plan<...>``, and its micro-kernel.

Before: ``xsmm.brgemm.tile`` as raised. After: the same with ``plan``, the numbers by
which it is packed, cut and multiplied, and the ``xsmm.brgemm.dispatch`` that they give.
Passes and the emission of micro-kernels that come later read the plan, and choose
nothing themselves; it may be written by hand as well. The numbers are chosen by
`microkernels/blocking.py` from the facts of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import constant_index, operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass
from xetl_cpu.dialect import BrgemmTileOp, dispatch_of, element_name
from xetl_cpu.lowering.tiles import task_along_n
from xetl_cpu.microkernels.blocking import choose_blocking
from xetl_cpu.targets import find_target


@dataclass(frozen=True)
class PlanGemmPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine = find_target(self.target)
        for product in operations_in(op, BrgemmTileOp):
            if product.plan is None:
                (m, n, _), dtype = product.shape(), element_name(product.a)
                least = _columns_of_a_program(product)
                plan = choose_blocking(machine, dtype, m, n, product.unsigned, least)
            else:
                plan, problem = product.plan.data, product.plan.data.problem()
                if problem is not None:
                    raise VerifyException(f"a plan cannot be followed: {problem}")
            kernel = Builder.before(product).insert(dispatch_of(plan))
            kernel.name_hint = "kernel"
            Rewriter.replace_op(product, product.changed(plan=plan, kernel=kernel))


def _columns_of_a_program(product: BrgemmTileOp) -> int | None:
    """Those of the user's tile, where `grow-tiles` made a task of several programs."""
    task = task_along_n(product)
    some = None if task is None else task[1].owner
    return constant_index(some.rhs) if isinstance(some, arith.MuliOp) else None
