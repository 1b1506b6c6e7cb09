"""What is expected of a kernel on a GPU: counts, limits, published figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.backend import Expected
from xetl.devices import Card, find_device
from xetl.xetile import cdiv, constexpr, f32, i32
from xetl_xegpu.roofline.model import evaluate, expect, peak

SIZE = 4096
WG = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])


def blocks(m: Any) -> tuple[int, int]:
    return cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)


@xetile.kernel(grid=blocks)
def gemm(
    A,
    B,
    C,
    SUM: constexpr = f32,
    PRECISION: constexpr = None,
    BM: constexpr = 256,
    BN: constexpr = 256,
    WG: constexpr = WG,
    AHEAD: constexpr = 3,
):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, 32))
    b = xetile.init_tile(B, [0, n], (32, BN))
    acc = xetile.zeros((BM, BN), SUM)
    for _ in range(0, A.shape[1], 32):
        if AHEAD:
            xetile.prefetch_tile(xetile.update_tile_offset(a, [0, AHEAD * 32]))
            xetile.prefetch_tile(xetile.update_tile_offset(b, [AHEAD * 32, 0]))
        x, y = xetile.load_tile(a), xetile.load_tile(b)
        acc = xetile.tile_mma(x, y, acc, wg_map=WG, precision=PRECISION)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel
def triad(A, B, C, s):
    at = [xetile.program_id(0) * 32, xetile.program_id(1) * 64]
    b = xetile.load_tile(xetile.init_tile(B, at, (32, 64)))
    c = xetile.load_tile(xetile.init_tile(C, at, (32, 64)))
    xetile.store_tile(b + s.to(f32) * c, xetile.init_tile(A, at, (32, 64)))


@xetile.kernel
def lower_triangle(X, Y):
    row = xetile.program_id(0) * 32
    total = xetile.zeros((32, 32), f32)
    for column in range(0, row + 32, 32):
        total += xetile.load_tile(xetile.init_tile(X, [row, column], (32, 32)))
    xetile.store_tile(total, xetile.init_tile(Y, [row, 0], (32, 32)))


BF16 = "bf16[M,K] bf16[K,N] f32[M,N]"


def of(
    kernel: Any, signature: str, card: Card | None = None, *, grid: Any, **options: Any
) -> Expected:
    """What is expected on a card; without one, on the first of pvc."""
    target = options.pop("target", "pvc")
    wanted = kernel._found((signature,), options, target)
    meta, device = wanted[3].loaded.meta, find_device(target)
    return expect(
        meta["work"],
        device,
        card or device.cards[0],
        is_large=meta["grf"] > min(device.registers),
        slm_bytes=meta["slm_bytes"],
        grid=grid,
    )


def test_work_and_bytes_of_a_product_are_counted() -> None:
    found = of(gemm, BF16, grid=(16, 16, 1))
    assert found.tflops * found.seconds == pytest.approx(2e-12 * SIZE**3)
    # Each element of A, B and C once: 128 programs run at once, but all fit the cache.
    moved = (2 + 2 + 4) * SIZE**2
    assert found.gbytes * found.seconds == pytest.approx(1e-9 * moved)
    assert found.limit == found.whole == "the matrix unit"
    said = "Max 1550: expected 59% of the peak of the matrix unit"
    assert str(found).startswith(said)


AURORA = Card("112 cores", 112, 1.6, 3276.8, 408 << 20)
"""A GPU of the machine that was measured."""

PUBLISHED = {
    # [PVC-SC24] of xetl.devices: one GPU, TFLOP/s; what `Sustained` was taken from.
    "bf16": (434, "bf16[M,K] bf16[K,N] f32[M,N]", {}, 0.02),
    "f32": (42, "f32[M,K] f32[K,N] f32[M,N]", {}, 0.1),
    # The same source: these check the model.
    "f16": (411, "f16[M,K] f16[K,N] f32[M,N]", {}, 0.1),
    "i8": (864, "i8[M,K] i8[K,N] i32[M,N]", {"SUM": i32}, 0.1),
}


@pytest.mark.parametrize("dtype", PUBLISHED)
def test_published_products(dtype: str) -> None:
    published, signature, options, near = PUBLISHED[dtype]
    grid = (7 * 16, 16, 1)  # as many programs on each of the 112 cores
    found = of(gemm, signature, AURORA, grid=grid, **options)
    assert found.tflops == pytest.approx(published, rel=near)


def test_a_published_product_of_tf32() -> None:
    """Operands are rounded by an instruction for each element of a lane."""
    options: dict[str, Any] = {"PRECISION": "tf32", "grid": (7 * 16, 16, 1)}
    found = of(gemm, "f32[M,K] f32[K,N] f32[M,N]", AURORA, **options)
    assert found.tflops == pytest.approx(208, rel=0.05)
    assert found.limit == "the matrix unit"


def test_published_bandwidth() -> None:
    found = of(triad, "f32[M,N] f32[M,N] f32[M,N] f64", AURORA, grid=(512, 256, 1))
    assert found.limit == found.whole == "memory"
    assert found.gbytes == pytest.approx(2000, rel=0.02)


def test_peaks_of_data_sheets() -> None:
    assert peak("pvc", "bf16") == pytest.approx((839e3, 3276.8), rel=1e-3)
    assert peak("pvc", "f32") == pytest.approx((52.4e3, 3276.8), rel=1e-3)
    assert peak("bmg", "i8") == pytest.approx((233e3, 456), rel=3e-3)
    assert peak("opencl", "f32") is None


def test_what_limits() -> None:
    full = of(gemm, BF16, grid=(16, 16, 1))
    assert of(gemm, BF16, grid=(1, 1, 1)).part < full.part / 100  # cores are idle
    thin = of(gemm, BF16, BM=8, BN=64, WG=None, grid=(1, 64, 1))
    assert thin.limit != "the matrix unit"
    xetl.config.prefetch = 0
    try:
        late = of(gemm, BF16, BM=32, BN=32, WG=None, AHEAD=0, grid=(4, 4, 1))
    finally:
        del xetl.config.prefetch
    assert late.limit == "the latency of memory"
    slow = replace(find_device("pvc").cards[0], gbytes=10.0)
    assert of(gemm, BF16, slow, grid=(16, 16, 1)).limit == "memory"


def test_a_loop_whose_length_depends_on_the_program_counts_as_in_the_middle() -> None:
    small = of(lower_triangle, "f32[M,N] f32[M,N]", grid=(33, 1, 1))
    moved = small.gbytes * small.seconds * 1e9
    assert moved == pytest.approx(33 * 32 * 32 * 4 * (17 + 1))


def test_numbers_are_evaluated_without_recursion() -> None:
    chain = [["word", 0], ["number", 1]]
    chain += [["addi", index or 0, 1] for index in (0, *range(2, 3000))]
    assert evaluate(chain, (5,), (0, 0, 0), (1, 1, 1))[-1] == 5 + 2999
    assert evaluate([["word", 3]], (), (0, 0, 0), (1, 1, 1)) == [4096]
    by_zero = [["number", 0], ["divsi", 0, 0], ["addi", 1, 0]]
    assert evaluate(by_zero, (), (0, 0, 0), (1, 1, 1)) == [0, None, None]
    large = [["number", 1 << 62], ["shli", 0, 0], ["muli", 0, 0]]
    assert all(abs(n or 0) < 1 << 64 for n in evaluate(large, (), (0, 0, 0), (1, 1, 1)))


def test_numbers_are_those_of_arith() -> None:
    """Signed division goes towards zero; unsigned operations see 64 bits."""
    names = "divsi", "remsi", "floordivsi", "ceildivsi", "divui", "maxui"
    slots = [["number", -7], ["number", 2], *([name, 0, 1] for name in names)]
    found = evaluate(slots, (), (0, 0, 0), (1, 1, 1))[2:]
    assert found == [-3, -1, -4, -3, ((1 << 64) - 7) // 2, -7]


MAPS = [(8, 4), (4, 8), (16, 2), (2, 16), (32, 1)]


SIDES = (4, 16, 64, 256)
"""Tiles along m and n: up to 65536 elements."""


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("dtype", ["bf16", "i8", "f32"])
def test_no_walk_is_faster_than_the_chosen_one(target: str, dtype: str) -> None:
    """As fast as if the second cache kept all; as programs start, up to 1.4 times."""
    signature, options = BF16.replace("bf16", dtype), dict[str, Any]()
    if dtype == "i8":
        signature, options = signature.replace("f32", "i32"), {"SUM": i32}
    device = find_device(target)
    meta = gemm._found((signature,), options, target)[3].loaded.meta
    gains = [1.0]
    for card in device.cards:
        best = replace(card, cache_bytes=1 << 60)
        for m in SIDES:
            for n in SIDES:
                work = meta["work"]
                size: dict[str, Any] = {"grid": (m, n, 1), "is_large": True}
                walked = expect(work, device, card, **size)
                whole = expect(work, device, best, **size)
                started = expect({**work, "walk": 0}, device, card, **size)
                assert walked.seconds <= 1.02 * whole.seconds
                assert walked.seconds <= 1.02 * started.seconds
                gains.append(started.seconds / walked.seconds)
    # The vector units make f32 so slowly that memory never counts.
    assert bool(meta["work"]["walk"]) == (dtype != "f32") == (max(gains) > 1.1)


def test_only_kernels_that_share_along_both_axes_walk() -> None:
    found = gemm._found((BF16,), {}, "pvc")[3].loaded.meta["work"]["walk"]
    assert found > 1
    said = [each.text for each in gemm.explain(BF16, target="pvc").remarks]
    assert any(each.startswith(f"{found} programs along x") for each in said)
    arrays = "f32[M,N] f32[M,N] f32[M,N] f64"
    assert triad._found((arrays,), {}, "pvc")[3].loaded.meta["work"]["walk"] == 0


@pytest.mark.slow
def test_the_chosen_map_is_the_one_with_the_least_time() -> None:
    options: dict[str, Any] = {"AHEAD": 0, "grid": (16, 16, 1)}
    chosen = of(gemm, BF16, WG=None, **options).seconds
    for rows, columns in MAPS:
        part = [max(8, 256 // rows), max(16, 256 // columns)]
        forced = xetile.wg_map(sg_layout=[rows, columns], sg_data=part)
        assert chosen <= 1.001 * of(gemm, BF16, WG=forced, **options).seconds


def test_stats_and_explain_say_it() -> None:
    lines = str(gemm.stats(BF16, target="pvc")).splitlines()
    told = [line.split(maxsplit=1)[1] for line in lines if "roofline" in line]
    assert [each.partition(":")[0] for each in told] == ["Max 1550", "Max 1100"]
    said = gemm.explain(BF16, target="bmg")
    (remark,) = [each.text for each in said.remarks if each.topic == "roofline"]
    assert remark.startswith("Arc B580: expected 80% of the peak of the matrix unit")
    assert not gemm.stats(BF16, target="opencl").expected


def test_stats_know_the_sizes_of_arrays() -> None:
    a = np.zeros((512, 4096), ml_dtypes.bfloat16)
    b = np.zeros((4096, 512), ml_dtypes.bfloat16)
    c = np.zeros((512, 512), np.float32)
    found = gemm.stats(a, b, c, target="pvc").expected[0]
    assert found.tflops * found.seconds == pytest.approx(2e-12 * 512 * 512 * 4096)
    assert found.part < 0.05  # four programs
