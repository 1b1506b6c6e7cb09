"""Tasks on AMX tiles that go through their columns in trips, and keep a copy of A."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl import xetile
from xetl.ops import prepack
from xetl.xetile import constexpr
from xetl_cpu.targets import find_target

BF16: Any = ml_dtypes.bfloat16


pytestmark = pytest.mark.usefixtures("amx_target")


@xetile.kernel
def gated(A, B, D, bias, scale, C, BM: constexpr, BN: constexpr):
    """``C = C + (A @ B + bias) * (A @ D) * scale``, scale by rows."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    left = xetile.zeros((BM, BN), xetile.f32)
    right = xetile.zeros((BM, BN), xetile.f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        d = xetile.load_tile(xetile.init_tile(D, [k, n], (32, BN)))
        left = xetile.tile_mma(a, b, left)
        right = xetile.tile_mma(a, d, right)
    row = xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    column = xetile.load_tile(xetile.init_tile(scale, [m], (BM,)))
    place = xetile.init_tile(C, [m, n], (BM, BN))
    before = xetile.load_tile(place)
    xetile.store_tile(before + (left + row) * right * column[:, None], place)


def some(rng: Any, dtype: Any, *shape: int) -> Any:
    return rng.integers(-2, 3, shape).astype(dtype)


@pytest.mark.parametrize("tile", [(64, 64), (32, 48), (64, 24), (256, 256)])
@pytest.mark.parametrize("shape", [(300, 600, 70), (64, 1040, 33), (70, 513, 2100)])
@pytest.mark.parametrize("is_prepacked", [False, True])
def test_numbers_of_trips(amx, tile, shape, is_prepacked):
    """One row of programs or several, a k that is copied once and one that is not."""
    (m, n, k), (rows, columns), rng = shape, tile, np.random.default_rng(0)
    a, b, d = some(rng, BF16, m, k), some(rng, BF16, k, n), some(rng, BF16, k, n)
    bias, scale = some(rng, np.float32, n), some(rng, np.float32, m)
    c = some(rng, np.float32, m, n)
    product = (a.astype("f8") @ b.astype("f8") + bias) * (a.astype("f8") @ d)
    expected = c + product * scale[:, None]
    given = prepack(b) if is_prepacked else b
    with amx.counting():
        gated[-(-m // rows), -(-n // columns)](a, given, d, bias, scale, c, *tile)
    assert amx.errors() == []
    assert np.array_equal(c, expected.astype("f4"))


@xetile.kernel
def by_columns(A, B, C, BM: constexpr, BN: constexpr):
    m = xetile.program_id(0) * BM
    for n in range(0, C.shape[1], BN):
        acc = xetile.zeros((BM, BN), xetile.f32)
        for k in range(0, A.shape[1], 32):
            a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
            b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
            acc = xetile.tile_mma(a, b, acc)
        xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.parametrize("columns", [200, 600])
def test_a_loop_of_the_user_keeps_its_copy(amx, columns):
    """Rows of A that lie badly are copied if many columns meet them, and once then."""
    rng = np.random.default_rng(0)
    a, b = some(rng, BF16, 130, 128), some(rng, BF16, 128, columns)
    c = np.zeros((130, columns), BF16)
    with amx.counting():
        by_columns[3](a, b, c, 64, 64)
    assert amx.errors() == []
    expected = (a.astype("f8") @ b.astype("f8")).astype(BF16)
    assert np.array_equal(c.astype("f4"), expected.astype("f4"))
    text = by_columns.ir("loops", a, b, c, 64, 64)
    is_new = r"(%\w+) = arith.ori %\w+, %\w+ : i1\n *scf.if \1 {\n(?:.*\n){0,3}? *"
    assert len(re.findall(is_new + r'"xsmm.pack".*operand = "a"', text)) == 1


def test_what_a_trip_writes_is_copied_again():
    a = np.zeros((64, 640), BF16)
    text = by_columns.ir("loops", a, a, a, 64, 64)
    (pack,) = re.findall(r'(?:.*\n){3}.*"xsmm.pack".*operand = "a"', text)
    assert "scf.if" not in pack


@xetile.kernel
def added(A, B, bias, C, D, BM: constexpr, BN: constexpr):
    """Stored twice, so that the sums are in memory."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), xetile.f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))
    xetile.store_tile(acc.to(D.dtype), xetile.init_tile(D, [m, n], (BM, BN)))


@pytest.mark.parametrize(
    "shape", [(37, 1536, 1120), (64, 1536, 2018), (15, 1675, 2272)]
)
def test_a_long_k_is_copied_in_each_trip(amx, shape):
    """Few rows pack B themselves, in chunks of k of which A's copy holds one."""
    (m, k, n), rng = shape, np.random.default_rng(0)
    a, b, bias = some(rng, BF16, m, k), some(rng, BF16, k, n), some(rng, "f4", n)
    c, d = np.zeros((2, m, n), np.float32)
    with amx.counting():
        added[1, -(-n // 32)](a, b, bias, c, d, 64, 32)
    assert amx.errors() == []
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4") + bias)
    assert np.array_equal(c, d)


@pytest.mark.parametrize("width", [64, 256])
def test_sums_stand_in_rows_an_odd_number_of_lines_apart(width):
    a = np.zeros((64, 64), BF16)
    given = (a, a, np.zeros(64, np.float32), a.copy(), a.copy(), 64, width)
    text = added.ir("loops", *given)
    (distance,) = re.findall(r"alloca\(\) : memref<256x(\d+)xf32>", text)
    assert int(distance) == 512 + 64 // 4


def test_a_result_as_large_as_l2_goes_past_the_caches():
    a = np.zeros((64, 64), BF16)
    given = (a, a, np.zeros(64, np.float32), a.copy(), a.copy(), 64, 64)
    l2 = find_target("amx").machine.l2.size
    is_large = rf"(%\w+) = arith.constant {l2} : index\n.*arith.cmpi sge, %\w+, \1"
    assert re.search(is_large, added.ir("loops", *given))
    assert "!nontemporal" in added.ir("llvm", *given)
