"""Products on AMX tiles whose A was computed before: attention."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl import ops, xetile
from xetl.ops.attention.kernel import attention

BF16: Any = ml_dtypes.bfloat16
PLAIN = (*[None] * 5, 0.125, 8.0, 0.0, 1, 1, None, None, False, xetile.f32)
"""No options, three factors, one head, no window."""


pytestmark = pytest.mark.usefixtures("amx_target")


@pytest.mark.parametrize("dim", [64, 80])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(amx, dim, causal):
    rng: Any = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 150, dim)).astype(BF16) for _ in range(3))
    with amx.counting():
        out: Any = ops.scaled_dot_product_attention(q, k, v, is_causal=causal)
    assert amx.errors() == []
    assert amx.total()["tdpbf16ps"] > 0
    assert amx.slow_loads() == 0
    scores = q.astype("f8") @ k.astype("f8").swapaxes(1, 2) / np.sqrt(dim)
    if causal:
        scores[:, *np.triu_indices(150, 1)] = -np.inf
    weights: Any = np.exp(scores - scores.max(2, keepdims=True))
    weights /= weights.sum(2, keepdims=True)
    expected = weights @ v.astype("f8")
    np.testing.assert_allclose(out.astype("f8"), expected, 2e-2, 2e-2)


def test_rows_of_what_is_computed_for_a_are_an_odd_number_of_lines_apart():
    """Queries and probabilities are multiplied where they are: nothing copies them."""
    q = np.zeros((2, 512, 64), BF16)
    given = (q, q, q, None, q.copy(), *PLAIN)
    text = attention.ir("loops", *given, 64, 256, 64, 64)
    computed = re.findall(r"alloca\(\) : memref<64x(\d+)xbf16>", text)
    lines = {2 * int(row) / 64 for row in computed}
    assert {2 * 96 / 64, 2 * 288 / 64} <= lines
    assert {line % 2 for line in lines} == {1}


def test_sums_are_divided_once_a_query_and_not_once_an_element():
    q = np.zeros((2, 512, 64), BF16)
    given = (q, q, q, None, q.copy(), *PLAIN)
    text = attention.ir("loops", *given, 32, 256, 64, 64)
    _, behind = text.rsplit("arith.divf", 1)
    assert "scf.for" in behind  # over the columns
    assert text.count("arith.divf") == 2  # the other is of a number of the launch


@pytest.mark.parametrize("dtype", [BF16, np.dtype("f4")])
def test_powers_are_as_exact_as_what_they_become(dtype):
    q = np.zeros((2, 512, 64), dtype)
    given = (q, q, q, None, q.copy(), *PLAIN)
    text = attention.ir("llvm", *given, 32, 256, 64, 64)
    assert ("xetl_exp2_approximate_f32x16" in text) == (dtype == BF16)
    assert "xetl_exp2_f32x16" in text  # how much sums fade
