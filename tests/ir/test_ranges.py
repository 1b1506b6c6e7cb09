"""What numbers an index may be."""

import pytest

from xetl.analysis.ranges import Range, Ranges
from xetl.dialects.parser import make_context, parse_module

TEXT = """
func.func @k(%n: index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c30 = arith.constant 30 : index
  scf.for %i = %c0 to %c30 step %c4 {
    %counted = arith.addi %i, %c2 : index
    %half = arith.floordivsi %i, %c2 : index
    %twice = arith.muli %half, %c2 : index
    %odd = arith.subi %i, %twice : index
    %capped = arith.minui %odd, %c30 : index
    %other = arith.subi %c30, %twice : index
  }
  scf.for %j = %c2 to %n step %c4 {
    %open = arith.addi %j, %c2 : index
  }
  %program = gpu.block_id x
  %third = arith.floordivsi %n, %c3 : index
  %thrice = arith.muli %third, %c3 : index
  %left = arith.subi %n, %thrice : index
  %wrapped = arith.minui %n, %c30 : index
  %positive = arith.maxsi %n, %c2 : index
  %clamped = arith.minsi %positive, %c30 : index
  %either = arith.minsi %n, %left : index
  %moved = arith.addi %positive, %c2 : index
  %neither = arith.minsi %n, %n : index
  func.return
}
"""


@pytest.mark.parametrize(
    ("name", "range_"),
    [
        ("counted", Range(2, 30)),  # the last trip is at 28
        ("half", Range(0, 14)),
        ("odd", Range(0, 1)),
        ("capped", Range(0, 1)),
        ("other", Range(2, 30)),
        ("open", None),
        ("left", Range(0, 2)),
        ("wrapped", None),
        ("positive", Range(2, (1 << 63) - 1)),
        ("clamped", Range(2, 30)),
        ("either", Range(-(1 << 63), 2)),
        ("moved", None),  # it may overflow
        ("neither", None),
        ("program", Range(0, (1 << 40) - 1)),
    ],
)
def test_ranges(name: str, range_: Range | None) -> None:
    module = parse_module(TEXT, "k.mlir", make_context())
    values = (result for op in module.walk() for result in op.results)
    found = next(value for value in values if value.name_hint == name)
    assert Ranges(subgroups=1).of(found) == range_
