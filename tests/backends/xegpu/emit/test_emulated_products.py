"""Every product that the table of builtins can name, on opencl:cpu against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.backends.xegpu.emit.on_opencl import Program, parsed
from tests.backends.xegpu.emit.product_kernels import (
    PRODUCTS,
    ROWS,
    lane_product_kernel,
    product_kernel,
)
from xetl.backend import find_backend
from xetl.settings import config
from xetl_xegpu.emit.module import llvm_text

DTYPES = {
    "f16": np.float16,
    "bf16": bfloat16,
    "tf32": np.float32,
    "i8": np.int8,
    "u8": np.uint8,
    "f32": np.float32,
    "i32": np.int32,
}


def numbers(
    rng: np.random.Generator, dtype: type, shape: tuple[int, int]
) -> np.ndarray:
    """Numbers whose sums of products are exact."""
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return (rng.integers(-8, 9, shape) / 4).astype(dtype)


def left_items(a: np.ndarray) -> np.ndarray:
    """A (m, k) as lanes hold it: whole rows, or two rows of tf32."""
    rows = a.reshape(-1)
    if rows.size * rows.itemsize < 16 * 4 and a.itemsize == 4:
        rows = np.concatenate([rows, np.full(16 - rows.size, np.nan, rows.dtype)])
    return rows


def right_items(b: np.ndarray) -> np.ndarray:
    """B (k, 16): 32 bits of each column together."""
    factor = 4 // b.itemsize
    return b.reshape(-1, factor, 16).transpose(0, 2, 1).copy()


@pytest.mark.parametrize(("a", "b", "acc"), PRODUCTS)
def test_products(a: str, b: str, acc: str):
    program = Program("\n".join(product_kernel(a, b, acc, rows) for rows in ROWS))
    rng = np.random.default_rng(1)
    depth = {"i8": 32, "u8": 32, "tf32": 8}.get(a, 16)
    for rows in ROWS:
        left = numbers(rng, DTYPES[a], (rows, depth))
        right = numbers(rng, DTYPES[b], (depth, 16))
        sums = numbers(rng, DTYPES[acc], (rows, 16))
        if acc == "i32":
            sums //= 3
        wide = np.int64 if acc == "i32" else np.float64
        expected = left.astype(wide) @ right.astype(wide) + sums.astype(wide)
        program(f"k_{a}_{b}_{acc}_{rows}", left_items(left), right_items(right), sums)
        np.testing.assert_array_equal(
            sums, expected.astype(DTYPES[acc]), f"{rows} rows"
        )


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_products_by_lanes(element: str):
    program = Program("\n".join(lane_product_kernel(element, rows) for rows in ROWS))
    dtype = np.dtype(element.replace("f", "float"))
    rng = np.random.default_rng(3)
    for rows in ROWS:
        left, right = rng.standard_normal((rows, 16)), rng.standard_normal((16, 16))
        left, right = left.astype(dtype), right.astype(dtype)
        sums = rng.standard_normal((rows, 16)).astype(dtype)
        exact = left.astype(np.longdouble) @ right.astype(np.longdouble) + sums
        size = np.abs(left) @ np.abs(right) + np.abs(sums)
        program(f"k_{element}_{rows}", left, right[:8].copy(), right[8:].copy(), sums)
        assert (np.abs(sums - exact) <= 17 * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize(("a", "acc"), [("f16", "f16"), ("bf16", "bf16")])
def test_narrow_sums_are_rounded_once(a: str, acc: str):
    dtype = DTYPES[a]
    program = Program(product_kernel(a, a, acc, 8))
    rng = np.random.default_rng(2)
    left = rng.standard_normal((8, 16)).astype(dtype)
    right = rng.standard_normal((16, 16)).astype(dtype)
    sums = rng.standard_normal((8, 16)).astype(dtype)
    exact = left.astype(np.float64) @ right.astype(np.float64) + sums.astype(np.float64)
    program(f"k_{a}_{a}_{acc}_8", left, right_items(right), sums)
    # Half a unit in the last place of the result, and what 16 sums in f32 lose.
    unit = np.abs(exact) * float(np.finfo(np.float16).eps if a == "f16" else 2.0**-7)
    assert (np.abs(sums.astype(np.float64) - exact) <= 0.5 * unit + 1e-5).all()


def test_narrow_operands_go_as_words():
    """Half the work for the driver of opencl:cpu; GPUs get the builtin as it is."""
    module = parsed(product_kernel("bf16", "bf16", "f32", 8))
    text = llvm_text(module, "opencl")
    (head,) = re.findall(r"define .*xetl_words__Z40intel.*", text)
    assert "<8 x i16>" not in head
    assert "xetl_words" not in llvm_text(module, "pvc")


def test_tf32_keeps_ten_bits():
    program = Program(product_kernel("tf32", "tf32", "f32", 8))
    left = np.zeros((8, 8), np.float32)
    left[:, 0] = 1 + 2.0**-10 + 2.0**-11
    right = np.zeros((8, 16), np.float32)
    right[0] = 1
    sums = np.zeros((8, 16), np.float32)
    program("k_tf32_tf32_f32_8", left, right, sums)
    np.testing.assert_array_equal(sums, np.float32(1 + 2.0**-10))


FLOATS = [each for each in PRODUCTS if each[2] == "f32"]
SMALLEST = {"bf16": 2.0**-126, "tf32": 2.0**-126, "f16": 2.0**-24}
"""What is kept by `pairwise`: the least normal number; of f16 all."""


@pytest.fixture
def _pairwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config.assigned, "dpas", "pairwise")


@pytest.mark.usefixtures("_pairwise")
@pytest.mark.parametrize(("a", "b", "acc"), FLOATS)
def test_sums_in_another_order_stay_within_the_bounds(a: str, b: str, acc: str):
    program = Program(product_kernel(a, b, acc, 8))
    depth = 8 if a == "tf32" else 16
    rng = np.random.default_rng(4)
    left = rng.standard_normal((8, depth)).astype(bfloat16).astype(DTYPES[a])
    right = rng.standard_normal((depth, 16)).astype(bfloat16).astype(DTYPES[b])
    sums = rng.standard_normal((8, 16)).astype(np.float32)
    wide = [each.astype(np.float64) for each in (left, right, sums)]
    terms = wide[0][:, :, None] * wide[1][None]
    exact, size = terms.sum(1) + wide[2], np.abs(terms).sum(1) + np.abs(wide[2])
    halves = terms.astype(np.float32)
    while halves.shape[1] > 1:
        halves = halves[:, ::2] + halves[:, 1::2]
    expected = halves[:, 0] + sums
    program(f"k_{a}_{b}_{acc}_8", left_items(left), right_items(right), sums)
    np.testing.assert_array_equal(sums, expected)
    assert (np.abs(sums - exact) <= depth * np.finfo(np.float32).eps * size).all()


@pytest.mark.usefixtures("_pairwise")
@pytest.mark.parametrize(("a", "b", "acc"), FLOATS)
def test_subnormals_may_count_as_zeros(a: str, b: str, acc: str):
    program = Program(product_kernel(a, b, acc, 8))
    depth = 8 if a == "tf32" else 16
    left = np.zeros((8, depth), DTYPES[a])
    left[:, 0] = [SMALLEST[a] / 2, SMALLEST[a], -SMALLEST[a], 1, 0, 0, 0, 0]
    right = np.zeros((depth, 16), DTYPES[b])
    right[0] = 2.0**15
    sums = np.zeros((8, 16), np.float32)
    program(f"k_{a}_{b}_{acc}_8", left_items(left), right_items(right), sums)
    kept = SMALLEST[a] * 2.0**15
    expected = [0, kept, -kept, 2.0**15, 0, 0, 0, 0]
    np.testing.assert_array_equal(sums[:, 0], np.float32(expected))


def test_how_sums_run_is_part_of_the_code_s_key(monkeypatch: pytest.MonkeyPatch):
    before = config.of_code, find_backend("xegpu").cache_key("opencl")
    monkeypatch.setitem(config.assigned, "dpas", "pairwise")
    now = config.of_code, find_backend("xegpu").cache_key("opencl")
    assert all(one != other for one, other in zip(before, now))
