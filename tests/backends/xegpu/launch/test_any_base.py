"""Matrices that begin anywhere: slices, and heads of 40 and 80, by block messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from launched import aligned, counting, grid_of, scale

from xetl import xetile
from xetl.ops.attention.kernel import attention
from xetl.settings import config
from xetl.xetile import constexpr
from xetl_xegpu.limits import why_no_blocks


@pytest.fixture(autouse=True)
def _say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config.assigned, "log", True)


@pytest.mark.parametrize("columns", [slice(1, 33), slice(5, 41), slice(15, 48)])
def test_slices(columns: slice, capfd: pytest.CaptureFixture[str]) -> None:
    whole, to = counting((24, 64)), aligned((24, 64))
    a, c = whole[:, columns], to[:, columns]
    scale[grid_of(a)](a, c)
    assert "without block messages" not in capfd.readouterr().err
    expected = np.zeros_like(to)
    expected[:, columns] = 2 * a
    assert np.array_equal(to, expected)  # and nothing beside the slice is written


@xetile.kernel
def of_heads(Q, P, H: constexpr, D: constexpr):
    head = xetile.program_id(0)
    q = xetile.load_tile(xetile.init_tile(Q[head], [0, 0], (16, D)))
    xetile.store_tile(q + q, xetile.init_tile(P[head], [0, 0], (16, D)))


@pytest.mark.parametrize("size", [40, 80])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_heads(size: int, dtype: Any, capfd: pytest.CaptureFixture[str]) -> None:
    tokens = aligned((20, 4, size), dtype)
    tokens[...] = np.arange(tokens.size).reshape(tokens.shape) % 97
    out = aligned((20, 4, size), dtype)
    width = -(-size // 16) * 16
    of_heads[4](tokens.swapaxes(0, 1), out.swapaxes(0, 1), H=4, D=width)
    assert "without block messages" not in capfd.readouterr().err
    assert np.array_equal(out[:16], 2 * tokens[:16])
    assert not out[16:].any()


@xetile.kernel
def of_groups(A, FIRST, C):
    group = xetile.program_id(0)
    first, end = FIRST[group], FIRST[group + 1]
    a = xetile.load_tile(xetile.init_tile(A[first:end], [-2, 0], (16, 16)))
    xetile.store_tile(a + a, xetile.init_tile(C[first:end], [0, 0], (16, 16)))


@pytest.mark.parametrize(
    ("columns", "pitch", "by_blocks"), [(64, 64, True), (20, 36, True), (36, 36, False)]
)
def test_rows_of_a_group(
    columns: int, pitch: int, by_blocks: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rows between two numbers: of any address, if rows are far enough apart."""
    whole, to = counting((24, pitch)), aligned((24, pitch))
    first = np.array([0, 3, 3, 24], np.int32)
    of_groups[3](whole[:, :columns], first, to[:, :columns])
    assert ("without block messages" not in capfd.readouterr().err) == by_blocks
    expected = np.zeros_like(to)
    for start, end in ((0, 3), (3, 24)):
        for row in range(2, min(end - start, 16)):
            expected[start + row, :16] = 2 * whole[start + row - 2, :16]
    assert np.array_equal(to, expected)  # and no row of another group is written


@pytest.mark.slow
def test_attention_with_heads_of_40(capfd: pytest.CaptureFixture[str]) -> None:
    """32 loads a step: where a head begins costs next to nothing in a loop."""
    q, k, v, out = (aligned((64, 3, 40), np.float16).swapaxes(0, 1) for _ in range(4))
    for seed, each in enumerate((q, k, v)):
        each[...] = np.random.default_rng(seed).standard_normal(each.shape)
    factor = np.log2(np.e) / np.sqrt(40)
    constants = {"HEADS": 1, "SHARE": 1, "LEFT": None, "RIGHT": None}
    constants |= {"NEGATIVE": False, "ACC": xetile.f32}
    sizes = {"BM": 16, "BN": 64, "D": 40, "E": 40}
    given = (q, k, v, None, out, *[None] * 5, factor, np.log2(np.e) / factor, 0.0)
    attention[4, 3](*given, **constants, **sizes)
    assert "without block messages" not in capfd.readouterr().err
    scores = q.astype(float) @ k.astype(float).swapaxes(1, 2) / np.sqrt(40)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ v
    assert np.allclose(out, expected, rtol=2e-3, atol=2e-3)


@xetile.kernel(grid=1)
def from_the_left(A, C):
    a = xetile.load_tile(xetile.init_tile(A, [0, -4], (8, 16)))
    xetile.store_tile(a, xetile.init_tile(C, [0, 0], (8, 16)))


def test_blocks_that_begin_left_of_the_matrix_find_zeros() -> None:
    whole, c = counting((8, 64)) + 1, aligned((8, 64))
    from_the_left(whole[:, 8:40], c)
    assert not c[:, :4].any()
    assert np.array_equal(c[:, 4:16], whole[:, 8:20])


def test_what_is_asked_of_a_base() -> None:
    assert why_no_blocks(8, 64, 8, 128, step=4) is None
    assert "no multiple of 4" in (why_no_blocks(2, 64, 8, 128, step=4) or "")
    assert "too little between" in (why_no_blocks(8, 128, 8, 128, step=4) or "")
    assert why_no_blocks(0, 80, 8, 320, (80,), step=4) is None
    assert why_no_blocks(0, 80, 8, 128, (80,), step=4) is not None
