"""Kernels that code of numba calls: results, `prange`, and what is refused."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import BY_NAME
from xetl.xetile import cdiv, constexpr, f32

numba: Any = pytest.importorskip("numba")
pytestmark = pytest.mark.slow  # numba takes 5 s to load and to compile a call

SIGNATURE = "f32[M,K] f32[K,N] f32[M,N]"


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BM)))
def matmul(A, B, C, BM: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BM
    a = xetile.init_tile(A, [m, 0], (BM, 32))
    b = xetile.init_tile(B, [0, n], (32, BM))
    acc = xetile.zeros((BM, BM), f32)
    for _ in range(0, A.shape[1], 32):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BM)))


@xetile.kernel(grid=1)
def scale(X, Y, factor, shift):
    x = xetile.load_tile(xetile.init_tile(X, [0], (64,)))
    xetile.store_tile(x * factor + shift, xetile.init_tile(Y, [0], (64,)))


def matrices(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.fixture(scope="module")
def product() -> Callable[..., None]:
    return matmul.numba(SIGNATURE)


def test_a_product_in_compiled_code(product: Any) -> None:
    @numba.njit
    def two(A: Any, B: Any) -> Any:
        C = np.empty((A.shape[0], B.shape[1]), np.float32)
        product(A, B, C)
        return C + np.float32(1)

    A, B = matrices((70, 96), (96, 130))
    assert np.allclose(two(A, B), A @ B + 1, atol=1e-4)
    # Views with gaps between their rows, and the function as Python calls it.
    C = np.zeros((70, 200), np.float32)
    product(A[:, :64], B[:64], C[:, :130])
    assert np.allclose(C[:, :130], A[:, :64] @ B[:64], atol=1e-4)
    assert not C[:, 130:].any()


def test_products_in_a_prange(product: Any) -> None:
    @numba.njit(parallel=True)
    def each(A: Any, B: Any, C: Any) -> None:
        for i in numba.prange(A.shape[0]):
            product(A[i], B[i], C[i])

    A, B, C = matrices((9, 40, 32), (9, 32, 48), (9, 40, 48))
    each(A, B, C)
    assert np.allclose(C, A @ B, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3", "f8e5m2"])
def test_floats_that_numba_has_not_are_passed_as_bits(dtype: str) -> None:
    twice = scale.numba(f"{dtype}[N] {dtype}[N] f64 f64")

    @numba.njit
    def run(X: Any, Y: Any) -> None:
        twice(X, Y, 2, 1)

    numbers = np.arange(-32, 32).astype(BY_NAME[dtype].numpy)
    bits = np.dtype(f"u{numbers.itemsize}")
    found = np.zeros_like(numbers)
    run(numbers.view(bits), found.view(bits))
    want = (numbers.astype(np.float32) * 2 + 1).astype(numbers.dtype)
    assert np.array_equal(found.view(bits), want.view(bits))


def test_numbers_are_converted() -> None:
    call = scale.numba("f32[N] f32[N] f64 i64", grid=(1,))

    @numba.njit(nogil=True)
    def twice(X: Any, Y: Any, factor: Any) -> None:
        for shift in range(3):
            call(X, Y, factor, shift)

    X, Y = matrices((64,), (64,))
    twice(X, Y, 2)
    assert np.allclose(Y, X * 2 + 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda A, B, C: (A.astype("f8"), B, C), "`A` is array.float64, 2d, C."),
        (lambda A, B, C: (A, B[0], C), "`B` is array.float32, 1d, C."),
        (lambda A, B, C: (A, B, C.T), "stride 1 at 1"),
        (lambda A, B, C: (A, 1, C), "`B` is int64"),
        (lambda A, B, C: (A, B, _readonly(C)), "that may be written"),
        (lambda A, B, C: (A, B, np.repeat(C, 2, 1)[:, ::2]), "must have stride 1"),
        (lambda A, B, C: (A, B, A), "may share memory with `A`"),
        (lambda A, B, C: (A, B, _folded(C)), "some of its elements share memory"),
        (lambda A, B, C: (A, B, C[:0]), "a size of its grid"),
    ],
)
def test_what_does_not_fit_is_refused(
    product: Any, arguments: Any, message: str
) -> None:
    given = arguments(*matrices((32, 32), (32, 32), (32, 32)))
    with pytest.raises(LaunchError, match=message):
        product(*given)

    @numba.njit
    def inside(A: Any, B: Any, C: Any) -> None:
        product(A, B, C)

    with pytest.raises(LaunchError, match=message):
        inside(*given)


def _readonly(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _folded(array: Any) -> Any:
    return np.lib.stride_tricks.as_strided(array, (32, 32), (0, 4))


def test_a_kernel_without_a_grid_or_on_another_backend_is_refused() -> None:
    bare = xetile.kernel(scale.fn)
    with pytest.raises(LaunchError, match="without a grid"):
        bare.numba("f32[N] f32[N] f64 i64")
    with pytest.raises(LaunchError, match="another backend") as caught:
        scale.numba("f32[N] f32[N] f64 i64", backend="reference")
    assert caught.value.code == "X0843"


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "tools.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(import numba\n.*?)^```", page, re.M | re.S)
    file = tmp_path / "example.py"
    file.write_text(code)
    runpy.run_path(str(file))
