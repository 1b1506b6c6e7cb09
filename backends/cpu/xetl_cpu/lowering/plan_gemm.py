"""plan-gemm: each product gets its plan, ``#xsmm.plan<...>``, and its micro-kernel.

Before: ``xsmm.brgemm.tile`` as raised. After: the same with ``plan`` (the numbers that
decide how it is packed, blocked and multiplied) and the ``xsmm.brgemm.dispatch`` of
that plan. Later passes and the emission of micro-kernels read the plan, and choose
nothing themselves. A plan may also be written by hand. `microkernels/blocking.py`
chooses the numbers from the facts of the machine.

If vectors of f32 multiply bf16 or f16, an A that programs compute is widened right
after it is computed, once for all products that read it: a copy would widen it for each
product.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import constant_index, is_vector, operations_in
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder, Pass
from xetl_cpu import dialect
from xetl_cpu.lowering.tiles import task_along_n
from xetl_cpu.microkernels.blocking import Blocking, choose_blocking
from xetl_cpu.targets import find_target


@dataclass(frozen=True)
class PlanGemmPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine, widened = find_target(self.target), dict[SSAValue, SSAValue]()
        for product in operations_in(op, dialect.BrgemmTileOp):
            if product.plan is None:
                (m, n, _), dtype = product.shape(), dialect.element_name(product.b)
                least = _columns_of_a_program(product)
                plan = choose_blocking(machine, dtype, m, n, product.unsigned, least)
            else:
                plan, problem = product.plan.data, product.plan.data.problem()
                if problem is not None:
                    raise VerifyException(f"a plan cannot be followed: {problem}")
            kernel = Builder.before(product).insert(dialect.dispatch_of(plan))
            kernel.name_hint = "kernel"
            a = product.a
            if _is_widened(product, plan):
                if a not in widened:
                    type_ = VectorType(
                        dialect.element_attribute(plan.compute),
                        dialect.operand_shape(a),
                    )
                    widened[a] = Builder.after(a).insert(arith.ExtfOp(a, type_))
                a = widened[a]
            Rewriter.replace_op(product, product.changed(a=a, plan=plan, kernel=kernel))


def _is_widened(product: dialect.BrgemmTileOp, plan: Blocking) -> bool:
    """Whether A is computed by the program, and is multiplied as a wider type."""
    is_computed = is_vector(product.a.type) and not plan.is_skinny
    return is_computed and plan.compute == "f32" != dialect.element_name(product.a)


def _columns_of_a_program(product: dialect.BrgemmTileOp) -> int | None:
    """Return the columns of the user's tile, if `grow-tiles` merged programs."""
    task = task_along_n(product)
    some = None if task is None else task[1].owner
    return constant_index(some.rhs) if isinstance(some, arith.MuliOp) else None
