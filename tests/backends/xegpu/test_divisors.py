"""Divisors of columns: through long programs, and loops that carry them."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder
from xetl_xegpu.lowering.convert_xetile_to_xegpu.plan import Divisors


def test_a_long_program() -> None:
    block = Block(arg_types=[IndexType()])
    build = Builder.at_end(block)
    step = build.index(12)
    value: SSAValue = build.insert(arith.MuliOp(block.args[0], build.index(8)))
    for _ in range(5000):
        value = build.insert(arith.AddiOp(value, step))
    assert Divisors().of(value) == 4
    assert Divisors().of(build.insert(arith.MuliOp(value, step))) == 48
