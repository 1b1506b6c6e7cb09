"""The bars of products: 32 dpas a step of K, three loads, nothing spilled."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.backends.xegpu.offline.compiling import compiled, lanes_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import xetile
from xetl.ops.products.int4_products import int4_product
from xetl.ops.products.product import product
from xetl.ops.products.scaled_products import scaled_product
from xetl.tools.self_test.kernels import transpose
from xetl.xetile import bf16, cdiv, constexpr, f32, i32
from xetl_xegpu.offline.isa import count, loops

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
WG = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])

BY_HAND = {"pvc": 417, "bmg": 395}
"""Instructions of a kernel written by hand, which asks for its tiles in the loop."""


def gemm(A, B, C, BM: constexpr = 256, BN: constexpr = 256, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        xetile.prefetch_tile(xetile.update_tile_offset(b, [3 * BK, 0]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def plainly(A, B, C, BM: constexpr = 256, BN: constexpr = 256, BK: constexpr = 32):
    """As one writes it who knows nothing of the device."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for i in range(cdiv(A.shape[1], BK)):
        a = xetile.load_tile(xetile.init_tile(A, [m, i * BK], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [i * BK, n], (BK, BN)))
        acc += a @ b
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel(grid=1)
def turned(
    A,
    B,
    C,
    BM: constexpr = 256,
    BN: constexpr = 256,
    BK: constexpr = 32,
    ACC: constexpr = f32,
):
    """A comes transposed."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), ACC)
    for k in range(0, A.shape[0], BK):
        a = xetile.load_tile(xetile.init_tile(A, [k, m], (BK, BM)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, BN)))
        acc = xetile.tile_mma(a.T, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


def seen(kernel, dtype, target: str):
    a, b = (np.zeros((512, 512), dtype) for _ in range(2))
    module = lanes_of(kernel, [a, b, np.zeros((512, 512), np.float32)], target)
    return compiled(module, target)[kernel.__name__]


each_target = pytest.mark.parametrize("target", ["pvc", "bmg"])
each_dtype = pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])


@each_target
@each_dtype
@pytest.mark.parametrize("kernel", [gemm, plainly])
def test_a_step_of_32x64(kernel, target: str, dtype) -> None:
    found = seen(kernel, dtype, target)
    assert found.found == found.planned
    assert (found.found.dpas, found.found.stores) == (32, 16)
    assert found.found.loads == 3  # A, and B in two pairs of blocks
    assert found.facts.spill_bytes == 0
    assert found.facts.registers == 256
    assert (found.counts.calls, found.facts.simd) == (0, 16)


@each_target
@each_dtype
def test_no_more_instructions_than_by_hand(target: str, dtype) -> None:
    found = seen(gemm, dtype, target)
    assert found.found.prefetches > 0
    assert found.counts.instructions <= BY_HAND[target]


@xetile.kernel
def in_steps(A, B, C, PRECISION: constexpr, BK: constexpr = 32):
    m, n = xetile.program_id(0) * 256, xetile.program_id(1) * 256
    acc = xetile.zeros((256, 256), C.dtype)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (256, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, 256)))
        acc = xetile.tile_mma(a, b, acc, precision=PRECISION)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (256, 256)))


@each_target
@pytest.mark.parametrize(
    ("dtype", "dpas", "loads", "most"),
    [
        ("bf16", 32, 3, {"pvc": 50, "bmg": 47}),
        ("i8", 32, 3, {"pvc": 57, "bmg": 48}),
        ("f32", 64, 6, {"pvc": 314, "bmg": 309}),
    ],
)
def test_instructions_of_a_step(
    dtype: str, dpas: int, loads: int, most, target: str
) -> None:
    """Matrices may begin anywhere; A of tf32 comes as the matrix unit wants it."""
    sums, depth = ("i32", 64) if dtype == "i8" else ("f32", 32)
    types = f"{dtype}[M,K] {dtype}[K,N] {sums}[M,N]"
    how = {"PRECISION": "tf32" if dtype == "f32" else None, "BK": depth}
    text = in_steps.ir("asm", types, backend="xegpu", target=target, **how)
    fast = text.split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    step = max(loops(fast), key=lambda each: each.dpas)
    assert (step.dpas, step.calls, step.block_loads) == (dpas, 0, loads)
    assert step.instructions <= most[target]


@each_target
@pytest.mark.parametrize(("distance", "prefetches"), [(0, 0), (1, 1), (4, 4)])
def test_prefetches_cost_no_registers(
    target: str, distance: int, prefetches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XETL_PREFETCH", str(distance))
    found = seen(plainly, np.float16, target)
    assert found.found == found.planned
    assert found.found.prefetches == prefetches
    assert found.facts.spill_bytes == 0


@xetile.kernel(grid=1)
def by_columns(A, B, C, BM: constexpr = 256, BN: constexpr = 256, BK: constexpr = 32):
    """B is column-major."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [n, k], (BN, BK)))
        acc = xetile.tile_mma(a, b.T, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@each_target
@pytest.mark.parametrize(
    ("kernel", "types", "most"),
    [
        (turned, "bf16[K,M] bf16[K,N] f32[M,N]", {"pvc": 88, "bmg": 82}),
        (by_columns, "bf16[M,K] bf16[N,K] f32[M,N]", {"pvc": 64, "bmg": 63}),
    ],
)
def test_sides_that_are_transposed(kernel, types: str, most, target: str) -> None:
    """Messages transpose words; of A a move for each two rows parts them."""
    text = kernel.ir("asm", types, backend="xegpu", target=target)
    fast = text.split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    step = max(loops(fast), key=lambda each: each.dpas)
    assert (step.dpas, step.calls) == (32, 0)
    assert step.instructions <= most[target]


@pytest.mark.parametrize(("target", "most"), [("pvc", 730), ("bmg", 705)])
def test_bytes_that_are_transposed(target: str, most: int) -> None:
    """By messages: lanes alone took 1,317 instructions, and 3,756 in a step."""
    how: dict[str, Any] = {"backend": "xegpu", "target": target}
    text = transpose.ir("asm", "i8[A,B] i8[C,D]", H=32, W=32, **how)
    assert count(text.split("\n// ")[0]).instructions <= 180
    types = "i8[K,M] i8[K,N] i32[M,N]"
    fast = turned.ir("asm", types, BK=64, ACC=i32, **how).split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    step = max(loops(fast), key=lambda each: each.dpas)
    assert step.dpas == 32
    assert step.instructions <= most


@pytest.mark.parametrize("types", ["f8e4m3 f8e5m2", "f8e5m2 f8e4m3"])
def test_floats_of_eight_bits_in_the_matrix_unit(types: str) -> None:
    """Each side of its format: Intel calls e4m3 `hf8`, e5m2 `bf8`; A stands last."""
    a, b = types.split()
    text = in_steps.ir(
        *("asm", f"{a}[M,K] {b}[K,N] f32[M,N]"),
        **{"backend": "xegpu", "target": "cri", "PRECISION": None, "BK": 64},
    )
    fast = text.split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    step = max(loops(fast), key=lambda each: each.dpas)
    assert (step.dpas, step.calls, step.block_loads) == (32, 0, 3)
    assert step.instructions <= 49
    names = {"f8e4m3": "hf8", "f8e5m2": "bf8"}
    products = [line for line in fast.splitlines() if " dpas.8x8 " in f" {line}"]
    sides = [re.findall(r":([hb]f8)", line) for line in products]
    assert sides == [[names[b], names[a]]] * 32


@each_target
@pytest.mark.parametrize(
    ("dtype", "most"), [("f8e5m2", 910 / 384), ("f8e4m3", 2770 / 384)]
)
def test_floats_of_eight_bits_are_converted(
    dtype: str, most: float, target: str
) -> None:
    """To f16, where no instruction multiplies them: a step has 384 of a lane."""
    text = in_steps.ir(
        *("asm", f"{dtype}[M,K] {dtype}[K,N] f32[M,N]"),
        **{"backend": "xegpu", "target": target, "PRECISION": None, "BK": 64},
    )
    step = max(loops(text.split("\n// ")[0]), key=lambda each: each.dpas)
    assert (step.dpas, step.calls) == (64, 0)
    assert step.instructions <= most * 384


@pytest.mark.parametrize(("target", "most"), [("pvc", 73), ("bmg", 64)])
def test_bytes_with_scales(target: str, most: int) -> None:
    """The bars of a product of bytes hold with a scale for each row and column."""
    types = "i8[M,4096] i8[4096,4096] f32[M] f32[4096] None bf16[M,4096]"
    tiles = {"SUMS": i32, "IS_ONE": (False, False), "BM": 128, "BN": 128, "BK": 64}
    text = scaled_product.ir("asm", types, backend="xegpu", target=target, **tiles)
    aligned = text.split("_unaligned:")[0]
    step = max(loops(aligned), key=lambda loop: loop.dpas)
    assert step.dpas == 32
    assert step.instructions <= most
    assert " 0 bytes spilled; " in aligned.partition("\n")[0]


@each_target
def test_a_tile_of_96_rows(target: str) -> None:
    """Products of 65 to 96 rows, and of a third of 256, have no more than they need."""
    constants = {"BIAS_DIM": 1, "B_IS_TURNED": False, "ACC": f32, "ACTIVATION": None}
    constants |= {"BM": 96, "BN": 128, "BK": 32}
    types = "bf16[M,K] bf16[K,N] bf16[M,N] None None None"
    text = product.ir("asm", types, backend="xegpu", target=target, **constants)
    aligned = text.split("\n// ")[0]
    step = max(loops(aligned), key=lambda loop: loop.dpas)
    assert (step.dpas, step.block_loads, step.calls) == (24, 3, 0)
    assert step.instructions <= 57
    assert " 0 bytes spilled" in aligned.splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_weights_of_four_bits(target: str) -> None:
    """A group of 128; as one product it took the compiler more than 120 s."""
    types = "bf16[M,4096] u8[2048,4096] bf16[32,4096] bf16[32,4096] None bf16[M,4096]"
    tiles = {"ACC": f32, "FACTORS": bf16, "HALF": 64, "BM": 16, "BN": 64, "STEP": 16}
    text = int4_product.ir("asm", types, backend="xegpu", target=target, **tiles)
    aligned = text.split("_unaligned:")[0]
    step = max(loops(aligned), key=lambda loop: loop.dpas)
    assert step.dpas == 16
    assert step.instructions <= 850
    assert " 0 bytes spilled; " in aligned.partition("\n")[0]
