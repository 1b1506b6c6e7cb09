"""Promotion, broadcasting and conversions: NumPy's rules, with ours where stricter."""

import itertools
import math

import numpy as np
import pytest
from building import build, names, ops
from hypothesis import given
from hypothesis import strategies as st

from xetl import xetile
from xetl.errors import CompileError, TileTypeError
from xetl.frontend.casts import broadcast_shapes
from xetl.language import dtypes
from xetl.language.dtypes import DType, promote
from xetl.xetile import (
    bf16,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
    index,
    u8,
    u64,
)

NUMBERS = [
    d
    for d in dtypes.ALL
    if d.name not in ("i1", "tf32", "index", "bf16", "f8e4m3", "f8e5m2")
]
extents = st.integers(1, 3)
shapes = st.one_of(st.tuples(extents), st.tuples(extents, extents))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(NUMBERS, NUMBERS)))
def test_promotion_is_numpys(a, b):
    mixed_u64 = "u64" in (a.name, b.name) and {a.kind, b.kind} == {"u", "i"}
    if mixed_u64:
        with pytest.raises(TileTypeError):
            promote(a, b)
    elif a.is_float != b.is_float:
        assert promote(a, b) is (a if a.is_float else b)
    else:
        assert promote(a, b).numpy == np.promote_types(a.numpy, b.numpy)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (bf16, f32, f32),
        (f64, bf16, f64),
        (i32, bf16, bf16),
        (index, i8, i64),
        (index, i64, i64),
        (u8, i8, i16),
        (i1, i1, i1),
        (f8e4m3, f8e4m3, f8e4m3),
        (f8e4m3, bf16, bf16),
        (f8e5m2, f16, f16),
        (f8e5m2, f64, f64),
        (i32, f8e5m2, f8e5m2),
    ],
)
def test_promotion_beyond_numpy(a, b, result):
    assert promote(a, b) == promote(b, a) == result


@pytest.mark.parametrize(
    ("a", "b"), [(f16, bf16), (i1, i32), (u64, i8), (f32, i1), (f8e4m3, f8e5m2)]
)
def test_no_common_dtype(a, b):
    with pytest.raises(TileTypeError, match="no common dtype"):
        promote(a, b)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("float32", f32), ("torch.bfloat16", bf16), (np.int8, i8), ("bool", i1), (u8, u8)],
)
def test_names_of_dtypes(name, dtype):
    assert DType.of(name) is dtype
    assert DType.of(dtype.numpy) is dtype


def test_unknown_dtype():
    with pytest.raises(TileTypeError, match="`flaot32` is not a dtype"):
        DType.of("flaot32")


@given(shapes, shapes)
def test_broadcasting_is_numpys(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    assert broadcast_shapes(a, b) == expected


CASES = {
    "float scalar keeps f16": ("f16", lambda v: v * 2.5, f16),
    "int scalar keeps bf16": ("bf16", lambda v: v + 1, bf16),
    "float scalar makes ints f32": ("i32", lambda v: v + 0.5, f32),
    "int division": ("i64", lambda v: v / 2, f32),
    "int with bf16": ("i32", lambda v: v + v.to(bf16), bf16),
    "floor of ints": ("i8", lambda v: v // 3, i8),
    "unsigned shift": ("u8", lambda v: v >> 1, u8),
    "comparison": ("f32", lambda v: v > 0, i1),
    "chained comparison": ("f32", lambda v: 0 < v <= 1, i1),
    "power": ("i32", lambda v: v**3, i32),
    "root": ("i32", lambda v: v**0.5, f32),
    "math of ints": ("i32", lambda v: xetile.exp(v), f32),
    "math of f16": ("f16", lambda v: xetile.tanh(v), f16),
    "where of floats": ("f32", lambda v: xetile.where(v > 0, 1.0, 0), f32),
    "where of ints": ("f32", lambda v: xetile.where(v > 0, 1, 0), i32),
    "sum keeps the dtype": ("u8", lambda v: v.sum(0), u8),
    "argmax": ("f64", lambda v: v.argmax(1), i32),
    "masks": ("i32", lambda v: (v > 0) & ~(v < 9) ^ (v == 1), i1),
    "mma of f16": ("f16", lambda v: v @ v, f32),
    "mma of f64": ("f64", lambda v: v @ v, f64),
    "mma of u8": ("u8", lambda v: xetile.tile_mma(v, v.to(i8)), i32),
    "mask to float": ("i32", lambda v: (v > 0).to(f32), f32),
    "half to half": ("f16", lambda v: v.to(bf16), bf16),
}


@pytest.mark.parametrize("case", CASES)
def test_dtype_of_results(case):
    dtype, compute, expected = CASES[case]

    def kernel(X, F, EXPECTED):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
        xetile.static_assert(F(v).dtype == EXPECTED, f"{F(v)}")

    build(kernel, X=f"{dtype} 2", F=compute, EXPECTED=expected)


def test_constants_take_the_vectors_dtype():
    def kernel(X):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
        v = v * 1e9 + X.shape[0]

    module = build(kernel, X="f16 2")
    (constant,) = ops(module, "arith.constant")
    assert math.isinf(next(iter(constant.value.get_values())))
    assert names(module).count("vector.broadcast") == 1


def test_division_by_a_constant_needs_no_guard():
    def kernel(X, D):
        v = xetile.load_tile(xetile.init_tile(X, [0], (4,)))
        v = v // D

    assert "arith.select" not in names(build(kernel, X="i32 1", D=4))
    assert "arith.select" in names(build(kernel, X="i32 1", D="i64"))


def test_reductions_of_rank_one_are_scalars():
    def kernel(X, Y):
        v = xetile.load_tile(xetile.init_tile(X, [0], (4,)))
        n = v.sum() + 1
        xetile.store_tile(v + n, xetile.init_tile(Y, [0], (4,)))

    module = build(kernel, X="f32 1", Y="f32 1")
    assert "vector.extract" in names(module)
    assert "f64" in str(ops(module, "arith.extf")[0].results[0].type)


@pytest.mark.parametrize(
    ("kind", "dtype", "name"),
    [("max", "f32", "maximumf"), ("min", "u8", "minui"), ("max", "i8", "maxsi")],
)
def test_kinds_carry_the_sign(kind, dtype, name):
    def kernel(X, KIND):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
        v = xetile.tile_reduce(KIND, v, [-1])

    (reduction,) = ops(build(kernel, X=f"{dtype} 2", KIND=kind), "xetile.tile_reduce")
    assert reduction.kind.data == name
    assert reduction.dims == (1,)


def test_reshape_collapses():
    def kernel(X):
        v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
        _ = v + v.sum(1)[:, None]

    module = build(kernel, X="f32 2")
    (spread,) = ops(module, "xetile.tile_broadcast")
    assert spread.source.owner.name == "xetile.tile_reduce"


def test_errors_are_compile_errors():
    assert issubclass(TileTypeError, CompileError)
    assert f64.itemsize == 8
