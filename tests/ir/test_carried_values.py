"""What loops and conditionals carry: `sources` and `targets` say the same."""

import pytest
from xdsl.ir import SSAValue

from xetl.analysis.control_flow import carried_together, sources, targets
from xetl.dialects.parser import make_context, parse_module

TEXT = """
func.func @k(%n: index, %x: f32, %y: f32, %p: i1) -> (f32, f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) {
    %b = arith.addf %a, %y : f32
    scf.yield %b : f32
  }
  %w:2 = scf.while (%c = %f) : (f32) -> (f32, f32) {
    scf.condition(%p) %c, %y : f32, f32
  } do {
  ^bb0(%d: f32, %e: f32):
    %g = arith.mulf %d, %e : f32
    scf.yield %g : f32
  }
  %s = scf.if %p -> (f32) {
    scf.yield %w#0 : f32
  } else {
    scf.yield %w#1 : f32
  }
  %t = scf.execute_region -> f32 {
    scf.yield %s : f32
  }
  func.return %f, %w#0, %s, %t : f32, f32, f32, f32
}
"""


@pytest.fixture
def module():
    return parse_module(TEXT, "k.mlir", make_context())


def test_sources_and_targets_are_each_others_inverse(module) -> None:
    forward: set[tuple[SSAValue, SSAValue]] = set()
    backward: set[tuple[SSAValue, SSAValue]] = set()
    for op in module.walk():
        for index, operand in enumerate(op.operands):
            forward |= {(operand, target) for target in targets(op, index)}
        arguments = [a for r in op.regions for b in r.blocks for a in b.args]
        for value in (*op.results, *arguments):
            backward |= {(each, value) for each in sources(value) or ()}
    assert forward == backward
    assert len(forward) == 13


def test_values_that_are_one_variable(module) -> None:
    groups = [
        [value.name_hint for value in group]
        for op in module.walk()
        for group in carried_together(op)
    ]
    assert groups[0] == ["x", "a", "b", "f"]
    assert ["f", "c", "g"] in groups
    assert len(groups) == 5
