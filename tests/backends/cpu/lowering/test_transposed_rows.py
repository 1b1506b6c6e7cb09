"""Blocks of any registers are transposed: the shuffles, followed by NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Block

from xetl.dialects.upstream.vector import ShuffleOp
from xetl.ir.builder import Builder
from xetl_cpu.lowering.loops.transposes import transposed_rows


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("count", [2, 4, 8, 16, 32, 64])
def test_all_elements_change_places(count: int, bits: int) -> None:
    block = Block(arg_types=[VectorType(IntegerType(bits), [count])] * count)
    found = transposed_rows(Builder.at_end(block), block.args)
    matrix = np.arange(count * count).reshape(count, count)
    rows = dict(zip(block.args, matrix, strict=True))
    for op in block.ops:
        assert isinstance(op, ShuffleOp)
        both = np.concatenate([rows[each] for each in op.operands])
        rows[op.results[0]] = both[list(op.mask.get_values())]
    assert np.array_equal([rows[each] for each in found], matrix.T)
