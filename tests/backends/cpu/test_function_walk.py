"""Whether rows have functions is asked of each value once."""

from types import SimpleNamespace
from typing import Any

from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import Block, SSAValue

from xetl.dialects.upstream import arith, math
from xetl_cpu.lowering.loops.state import has_functions


def _doubled(value: SSAValue, times: int) -> SSAValue:
    """Both operands of each sum are the sum before: 2 to ``times`` paths lead back."""
    for _ in range(times):
        value = arith.AddfOp(value, value).result
    return value


def test_sums_of_a_value_and_itself_are_looked_at_once() -> None:
    (row,) = Block(arg_types=[VectorType(f32, [1, 64])]).args
    state: Any = SimpleNamespace(buffers={})
    assert not has_functions(state, _doubled(row, 200))
    function = math.ExpOp(_doubled(row, 200)).result
    assert has_functions(state, _doubled(function, 200))
    state.buffers[function] = None  # computed elsewhere
    assert not has_functions(state, _doubled(function, 200))
