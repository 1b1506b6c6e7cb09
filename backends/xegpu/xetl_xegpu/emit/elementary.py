"""Emission of `math`: the functions of OpenCL C, whose accuracy is the language's.

Full profile, OpenCL C 3.0, table "Relative error as ULPs": at most 5 for what the
language has, 16 for erf and pow; exp 3. Divisions and roots: see `quotient`.
"""

from __future__ import annotations

from typing import Any

from xetl.codegen import math as core
from xetl.codegen.arith import in_f32
from xetl.codegen.emitter import Emit
from xetl_xegpu.emit.builtins import function
from xetl_xegpu.emit.emitter import Table
from xetl_xegpu.emit.mangling import opencl_type


def _function(name: str) -> Emit:
    def emit(em: Any, op: Any) -> None:
        def compute(args: list[Any]) -> Any:
            type_ = opencl_type(args[0].type)
            return em.call(function(name, type_, *[type_] * len(args)), args)

        em.set(op.result, in_f32(em, op.result.type, compute, *em.all(op.operands)))

    return emit


TABLE: Table = {
    **{cls: _function(name) for cls, name in core.FUNCTIONS.items()},
}
