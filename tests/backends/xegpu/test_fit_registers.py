"""Operations that were put into another order give what they gave."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lane_interpreter import run, to_lanes
from test_lanes_values import kernel
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers import FitRegistersPass, line_of
from xetl_xegpu.lowering.fit_registers.graph import Graph, Registers

BF16 = ml_dtypes.bfloat16
Array = np.ndarray[Any, np.dtype[Any]]
STEPS, ROWS = 10, 32
LARGE = f"!xegpu.tensor_desc<{ROWS}x16xbf16, #xegpu.block_tdesc_attr<array_length = 2>>"
TWO = f"vector<2x{ROWS // 2}x16x2xbf16>"
ONE = f"vector<{ROWS // 2}x16x2xbf16>"
PART = "vector<8x16x2xbf16>"


def products(*, writes: bool) -> str:
    """C = A @ B of 8x320 by 320x32: all that is read is read before the first product.

    Args:
        writes: whether A is overwritten by 1 between reading and multiplying.
    """
    lines = [
        f"""%i = xegpu.create_nd_tdesc %a0
            : memref<8x{STEPS * ROWS}xbf16> -> !xegpu.tensor_desc<8x16xbf16>
        %j = xegpu.create_nd_tdesc %a1 : memref<{STEPS * ROWS}x32xbf16> -> {LARGE}
        %o = xegpu.create_nd_tdesc %a2
            : memref<8x32xf32> -> !xegpu.tensor_desc<8x16xf32>
        %c16 = arith.constant 16 : index
        %s0_0 = arith.constant dense<0.0> : vector<8x16xf32>
        %s0_1 = arith.constant dense<0.0> : vector<8x16xf32>
        %ones = arith.constant dense<1.0> : vector<8x16xbf16>"""
    ]
    for step in range(STEPS):
        lines.append(
            f"""%y{step} = arith.constant {step * ROWS} : index
            %b{step} = xegpu.load_nd %j[%y{step}, %c0] <{{packed}}>
                : {LARGE} -> {TWO}"""
        )
    lines += [_a_of(step, half) for step in range(STEPS) for half in (0, 1)]
    if writes:
        lines += [
            f"xegpu.store_nd %ones, %i[%c0, %x{n}]"
            ": vector<8x16xbf16>, !xegpu.tensor_desc<8x16xbf16>"
            for n in range(2 * STEPS)
        ]
    lines += [_product(step, half) for half in (0, 1) for step in range(STEPS)]
    lines += [
        f"xegpu.store_nd %s{2 * STEPS}_{group}, %o[%c0, %c{16 * group}]"
        ": vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>"
        for group in (0, 1)
    ]
    shapes = f"8x{STEPS * ROWS}xbf16", f"{STEPS * ROWS}x32xbf16", "8x32xf32"
    return kernel("\n".join(lines), *shapes)


def _a_of(step: int, half: int) -> str:
    number = 2 * step + half
    return f"""%x{number} = arith.constant {16 * number} : index
        %l{number} = xegpu.load_nd %i[%c0, %x{number}]
            : !xegpu.tensor_desc<8x16xbf16> -> vector<8x16xbf16>"""


def _product(step: int, half: int) -> str:
    """Of all steps the first half of B, then of all the second: as bad as may be."""
    at, lines = half * STEPS + step, list[str]()
    for group in (0, 1):
        lines.append(
            f"""%w{at}_{group} = vector.extract %b{step}[{group}] : {ONE} from {TWO}
            %p{at}_{group} = vector.extract_strided_slice %w{at}_{group}
                {{offsets = [{8 * half}, 0, 0], sizes = [8, 16, 2],
                  strides = [1, 1, 1]}} : {ONE} to {PART}
            %s{at + 1}_{group} = xegpu.dpas %l{2 * step + half}, %p{at}_{group},
                %s{at}_{group} : vector<8x16xbf16>, {PART}, vector<8x16xf32>
                -> vector<8x16xf32>"""
        )
    return "\n".join(lines)


def most(made: simt.FuncOp) -> int:
    """Registers that are in use at once, of 64 bytes."""
    held = Registers(made)
    graph = Graph(made.body.block, held)
    return line_of(graph, held, range(len(graph.ops))).most * 16 // 64


def arrays() -> tuple[Array, Array, Array]:
    """Small integers: sums are exact."""
    rng = np.random.default_rng(3)
    shapes = (8, STEPS * ROWS), (STEPS * ROWS, 32)
    a, b = (rng.integers(-3, 4, shape).astype(BF16) for shape in shapes)
    return a, b, np.zeros((8, 32), np.float32)


@pytest.mark.parametrize("writes", [False, True])
def test_what_does_not_fit_is_ordered_anew_and_means_the_same(writes: bool) -> None:
    made, types = to_lanes(products(writes=writes))
    before = most(made)
    module = made.parent_op()
    assert isinstance(module, ModuleOp)
    FitRegistersPass().apply(Context(), module)
    module.verify()
    assert before > 256
    assert most(made) <= (256 if writes else 192)
    a, b, c = arrays()
    expected = a.astype(np.float64) @ b.astype(np.float64)
    run(made, types, a, b, c)
    np.testing.assert_array_equal(c, expected)
    assert (a == 1).all() == writes


def test_an_order_that_is_given_again_changes_nothing() -> None:
    made, _ = to_lanes(products(writes=False))
    module = made.parent_op()
    assert isinstance(module, ModuleOp)
    FitRegistersPass().apply(Context(), module)
    text = str(module)
    FitRegistersPass().apply(Context(), module)
    assert str(module) == text
