"""Control flow whose carried values become several: each i64 here two of i32."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import IntegerType, i64
from xdsl.ir import Block, Operation, SSAValue

from xetl.dialects.parser import parse_module
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder
from xetl.ir.conversion import Carried, convert_for, convert_if, convert_while

i32 = IntegerType(32)
PAIRS = """module {
  func.func @f(%n: index, %c: i1, %x: i64, %y: i64) { BODY func.return }
}"""


class Halves:
    """Each i64 is two of i32; sums of it are sums of both."""

    def __init__(self, block: Block) -> None:
        self.emit = Builder.at_end(block)
        self.pairs: dict[SSAValue, Sequence[SSAValue]] = {}

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        if value.type == i64:
            return Carried([i32, i32], self.pairs.__getitem__, self.pairs.__setitem__)
        return Carried([value.type], lambda new: [self.converted(new)], self._bind)

    def _bind(self, old: SSAValue, new: Sequence[SSAValue]) -> None:
        self.pairs[old] = new

    def converted(self, value: SSAValue) -> SSAValue:
        (found,) = self.pairs.get(value, [value])
        return found

    def convert(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, arith.AddiOp):
                pairs = zip(self.pairs[op.lhs], self.pairs[op.rhs])
                self.pairs[op.result] = [
                    self.emit.insert(arith.AddiOp(*p)) for p in pairs
                ]
            elif isinstance(op, scf.ForOp):
                convert_for(self, op)
            elif isinstance(op, scf.WhileOp):
                convert_while(self, op)
            elif isinstance(op, scf.IfOp):
                convert_if(self, op)


LOOP = """%r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (i64) {
  %b = arith.addi %a, %y : i64  scf.yield %b : i64 }"""
BRANCH = """%r, %s = scf.if %c -> (i64, i1) { scf.yield %x, %c : i64, i1 }
  else { %b = arith.addi %x, %y : i64  scf.yield %b, %c : i64, i1 }"""
WHILE = """%r = scf.while (%a = %x, %d = %c) : (i64, i1) -> i64 {
  scf.condition(%d) %a : i64 } do { ^bb0(%e: i64):
  %b = arith.addi %e, %y : i64  scf.yield %b, %c : i64, i1 }"""
BARE = "scf.if %c { }"


@pytest.mark.parametrize(
    ("body", "carried", "sums"),
    [(LOOP, 2, 2), (BRANCH, 3, 2), (WHILE, 2, 2), (BARE, 0, 0)],
    ids=["for", "if", "while", "if without else"],
)
def test_carried_values_become_two(body: str, carried: int, sums: int) -> None:
    module = parse_module(PAIRS.replace("BODY", body))
    (function,) = module.body.block.ops
    old = function.regions[0].block
    new = Block(arg_types=[old.args[0].type, old.args[1].type, *[i32] * 4])
    halves = Halves(new)
    _, _, x, y = old.args
    for value, at in ((old.args[0], 0), (old.args[1], 1)):
        halves.pairs[value] = [new.args[at]]
    halves.pairs |= {x: new.args[2:4], y: new.args[4:6]}
    halves.convert(old)
    (made,) = new.ops
    made.verify()
    assert len(made.results) == carried
    assert [each.type for each in made.results][:2] == [i32, i32][:carried]
    inside = [op for op in made.walk() if isinstance(op, arith.AddiOp)]
    assert len(inside) == sums
    for region in made.regions:
        for block in region.blocks:
            assert isinstance(block.last_op, scf.YieldOp | scf.ConditionOp)
