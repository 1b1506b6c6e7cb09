"""Operations of `vector` in texts: any rank, parts, masks, reductions, products."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from texts import apply, assert_close, run_both

import xetl
from xetl.errors import XetlError

A, B = "vector<4x5x6xf32>", "vector<4x6xf32>"
SUM = """%acc = arith.constant dense<1.5> : {1}
    %r = vector.multi_reduction <{2}>, %0, %acc {3} : {0} to {1}"""


def slices(offsets, sizes=None):
    """The attributes of a slice in steps of 1."""
    middle = "" if sizes is None else f", sizes = {sizes}"
    return f"{{offsets = {offsets}{middle}, strides = {[1] * len(offsets)}}}"


CASES = {
    "elementwise": (A, A, f"%r = math.absf %0 : {A}", np.abs),
    "transpose of three": (
        A,
        "vector<6x4x5xf32>",
        f"%r = vector.transpose %0, [2, 0, 1] : {A} to vector<6x4x5xf32>",
        lambda x: x.transpose(2, 0, 1),
    ),
    "transpose of four": (
        "vector<2x3x1x5xi16>",
        "vector<5x3x2x1xi16>",
        "%r = vector.transpose %0, [3, 1, 0, 2] : "
        "vector<2x3x1x5xi16> to vector<5x3x2x1xi16>",
        lambda x: x.transpose(3, 1, 0, 2),
    ),
    "shape cast": (
        A,
        "vector<3x40xf32>",
        f"%r = vector.shape_cast %0 : {A} to vector<3x40xf32>",
        lambda x: x.reshape(3, 40),
    ),
    "broadcast in the middle": (
        "vector<4x1x6xbf16>",
        "vector<2x4x3x6xbf16>",
        "%r = vector.broadcast %0 : vector<4x1x6xbf16> to vector<2x4x3x6xbf16>",
        lambda x: np.broadcast_to(x, (2, 4, 3, 6)),
    ),
    "broadcast of rank 0": (
        "vector<4x6xf32>",
        "vector<2x3xf32>",
        "%c = arith.constant dense<2.5> : vector<f32>\n"
        "%r = vector.broadcast %c : vector<f32> to vector<2x3xf32>",
        lambda x: np.full((2, 3), 2.5),
    ),
    "sum of the middle": (
        A,
        B,
        SUM.format(A, B, "add", [1]),
        lambda x: x.sum(1) + 1.5,
    ),
    "maximum of 8x32x128": (
        "vector<8x32x128xf32>",
        "vector<32x128xf32>",
        SUM.format("vector<8x32x128xf32>", "vector<32x128xf32>", "maximumf", [0]),
        lambda x: np.maximum(x.max(0), 1.5),
    ),
    "sum of both ends": (
        "vector<4x5x6xi32>",
        "vector<5xi32>",
        SUM.format("vector<4x5x6xi32>", "vector<5xi32>", "add", [0, 2]).replace(
            "1.5", "2"
        ),
        lambda x: x.sum((0, 2)) + 2,
    ),
    "sum of a column of f16": (
        "vector<70x1xf16>",
        "vector<1xf16>",
        SUM.format("vector<70x1xf16>", "vector<1xf16>", "add", [0]),
        lambda x: x.astype(np.float64).sum(0) + 1.5,
    ),
    "reduction to a scalar": (
        "vector<37xf32>",
        "vector<2xf32>",
        "%s = vector.reduction <add>, %0 : vector<37xf32> into f32\n"
        "%r = vector.broadcast %s : f32 to vector<2xf32>",
        lambda x: np.full(2, x.sum()),
    ),
    "groups of rows": (
        "vector<8x16xf32>",
        "vector<2x16xf32>",
        "%r = xetile.reduction <add>, %0 [0] {reduction_size = 4 : i64} : "
        "vector<8x16xf32> -> vector<2x16xf32>",
        lambda x: x.reshape(2, 4, 16).sum(1),
    ),
    "groups of columns": (
        "vector<8x15xf32>",
        "vector<8x5xf32>",
        "%r = xetile.reduction <add>, %0 [1] {reduction_size = 3 : i64} : "
        "vector<8x15xf32> -> vector<8x5xf32>",
        lambda x: x.reshape(8, 5, 3).sum(2),
    ),
    "extract a matrix": (
        A,
        "vector<5x6xf32>",
        f"%r = vector.extract %0[2] : vector<5x6xf32> from {A}",
        lambda x: x[2],
    ),
    "extract a computed row": (
        A,
        "vector<6xf32>",
        "%i = arith.addi %zero, %zero : index\n%c3 = arith.constant 3 : index\n"
        "%j = arith.addi %i, %c3 : index\n"
        f"%r = vector.extract %0[%j, 1] : vector<6xf32> from {A}",
        lambda x: x[3, 1],
    ),
    "insert an element": (
        A,
        A,
        "%c = arith.constant 9.0 : f32\n"
        f"%r = vector.insert %c, %0[1, 2, 3] : f32 into {A}",
        lambda x: _inserted(x, (1, 2, 3), 9.0),
    ),
    "insert a row": (
        A,
        A,
        f"%c = vector.extract %0[0, 0] : vector<6xf32> from {A}\n"
        f"%r = vector.insert %c, %0[3, 4] : vector<6xf32> into {A}",
        lambda x: _inserted(x, (3, 4), x[0, 0]),
    ),
    "extract a slice": (
        A,
        "vector<2x3x2xf32>",
        f"%r = vector.extract_strided_slice %0 {slices([1, 2, 3], [2, 3, 2])} : "
        f"{A} to vector<2x3x2xf32>",
        lambda x: x[1:3, 2:5, 3:5],
    ),
    "insert a slice": (
        A,
        A,
        f"%c = vector.extract_strided_slice %0 {slices([1, 2, 3], [2, 3, 2])} : "
        f"{A} to vector<2x3x2xf32>\n"
        f"%r = vector.insert_strided_slice %c, %0 {slices([0, 0, 0])} : "
        f"vector<2x3x2xf32> into {A}",
        lambda x: _inserted(x, np.s_[0:2, 0:3, 0:2], x[1:3, 2:5, 3:5]),
    ),
    "shuffle": (
        "vector<6x2xi8>",
        "vector<8x2xi8>",
        "%r = vector.shuffle %0, %0 [0, 3, 6, 9, 9, 1, 0, 2] : "
        "vector<6x2xi8>, vector<6x2xi8>",
        lambda x: np.concatenate([x, x])[[0, 3, 6, 9, 9, 1, 0, 2]],
    ),
    "interleave": (
        "vector<3x5xi32>",
        "vector<3x10xi32>",
        "%n = arith.addi %0, %0 : vector<3x5xi32>\n"
        "%r = vector.interleave %0, %n : vector<3x5xi32> -> vector<3x10xi32>",
        lambda x: np.stack([x, 2 * x], -1).reshape(3, 10),
    ),
    "interleave of three dimensions": (
        "vector<2x3x5xf32>",
        "vector<2x3x10xf32>",
        "%n = arith.addf %0, %0 : vector<2x3x5xf32>\n"
        "%r = vector.interleave %0, %n : vector<2x3x5xf32> -> vector<2x3x10xf32>",
        lambda x: np.stack([x, 2 * x], -1).reshape(2, 3, 10),
    ),
    "deinterleave": (
        "vector<3x10xf16>",
        "vector<3x5xf16>",
        "%a, %b = vector.deinterleave %0 : vector<3x10xf16> -> vector<3x5xf16>\n"
        "%r = arith.subf %a, %b : vector<3x5xf16>",
        lambda x: x[:, ::2] - x[:, 1::2],
    ),
    "bits of other elements": (
        "vector<3x4xi32>",
        "vector<3x16xi8>",
        "%r = vector.bitcast %0 : vector<3x4xi32> to vector<3x16xi8>",
        lambda x: x.view(np.int8),
    ),
    "a mask of three dimensions": (
        A,
        A,
        "%c = arith.constant 3 : index\n%n = arith.constant -1 : index\n"
        f"%m = vector.create_mask %c, %c, %c : vector<4x5x6xi1>\n"
        f"%z = arith.constant dense<7.0> : {A}\n"
        f"%r = arith.select %m, %0, %z : vector<4x5x6xi1>, {A}",
        lambda x: _inserted(np.full_like(x, 7), np.s_[:3, :3, :3], x[:3, :3, :3]),
    ),
    "a constant mask": (
        A,
        A,
        f"%m = vector.constant_mask [4, 2, 1] : vector<4x5x6xi1>\n"
        f"%z = arith.constant dense<7.0> : {A}\n"
        f"%r = arith.select %m, %0, %z : vector<4x5x6xi1>, {A}",
        lambda x: _inserted(np.full_like(x, 7), np.s_[:, :2, :1], x[:, :2, :1]),
    ),
    "a constant of different bf16": (
        "vector<2x2xbf16>",
        "vector<2x2xbf16>",
        "%c = arith.constant dense<[[1.0, -2.5], [3.0, 0.125]]> : vector<2x2xbf16>\n"
        "%r = arith.addf %0, %c : vector<2x2xbf16>",
        lambda x: x + np.array([[1.0, -2.5], [3.0, 0.125]], ml_dtypes.bfloat16),
    ),
    "a constant of zeros of both signs": (
        "vector<4xf32>",
        "vector<4xf32>",
        "%c = arith.constant dense<[0.0, -0.0, 0.0, -0.0]> : vector<4xf32>\n"
        "%r = math.copysign %0, %c : vector<4xf32>",
        lambda x: np.copysign(x, np.float32([0.0, -0.0, 0.0, -0.0])),
    ),
    "elements": (
        "vector<4xf32>",
        "vector<2x2xf32>",
        "%a:4 = vector.to_elements %0 : vector<4xf32>\n"
        "%r = vector.from_elements %a#3, %a#1, %a#0, %a#0 : vector<2x2xf32>",
        lambda x: x[[3, 1, 0, 0]].reshape(2, 2),
    ),
    "outer product": (
        "vector<7xf32>",
        "vector<7x7xf32>",
        "%r = vector.outerproduct %0, %0 : vector<7xf32>, vector<7xf32>",
        lambda x: np.outer(x, x),
    ),
}


def _inserted(whole, where, part):
    whole = whole.copy()
    whole[where] = part
    return whole


@pytest.mark.parametrize("name", CASES)
def test_vectors(name):
    source, result, body, expected = CASES[name]
    (given,), found = apply(body, [source], result)
    assert_close(found, expected(given))


@pytest.mark.parametrize(
    ("maps", "shapes", "equation"),
    [
        (("m,k", "k,n", "m,n"), ("4x5", "5x7", "4x7"), "mk,kn->mn"),
        (("m,k", "n,k", "n,m"), ("4x5", "7x5", "7x4"), "mk,nk->nm"),
        (("b,m,k", "b,k,n", "b,m,n"), ("3x4x5", "3x5x7", "3x4x7"), "bmk,bkn->bmn"),
        (("k,m,b", "b,n,k", "m,b,n"), ("5x4x3", "3x7x5", "4x3x7"), "kmb,bnk->mbn"),
        (("m,k", "k", "m"), ("4x5", "5", "4"), "mk,k->m"),
    ],
)
def test_contract(maps, shapes, equation):
    letters = sorted(set("".join(maps)) - {","}, key="bmnk".index)
    signature = ", ".join(letters)
    indexing = ", ".join(f"affine_map<({signature}) -> ({m})>" for m in maps)
    kinds = ['"reduction"' if d not in maps[2] else '"parallel"' for d in letters]
    a, b, c = (f"vector<{shape}xf32>" for shape in shapes)
    body = (
        f"%r = vector.contract {{indexing_maps = [{indexing}], iterator_types = "
        f"[{', '.join(kinds)}], kind = #vector.kind<add>}} "
        f"%0, %1, %2 : {a}, {b} into {c}"
    )
    (x, y, z), found = apply(body, [a, b, c], c)
    wide = (v.astype(np.float64) for v in (x, y))
    assert_close(found, np.einsum(equation, *wide) + z)


@pytest.mark.parametrize("backend", ["cpu", "xegpu"])
def test_products_that_are_not_added_are_refused(backend):
    maps = [f"affine_map<(m, n, k) -> ({dims})>" for dims in ("m, k", "k, n", "m, n")]
    text = f"""
    func.func @k(%a: memref<4x5xf32>, %b: memref<5x7xf32>, %c: memref<4x7xf32>) {{
      %i = arith.constant 0 : index
      %z = arith.constant 0.0 : f32
      %0 = vector.transfer_read %a[%i, %i], %z : memref<4x5xf32>, vector<4x5xf32>
      %1 = vector.transfer_read %b[%i, %i], %z : memref<5x7xf32>, vector<5x7xf32>
      %2 = vector.transfer_read %c[%i, %i], %z : memref<4x7xf32>, vector<4x7xf32>
      %3 = vector.contract {{indexing_maps = [{", ".join(maps)}],
        iterator_types = ["parallel", "parallel", "reduction"],
        kind = #vector.kind<mul>}} %0, %1, %2
        : vector<4x5xf32>, vector<5x7xf32> into vector<4x7xf32>
      vector.transfer_write %3, %c[%i, %i] : vector<4x7xf32>, memref<4x7xf32>
      return
    }}"""
    arrays = [np.ones(shape, np.float32) for shape in ((4, 5), (5, 7), (4, 7))]
    with pytest.raises(XetlError, match=r"added, not combined by `mul`"):
        xetl.load_mlir(text)["k"][(1,)](*arrays, backend=backend)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_a_narrow_accumulator_is_rounded_once(dtype):
    """The sum of 65 numbers leaves the fraction of bf16 on the way."""
    a, b, c = (f"vector<{s}x{dtype}>" for s in ("3x65", "65x5", "3x5"))
    body = f"%r = xetile.tile_mma %0, %1, %2 : {a}, {b}, {c} -> {c}"
    (x, y, z), found = apply(body, [a, b, c], c)
    exact = x.astype(np.float64) @ y.astype(np.float64) + z.astype(np.float64)
    assert np.array_equal(found, exact.astype(found.dtype))


@pytest.mark.parametrize("columns", [1, 19])
@pytest.mark.parametrize(
    ("dtype", "sums"),
    [
        *[("i16", "i32"), ("i32", "i32"), ("i32", "i64"), ("i8", "i64")],
        *[("i64", "i16"), ("i8", "i8"), ("f32", "f64"), ("f16", "f64"), ("f64", "f32")],
    ],
)
def test_products_without_a_micro_kernel(dtype, sums, columns):
    a, b = f"vector<3x21x{dtype}>", f"vector<21x{columns}x{dtype}>"
    c = f"vector<3x{columns}x{sums}>"
    signs = "{a_unsigned} " if dtype == "i8" else ""
    body = f"%r = xetile.tile_mma %0, %1, %2 {signs}: {a}, {b}, {c} -> {c}"
    (x, y, z), found = apply(body, [a, b, c], c)
    if signs:
        x = x.view("u1")
    kind = "f8" if dtype.startswith("f") else "i8"
    exact = x.astype(kind) @ y.astype(kind) + z.astype(kind)
    assert np.array_equal(found, exact.astype(found.dtype))


def test_products_of_tf32_see_ten_bits():
    text = """
    func.func @k(%a: memref<8x8xtf32>, %b: memref<8x16xtf32>, %c: memref<8x16xf32>) {
      %ta = xetile.init_tile %a[0, 0] : memref<8x8xtf32> -> !xetile.tile<8x8xtf32>
      %tb = xetile.init_tile %b[0, 0] : memref<8x16xtf32> -> !xetile.tile<8x16xtf32>
      %tc = xetile.init_tile %c[0, 0] : memref<8x16xf32> -> !xetile.tile<8x16xf32>
      %va = xetile.load_tile %ta : !xetile.tile<8x8xtf32> -> vector<8x8xtf32>
      %vb = xetile.load_tile %tb : !xetile.tile<8x16xtf32> -> vector<8x16xtf32>
      %vc = xetile.tile_mma %va, %vb : vector<8x8xtf32>, vector<8x16xtf32>
        -> vector<8x16xf32>
      xetile.store_tile %vc, %tc : vector<8x16xf32>, !xetile.tile<8x16xf32>
      return
    }"""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((8, 8)).astype("f4")
    b = np.eye(8, 16, dtype="f4")
    *_, c = run_both(text, a, b, np.zeros((8, 16), "f4"))
    assert np.abs(c[:, :8] - a).max() > 1e-5  # f32 would be exact
    assert np.all(c[:, :8].view("i4") & 0x1FFF == 0)


def test_a_slice_of_what_is_partly_outside() -> None:
    text = f"""func.func @f(%X: memref<8x40xf32>, %Y: memref<8x32xf32>) {{
      %zero = arith.constant 0 : index
      %x = xetile.init_tile %X[%zero, %zero]
        : memref<8x40xf32> -> !xetile.tile<8x64xf32>
      %v = xetile.load_tile %x : !xetile.tile<8x64xf32> -> vector<8x64xf32>
      %s = vector.extract_strided_slice %v {slices([0, 32], [8, 32])}
        : vector<8x64xf32> to vector<8x32xf32>
      %y = xetile.init_tile %Y[%zero, %zero]
        : memref<8x32xf32> -> !xetile.tile<8x32xf32>
      xetile.store_tile %s, %y : vector<8x32xf32>, !xetile.tile<8x32xf32>
      return
    }}"""
    x, y = np.ones((8, 40), np.float32), np.ones((8, 32), np.float32)
    xetl.load_mlir(text)["f"][(1,)](x, y)
    assert np.array_equal(y, np.repeat([[1.0, 0.0]], [8, 24], axis=1).repeat(8, axis=0))
