"""What is measured, in xetl; results are checked once before they are timed."""

from collections.abc import Callable
from functools import partial

import ml_dtypes
import numpy as np
from harness import Job
from kernels import gelu
from kernels import gemm as gemm_kernel
from operands import (
    attention_flops,
    extents,
    flops,
    integer_matrices,
    normal_heads,
    normal_matrices,
    on_a_line,
)
from scipy.special import erf

from xetl import ops
from xetl.xetile import i32

DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
}
Product = Callable[..., object]


def gemm(dtype: str, shape: str) -> Job:
    """The kernel of the language page, tiles of 256 x 256."""
    return _job(dtype, shape, _kernel(dtype, shape, 256))


def gemm_small_tiles(dtype: str, shape: str) -> Job:
    """The same kernel, tiles of 64 x 64."""
    return _job(dtype, shape, _kernel(dtype, shape, 64))


def _tiled(tile: int, dtype: str, shape: str) -> Job:
    """The same kernel, tiles of any extent."""
    return _job(dtype, shape, _kernel(dtype, shape, tile))


tiles_32, tiles_64, tiles_128, tiles_256, tiles_512 = (
    partial(_tiled, tile) for tile in (32, 64, 128, 256, 512)
)


def matmul(dtype: str, shape: str) -> Job:
    """The ready-made product."""
    return _job(dtype, shape, _matmul)


def gemm_prepacked(dtype: str, shape: str) -> Job:
    """The kernel where B does not change."""
    return _job(dtype, shape, _kernel(dtype, shape, 256), prepare=ops.prepack)


def matmul_prepacked(dtype: str, shape: str) -> Job:
    """The ready-made product where B does not change."""
    return _job(dtype, shape, _matmul, prepare=ops.prepack)


def gemm_gelu(dtype: str, shape: str) -> Job:
    """The kernel with a bias and a GELU behind the product."""
    return _fused(dtype, shape, _kernel(dtype, shape, 256, EPILOGUE=gelu))


def matmul_gelu(dtype: str, shape: str) -> Job:
    """The ready-made product with a bias and a GELU."""

    def run(A: object, B: object, C: object, bias: object) -> None:
        ops.matmul(A, B, out=C, bias=bias, activation="gelu")

    return _fused(dtype, shape, run)


def _matmul(A: object, B: object, C: object) -> None:
    ops.matmul(A, B, out=C)


def _kernel(dtype: str, shape: str, tile: int, **constants: object) -> Product:
    """The kernel with tiles no larger than the matrices.

    Those of one row are four times as wide: memory gives long pieces at full speed.
    """
    m, _, n = extents(shape)
    width = 4 * tile if m == 1 else tile
    constants |= {"BM": min(tile, m), "BN": min(width, n)}
    if dtype == "i8":
        constants["SUM"] = i32
    if (constants["BM"], constants["BN"]) != (256, 256):
        constants["WG"] = None  # the kernel's map is for its own tile
    return lambda *arrays: gemm_kernel(*arrays, **constants)


def _job(
    dtype: str,
    shape: str,
    run: Product,
    prepare: Callable[[np.ndarray], object] = lambda b: b,
) -> Job:
    """``run(A, B, C)``: exact for small integers, then timed on other numbers."""
    exact = integer_matrices(shape)
    A, B = (on_a_line(x.astype(DTYPES[dtype])) for x in exact)
    expected = exact[0] @ exact[1]
    to = np.int32 if dtype == "i8" else DTYPES[dtype]
    C = on_a_line(np.empty(expected.shape, to))
    run(A, prepare(B), C)
    assert np.array_equal(C, expected.astype(C.dtype))
    for array, numbers in zip((A, B), normal_matrices(dtype, shape)):
        array[...] = numbers
    prepared = prepare(B)
    return Job([lambda: run(A, prepared, C)], flops(shape))


def _fused(dtype: str, shape: str, run: Product) -> Job:
    """``run(A, B, C, bias)``; small numbers, where a GELU is neither 0 nor linear."""
    exact = [x / 64 for x in integer_matrices(shape)]
    A, B = (on_a_line(x.astype(DTYPES[dtype])) for x in exact)
    bias = np.linspace(-1, 1, extents(shape)[2], dtype=np.float32)
    x = exact[0] @ exact[1] + bias
    C = on_a_line(np.empty(x.shape, DTYPES[dtype]))
    run(A, B, C, bias)
    expected = 0.5 * x * (1 + erf(x / np.sqrt(2)))
    tolerance = 2.0**-7 if dtype == "bf16" else 1e-5
    np.testing.assert_allclose(C.astype(np.float32), expected, tolerance, tolerance)
    return Job([lambda: run(A, B, C, bias)], flops(shape))


def attention(dtype: str, length: int, dim: int, causal: bool) -> Job:
    """The ready-made one, checked for one head."""
    q, k, v = (x.astype(DTYPES[dtype]) for x in normal_heads(length, dim))
    out = np.empty_like(q)

    def run() -> None:
        ops.scaled_dot_product_attention(q, k, v, causal=causal, out=out)

    run()
    first, keys, values = (x[0].astype(np.float64) for x in (q, k, v))
    scores = first @ keys.T / np.sqrt(first.shape[1])
    if causal:
        scores[np.triu_indices(length, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights @ values / weights.sum(1, keepdims=True)
    tolerance = 1e-4 if dtype == "f32" else 4e-2
    np.testing.assert_allclose(
        out[0].astype(np.float64), expected, tolerance, tolerance
    )
    return Job([run], attention_flops(length, dim, causal))
