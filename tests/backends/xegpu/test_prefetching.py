"""What the backend makes of prefetches: by whom, how far ahead, in which kernel."""

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import cdiv, constexpr, f32

TYPES = "f16[M,K] f16[K,N] f32[M,N]"


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], 64), cdiv(m.C.shape[1], 64)))
def gemm(A, B, C, AHEAD: constexpr = 0):
    m, n = xetile.program_id(0) * 64, xetile.program_id(1) * 64
    a = xetile.init_tile(A, [m, 0], (64, 32))
    b = xetile.init_tile(B, [0, n], (32, 64))
    acc = xetile.zeros((64, 64), f32)
    for _ in range(0, A.shape[1], 32):
        if AHEAD:
            xetile.prefetch_tile(xetile.update_tile_offset(a, [0, AHEAD * 32]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (64, 64)))


def kernels(target: str, **options: int) -> list[str]:
    """The code of lanes: of the kernel that moves blocks, and of its twin."""
    text = gemm.ir("rotate-loops", TYPES, backend="xegpu", target=target, **options)
    return text.split("simt.func @")[1:]


def said(target: str, **options: int) -> list[str]:
    report = gemm.explain(TYPES, backend="xegpu", target=target, **options)
    return [each.text for each in report.remarks if each.topic == "prefetch"]


@pytest.mark.parametrize(("target", "steps"), [("pvc", 3), ("bmg", 1)])
def test_the_model_chooses(target: str, steps: int) -> None:
    blocks, lanes = kernels(target)
    # A share of A and one of B: in front of the loop, and in it.
    assert blocks.count("simt.block_prefetch") == 2 * steps
    assert "simt.block_prefetch" not in lanes
    (text,) = said(target)
    assert f"{steps} steps ahead, each of 2 subgroups for a share" in text


def test_a_cpu_is_asked_for_nothing() -> None:
    assert "simt.block_prefetch" not in "".join(kernels("opencl"))
    assert said("opencl") == [
        "no tile is asked for ahead: on `opencl` a prefetch is nothing"
    ]


def test_what_the_user_asks_for_stays() -> None:
    blocks, lanes = kernels("pvc", AHEAD=2)
    assert blocks.count("simt.block_prefetch") == 1
    assert "simt.block_prefetch" not in lanes
    assert said("pvc", AHEAD=2) == ["the kernel's own prefetches stay as they are"]


@pytest.mark.parametrize(
    "target", ["pvc", pytest.param("opencl", marks=pytest.mark.slow)]
)
def test_the_setting_wins(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.setenv("XETL_PREFETCH", "5")
    assert kernels(target)[0].count("simt.block_prefetch") == 10
    assert "5 steps ahead" in said(target)[0]
    monkeypatch.setenv("XETL_PREFETCH", "0")
    assert "simt.block_prefetch" not in "".join(kernels(target))
    assert said(target) == ["no tile is asked for ahead: XETL_PREFETCH says so"]


def test_a_setting_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XETL_PREFETCH", "far")
    with pytest.raises(LaunchError, match="a number of steps") as caught:
        kernels("pvc")
    assert caught.value.code == "X0814"


@pytest.mark.slow
def test_right_with_prefetches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they ask for what lies behind the last column and row."""
    pytest.importorskip("dpctl", reason="dpctl is not installed: pip install dpctl")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float16) for s in ((96, 160), (160, 80)))
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    for distance in ("", "0", "3", "40"):
        monkeypatch.setenv("XETL_PREFETCH", distance)
        c = np.zeros((96, 80), np.float32)
        gemm(a, b, c, backend="xegpu")
        assert np.array_equal(c, wanted)
