"""Loops that carry rows in registers and store what they compute on the way."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from launching import agree, same, small_integers

from xetl import xetile
from xetl.xetile import constexpr, f32

pytestmark = pytest.mark.usefixtures("anywhere")


@xetile.kernel
def filters(X, Y, C, FIRST: constexpr, H: constexpr, W: constexpr):
    """Biquad filters, a channel a column; Y may be X."""
    b0, b1, b2, a1, a2 = C[0], C[1], C[2], C[3], C[4]
    z1, z2 = xetile.zeros((H, W), f32), xetile.zeros((H, W), f32)
    for t in range(0, X.shape[0], H):
        x = xetile.load_tile(xetile.init_tile(X, [t, FIRST], (H, W))).to(f32)
        y = b0 * x + z1
        z1 = b1 * x - a1 * y + z2
        z2 = b2 * x - a2 * y
        xetile.store_tile(y.to(Y.dtype), xetile.init_tile(Y, [t, FIRST], (H, W)))


def _filtered(x: np.ndarray, c: np.ndarray, height: int) -> np.ndarray:
    """Return the filtered columns in f64: each of ``height`` rows is a filter."""
    y = np.zeros(x.shape)
    z1, z2 = np.zeros((2, height, x.shape[1]))
    for t in range(0, x.shape[0], height):
        part = np.zeros((height, x.shape[1]))
        part[: len(x[t : t + height])] = x[t : t + height]
        out = c[0] * part + z1
        z1 = c[1] * part - c[3] * out + z2
        z2 = c[2] * part - c[4] * out
        y[t : t + height] = out[: len(x) - t]
    return y


NUMBERS = np.array([2.0, 1.0, -1.0, 1.0, -1.0], np.float32)


@pytest.mark.parametrize(
    ("height", "width", "channels"),
    [(1, 8, 8), (1, 2, 2), (1, 24, 24), (1, 64, 64), (1, 16, 13), (4, 16, 16)],
)
@pytest.mark.parametrize("kind", ["plain", "in place", "columns", "bfloat16"])
@pytest.mark.parametrize("first", [0, -1])
def test_filters(height: int, width: int, channels: int, kind: str, first: int) -> None:
    x = small_integers(np.random.default_rng(1), 7, channels) % 3
    if kind == "columns":
        x = np.asfortranarray(x)
    if kind == "bfloat16":
        x = x.astype(ml_dtypes.bfloat16)
    y = x if kind == "in place" else np.zeros_like(x)
    found = agree(filters, 1, x, y, NUMBERS, FIRST=first, H=height, W=width)
    if kind != "bfloat16":
        covered = min(channels, width + first)
        expected = _filtered(x.astype(np.float64), NUMBERS.astype(np.float64), height)
        same(found[1][:, :covered], expected[:, :covered].astype(np.float32))


@xetile.kernel
def behind(X, Y, Z, AGAIN: constexpr, W: constexpr):
    """Y is read behind the store, at a place of this trip or of an earlier one."""
    total = xetile.zeros((1, W), f32)
    for t in range(X.shape[0]):
        total = total + xetile.load_tile(xetile.init_tile(X, [t, 0], (1, W)))
        xetile.store_tile(total, xetile.init_tile(Y, [t, 0], (1, W)))
        if AGAIN == "row":
            total = total + xetile.load_tile(xetile.init_tile(Y, [t // 2, 0], (1, W)))
        elif AGAIN == "number":
            total = total + Y[t, 1]
        xetile.store_tile(total * 2, xetile.init_tile(Z, [t, 0], (1, W)))


@pytest.mark.parametrize("again", ["", "row", "number"])
@pytest.mark.parametrize("width", [8, 32])
def test_what_is_read_behind_a_store(again: str, width: int) -> None:
    x = small_integers(np.random.default_rng(2), 6, width) % 4
    found = agree(
        behind, 1, x, np.zeros_like(x), np.zeros_like(x), AGAIN=again, W=width
    )
    total, y, z = np.zeros(width), np.zeros(x.shape), np.zeros(x.shape)
    for t in range(6):
        y[t] = total = total + x[t]
        total = total + {"row": y[t // 2], "number": y[t, 1]}.get(again, 0)
        z[t] = total * 2
    same(found[1], y.astype(np.float32))
    same(found[2], z.astype(np.float32))


def _loops(kernel: Any, signature: str, **constants: Any) -> tuple[str, int]:
    """Return the loops of a program, and the buffers that they use."""
    text = kernel.ir("loops", signature, target="avx512", **constants)
    return text, text.count("memref.alloca")


@pytest.mark.parametrize("width", [8, 16, 64])
def test_carried_rows_are_registers_though_the_loop_stores(width: int) -> None:
    signature = "f32[M,N] f32[M,N] f32[5]"
    text, buffers = _loops(filters, signature, FIRST=0, H=1, W=width)
    assert text.count("scf.for ") == 1
    lanes = min(width, 16)
    carried = 2 * width // lanes
    loop = text[text.index("scf.for ") :].partition("\n")[0]
    assert loop.count(f"vector<{lanes}xf32>") == carried
    assert "memref<1x" not in text
    assert buffers == 0


def test_rows_are_in_memory_where_a_store_is_read() -> None:
    signature = "f32[M,N] f32[M,N] f32[M,N]"
    assert not _loops(behind, signature, AGAIN="", W=16)[1]
    assert _loops(behind, signature, AGAIN="row", W=16)[1]
