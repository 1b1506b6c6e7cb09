"""Sums of what is loaded use vectors of half a register where halves are as fast."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.backends.cpu.launching import needs
from xetl import xetile
from xetl.settings import config
from xetl.xetile import constexpr
from xetl_cpu.machine import FAMILIES
from xetl_cpu.targets import TARGETS, find_target


@xetile.kernel
def row_sums(X, Y, BM: constexpr, BN: constexpr):
    at = [xetile.program_id(0) * BM, 0]
    v = xetile.load_tile(xetile.init_tile(X, at, (BM, BN)))
    xetile.store_tile(v.sum(1, keepdims=True), xetile.init_tile(Y, at, (BM, 1)))


@xetile.kernel
def sums_of_exp(X, Y, BM: constexpr, BN: constexpr):
    at = [xetile.program_id(0) * BM, 0]
    v = xetile.exp(xetile.load_tile(xetile.init_tile(X, at, (BM, BN))))
    xetile.store_tile(v.sum(1, keepdims=True), xetile.init_tile(Y, at, (BM, 1)))


@xetile.kernel
def largest(X, Y, BM: constexpr, BN: constexpr):
    at = [xetile.program_id(0) * BM, 0]
    v = xetile.load_tile(xetile.init_tile(X, at, (BM, BN)))
    xetile.store_tile(v.max(1, keepdims=True), xetile.init_tile(Y, at, (BM, 1)))


@xetile.kernel
def column_sums(X, Y, BM: constexpr, BN: constexpr):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (BM, BN)))
    xetile.store_tile(v.sum(0, keepdims=True), xetile.init_tile(Y, [0, 0], (1, BN)))


@xetile.kernel
def spread_sums(X, Y, BM: constexpr, BN: constexpr):
    at = [xetile.program_id(0) * BM, 0]
    v = xetile.load_tile(xetile.init_tile(X, at, (BM, BN)))
    v = v * v.sum(1, keepdims=True)
    xetile.store_tile(v, xetile.init_tile(Y, at, (BM, BN)))


@xetile.kernel
def sums_of_pieces(X, Y, BM: constexpr, BN: constexpr):
    r = xetile.program_id(0)
    total = xetile.zeros((1, BN), X.dtype)
    for c in range(0, X.shape[1], BN):
        total += xetile.load_tile(xetile.init_tile(X, [r, c], (1, BN)))
    out = total.sum(1, keepdims=True)
    xetile.store_tile(out, xetile.init_tile(Y, [r, 0], (1, 1)))


@xetile.kernel
def squares(X, Y, BM: constexpr, BN: constexpr):
    at = [xetile.program_id(0) * BM, 0]
    v = xetile.load_tile(xetile.init_tile(X, at, (BM, BN)))
    xetile.store_tile(v * v, xetile.init_tile(Y, at, (BM, BN)))


@pytest.fixture
def halving(monkeypatch: pytest.MonkeyPatch) -> str:
    """A target that computes its registers in halves; nothing made for it is kept."""
    like = replace(TARGETS["avx512"], machine=FAMILIES["zen4"])
    monkeypatch.setitem(TARGETS, "avx512", like)
    monkeypatch.setattr(config, "assigned", {**config.assigned, "cache": False})
    return "avx512"


def loads(kernel: Any, dtype: Any, target: str, width: int = 512) -> str:
    """The loads of a kernel; made anew, for targets are known by their names."""
    x = np.zeros((8, 512), dtype)
    text = xetile.kernel(kernel.fn).ir("loops", x, x, 4, width, target=target)
    return " ".join(line for line in text.splitlines() if "vector.load %" in line)


def test_who_computes_in_halves() -> None:
    found = {name: find_target(name).halves_vectors for name in TARGETS}
    assert not any(found.values())
    assert replace(TARGETS["avx512"], machine=FAMILIES["zen4"]).halves_vectors
    assert not replace(TARGETS["avx2"], machine=FAMILIES["zen4"]).halves_vectors


@pytest.mark.parametrize(
    ("dtype", "halves"), [("float32", "8xf32"), ("float64", "4xf64")]
)
def test_sums_load_half_a_register(halving: str, dtype: Any, halves: str) -> None:
    text = loads(row_sums, dtype, halving)
    assert f"vector<{halves}>" in text
    assert f"vector<16x{dtype[0]}" not in text


def test_others_load_whole_ones() -> None:
    assert "vector<16xf32>" in loads(row_sums, np.float32, "avx512_bf16")
    assert "vector<8xf32>" in loads(row_sums, np.float32, "avx2")


def test_narrow_numbers_fill_it_anyway(halving: str) -> None:
    assert "vector<16xf16>" in loads(row_sums, np.float16, halving)


@pytest.mark.parametrize(
    ("dtype", "whole"), [("int8", "16xi8"), ("float16", "16xf16"), ("float32", "8xf32")]
)
def test_functions_of_16_bits_fill_a_register_without_masks(
    dtype: Any, whole: str
) -> None:
    assert f"vector<{whole}>" in loads(squares, dtype, "avx2")
    assert f"vector<{whole}>" in loads(row_sums, dtype, "avx2")
    # At the end of a short row, so many branches cost more than they save.
    assert "vector<16x" not in loads(row_sums, dtype, "avx2", 256)


@pytest.mark.parametrize("kernel", [sums_of_exp, largest, column_sums, spread_sums])
def test_what_computes_or_stores_more_keeps_whole_ones(
    halving: str, kernel: Any
) -> None:
    text = loads(kernel, np.float32, halving)
    assert "vector<16xf32>" in text
    assert "vector<8xf32>" not in text


def test_what_a_loop_carries_stays_in_registers(
    halving: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "vector<16xf32>" not in loads(sums_of_pieces, np.float32, halving, 128)
    assert "vector<8xf32>" not in loads(sums_of_pieces, np.float32, halving, 256)
    monkeypatch.setitem(config.assigned, "target", halving)
    said = sums_of_pieces.explain("f32[8,512] f32[8,1]", BM=4, BN=256)
    assert any("carried in registers: 16 " in each.text for each in said.remarks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("columns", [1, 3, 4, 7, 31, 32, 33, 127, 130])
def test_results_of_any_width(
    halving: str, monkeypatch: pytest.MonkeyPatch, dtype: Any, columns: int
) -> None:
    needs("avx512")
    monkeypatch.setitem(config.assigned, "target", halving)
    x = (np.arange(7 * columns) % 9 - 4).reshape(7, columns).astype(dtype)
    y = np.full((7, 1), 99, dtype)
    xetile.kernel(row_sums.fn)[2](x, y, 4, 144)
    assert np.array_equal(y, x.sum(1, keepdims=True))
