"""The native parts: what the installation says of them, and libxsmm behind seed 003's
function names where it was found."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from xetl_cpu import native
from xetl_cpu.targets import host_features

F32, BF16, BF16_F32 = 1, 2, 258
BETA_0, NO_RESET, VNNI_B = 4, 64, 2048
RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def shim():
    library = native.xsmm_shim()
    if library is None:
        pytest.skip(f"native parts: {native.status()}")
    library.xsmm_brgemm_dispatch.restype = ctypes.c_int64
    return library


def test_the_installation_says_what_became_of_them():
    words = ("built", "not built", "nothing to build")
    assert native.status().startswith(words)


def dispatch(shim, dtype, m, n, k, batch_strides, flags):
    numbers = (dtype, m, n, k, k, n, n, *batch_strides, flags)
    return shim.xsmm_brgemm_dispatch(*map(ctypes.c_int64, numbers))


def invoke(shim, dtype, kernel, a, b, c, batch):
    def pointer(array):
        return ctypes.c_void_p(array.ctypes.data)

    zero = ctypes.c_int64(0)
    shim.xsmm_brgemm_invoke(
        ctypes.c_int64(dtype),
        ctypes.c_int64(kernel),
        *(pointer(a), zero, pointer(b), zero, pointer(c), zero),
        ctypes.c_int64(batch),
    )


@pytest.mark.parametrize("flags", [0, BETA_0])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 32), (8, 48, 16), (13, 32, 20)])
def test_f32_products_are_summed(shim, m, n, k, flags):
    a = RNG.integers(-4, 5, (5, m, k)).astype(np.float32)
    b = RNG.integers(-4, 5, (5, k, n)).astype(np.float32)
    c = np.full((m, n), 3, np.float32)
    kernel = dispatch(shim, F32, m, n, k, (m * k, k * n), flags)
    assert kernel
    want = (a @ b).sum(0) + (0 if flags else c)
    invoke(shim, F32, kernel, a, b, c, 5)
    assert np.array_equal(c, want)


@pytest.mark.parametrize("dtype", [BF16, BF16_F32])
@pytest.mark.parametrize("flags", [0, BETA_0])
def test_bf16_pairs_are_summed_in_f32(shim, dtype, flags):
    a = RNG.integers(-4, 5, (3, 32, 32)).astype(ml_dtypes.bfloat16)
    b = RNG.integers(-4, 5, (3, 32, 32)).astype(ml_dtypes.bfloat16)
    pairs = b.reshape(3, 16, 2, 32).transpose(0, 1, 3, 2).copy()
    to = {BF16: ml_dtypes.bfloat16, BF16_F32: np.float32}[dtype]
    c = np.full((32, 32), 3, to)
    kernel = dispatch(shim, dtype, 32, 32, 32, (1024, 1024), VNNI_B | flags)
    if not kernel and "avx512f" not in host_features():
        pytest.skip("libxsmm 1.17 has no products of bf16 without AVX-512")
    assert kernel
    wanted = (a.astype(np.float32) @ b.astype(np.float32)).sum(0) + (0 if flags else 3)
    invoke(shim, dtype, kernel, a, pairs, c, 3)
    assert np.array_equal(c, wanted.astype(to))


def test_what_it_cannot_do_is_refused(shim):
    assert dispatch(shim, F32, 32, 32, 32, (1024, 1024), NO_RESET) == 0
    assert dispatch(shim, F32, 32, 32, 32, (1024, 1024), VNNI_B) == 0
    assert dispatch(shim, BF16, 32, 32, 32, (1024, 1024), 0) == 0
    assert dispatch(shim, 3, 32, 32, 32, (1024, 1024), 0) == 0
