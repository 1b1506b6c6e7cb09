"""The road to a device's blocks, seen from a kernel; what users learn of their maps."""

import numpy as np
import pytest

from xetl import load_mlir, xetile
from xetl.errors import LaunchError, TileMapWarning
from xetl.xetile import constexpr, f32, wg_map

F32 = np.zeros((64, 64), np.float32)


@xetile.kernel
def product(A, B, C, N: constexpr):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (N, N)))
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (N, N)))
    c = xetile.tile_mma(a, b, wg_map=wg_map([2, 2], [32, 32]))
    xetile.store_tile(c, xetile.init_tile(C, [0, 0], (N, N)))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_stages_are_there_on_every_backend(backend):
    half = np.zeros((64, 64), np.float16)
    given = {"backend": backend, "N": 64}
    mapped = product.ir("xetile-mapped", half, half, F32, **given)
    assert "wg_map_a = #xetile.wg_map<sg_layout = [2, 2], sg_data = [32, 64]>" in mapped
    subgroups = product.ir("xetile-sg", half, half, F32, **given)
    assert "xetile.subgroups = array<i64: 2, 2>" in subgroups
    assert "vector<32x64xf16>, vector<64x32xf16>" in subgroups
    blocked = product.ir("xetile-blocked", half, half, F32, **given)
    assert "inner_blocks = [16, 16]" in blocked
    assert product.ir("distribute-to-subgroups", half, half, F32, **given) == subgroups


def test_an_unknown_stage_names_these_too():
    with pytest.raises(LaunchError, match="no stage") as caught:
        product.ir("xetile-maped", F32, F32, F32, N=64)
    assert caught.value.help == "did you mean `xetile-mapped`?"


def test_a_text_has_the_stages():
    text = """
    #halves = #xetile.wg_map<sg_layout = [2, 1], sg_data = [16, 32]>
    !half = !xetile.tile<32x32xf32, #halves>
    gpu.module @m { gpu.func @copy(%A: memref<32x32xf32>, %B: memref<32x32xf32>)
        kernel {
      %a = xetile.init_tile %A[0, 0] : memref<32x32xf32> -> !half
      %v = xetile.load_tile %a : !half -> vector<32x32xf32>
      %b = xetile.init_tile %B[0, 0] : memref<32x32xf32> -> !xetile.tile<32x32xf32>
      xetile.store_tile %v, %b : vector<32x32xf32>, !xetile.tile<32x32xf32>
      gpu.return
    } }
    """
    found = load_mlir(text)["copy"].ir("xetile-sg")
    assert found.count("!xetile.tile<16x32xf32> -> vector<16x32xf32>") == 1


@xetile.kernel
def at_odds(A, B, C):
    rows = wg_map([4, 1], [16, 64])
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (64, 64), wg_map=rows))
    squares = wg_map([2, 2], [32, 32])
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (64, 64), wg_map=squares))
    xetile.store_tile(a + b, xetile.init_tile(C, [0, 0], (64, 64)))


def test_maps_that_differ_are_reported_wherever_the_kernel_runs():
    first = at_odds.fn.__code__.co_firstlineno
    with pytest.warns(TileMapWarning) as caught:
        report = at_odds.explain(F32, F32, F32)
    text = str(caught[0].message)
    assert f"line {first + 3}" in text
    assert f"line {first + 5}" in text
    change, warning = [each for each in report.remarks if each.topic == "maps"]
    assert "16384 bytes go through shared memory" in change.text
    assert warning.text == text
    assert change.line == warning.line == first + 6


@xetile.kernel
def accumulate(A, C, N: constexpr):
    total = xetile.zeros((N, N), f32)
    a = xetile.init_tile(A, [0, 0], (N, N), wg_map=wg_map([2, 2], [32, 32]))
    for _ in range(3):
        total = total + xetile.load_tile(a)
    xetile.store_tile(total, xetile.init_tile(C, [0, 0], (N, N)))


def test_maps_that_agree_are_quiet():
    report = accumulate.explain(F32, F32.copy(), N=64)
    assert not [each for each in report.remarks if "shared memory" in each.text]
