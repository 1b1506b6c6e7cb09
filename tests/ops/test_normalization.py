"""`xetl.ops.softmax` and `xetl.ops.layer_norm` against NumPy in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl.errors import LaunchError
from xetl.ops import layer_norm, softmax

BF16 = np.dtype(ml_dtypes.bfloat16)
UNITS = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    "float64": 2e-16,
}
"""Half a unit in the last place of 1."""
DTYPES = [np.float16, BF16, np.float32, np.float64]
SHAPES = [(1,), (781,), (7, 16), (3, 4, 100), (2, 3, 4, 17), (2, 2, 2, 3, 5), (3, 1)]


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape).astype(dtype)


def exact_softmax(x: Any) -> Any:
    x = x.astype(np.float64)
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def exact_layer_norm(x: Any, weight: Any = 1, bias: Any = 0, eps: float = 1e-5) -> Any:
    x = x.astype(np.float64)
    moved = x - x.mean(-1, keepdims=True)
    scaled = moved / np.sqrt((moved**2).mean(-1, keepdims=True) + eps)
    return scaled * weight + bias


def bound(x: Any) -> float:
    """A relative error: n roundings of sums, functions of some units, one rounding."""
    unit = UNITS[x.dtype.name]
    wide = max(UNITS["float64"], min(unit, UNITS["float32"]))
    return (x.shape[-1] + 32) * wide + unit


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax(shape: tuple[int, ...], dtype: Any) -> None:
    x = normal(*shape, dtype=dtype)
    out = softmax(x)
    assert out.dtype == x.dtype
    assert out.shape == shape
    expected = exact_softmax(x)
    smallest = np.finfo(np.float16).smallest_subnormal if dtype == np.float16 else 0
    # exp turns the rounding of a difference of up to 10 into a relative error.
    error = abs(out.astype(np.float64) - expected)
    assert (error <= 11 * bound(x) * expected + smallest).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("affine", [False, True])
def test_layer_norm(shape: tuple[int, ...], dtype: Any, affine: bool) -> None:
    x = normal(*shape, dtype=dtype)
    rows = (normal(shape[-1], dtype=dtype, seed=i) for i in (1, 2))
    weight, bias = rows if affine else (None, None)
    out = layer_norm(x, weight, bias)
    assert out.dtype == x.dtype
    given = (1, 0) if weight is None else (r.astype(float) for r in (weight, bias))
    expected = exact_layer_norm(x, *given)
    # The mean may be much smaller than what is added up for it.
    error = abs(out.astype(np.float64) - expected)
    assert error.max() <= 4 * bound(x) * max(1, abs(expected).max())


def test_rows_in_columns() -> None:
    x = normal(50, 70).T
    np.testing.assert_allclose(softmax(x), exact_softmax(x), rtol=1e-5)
    np.testing.assert_allclose(layer_norm(x), exact_layer_norm(x), rtol=0, atol=1e-5)
    strided = normal(3, 8, 60)[:, ::2, ::3]
    np.testing.assert_allclose(softmax(strided), exact_softmax(strided), rtol=1e-5)


def test_in_place_and_another_dtype() -> None:
    x = normal(20, 30)
    expected, normed = exact_softmax(x), exact_layer_norm(x)
    wide = np.zeros((20, 30), np.float64)
    assert layer_norm(x, out=wide) is wide
    np.testing.assert_allclose(wide, normed, rtol=0, atol=1e-5)
    assert softmax(x, out=x) is x
    np.testing.assert_allclose(x, expected, rtol=1e-5)


def test_large_and_infinite_numbers() -> None:
    x = np.array([[1e4, 1e4, -np.inf], [-1e30, 0, 3e38], [np.nan, 0, 1]], np.float32)
    out = softmax(x)
    assert np.array_equal(out[:2], [[0.5, 0.5, 0], [0, 0, 1]])
    assert np.isnan(out[2]).all()


def test_a_large_mean_is_not_lost() -> None:
    # Deviations of 0, 1, 2, 3 from numbers that f32 still holds exactly.
    x = (1e6 + np.arange(64) % 4).astype(np.float32)[None, :]
    np.testing.assert_allclose(layer_norm(x), exact_layer_norm(x), rtol=0, atol=1e-4)


def test_equal_elements_and_eps() -> None:
    x = np.full((2, 5), 3, np.float32)
    assert np.array_equal(layer_norm(x), np.zeros((2, 5), np.float32))
    y = normal(4, 9)
    expected = exact_layer_norm(y, eps=0.5)
    np.testing.assert_allclose(layer_norm(y, eps=0.5), expected, rtol=0, atol=1e-6)


def test_nothing() -> None:
    for shape in ((0, 5), (5, 0), (2, 0, 3)):
        assert softmax(np.ones(shape, np.float32)).shape == shape
        assert layer_norm(np.ones(shape, np.float32)).shape == shape


def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    x = torch.from_numpy(normal(3, 4, 100)).bfloat16()
    weight = torch.from_numpy(normal(100))
    out = layer_norm(x, weight)
    assert out.dtype == torch.bfloat16
    wide = torch.nn.functional.layer_norm(x.double(), (100,), weight.double())
    assert (out - wide).abs().max() <= 2**-8 * wide.abs().max() + 1e-5
    soft = softmax(x)
    assert (soft - x.double().softmax(-1)).abs().max() <= 2**-9


ONES = np.ones((2, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: softmax(ONES.astype(np.int32)), "X0828"),
        (lambda: softmax(ONES, out=np.zeros((2, 5), np.float32)), "X0827"),
        (lambda: softmax(ONES, out=np.zeros((2, 4), np.int32)), "X0828"),
        (lambda: layer_norm(ONES, np.ones(3, np.float32)), "X0827"),
        (lambda: layer_norm(ONES, bias=np.ones((2, 4), np.float32)), "X0827"),
        (lambda: layer_norm(ONES, np.ones(4, np.float64)), "X0828"),
        (lambda: softmax(3.0), "X0805"),
    ],
)
def test_wrong_calls(call: Any, code: str) -> None:
    with pytest.raises(LaunchError) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.file == __file__
