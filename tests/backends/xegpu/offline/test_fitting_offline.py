"""Kernels whose blocks did not fit the registers as they were written down do now."""

import ml_dtypes
import numpy as np
import pytest

from tests.backends.xegpu.offline.compiling import compiled, lanes_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.offline.test_spills_offline import REST, attention, window
from xetl.ops.attention.blocks import DEVICE_KEYS
from xetl.ops.attention.kernel import attention as ready_made
from xetl.ops.products.product import gelu, product
from xetl.xetile import (
    constexpr,
    f32,
    f64,
    init_tile,
    load_tile,
    program_id,
    store_tile,
    tile_mma,
)
from xetl.xetile import zeros as zero_tile

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
BF16 = ml_dtypes.bfloat16

each_target = pytest.mark.parametrize("target", ["pvc", "bmg"])
slow = pytest.mark.slow


def check(kernel, args, target: str, *, twin: bool = False) -> None:
    """Nothing is spilled by the kernel that moves blocks; messages are as planned.

    Nor, if it is asked for, by its twin, for memory that no message may move.
    """
    module = lanes_of(kernel, args, target)
    fast, other = module.ops
    (fast if twin else other).detach()
    (seen,) = compiled(module, target).values()
    assert seen.facts.spill_bytes == 0
    assert seen.found == seen.planned


def gemm(A, B, C, PRECISION: constexpr, BM: constexpr, BN: constexpr, BK: constexpr):
    m, n = program_id(0) * BM, program_id(1) * BN
    acc = zero_tile((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = load_tile(init_tile(A, [m, k], (BM, BK)))
        b = load_tile(init_tile(B, [k, n], (BK, BN)))
        acc = tile_mma(a, b, acc, precision=PRECISION)
    store_tile(acc, init_tile(C, [m, n], (BM, BN)))


@each_target
@pytest.mark.parametrize("precision", [None, "bf16x3"])
@pytest.mark.parametrize(
    ("size", "depth"),
    [
        (64, 16),
        *(pytest.param(*n, marks=slow) for n in ((64, 32), (256, 32), (256, 16))),
    ],
)
def test_products_of_f32(target: str, precision, size: int, depth: int) -> None:
    arrays = [np.zeros((64, 64), np.float32) for _ in range(3)]
    check(gemm, [*arrays, precision, size, size, depth], target)


@each_target
@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
@pytest.mark.parametrize("keys", [16, 32])
@pytest.mark.parametrize("width", [64, 128])
def test_attention(target: str, dtype, keys: int, width: int) -> None:
    arrays = [np.zeros((64, 64), dtype) for _ in range(3)]
    out = np.zeros((64, 64), np.float32)
    check(attention, [*arrays, out, 16, keys, width], target)


def bytes_of(kernel, text: str, target: str, **constants) -> int | None:
    """Spilled by the kernel that aligned arrays are launched with."""
    return kernel.stats(text, backend="xegpu", target=target, **constants).spill_bytes


@each_target
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("width", [64, pytest.param(128, marks=slow)])
def test_the_ready_made_attention(target: str, dtype: str, width: int) -> None:
    if (dtype, width) == ("f64", 128):
        return  # the sums alone are half of the registers
    is_double = dtype == "f64"
    spilled = bytes_of(
        ready_made,
        " ".join([*[f"{dtype}[S,D]"] * 3, "None", f"{dtype}[S,D]", REST]),
        target,
        **window(True),
        NEGATIVE=False,
        ACC=f64 if is_double else f32,
        BM=64,
        BN=DEVICE_KEYS[int(dtype[-2:])],
        D=width,
        E=width,
    )
    assert spilled == 0


@each_target
@pytest.mark.parametrize("dtype", ["bf16", pytest.param("f32", marks=slow)])
@pytest.mark.parametrize("activation", [None, gelu])
def test_the_ready_made_product(target: str, dtype: str, activation) -> None:
    spilled = bytes_of(
        product,
        f"{dtype}[M,K] {dtype}[K,N] {dtype}[M,N] {dtype}[N]",
        target,
        alpha=None,
        beta=None,
        ACTIVATION=activation,
        BIAS_DIM=1,
        B_IS_TURNED=False,
        ACC=f32,
        BM=256,
        BN=256,
        BK=32,
    )
    assert spilled == 0


@each_target
@pytest.mark.parametrize("dtype", [BF16, np.float32])
def test_products_of_any_memory(target: str, dtype) -> None:
    arrays = [np.zeros((64, 64), dtype) for _ in range(2)]
    args = [*arrays, np.zeros((64, 64), np.float32), None, 64, 64, 32]
    check(gemm, args, target, twin=True)


@each_target
@pytest.mark.parametrize("dtype", [BF16, np.float32])
@pytest.mark.parametrize("keys", [16, 32])
def test_attention_of_any_memory(target: str, dtype, keys: int) -> None:
    arrays = [np.zeros((64, 64), dtype) for _ in range(3)]
    out = np.zeros((64, 64), np.float32)
    check(attention, [*arrays, out, 16, keys, 64], target, twin=True)
