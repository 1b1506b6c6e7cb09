"""Indices of which each row counts up: `find_run`."""

import pytest

from xetl.dialects.parser import parse_module
from xetl_cpu.lowering.loops.runs import find_run

SHIFTED = """
func.func @f(%n: KIND) {{
  %step = vector.step : vector<16xindex>
  %narrow = arith.index_cast %step : vector<16xindex> to vector<16xKIND>
  %by = {by} vector<16xKIND>
  %moved = arith.{name} %narrow, %by : vector<16xKIND>
  %index = arith.index_cast %moved : vector<16xKIND> to vector<16xindex>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("kind", "name", "by", "counts"),
    [
        ("i32", "subi", "arith.constant dense<3> :", True),
        ("i32", "addi", "arith.constant dense<-900> :", True),
        ("i64", "subi", "arith.constant dense<0> :", True),
        ("i32", "addi", "arith.constant dense<2147483640> :", False),  # it wraps
        ("i32", "addi", "vector.broadcast %n : KIND to", False),  # it may
        ("i16", "subi", "arith.constant dense<3> :", False),
        ("i32", "muli", "arith.constant dense<2> :", False),
    ],
)
def test_moved_by_a_constant(kind: str, name: str, by: str, counts: bool) -> None:
    text = SHIFTED.format(by=by, name=name).replace("KIND", kind)
    ops = [op for op in parse_module(text).walk() if op.name == "arith.index_cast"]
    run = find_run(ops[-1].results[0])
    assert (run is not None) == counts
