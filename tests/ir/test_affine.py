"""What is known of index values: signs, factors, order of definitions."""

import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from xetl.analysis.affine import (
    divisor,
    dominates,
    is_defined_outside,
    is_multiple_of,
    is_non_negative,
    multiple_of,
)
from xetl.analysis.memory import may_alias, roots_of, stored_arguments
from xetl.dialects.parser import make_context, parse_module
from xetl.dialects.upstream import arith
from xetl.ir.builder import Builder

TEXT = """
func.func @k(%m: memref<?x8xf32>, %o: memref<8xf32>, %n: index, %p: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %below = arith.constant -1 : index
  %size = memref.dim %m, %c0 : memref<?x8xf32>
  scf.for %i = %c0 to %size step %c1 {
    %scaled = arith.muli %i, %c8 : index
    %moved = arith.addi %scaled, %c8 : index
    %unknown = arith.addi %scaled, %n : index
    %clamped = arith.maxsi %unknown, %c0 : index
    %rounded = arith.ceildivsi %moved, %c8 : index
    %chosen = arith.select %p, %moved, %below : index
    %either = arith.select %p, %moved, %scaled : index
  }
  %mine = memref.alloca() : memref<8xf32>
  %one = arith.select %p, %o, %mine : memref<8xf32>
  %f = arith.constant 0.0 : f32
  memref.store %f, %one[%c0] : memref<8xf32>
  return
}
"""


@pytest.fixture
def module():
    return parse_module(TEXT, "k.mlir", make_context())


@pytest.fixture
def values(module):
    found = {}
    for op in module.walk():
        arguments = [a for r in op.regions for b in r.blocks for a in b.args]
        found |= {value.name_hint: value for value in (*op.results, *arguments)}
    return found


def test_signs(values) -> None:
    known = {name for name, each in values.items() if _is_index(each)}
    known = {name for name in known if is_non_negative(values[name])}
    signed = {"c0", "c1", "c8", "size", "i", "scaled", "moved", "clamped"}
    assert known == signed | {"rounded", "either"}
    assert is_non_negative(values["unknown"], lambda argument: True)
    assert is_non_negative(0)
    assert not is_non_negative(-1)


def _is_index(value) -> bool:
    return str(value.type) == "index"


def test_factors(values) -> None:
    assert multiple_of(values["scaled"], 8) is values["i"]
    assert multiple_of(values["moved"], 8) is None
    assert is_multiple_of(values["either"], 8)
    assert not is_multiple_of(values["chosen"], 8)
    assert not is_multiple_of(values["unknown"], 8)
    assert is_multiple_of(24, 8)


def test_divisors_of_a_long_program() -> None:
    block = Block(arg_types=[IndexType()])
    build = Builder.at_end(block)
    step = build.index(12)
    value: SSAValue = build.insert(arith.MuliOp(block.args[0], build.index(8)))
    for _ in range(5000):
        value = build.insert(arith.AddiOp(value, step))
    assert divisor(value) == 4
    assert divisor(build.insert(arith.MuliOp(value, step))) == 48


def test_divisors_of_what_loops_carry() -> None:
    text = """
func.func @k(%n: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c12 = arith.constant 12 : index
  %r = scf.for %i = %c0 to %n step %c12 iter_args(%at = %c0) -> index {
    %next = arith.addi %at, %c8 : index
    %both = arith.addi %i, %next : index
    scf.yield %next : index
  }
  func.return
}
"""
    module = parse_module(text, "k.mlir", make_context())
    found = {v.name_hint: divisor(v) for op in module.walk() for v in op.results}
    assert (found["next"], found["both"], found["r"], found["c0"]) == (8, 4, 8, 0)


def test_where_values_are_defined(values) -> None:
    loop = values["i"].owner.parent_op()
    assert is_defined_outside(values["size"], loop)
    assert not is_defined_outside(values["moved"], loop)
    inside = values["either"].owner
    assert dominates(values["c8"], inside)
    assert dominates(values["moved"], inside)
    assert not dominates(values["mine"], inside)


def test_memory(module, values) -> None:
    (function,) = module.ops
    roots = roots_of(values["one"])
    assert roots == {values["o"], values["mine"]}
    assert stored_arguments(function) == [1]
    assert not may_alias(values["mine"], values["o"])
    assert may_alias(values["m"], values["o"]), "nobody has said they are apart"
    assert may_alias(None, values["mine"])
