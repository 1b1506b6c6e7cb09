# ruff: noqa: E501 - a line of IR is a line
"""`xetile` operations against NumPy, on modules given as text."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_harness import FLOATS, INTEGERS, evaluate, type_name

from tests.run_module import run_module
from xetl.dialects.parser import parse_module
from xetl_reference.floats import round_to_tf32

few = settings(max_examples=30)
sizes = st.integers(1, 70)
offsets = st.integers(-80, 80)


def run(arguments, body, *arrays, grid=(1,)):
    text = f"gpu.module @m {{ gpu.func @k({arguments}) kernel {{\n{body}\ngpu.return\n}} }}"
    run_module(parse_module(text, "test"), grid, arrays)


def padded(x, row, column, shape, padding):
    """The tile at an offset, by the definition."""
    result = np.full(shape, padding, x.dtype)
    for i in range(shape[0]):
        for j in range(shape[1]):
            if 0 <= row + i < x.shape[0] and 0 <= column + j < x.shape[1]:
                result[i, j] = x[row + i, column + j]
    return result


ANY = "memref<?x?xf32, strided<[?, ?]>>"
BASE = "%b, %o, %h, %w, %s, %t = memref.extract_strided_metadata %x : {0} -> memref<f32>, index, index, index, index, index"
METADATA = BASE.format(ANY)


def layouts(x):
    """The same matrix in memory in several ways."""
    wide = np.zeros((2 * x.shape[0], 3 * x.shape[1]), x.dtype)
    strided = wide[::2, ::3]
    strided[...] = x
    backwards = x[::-1, ::-1].copy()[::-1, ::-1]
    return [x.copy(), np.asfortranarray(x), strided, backwards]


@few
@given(
    m=sizes,
    n=sizes,
    row=offsets,
    column=offsets,
    down=offsets,
    layout=st.integers(0, 3),
)
def test_load_and_store_clip(m, n, row, column, down, layout):
    x = layouts(np.arange(m * n, dtype=np.float32).reshape(m, n))[layout]
    out = np.zeros((8, 16), np.float32)
    body = f"""{METADATA}
      %tile = xetile.init_tile %x[%i, %j], [%h, %w], [%s, %t] : {ANY} -> !xetile.tile<8x16xf32>
      %next = xetile.update_tile_offset %tile, [%d, -3] : !xetile.tile<8x16xf32>
      xetile.prefetch_tile %next : !xetile.tile<8x16xf32>
      %v = xetile.load_tile %next {{padding = 0.5 : f32}} : !xetile.tile<8x16xf32> -> vector<8x16xf32>
      %u = xetile.init_tile %out[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
      xetile.store_tile %v, %u : vector<8x16xf32>, !xetile.tile<8x16xf32>
      %minus = arith.constant dense<-1.0> : vector<8x16xf32>
      xetile.store_tile %minus, %tile : vector<8x16xf32>, !xetile.tile<8x16xf32>"""
    before = x.copy()
    arguments = f"%x: {ANY}, %i: index, %j: index, %d: index, %out: memref<8x16xf32>"
    run(arguments, body, x, row, column, down, out)
    assert (out == padded(before, row + down, column - 3, (8, 16), 0.5)).all()
    rows, columns = np.indices((m, n))
    hit = (
        (rows >= row) & (rows < row + 8) & (columns >= column) & (columns < column + 16)
    )
    assert (x == np.where(hit, -1, before)).all()


@few
@given(m=sizes, n=sizes, row=offsets, column=offsets)
def test_column_major_tiles_and_addresses(m, n, row, column):
    """`order` says nothing of values: (i, j) is row and column all the same."""
    x = np.asfortranarray(np.arange(m * n, dtype=np.float32).reshape(m, n))
    out = np.zeros((4, 6), np.float32)
    tile = "!xetile.tile<4x6xf32, #xetile.tile_attr<order = [0, 1]>>"
    body = f"""%one = arith.constant 1 : index
      %tile = xetile.init_tile %p[%i, %j], [%m, %n], [%one, %m] : i64 -> {tile}
      %v = xetile.load_tile %tile : {tile} -> vector<4x6xf32>
      %u = xetile.init_tile %out[0, 0] : memref<4x6xf32> -> !xetile.tile<4x6xf32>
      xetile.store_tile %v, %u : vector<4x6xf32>, !xetile.tile<4x6xf32>"""
    arguments = (
        "%p: i64, %m: index, %n: index, %i: index, %j: index, %out: memref<4x6xf32>"
    )
    run(arguments, body, x.ctypes.data, m, n, row, column, out)
    assert (out == padded(x, row, column, (4, 6), 0)).all()


@pytest.mark.parametrize("batch", [-1, 0, 2, 3])
def test_leading_offsets_select_a_matrix(batch):
    x = np.arange(3 * 5 * 7, dtype=np.float32).reshape(3, 5, 7)
    out = np.zeros((4, 4), np.float32)
    body = """
      %tile = xetile.init_tile %x[%z, 2, 4] : memref<3x5x7xf32> -> !xetile.tile<4x4xf32>
      %v = xetile.load_tile %tile : !xetile.tile<4x4xf32> -> vector<4x4xf32>
      %u = xetile.init_tile %out[0, 0] : memref<4x4xf32> -> !xetile.tile<4x4xf32>
      xetile.store_tile %v, %u : vector<4x4xf32>, !xetile.tile<4x4xf32>"""
    run("%x: memref<3x5x7xf32>, %z: index, %out: memref<4x4xf32>", body, x, batch, out)
    matrix = x[batch] if 0 <= batch < 3 else np.zeros((0, 0), np.float32)
    assert (out == padded(matrix, 2, 4, (4, 4), 0)).all()


def test_a_load_may_transpose():
    x = np.arange(6 * 20, dtype=np.float32).reshape(6, 20)
    out = np.zeros((16, 8), np.float32)
    body = """
      %tile = xetile.init_tile %x[2, 5] : memref<6x20xf32> -> !xetile.tile<8x16xf32>
      %v = xetile.load_tile %tile {transpose = [1, 0], padding = 7} : !xetile.tile<8x16xf32> -> vector<16x8xf32>
      %u = xetile.init_tile %out[0, 0] : memref<16x8xf32> -> !xetile.tile<16x8xf32>
      xetile.store_tile %v, %u : vector<16x8xf32>, !xetile.tile<16x8xf32>"""
    run("%x: memref<6x20xf32>, %out: memref<16x8xf32>", body, x, out)
    assert (out == padded(x, 2, 5, (8, 16), 7).T).all()


def test_array_length_gives_several_vectors():
    x = np.arange(6 * 20, dtype=np.float32).reshape(6, 20)
    out = np.zeros((2, 4, 8), np.float32)
    tile = "!xetile.tile<4x8xf32, #xetile.tile_attr<array_length = 2 : i64>>"
    body = f"""
      %tile = xetile.init_tile %x[3, 7] : memref<6x20xf32> -> {tile}
      %v:2 = xetile.load_tile %tile : {tile} -> vector<4x8xf32>, vector<4x8xf32>
      %t0 = xetile.init_tile %out[0, 0, 0] : memref<2x4x8xf32> -> !xetile.tile<4x8xf32>
      %t1 = xetile.init_tile %out[1, 0, 0] : memref<2x4x8xf32> -> !xetile.tile<4x8xf32>
      xetile.store_tile %v#0, %t0 : vector<4x8xf32>, !xetile.tile<4x8xf32>
      xetile.store_tile %v#1, %t1 : vector<4x8xf32>, !xetile.tile<4x8xf32>"""
    run("%x: memref<6x20xf32>, %out: memref<2x4x8xf32>", body, x, out)
    assert (out[0] == padded(x, 3, 7, (4, 8), 0)).all()
    assert (out[1] == padded(x, 3, 15, (4, 8), 0)).all()


def test_blocked_tiles_and_values():
    """inner_blocks: loads, products, reductions and stores of rank 4."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (7, 15)), rng.integers(-4, 5, (15, 8))
    a, b = a.astype(np.float32), b.astype(np.float32)
    c, sums = np.zeros((8, 8), np.float32), np.zeros((8, 1), np.float32)

    def tile(shape, blocks):
        return (
            f"!xetile.tile<{shape}xf32, #xetile.tile_attr<inner_blocks = [{blocks}]>>"
        )

    body = f"""
      %ta = xetile.init_tile %a[0, 0] : memref<7x15xf32> -> {tile("8x16", "4, 8")}
      %tb = xetile.init_tile %b[0, 0] : memref<15x8xf32> -> {tile("16x8", "8, 4")}
      %tc = xetile.init_tile %c[0, 0] : memref<8x8xf32> -> {tile("8x8", "4, 4")}
      %va = xetile.load_tile %ta : {tile("8x16", "4, 8")} -> vector<2x2x4x8xf32>
      %vb = xetile.load_tile %tb : {tile("16x8", "8, 4")} -> vector<2x2x8x4xf32>
      %vc = xetile.tile_mma %va, %vb : vector<2x2x4x8xf32>, vector<2x2x8x4xf32> -> vector<2x2x4x4xf32>
      xetile.store_tile %vc, %tc : vector<2x2x4x4xf32>, {tile("8x8", "4, 4")}
      %r = xetile.tile_reduce <add>, %va [1, 3] : vector<2x2x4x8xf32> -> vector<2x1x4x1xf32>
      %u = xetile.tile_unpack %r {{inner_blocks = array<i64: 4, 1>}} : vector<2x1x4x1xf32> -> vector<8x1xf32>
      %p = xetile.tile_pack %u {{inner_blocks = array<i64: 2, 1>}} : vector<8x1xf32> -> vector<4x1x2x1xf32>
      %q = xetile.tile_unpack %p {{inner_blocks = array<i64: 2, 1>}} : vector<4x1x2x1xf32> -> vector<8x1xf32>
      %ts = xetile.init_tile %s[0, 0] : memref<8x1xf32> -> !xetile.tile<8x1xf32>
      xetile.store_tile %q, %ts : vector<8x1xf32>, !xetile.tile<8x1xf32>"""
    arguments = "%a: memref<7x15xf32>, %b: memref<15x8xf32>, %c: memref<8x8xf32>, %s: memref<8x1xf32>"
    run(arguments, body, a, b, c, sums)
    assert (c[:7] == a @ b).all()
    assert (c[7] == 0).all()
    assert (sums[:7, 0] == a.sum(1)).all()


@few
@given(
    h=st.integers(1, 5), w=st.integers(1, 5), bh=st.integers(1, 4), bw=st.integers(1, 4)
)
def test_pack_is_its_definition(h, w, bh, bw):
    v = np.arange(h * bh * w * bw, dtype=np.float32).reshape(h * bh, w * bw)
    text = f"xetile.tile_pack {{0}} {{{{inner_blocks = array<i64: {bh}, {bw}>}}}} : {{t0}} -> {{r}}"
    packed = evaluate(text, v, shape=(h, w, bh, bw))
    for a, b, c, d in np.ndindex(packed.shape):
        assert packed[a, b, c, d] == v[a * bh + c, b * bw + d]
    text = text.replace("tile_pack", "tile_unpack")
    assert (evaluate(text, packed, shape=v.shape) == v).all()


# Products ---------------------------------------------------------------------------

ACCUMULATOR = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}
MMA = "xetile.tile_mma {0}, {1}, {2} : {t0}, {t1}, {t2} -> {r}"


@few
@given(m=sizes, n=sizes, k=sizes, seed=st.integers(0, 99))
@pytest.mark.parametrize("dtype", FLOATS)
def test_products(dtype, m, n, k, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    wide = np.float64 if dtype == np.float64 else np.float32
    c = rng.standard_normal((m, n)).astype(wide)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    found = evaluate(MMA, a, b, c, like=c)
    assert np.array_equal(found, (exact + c).astype(wide))
    found = evaluate("xetile.tile_mma {0}, {1} : {t0}, {t1} -> {r}", a, b, like=c)
    assert np.array_equal(found, exact.astype(wide))
    if dtype in (np.float16, ml_dtypes.bfloat16):  # accumulated wide, rounded once
        found = evaluate(MMA, a, b, c.astype(dtype), like=c.astype(dtype))
        total = (exact + c.astype(dtype).astype(np.float64)).astype(np.float32)
        assert np.array_equal(found, total.astype(dtype))


@pytest.mark.parametrize(
    "signs", ["", "a_unsigned", "b_unsigned", "a_unsigned, b_unsigned"]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_integer_products(dtype, signs):
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, s, dtype) for s in ((7, 300), (300, 9)))
    c = rng.integers(-(2**31), 2**31, (7, 9)).astype(np.int32)
    attributes = f" {{{{{signs}}}}}" if signs else ""
    found = evaluate(MMA.replace(" :", f"{attributes} :"), a, b, c, like=c)
    unsigned = np.dtype(f"uint{8 * a.itemsize}")
    left = a.view(unsigned) if "a_" in signs else a
    right = b.view(unsigned) if "b_" in signs else b
    total = left.astype(object) @ right.astype(object) + c
    wanted = ((total + 2**31) % 2**32 - 2**31).astype(np.int32)
    assert (found == wanted).all()


def test_reduced_precision():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((5, 64), (64, 6)))
    c = np.zeros((5, 6), np.float32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    errors = {}
    for name in ("tf32", "bf16x3"):
        text = MMA.replace(" :", f' {{{{precision = "{name}"}}}} :')
        errors[name] = np.abs(evaluate(text, a, b, c, like=c) - exact).max()
    assert 1e-5 < errors["tf32"] < 2e-2
    assert errors["bf16x3"] < 2e-4
    x = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-10, np.inf], np.float32)
    wanted = [1, 1 + 2.0**-9, -1 - 2.0**-10, np.inf]
    assert round_to_tf32(x).tolist() == wanted


def test_tf32_operands():
    x = np.array([[1 + 2.0**-11, 1 + 3 * 2.0**-11]], np.float32)
    out = np.zeros((1, 1), np.float32)
    body = """
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0, %c0] : memref<1x2xf32>, vector<1x2xf32>
      %t = arith.truncf %v : vector<1x2xf32> to vector<1x2xtf32>
      %u = xetile.tile_transpose %t, [1, 0] : vector<1x2xtf32> -> vector<2x1xtf32>
      %r = xetile.tile_mma %t, %u : vector<1x2xtf32>, vector<2x1xtf32> -> vector<1x1xf32>
      vector.store %r, %out[%c0, %c0] : memref<1x1xf32>, vector<1x1xf32>"""
    run("%x: memref<1x2xf32>, %out: memref<1x1xf32>", body, x, out)
    assert out[0, 0] == np.float32(1 + (1 + 2.0**-9) ** 2)


# Values -----------------------------------------------------------------------------


@few
@given(m=sizes, n=sizes, dim=st.integers(0, 1))
def test_reduce_and_broadcast(m, n, dim):
    x = np.arange(m * n, dtype=np.float32).reshape(m, n) - 3
    shape = (1, n) if dim == 0 else (m, 1)
    for kind, function in {
        "add": np.sum,
        "maximumf": np.max,
        "minimumf": np.min,
    }.items():
        text = f"xetile.tile_reduce <{kind}>, {{0}} [{dim}] : {{t0}} -> {{r}}"
        found = evaluate(text, x, shape=shape)
        assert (found == function(x.astype(np.float64), axis=dim, keepdims=True)).all()
    text = f"xetile.tile_broadcast {{0}} [{dim}] : {{t0}} -> {{r}}"
    assert (
        evaluate(text, found, shape=x.shape) == np.broadcast_to(found, x.shape)
    ).all()
    turned = evaluate(
        "xetile.tile_transpose {0}, [1, 0] : {t0} -> {r}", x, shape=(n, m)
    )
    assert (turned == x.T).all()


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_reduce_in_groups(size, dim):
    x = np.arange(8 * 16, dtype=np.int32).reshape(8, 16)
    if dim == 0:
        wanted = x.reshape(8 // size, size, 16).sum(1)
    else:
        wanted = x.reshape(8, 16 // size, size).sum(2)
    text = f"xetile.tile_reduce <add>, {{0}} [{dim}] {{{{reduction_size = {size} : i64}}}} : {{t0}} -> {{r}}"
    assert (evaluate(text, x, shape=wanted.shape) == wanted).all()


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int8])
def test_scan(dtype, dim):
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, (5, 9)).astype(dtype)
    wide = np.float64 if dtype in FLOATS else np.int64
    for kind, ufunc in {"add": np.add, "mul": np.multiply}.items():
        found = evaluate(
            f"xetile.tile_scan <{kind}>, {{0}} [{dim}] : {{t0}} -> {{r}}", x
        )
        with np.errstate(all="ignore"):
            wanted = ufunc.accumulate(x.astype(wide), dim)
            if dtype in FLOATS and dtype != np.float64:
                wanted = wanted.astype(np.float32)
            assert (found == wanted.astype(dtype)).all(), kind
    if dtype == np.int32:
        text = f"xetile.tile_scan <maxui>, {{0}} [{dim}] : {{t0}} -> {{r}}"
        wanted = np.maximum.accumulate(x.view(np.uint32), dim).view(np.int32)
        assert (evaluate(text, x) == wanted).all()


def test_conv_layout_keeps_values():
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    text = "xetile.tile_conv_layout {0} {{map = #xetile.wg_map<sg_layout = [2, 2], sg_data = [16, 16]>}} : {t0}"
    assert (evaluate(text, x) == x).all()


# One offset for each element --------------------------------------------------------

SCATTERED = "!xetile.tile<2x8x{}, #xetile.tile_attr<scattered = true>>"


@few
@given(n=st.integers(1, 30), step=st.sampled_from([1, 2, -1]), seed=st.integers(0, 99))
def test_gather_and_scatter(n, step, seed):
    """Outside the base it is padded and dropped, whatever the mask says."""
    rng = np.random.default_rng(seed)
    x = np.arange(1, 2 * n + 1, dtype=np.float32)[::step]
    n = len(x)
    index = rng.permutation(np.arange(-8, n + 24))[:16].reshape(2, 8)
    mask = rng.random((2, 8)) < 0.8
    out = np.zeros((2, 8), np.float32)
    tile = SCATTERED.format("f32")
    body = f"""
      %c0 = arith.constant 0 : index
      %i = vector.load %index[%c0, %c0] : memref<2x8xindex>, vector<2x8xindex>
      %m = vector.load %mask[%c0, %c0] : memref<2x8xi1>, vector<2x8xi1>
      %step = arith.constant dense<2> : vector<2x8xindex>
      %first = xetile.init_tile %x, %i : memref<?xf32, strided<[?]>>, vector<2x8xindex> -> {tile}
      %tile = xetile.update_tile_offset %first, %step : {tile}, vector<2x8xindex>
      %v = xetile.load_gather %tile, %m {{padding = -1.0 : f32}} : {tile}, vector<2x8xi1> -> vector<2x8xf32>
      vector.store %v, %out[%c0, %c0] : memref<2x8xf32>, vector<2x8xf32>
      %minus = arith.negf %v : vector<2x8xf32>
      xetile.store_scatter %minus, %m, %tile : vector<2x8xf32>, vector<2x8xi1>, {tile}"""
    before = x.copy()
    arguments = "%x: memref<?xf32, strided<[?]>>, %index: memref<2x8xindex>, %mask: memref<2x8xi1>, %out: memref<2x8xf32>"
    run(arguments, body, x, index, mask, out)
    hit = mask & (index + 2 >= 0) & (index + 2 < n)
    wanted = np.where(hit, before[np.clip(index + 2, 0, n - 1)], -1)
    assert (out == wanted).all()
    before[index[hit] + 2] *= -1
    assert (x == before).all()


def test_a_base_of_rank_0_is_an_address():
    x = np.arange(10, dtype=np.float32)
    out = np.zeros(4, np.float32)
    tile = "!xetile.tile<4xf32, #xetile.tile_attr<scattered = true>>"
    body = f"""
      %c0 = arith.constant 0 : index
      %i = arith.constant dense<[3, 9, 10, -1]> : vector<4xindex>
      %m = arith.constant dense<true> : vector<4xi1>
      %b, %o, %n, %s = memref.extract_strided_metadata %x : memref<?xf32> -> memref<f32>, index, index, index
      %tile = xetile.init_tile %b, %i : memref<f32>, vector<4xindex> -> {tile}
      %v = xetile.load_gather %tile, %m : {tile}, vector<4xi1> -> vector<4xf32>
      vector.store %v, %out[%c0] : memref<4xf32>, vector<4xf32>"""
    run("%x: memref<?xf32>, %out: memref<4xf32>", body, x, out)
    assert out.tolist() == [3, 9, 0, 0]


ATOMICS = {
    "add": np.add,
    "mul": np.multiply,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "assign": lambda old, new: new,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
}


@pytest.mark.parametrize(
    "dtype", [np.int32, np.int64, np.float32, np.float64, ml_dtypes.bfloat16]
)
@pytest.mark.parametrize("kind", ATOMICS)
def test_atomics_on_a_tile(kind, dtype):
    is_float = dtype not in INTEGERS
    if kind in ("and", "or", "xor", "minsi", "maxsi") and is_float:
        return
    if kind in ("maximumf", "minimumf") and not is_float:
        return
    x = (np.arange(15).reshape(3, 5) - 4).astype(dtype)
    new = (np.arange(16).reshape(4, 4) * 7 % 5).astype(dtype)
    mask = np.arange(16).reshape(4, 4) % 3 != 0
    old = np.ones((4, 4), dtype)
    name = type_name(dtype)
    body = f"""
      %c0 = arith.constant 0 : index
      %v = vector.load %new[%c0, %c0] : memref<4x4x{name}>, vector<4x4x{name}>
      %m = vector.load %mask[%c0, %c0] : memref<4x4xi1>, vector<4x4xi1>
      %tile = xetile.init_tile %x[1, 2] : memref<3x5x{name}> -> !xetile.tile<4x4x{name}>
      %old = xetile.atomic_rmw_tile <{kind}> %v, %tile, %m : vector<4x4x{name}>, !xetile.tile<4x4x{name}>, vector<4x4xi1> -> vector<4x4x{name}>
      vector.store %old, %out[%c0, %c0] : memref<4x4x{name}>, vector<4x4x{name}>"""
    before = x.copy()
    arguments = f"%x: memref<3x5x{name}>, %new: memref<4x4x{name}>, %mask: memref<4x4xi1>, %out: memref<4x4x{name}>"
    run(arguments, body, x, new, mask, old)
    wanted, expected = before.copy(), np.zeros((4, 4), dtype)
    for i in range(2):
        for j in range(3):
            if mask[i, j]:
                expected[i, j] = before[1 + i, 2 + j]
                wanted[1 + i, 2 + j] = ATOMICS[kind](before[1 + i, 2 + j], new[i, j])
    assert (x == wanted).all()
    assert (old == expected).all()


def test_atomics_that_hit_an_element_twice():
    """A histogram: each addition sees those before it."""
    x = np.zeros(4, np.int32)
    index = np.array([1, 1, 3, 1, 9, 0, -2, 3, 1, 2, 2, 2, 1, 1, 1, 1]).reshape(2, 8)
    old = np.zeros((2, 8), np.int32)
    tile = SCATTERED.format("i32")
    body = f"""
      %c0 = arith.constant 0 : index
      %i = vector.load %index[%c0, %c0] : memref<2x8xindex>, vector<2x8xindex>
      %one = arith.constant dense<1> : vector<2x8xi32>
      %tile = xetile.init_tile %x, %i : memref<4xi32>, vector<2x8xindex> -> {tile}
      %old = xetile.atomic_rmw_tile <add> %one, %tile : vector<2x8xi32>, {tile} -> vector<2x8xi32>
      vector.store %old, %out[%c0, %c0] : memref<2x8xi32>, vector<2x8xi32>"""
    arguments = "%x: memref<4xi32>, %index: memref<2x8xindex>, %out: memref<2x8xi32>"
    run(arguments, body, x, index, old)
    assert x.tolist() == [1, 8, 3, 2]
    assert old.ravel().tolist() == [0, 1, 0, 2, 0, 0, 0, 1, 3, 0, 1, 2, 4, 5, 6, 7]
