"""Attention of few queries over many keys, which several programs share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.test_attention import BF16, check, exact, normal
from xetl.ops import scaled_dot_product_attention
from xetl.ops.attention.blocks import parts_of

LONG = 1 << 14
"""Keys of 64 columns, from which on one matrix of them is shared."""


@pytest.mark.parametrize(
    ("keys", "columns", "programs", "parts"),
    [
        (65536, 256, 1, 64),
        (4096, 128, 8, 2),
        (8192, 256, 8, 8),
        (8192, 256, 40, 2),
        (8192, 256, 64, 1),
        (LONG, 128, 1, 8),
        (LONG - 1, 128, 1, 1),
        (0, 128, 1, 1),
        (4096, 128, 0, 1),
    ],
)
def test_there_are_programs_for_many_threads(
    keys: int, columns: int, programs: int, parts: int
) -> None:
    assert parts_of(keys, columns, programs) == parts


@settings(max_examples=40, deadline=None)
@given(
    s=st.sampled_from([1, 2, 3, 5, 17, 64, 70]),
    t=st.integers(LONG - 2, LONG + 40) | st.integers(LONG, 2 * LONG),
    e=st.sampled_from([64, 71, 128]),
    heads=st.integers(1, 3),
)
def test_any_number_of_keys(s: int, t: int, e: int, heads: int) -> None:
    shapes = (heads, s, 64), (heads, t, 64), (heads, t, e)
    q, k, v = (normal(*shape, seed=i) for i, shape in enumerate(shapes))
    check(q, k, v, causal=False)


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [None, -0.3, 40.0])
def test_dtypes_and_scales(dtype: Any, scale: float | None) -> None:
    q = normal(2, 3, 64, dtype=dtype) / 8
    k, v = (normal(2, LONG + 5, 64, dtype=dtype, seed=i) for i in (1, 2))
    check(q.astype(dtype), k, v, causal=False, scale=scale)


def test_batches_that_the_host_loops_over() -> None:
    q = normal(2, 2, 2, 1, 64)
    k = normal(2, 2, 2, LONG, 64).transpose(2, 1, 0, 3, 4)
    v = normal(2, 2, LONG, 64, seed=1).swapaxes(0, 1)
    check(q, k, v, causal=False)


@pytest.mark.parametrize("groups", [2, 8])
def test_heads_with_the_same_keys(groups: int) -> None:
    q = normal(1, 2 * groups, 1, 64)
    k, v = (normal(1, 2, LONG, 64, seed=i) for i in (1, 2))
    out = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    whole = [x.repeat(groups, axis=1) for x in (k, v)]
    assert abs(out - exact(q, whole[0], whole[1], False)).max() < 1e-5


def _queries() -> Any:
    return normal(1, 2, 64), normal(1, LONG, 64, seed=1), normal(1, LONG, 64, seed=2)


def test_keys_that_a_mask_hides_in_whole_parts() -> None:
    q, k, v = _queries()
    mask = np.zeros((2, LONG), bool)
    mask[0, 5000:5100] = True  # query 1 sees nothing
    out = scaled_dot_product_attention(q, k, v, mask)
    expected = exact(q[:, :1], k[:, 5000:5100], v[:, 5000:5100], False)
    assert abs(out[:, :1] - expected).max() < 1e-5
    assert not out[:, 1].any()
    bias = np.where(mask, normal(2, LONG), -np.inf).astype(np.float32)
    bias[1, -1] = 0
    out = scaled_dot_product_attention(q, k, v, bias)
    assert np.array_equal(out[:, 1], v[:, -1])


def test_a_score_far_larger_than_those_of_other_parts() -> None:
    q, k, v = _queries()
    k[0, 9000] = q[0, 0] * 1e30
    k[0, 3000] = q[0, 1] * 1e4
    out = scaled_dot_product_attention(q, k, v)
    assert np.array_equal(out[0, 0], v[0, 9000])


def test_a_nan_in_one_part_is_not_lost() -> None:
    q, k, v = _queries()
    k[0, 7000, 3] = np.nan
    assert np.isnan(scaled_dot_product_attention(q, k, v)).all()
