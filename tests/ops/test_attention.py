"""`xetl.ops.scaled_dot_product_attention` against NumPy in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xetl
from xetl.errors import LaunchError
from xetl.ops import scaled_dot_product_attention

BF16 = np.dtype(ml_dtypes.bfloat16)
UNITS = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    "float64": 2e-16,
}
"""Half a unit in the last place of 1."""


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape).astype(dtype)


def exact(q: Any, k: Any, v: Any, causal: bool, scale: float | None = None) -> Any:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        seen = np.tri(*scores.shape[-2:], dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v


def check(q: Any, k: Any, v: Any, causal: bool, **options: Any) -> None:
    out = scaled_dot_product_attention(q, k, v, causal, **options)
    expected = exact(q, k, v, causal, options.get("scale"))
    assert out.shape == expected.shape
    assert out.dtype == q.dtype
    unit = UNITS[q.dtype.name]
    wide = max(UNITS["float64"], min(unit, UNITS["float32"]))
    scale = options.get("scale") or q.shape[-1] ** -0.5
    largest = abs(np.float64(scale)) * (
        abs(q).astype(np.float64) @ abs(k).astype(np.float64).swapaxes(-1, -2)
    ).max(initial=0)
    # Scores are off by d+8 roundings of their terms, which exp turns into a relative
    # error, and the polynomial of exp2 by a few units; sums of t terms add theirs. The
    # probabilities and the result are rounded to the dtype.
    relative = 2 * (q.shape[-1] + 8) * wide * largest
    relative += (2 * k.shape[-2] + 64) * wide + 3 * unit
    error = abs(out.astype(np.float64) - expected).max(initial=0)
    assert error <= relative * abs(v).astype(np.float64).max(initial=0)


@pytest.mark.parametrize("dtype", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "extents",
    # s, t, d, e: whole blocks, ragged ones, more keys than queries and fewer.
    [(256, 512, 64, 64), (50, 70, 24, 17), (33, 300, 16, 16), (200, 90, 7, 40)],
    ids=str,
)
def test_extents(extents: tuple[int, ...], causal: bool, dtype: Any) -> None:
    s, t, d, e = extents
    q, k = normal(3, s, d, dtype=dtype), normal(3, t, d, dtype=dtype, seed=1)
    check(q, k, normal(3, t, e, dtype=dtype, seed=2), causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("s", [1, 3, 5])
def test_a_few_queries(s: int, causal: bool) -> None:
    check(normal(4, s, 32), normal(4, 130, 32), normal(4, 130, 32), causal)


BATCHES = [
    ((), (), ()),
    ((1,), (1,), (1,)),
    ((2, 3), (2, 3), (2, 3)),
    ((2, 3), (2, 1), (2, 1)),  # heads that share keys and values
    ((2, 1, 3), (1, 2, 3), (3,)),
    ((2, 2, 2, 2), (2, 2, 2, 2), (2, 2, 2, 2)),
]


@pytest.mark.parametrize("batches", BATCHES, ids=str)
def test_batches(batches: Any) -> None:
    first, second, third = batches
    q, k, v = normal(*first, 20, 8), normal(*second, 30, 8), normal(*third, 30, 12)
    check(q, k, v, causal=False)


def test_views_are_read_where_they_are() -> None:
    # As projections give them: (batch, s, heads, d).
    q, k, v = (normal(2, 70, 3, 16, seed=i).swapaxes(1, 2) for i in range(3))
    check(q, k, v, causal=True)
    turned = [np.asfortranarray(x[0, 0]) for x in (q, k, v)]
    check(*turned, causal=False)


@pytest.mark.parametrize("scale", [0.3, 0.0, -0.7])
def test_scale(scale: float) -> None:
    q, k, v = (normal(1, 40, 8, seed=i) for i in range(3))
    out = scaled_dot_product_attention(q, k, v, scale=scale)
    np.testing.assert_allclose(out, exact(q, k, v, False, scale), rtol=0, atol=1e-5)


def test_large_scores_do_not_overflow() -> None:
    q, k, v = (normal(1, 40, 8, seed=i) * np.float32(60) for i in range(3))
    out = scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(out, exact(q, k, v, False), rtol=1e-3, atol=1e-1)


@pytest.mark.parametrize("scale", [1e7, 1e8, -1e30, 0.0, 1e-40])
def test_large_scales_leave_the_largest_score(scale: float) -> None:
    """Scores are whole and small, so that they are exact; equals share."""
    q, k = (np.round(normal(1, n, 8, seed=n) * np.float32(2)) for n in (5, 300))
    v = normal(1, 300, 4)
    out = scaled_dot_product_attention(q, k, v, scale=scale)
    np.testing.assert_allclose(out, exact(q, k, v, False, scale), rtol=0, atol=1e-5)


def test_equal_scores_count_alike_in_all_blocks() -> None:
    """Whatever becomes of a block's rounding, it must not add up over later ones."""
    q = np.full((1, 1, 8), 100.1, np.float32)
    k = np.full((1, 6400, 8), 7.3, np.float32)
    v = np.arange(6400, dtype=np.float32).reshape(1, -1, 1) / 6400
    out = scaled_dot_product_attention(q, k, v, scale=0.977)
    np.testing.assert_allclose(out, exact(q, k, v, False), rtol=1e-5)


def test_keys_that_no_score_reaches() -> None:
    """The first block of keys is infinitely far off, as a mask in the data makes it."""
    q, k, v = np.ones((1, 3, 4), np.float32), normal(1, 300, 4), normal(1, 300, 4)
    k[:, :260, 0] = -np.inf
    check(q, np.where(np.isinf(k), -1e30, k), v, causal=False)
    out = scaled_dot_product_attention(q, k, v)
    np.testing.assert_allclose(out, exact(q, k, v, False), rtol=1e-5)


def test_nan_stays_in_its_row() -> None:
    q, k, v = normal(1, 40, 8), normal(1, 40, 8), normal(1, 40, 8)
    q[0, 3, 2] = np.nan
    out = scaled_dot_product_attention(q, k, v)
    assert np.isnan(out[0, 3]).all()
    assert not np.isnan(np.delete(out, 3, axis=1)).any()


def test_no_keys_and_no_queries() -> None:
    q, k, v = np.ones((2, 3, 4)), np.ones((2, 0, 4)), np.ones((2, 0, 5))
    assert np.array_equal(scaled_dot_product_attention(q, k, v), np.zeros((2, 3, 5)))
    none = np.ones((2, 0, 4), np.float32)
    some = np.ones((2, 7, 4), np.float32)
    assert scaled_dot_product_attention(none, some, some).shape == (2, 0, 4)


def test_out_of_another_dtype() -> None:
    q, k, v = (normal(2, 20, 8, dtype=BF16, seed=i) for i in range(3))
    out = np.zeros((2, 20, 8), np.float32)
    assert scaled_dot_product_attention(q, k, v, out=out) is out
    # Only the probabilities are rounded to bf16.
    np.testing.assert_allclose(out, exact(q, k, v, False), rtol=0, atol=2.0**-6)


def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(normal(2, 3, 50, 16, seed=i)) for i in range(3))
    out = scaled_dot_product_attention(q, k, v, causal=True)
    assert isinstance(out, torch.Tensor)
    function = torch.nn.functional.scaled_dot_product_attention
    expected = function(q.double(), k.double(), v.double(), is_causal=True)
    assert (out - expected).abs().max() < 1e-5


ONES = np.ones((2, 8, 4), np.float32)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((ONES[..., :3], ONES, ONES), "X0827", "q is (2, 8, 3), k is (2, 8, 4)"),
        ((ONES, ONES[:, :5], ONES), "X0827", "k is (2, 5, 4) and v is (2, 8, 4)"),
        ((ONES[0, 0], ONES, ONES), "X0827", "q is (4,)"),
        ((ONES[..., :0], ONES[..., :0], ONES), "X0827", "q is (2, 8, 0)"),
        ((ONES, np.ones((3, 8, 4), np.float32), ONES), "X0827", "do not broadcast"),
        ((ONES, ONES.astype(np.float64), ONES), "X0828", "k of f64"),
        ((ONES.astype(np.int8),) * 3, "X0828", "q of i8"),
    ],
)
def test_wrong_calls(arguments: Any, code: str, words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        scaled_dot_product_attention(*arguments)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert caught.value.file == __file__


def test_wrong_out() -> None:
    with pytest.raises(LaunchError, match="the result is") as caught:
        scaled_dot_product_attention(ONES, ONES, ONES, out=np.zeros((2, 8, 5)))
    assert caught.value.code == "X0827"
    with pytest.raises(LaunchError, match="cannot give") as caught:
        scaled_dot_product_attention(ONES, ONES, ONES, out=np.zeros((2, 8, 4), int))
    assert caught.value.code == "X0828"
    copy = ONES.copy()
    with pytest.raises(LaunchError) as caught:
        scaled_dot_product_attention(copy, ONES, ONES, out=copy[::-1])
    assert caught.value.code == "X0807"


def test_the_reference_agrees() -> None:
    q, k, v = (normal(2, 20, 8, seed=i) for i in range(3))
    ours = scaled_dot_product_attention(q, k, v, causal=True)
    xetl.config.backend = "reference"
    try:
        theirs = scaled_dot_product_attention(q, k, v, causal=True)
    finally:
        del xetl.config.backend
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
