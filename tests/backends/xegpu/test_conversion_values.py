"""Products, reductions, scans, transposes and casts of shape, on fragments."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from converting import array, converted, count, function, load, run, store, tile, vector

DTYPES: dict[str, Any] = {
    **{"f16": "f2", "f32": "f4", "f64": "f8", "bf16": ml_dtypes.bfloat16},
    **{"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"},
}


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Small integers: sums of their products are exact in every type."""
    drawn = np.random.default_rng(seed).integers(-3, 4, shape)
    return drawn.astype(DTYPES[dtype])


# Products ---------------------------------------------------------------------------

PRODUCTS = [
    *(("bf16", "f32", ""), ("f16", "f32", ""), ("f16", "f16", ""), ("i8", "i32", "")),
    *(("f32", "f32", ""), ("f32", "f32", 'precision = "tf32"'), ("f64", "f64", "")),
    *(("f32", "f32", 'precision = "bf16x3"'), ("i16", "i32", ""), ("i64", "i64", "")),
]


SIZES = [(8, 16, 32), (13, 20, 40), (3, 1, 17), (5, 1, 64), (1, 33, 32)]


def product(m: int, n: int, k: int, kinds: Any, transposed: bool = False) -> str:
    narrow, wide, how = kinds
    right = (n, k) if transposed else (k, n)
    shapes = {"A": (m, k), "B": right, "C": (m, n)}
    types = {"A": narrow, "B": narrow, "C": wide}
    lines = [tile(x, "0, 0", shapes[x], types[x], shapes[x]) for x in "ABC"]
    lines += [load(x, shapes[x], types[x]) for x in "ABC"]
    b = "%vB"
    if transposed:
        b = "%bt"
        lines.append(
            f"%bt = xetile.tile_transpose %vB, [1, 0] : {vector(right, narrow)} "
            f"-> {vector((k, n), narrow)}\n"
        )
    result = vector((m, n), wide)
    operands = f"{vector((m, k), narrow)}, {vector((k, n), narrow)}, {result}"
    attributes = f"{{{how}}}" if how else ""
    lines.append(
        f"%d = xetile.tile_mma %vA, {b}, %vC {attributes} : {operands} -> {result}\n"
    )
    arguments = ", ".join(array(x, shapes[x], types[x]) for x in "ABC")
    return function(arguments, *lines, store("%d", "C", (m, n), wide))


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kinds", PRODUCTS, ids="-".join)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products(sizes: Any, kinds: Any, transposed: bool, blocks: bool) -> None:
    m, n, k = sizes
    a, b = numbers((m, k), kinds[0]), numbers((k, n), kinds[0], 1)
    c = numbers((m, n), kinds[1], 2)
    wanted = a.astype("f8") @ b.astype("f8") + c.astype("f8")
    given = np.ascontiguousarray(b.T) if transposed else b
    run(product(m, n, k, kinds, transposed), a, given, c, blocks=blocks)
    np.testing.assert_array_equal(c.astype("f8"), wanted)


def test_the_right_side_comes_packed_also_of_its_transpose() -> None:
    """No lane exchanges anything: messages bring what products take."""
    for transposed in (False, True):
        for kinds, depth in ((PRODUCTS[0], 16), (PRODUCTS[3], 32)):
            sizes = 64, 64, 2 * depth
            module = converted(product(*sizes, kinds, transposed))
            assert count(module, "xegpu.dpas") == 8 * 4 * 2
            assert count(module, "vector.transpose") == 0
            assert count(module, "vector.insert_strided_slice") == 0
            assert count(module, "vector.shuffle") == 0


# Reductions and scans ---------------------------------------------------------------

SHAPES = [(8, 16), (1, 50), (21, 33), (12, 1), (1, 1), (2, 7)]
KINDS = {"add": np.add, "maximumf": np.maximum, "minnumf": np.fmin, "mul": np.multiply}


def unary(shape: Any, result: Any, dtype: str, line: str) -> str:
    return function(
        f"{array('X', shape, dtype)}, {array('Y', result, dtype)}",
        tile("X", "0, 0", shape, dtype, shape),
        tile("Y", "0, 0", result, dtype, result),
        load("X", shape, dtype),
        line,
        store("%r", "Y", result, dtype),
    )


@pytest.mark.parametrize("dims", [[0], [1], [0, 1]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape: tuple[int, int], kind: str, dims: list[int]) -> None:
    x = numbers(shape, "f32")
    x[x == 0] = 1
    if kind == "mul":
        x = np.sign(x)
    result = tuple(1 if d in dims else n for d, n in enumerate(shape))
    y = np.zeros(result, np.float32)
    line = (
        f"%r = xetile.tile_reduce <{kind}>, %vX {dims} : {vector(shape, 'f32')} "
        f"-> {vector(result, 'f32')}\n"
    )
    run(unary(shape, result, "f32", line), x, y)
    wanted = x
    for dim in dims:
        wanted = KINDS[kind].reduce(wanted, axis=dim, keepdims=True)
    np.testing.assert_array_equal(y, wanted)


def test_sums_of_16_bits_run_in_32() -> None:
    x = np.full((16, 48), 257, ml_dtypes.bfloat16)  # 256 in bf16; the sum is exact
    y = np.zeros((16, 1), ml_dtypes.bfloat16)
    line = (
        "%r = xetile.tile_reduce <add>, %vX [1] : vector<16x48xbf16> "
        "-> vector<16x1xbf16>\n"
    )
    run(unary(x.shape, y.shape, "bf16", line), x, y)
    np.testing.assert_array_equal(y.astype("f4"), np.full((16, 1), 12288, "f4"))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scans(shape: tuple[int, int], dim: int) -> None:
    x = numbers(shape, "i32")
    y = np.zeros_like(x)
    types = f"{vector(shape, 'i32')} -> {vector(shape, 'i32')}"
    line = f"%r = xetile.tile_scan <add>, %vX [{dim}] : {types}\n"
    run(unary(shape, shape, "i32", line), x, y)
    np.testing.assert_array_equal(y, np.cumsum(x, axis=dim))


# Other places -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f32", "i8", "f16"])
@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize(
    "shape", [*SHAPES, (16, 16), (32, 40), (20, 80), (48, 64)], ids=str
)
def test_transposes(shape: tuple[int, int], blocks: bool, dtype: str) -> None:
    x = numbers(shape, dtype)
    turned = shape[::-1]
    y = np.zeros(turned, x.dtype)
    types = f"{vector(shape, dtype)} -> {vector(turned, dtype)}"
    line = f"%r = xetile.tile_transpose %vX, [1, 0] : {types}\n"
    run(unary(shape, turned, dtype, line), x, y, blocks=blocks)
    np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("dtype", ["i8", "f16", "f32"])
def test_messages_transpose_words_of_all_narrow_elements(dtype: str) -> None:
    types = f"{vector((32, 64), dtype)} -> {vector((64, 32), dtype)}"
    line = f"%r = xetile.tile_transpose %vX, [1, 0] : {types}\n"
    module = converted(unary((32, 64), (64, 32), dtype, line))
    loads = count(module, "xegpu.load_nd")
    assert loads == 2 * 64 // (8 * 4 // np.dtype(DTYPES[dtype]).itemsize)
    assert all("transpose" in x for x in str(module).splitlines() if "load_nd" in x)


@pytest.mark.parametrize(
    ("shape", "result"),
    [((8, 16), (16, 8)), ((4, 33), (11, 12)), ((1, 40), (40, 1)), ((24, 1), (2, 12))],
    ids=str,
)
def test_casts_of_shape(shape: Any, result: Any) -> None:
    x = numbers(shape, "f32")
    y = np.zeros(result, x.dtype)
    types = f"{vector(shape, 'f32')} to {vector(result, 'f32')}"
    line = f"%r = vector.shape_cast %vX : {types}\n"
    run(unary(shape, result, "f32", line), x, y)
    np.testing.assert_array_equal(y, x.reshape(result))


@pytest.mark.parametrize(
    ("dtype", "other"), [("i32", "i8"), ("i8", "i32"), ("f32", "i16"), ("i16", "f16")]
)
@pytest.mark.parametrize("shape", [(3, 20), (8, 32), (5, 4)], ids=str)
def test_the_same_bits_as_other_elements(
    shape: tuple[int, int], dtype: str, other: str
) -> None:
    kind = np.dtype(DTYPES[other])
    x = np.random.default_rng(0).integers(0, 99, shape).astype(DTYPES[dtype])
    y = np.zeros_like(x.view(kind))
    types = f"{vector(shape, dtype)} to {vector(y.shape, other)}"
    kernel = function(
        f"{array('X', shape, dtype)}, {array('Y', y.shape, other)}",
        tile("X", "0, 0", shape, dtype, shape),
        tile("Y", "0, 0", y.shape, other, y.shape),
        load("X", shape, dtype),
        f"%r = vector.bitcast %vX : {types}\n",
        store("%r", "Y", y.shape, other),
    )
    run(kernel, x, y)
    assert y.tobytes() == x.tobytes()


def test_whole_fragments_are_only_named_anew() -> None:
    """Of 16 rows the last 8: nothing moves."""
    line = (
        "%r = vector.extract_strided_slice %vX {offsets = [8, 16], sizes = [8, 32], "
        "strides = [1, 1]} : vector<16x64xf32> to vector<8x32xf32>\n"
    )
    module = converted(unary((16, 64), (8, 32), "f32", line))
    assert count(module, "vector.shuffle") == count(module, "vector.insert") == 0
    x, y = numbers((16, 64), "f32"), np.zeros((8, 32), np.float32)
    run(unary((16, 64), (8, 32), "f32", line), x, y)
    np.testing.assert_array_equal(y, x[8:, 16:48])


@pytest.mark.parametrize("at", [(0, 0), (3, 17), (6, 32)], ids=str)
def test_elements_at_places_that_are_computed(at: tuple[int, int]) -> None:
    x, y = numbers((7, 33), "f32"), np.zeros((7, 33), np.float32)
    kernel = function(
        f"{array('X', x.shape, 'f32')}, {array('Y', y.shape, 'f32')}, %i: i64, %j: i64",
        tile("X", "0, 0", x.shape, "f32", x.shape),
        tile("Y", "0, 0", x.shape, "f32", x.shape),
        load("X", x.shape, "f32"),
        "%r = arith.index_cast %i : i64 to index\n",
        "%c = arith.index_cast %j : i64 to index\n",
        "%e = vector.extract %vX[%r, %c] : f32 from vector<7x33xf32>\n",
        "%s = arith.addf %e, %e : f32\n",
        "%n = vector.insert %s, %vX[%r, %c] : f32 into vector<7x33xf32>\n",
        store("%n", "Y", x.shape, "f32"),
    )
    run(kernel, x, y, *at)
    wanted = x.copy()
    wanted[at] *= 2
    np.testing.assert_array_equal(y, wanted)
