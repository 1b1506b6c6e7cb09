"""Floats of eight bits against ml_dtypes: codes, conversions, products."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xetl
from tests.frontend.page import NUMPY, computed
from xetl import xetile
from xetl.errors import IRError, LaunchError, TileTypeError
from xetl.language.dtypes import DType
from xetl.xetile import cdiv, constexpr, f8e4m3, f8e5m2, f32

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
BOTH = pytest.mark.parametrize("dtype", [f8e4m3, f8e5m2], ids=repr)
SMALL = {f8e4m3: ml_dtypes.float8_e4m3fn, f8e5m2: ml_dtypes.float8_e5m2}


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal bit by bit: zeros by their sign, NaN as well."""
    assert found.dtype == expected.dtype
    kind = f"u{found.dtype.itemsize}"
    np.testing.assert_array_equal(found.view(kind), expected.view(kind))


def codes(dtype: DType) -> np.ndarray:
    return np.arange(256, dtype=np.uint8).view(SMALL[dtype]).reshape(4, 64)


def finite(dtype: DType, shape: tuple[int, int] = (4, 32)) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) * 4).astype(SMALL[dtype])


# Conversions ------------------------------------------------------------------------


@ALL
@BOTH
@pytest.mark.parametrize("to", ["f16", "bf16", "f32", "f64"])
def test_every_code_is_exact(dtype, to: str, backend: str) -> None:
    a = codes(dtype)
    wide = getattr(xetile, to)
    found = computed(lambda a, b: a.to(wide), a, a, to, backend)
    with np.errstate(invalid="ignore"):  # of NaN that signal
        expected = a.astype(np.float32).astype(np.float64)
        found = found.astype(np.float64)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@ALL
@BOTH
@pytest.mark.parametrize("place", [(0, 1), (1, 60), (3, 40), (9, 0)])
def test_an_element_is_exact(dtype, place: tuple[int, int], backend: str) -> None:
    a, out = codes(dtype), np.full(1, 7, np.float32)
    element[1](a, out, *place, backend=backend)
    same(out.astype(a.dtype), a[place][None] if place[0] < 4 else np.zeros(1, a.dtype))


@xetile.kernel
def element(A, OUT, row: int, column: int):
    OUT[0] = xetile.load_tile(xetile.init_tile(A, [0, 0], (4, 64)))[row, column]


@ALL
@BOTH
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_number_of_sixteen_bits_is_rounded(
    dtype, source: str, backend: str
) -> None:
    a = np.arange(1 << 16, dtype=np.uint16).view(NUMPY[source]).reshape(256, 256)
    found = computed(lambda a, b: a.to(dtype), a, a, SMALL[dtype], backend)
    with np.errstate(invalid="ignore"):
        same(found, a.astype(SMALL[dtype]))


def halves(dtype, wide: type) -> np.ndarray:
    """All numbers of a dtype, those half way between two, and the neighbours of each.

    What is too large, infinite and NaN comes last.
    """
    numbers = np.sort(codes(dtype).astype(wide).ravel())
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middle = (numbers[1:] + numbers[:-1]) / 2
    top = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    special = [top, -top, 2 * top, 1e30, np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0]
    exact = np.concatenate([numbers, middle, np.array(special, wide)]).astype(wide)
    low, high = np.nextafter(exact, wide(-np.inf)), np.nextafter(exact, wide(np.inf))
    found = np.concatenate([exact, low, high])
    return np.resize(found, (-(-len(found) // 64), 64))


@ALL
@BOTH
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_halves_go_to_even(dtype, source: str, backend: str) -> None:
    """Also of f64, in one step: by way of f32 some would be rounded twice."""
    a = halves(dtype, NUMPY[source].type)
    found = computed(lambda a, b: a.to(dtype), a, a, SMALL[dtype], backend)
    same(found, nearest(a, dtype))


def nearest(a: np.ndarray, dtype) -> np.ndarray:
    """The nearest codes, found without conversions that round."""
    finite = 127 if dtype == f8e4m3 else 124
    positive = np.arange(finite, dtype=np.uint8).view(SMALL[dtype]).astype(np.float64)
    # As if there were one more: what is nearest to it is too large.
    numbers = np.append(positive, 2 * positive[-1] - positive[-2])
    wide = np.abs(a.astype(np.float64))
    high = np.clip(np.searchsorted(numbers, wide), 1, finite)
    down, up = wide - numbers[high - 1], numbers[high] - wide
    code = np.where((down < up) | ((down == up) & (high % 2 == 1)), high - 1, high)
    code[np.isnan(a)] = 0x7F if dtype == f8e4m3 else 0x7E
    return (code | np.signbit(a) << 7).astype(np.uint8).view(SMALL[dtype])


@ALL
@BOTH
def test_bits_as_another_dtype(dtype, backend: str) -> None:
    a = codes(dtype)
    same(
        computed(lambda a, b: a.to(xetile.u8, bitcast=True), a, a, "u8", backend),
        a.view(np.uint8),
    )
    bits = a.view(np.uint8)
    to = lambda a, b: a.to(dtype, bitcast=True)
    same(computed(to, bits, bits, SMALL[dtype], backend), a)


@ALL
@BOTH
def test_integers(dtype, backend: str) -> None:
    a = finite(dtype)
    there = lambda a, b: a.to(xetile.i32)
    found = computed(there, a, a, "i32", backend)
    np.testing.assert_array_equal(found, a.astype(np.float32).astype(np.int32))
    back = lambda a, b: (a.to(xetile.i32) * 37).to(a.dtype)
    expected = (found * 37).astype(np.float32).astype(SMALL[dtype])
    same(computed(back, a, a, SMALL[dtype], backend), expected)


# Arithmetic is of f32, rounded once -------------------------------------------------

ARITHMETIC = {
    "add": (lambda a, b: a + b, lambda a, b: a + b),
    "chain": (lambda a, b: (a + b) * a, None),
    "number": (lambda a, b: a * 0.5 + 1, None),
    "negative": (lambda a, b: -a, lambda a, b: -a),
    "maximum": (xetile.maximum, np.maximum),
    "where": (lambda a, b: xetile.where(a < b, a, b), np.minimum),
    "round": (lambda a, b: xetile.round(a), lambda a, b: np.round(a)),
    "square": (lambda a, b: a**2, lambda a, b: a * a),
    "largest": (lambda a, b: a + b - b + a.max(), None),
    "sum": (lambda a, b: a + a.sum(1, keepdims=True), None),
    "sums": (lambda a, b: xetile.cumsum(a, 1), None),
    "flipped": (lambda a, b: xetile.flip(a, 1), lambda a, b: a[:, ::-1]),
    "sorted": (lambda a, b: xetile.sort(a, 1), lambda a, b: np.sort(a, 1)),
    "constant": (
        lambda a, b: xetile.full(a.shape, 0.3, a.dtype),
        lambda a, b: np.full(a.shape, 0.3, np.float32),
    ),
}


@pytest.mark.parametrize("backend", ["cpu", "xegpu"])
@BOTH
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name: str, dtype, backend: str) -> None:
    """As the interpreter has it, and as NumPy has it of f32 where that is simple."""
    ours, exact = ARITHMETIC[name]
    a, b = finite(dtype), finite(dtype)[::-1].copy()
    found = computed(ours, a, b, SMALL[dtype], backend)
    same(found, computed(ours, a, b, SMALL[dtype], "reference"))
    if exact is not None:
        wide = exact(a.astype(np.float32), b.astype(np.float32))
        same(found, wide.astype(SMALL[dtype]))


@ALL
def test_with_wider_floats(backend: str) -> None:
    a, b = finite(f8e4m3), finite(f8e5m2).astype(np.float32)
    found = computed(lambda a, b: a * b + 1, a, b, "f32", backend)
    np.testing.assert_array_equal(found, a.astype(np.float32) * b + 1)


# Memory -----------------------------------------------------------------------------


@xetile.kernel(grid=1)
def moves(X, ROWS, OUT, PADDED, ONE, s: float):
    memory = xetile.slm((8, 16), X.dtype)
    x = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 16)), padding=1.5)
    xetile.store_tile(x.T, xetile.init_tile(PADDED, [0, 0], (16, 8)))
    xetile.store_tile(x, xetile.init_tile(memory, [0, 0], (8, 16)))
    xetile.barrier()
    rows = xetile.load_tile(xetile.init_tile(ROWS, [0], (8,)))
    tile = xetile.init_tile(X, [rows[:, None], xetile.arange(16)[None, :]])
    got = xetile.load_gather(tile, mask=(rows < 5)[:, None], padding=-3)
    back = xetile.load_tile(xetile.init_tile(memory, [0, 0], (8, 16)))
    for _ in range(2):
        got = xetile.where(back > 0, got, back)
    xetile.store_tile(got, xetile.init_tile(OUT, [0, 0], (8, 16)))
    ONE[0] = X[1, 2] * s
    xetile.store_tile(s, xetile.init_tile(ONE, [1], (3,)))


@ALL
@BOTH
def test_memory(dtype, backend: str) -> None:
    """Tiles, gathers, shared memory, numbers; what a loop carries; padding."""
    small = SMALL[dtype]
    x = finite(dtype, (6, 13))
    rows = np.array([0, 3, 5, 7, -1, 2, 2, 1], np.int32)
    out, padded = np.zeros((8, 16), small), np.zeros((16, 8), small)
    one = np.zeros(4, small)
    moves(x, rows, out, padded, one, 0.3, backend=backend)
    whole = np.full((8, 16), 1.5, small)
    whole[:6, :13] = x
    same(padded, whole.T)
    wide = np.full((8, 16), -3, np.float32)
    for i, row in enumerate(rows):
        if 0 <= row < 5:
            wide[i] = -3
            if row < 6:
                wide[i, :13] = x[row]
    plain = whole.astype(np.float32)
    same(out, np.where(plain > 0, wide, plain).astype(small))
    same(one[1:], np.full(3, 0.3, small))
    assert float(one[0]) == float(small(float(x[1, 2]) * 0.3))


# Products ---------------------------------------------------------------------------


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)))
def gemm(A, B, C, BM: constexpr = 16, BN: constexpr = 32, BK: constexpr = 32, WG=None):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


def operands(one, other, m: int, n: int, k: int) -> tuple[np.ndarray, ...]:
    """Both sides and their product: whole numbers, no order of the sums rounds."""
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-8, 9, (m, k)).astype(SMALL[one])
    b = rng.integers(-8, 9, (k, n)).astype(SMALL[other])
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


@ALL
@pytest.mark.parametrize(
    ("one", "other"),
    [(f8e4m3, f8e4m3), (f8e5m2, f8e5m2), (f8e4m3, f8e5m2), (f8e5m2, f8e4m3)],
    ids=["e4m3", "e5m2", "e4m3-e5m2", "e5m2-e4m3"],
)
def test_products(one, other, backend: str) -> None:
    for m, n, k in ((16, 32, 32), (17, 33, 70), (1, 5, 3)):
        a, b, expected = operands(one, other, m, n, k)
        out = np.zeros((m, n), np.float32)
        gemm(a, b, out, backend=backend)
        np.testing.assert_array_equal(out, expected)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "sliced": lambda x: np.repeat(np.repeat(x, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.slow
@settings(max_examples=25)
@given(
    formats=st.tuples(st.sampled_from(list(SMALL)), st.sampled_from(list(SMALL))),
    extents=st.tuples(*(st.integers(1, 70) for _ in range(3))),
    blocks=st.sampled_from([(16, 32, 32), (8, 8, 8), (33, 17, 5), (1, 64, 16)]),
    layouts=st.tuples(*(st.sampled_from(list(LAYOUTS)) for _ in range(2))),
)
def test_ragged_products(formats, extents, blocks, layouts) -> None:
    """Of any extents, blocks and strides, on the CPU as NumPy has it."""
    a, b, expected = operands(*formats, *extents)
    a, b = (LAYOUTS[name](x) for name, x in zip(layouts, (a, b)))
    out = np.zeros(expected.shape, np.float32)
    gemm(a, b, out, *blocks, backend="cpu")
    np.testing.assert_array_equal(out, expected)


@ALL
def test_a_product_among_subgroups(backend: str) -> None:
    """The result is small as well, and B is column-major."""
    a, b, expected = operands(f8e4m3, f8e4m3, 40, 50, 40)
    out = np.zeros((40, 50), SMALL[f8e5m2])
    map_ = xetile.wg_map([2, 2], [16, 32])
    gemm(a, np.asfortranarray(b), out, BM=32, BN=64, WG=map_, backend=backend)
    same(out, expected.astype(SMALL[f8e5m2]))


def test_products_exact_in_f32() -> None:
    """The interpreter says what a product is: each term exact, one rounding."""
    a, b = codes(f8e4m3)[:, 8:40].copy(), codes(f8e5m2)[1:3, :32].T.copy()
    a[np.isnan(a)] = 1
    out = np.zeros((4, 2), np.float32)
    gemm(a, b, out, backend="reference")
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(out, expected)


def test_a_product_is_one_brgemm_on_the_cpu() -> None:
    a, b, _ = operands(f8e4m3, f8e5m2, 64, 64, 64)
    report = str(gemm.explain(a, b, np.zeros((64, 64), np.float32), backend="cpu"))
    assert "is one batch-reduce GEMM" in report


# The host ---------------------------------------------------------------------------


@BOTH
def test_tensors_of_torch(dtype) -> None:
    torch = pytest.importorskip("torch")
    kind = getattr(torch, np.dtype(SMALL[dtype]).name)
    a, b = (torch.randn(32, 32).to(kind) for _ in range(2))
    out = torch.zeros(32, 32).to(kind)
    gemm(a, b, out, backend="cpu")
    expected = (a.float() @ b.float()).to(kind)
    assert (out.float() - expected.float()).abs().max() <= 1


@xetile.kernel(grid=1)
def prints(X):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (2, 4)))
    xetile.device_print("{} and {}", v, X[0, 1])


def test_prints_are_alike(capsys) -> None:
    x = np.array([[0.5, 1, -2, 448], [np.nan, 2**-9, 3, -0.0]], SMALL[f8e4m3])
    for backend in ("reference", "cpu", "xegpu"):
        prints(x, backend=backend)
    lines = capsys.readouterr().out
    assert lines == f"{x.astype(np.float32)} and 1.0\n" * 3


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("dtype", "cpu", "gpu"),
    [
        (f8e4m3, ["avx2"], ["pvc"]),
        (f8e5m2, ["amx"], ["opencl"]),
        pytest.param(f8e4m3, ["amx"], ["opencl"], marks=SLOW),
        pytest.param(f8e5m2, ["avx2"], ["pvc"], marks=SLOW),
    ],
)
def test_signatures_and_other_targets(dtype, cpu: list[str], gpu: list[str]) -> None:
    text = f"{dtype}[M,K] {np.dtype(SMALL[dtype]).name}[K,N] f32[M,N]"
    for backend, (target,) in (("cpu", cpu), ("xegpu", gpu)):
        gemm.warmup(text, target=target, backend=backend)


TEXT = """
gpu.module @m {
  gpu.func @twice(%X: memref<5x32xf8E4M3FN>, %Y: memref<8x32xf8E5M2>) kernel {
    %c0 = arith.constant 0 : index
    %t = xetile.init_tile %X[0, 0] : memref<5x32xf8E4M3FN>
        -> !xetile.tile<8x32xf8E4M3FN>
    %x = xetile.load_tile %t {padding = 2.0 : f32} : !xetile.tile<8x32xf8E4M3FN>
        -> vector<8x32xf8E4M3FN>
    %two = arith.constant dense<2.0> : vector<8x32xf8E4M3FN>
    %p = arith.mulf %x, %two : vector<8x32xf8E4M3FN>
    %w = arith.extf %p : vector<8x32xf8E4M3FN> to vector<8x32xf32>
    %y = arith.truncf %w : vector<8x32xf32> to vector<8x32xf8E5M2>
    %u = xetile.init_tile %Y[0, 0] : memref<8x32xf8E5M2> -> !xetile.tile<8x32xf8E5M2>
    xetile.store_tile %y, %u : vector<8x32xf8E5M2>, !xetile.tile<8x32xf8E5M2>
    gpu.return
  }
}
"""


@ALL
def test_a_text(backend: str) -> None:
    x = finite(f8e4m3, (5, 32))
    y = np.zeros((8, 32), SMALL[f8e5m2])
    xetl.load_mlir(TEXT)["twice"][(1, 1, 1)](x, y, backend=backend)
    whole = np.full((8, 32), 2, np.float32)
    whole[:5] = x
    same(y, (2 * whole).astype(SMALL[f8e4m3]).astype(np.float32).astype(y.dtype))


def test_a_text_with_other_arrays() -> None:
    x, y = np.zeros((5, 32), np.int8), np.zeros((8, 32), SMALL[f8e5m2])
    with pytest.raises(LaunchError, match="has dtype i8, but must have f8e4m3"):
        xetl.load_mlir(TEXT)["twice"][(1, 1, 1)](x, y, backend="cpu")


# Errors -----------------------------------------------------------------------------


def test_two_formats_have_no_common_dtype() -> None:
    a, b = finite(f8e4m3), finite(f8e5m2)
    with pytest.raises(TileTypeError, match="have no common dtype") as error:
        computed(lambda a, b: a + b, a, b, "f32", "cpu")
    assert error.value.code == "X0302"
    assert error.value.help == "convert one of them with `.to(...)`"


def test_a_product_with_wider_floats() -> None:
    a = finite(f8e4m3, (16, 32))
    with pytest.raises(TileTypeError, match="cannot multiply f8e4m3 by f32") as error:
        gemm(a, np.zeros((32, 16), np.float32), np.zeros((16, 16), np.float32))
    assert "f8e4m3, f8e5m2: convert" in error.value.help


@xetile.kernel(grid=1)
def updates(X):
    tile = xetile.init_tile(X, [0, 0], (4, 16))
    xetile.atomic_rmw_tile("add", xetile.zeros((4, 16), X.dtype), tile)


@BOTH
def test_no_atomics(dtype) -> None:
    with pytest.raises(TileTypeError, match="atomic") as error:
        updates(finite(dtype), backend="cpu")
    assert "atomics exist for" in error.value.help


ATOMIC = """
func.func @k(%X: memref<4x16xf8E5M2>) {
  %v = arith.constant dense<2.0> : vector<4x16xf8E5M2>
  %t = xetile.init_tile %X[0, 0] : memref<4x16xf8E5M2> -> !xetile.tile<4x16xf8E5M2>
  %o = xetile.atomic_rmw_tile <add>, %v, %t
      : vector<4x16xf8E5M2>, !xetile.tile<4x16xf8E5M2> -> vector<4x16xf8E5M2>
  func.return
}
"""


@pytest.mark.parametrize("backend", ["cpu", "xegpu"])
def test_no_atomics_in_a_text(backend: str) -> None:
    x = finite(f8e5m2, (4, 16))
    with pytest.raises(IRError, match="elements of f8E5M2 cannot be updated") as error:
        xetl.load_mlir(ATOMIC)["k"][(1, 1, 1)](x, backend=backend)
    assert error.value.line == 5
    assert error.value.help is not None
