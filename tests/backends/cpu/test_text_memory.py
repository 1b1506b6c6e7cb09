"""Tiles, views and memory of texts: equal to reference and to NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from texts import DTYPES, run_both
from texts import some as given

import xetl
from xetl.errors import IRError

BLOCKS = "#xetile.tile_attr<inner_blocks = [8, 16]>"
COLUMNS = "#xetile.tile_attr<order = [0, 1]>"
SHARED = "#xetile.tile_attr<memory_space = 3>"
FOUR = "#xetile.tile_attr<array_length = 4>"


def some(*shape, dtype="f4"):
    return np.random.default_rng(0).integers(-9, 10, shape).astype(dtype)


def test_a_load_of_four_vectors_and_its_padding():
    tile = f"!xetile.tile<16x16xf32, {FOUR}>"
    text = f"""
    func.func @k(%a: memref<32x64xf32>, %b: memref<32x64xf32>) {{
      %t = xetile.init_tile %a[3, 5] : memref<32x64xf32> -> {tile}
      %v:4 = xetile.load_tile %t {{padding = 2.5 : f32}} : {tile} -> vector<16x16xf32>,
        vector<16x16xf32>, vector<16x16xf32>, vector<16x16xf32>
      %s = arith.addf %v#0, %v#3 : vector<16x16xf32>
      %u = xetile.init_tile %b[8, 8] : memref<32x64xf32> -> !xetile.tile<16x16xf32>
      xetile.store_tile %s, %u : vector<16x16xf32>, !xetile.tile<16x16xf32>
      return
    }}"""
    a = some(32, 64)
    _, b = run_both(text, a, np.zeros_like(a))
    wide = np.full((64, 80), 2.5, "f4")
    wide[:32, :64] = a
    assert np.array_equal(b[8:24, 8:24], wide[3:19, 5:21] + wide[3:19, 53:69])


def blocked(body):
    """A kernel that copies a blocked tile of a to b, ``body`` in between."""
    tile = f"!xetile.tile<16x32xf32, {BLOCKS}>"
    vector = "vector<2x2x8x16xf32>"
    return f"""
    func.func @k(%a: memref<32x64xf32>, %b: memref<32x64xf32>) {{
      %t = xetile.init_tile %a[20, 40] : memref<32x64xf32> -> {tile}
      %v = xetile.load_tile %t {{padding = 2.0 : f32}} : {tile} -> {vector}
      {body}
      %u = xetile.init_tile %b[8, 8] : memref<32x64xf32> -> {tile}
      xetile.store_tile %v, %u : {vector}, {tile}
      %o = xetile.atomic_rmw addf %r, %u : {vector}, {tile} -> {vector}
      return
    }}"""


@pytest.mark.parametrize("made", [False, True])
def test_blocked_values(made):
    """With and without an operation that looks at the blocks."""
    body = "%r = math.absf %v : vector<2x2x8x16xf32>"
    if made:
        body = """%f = vector.transpose %v, [1, 0, 2, 3]
            : vector<2x2x8x16xf32> to vector<2x2x8x16xf32>
        %r = math.absf %f : vector<2x2x8x16xf32>"""
    a = some(32, 64)
    _, b = run_both(blocked(body), a, np.zeros_like(a))
    wide = np.full((64, 80), 2.0, "f4")
    wide[:32, :64] = a
    v = wide[20:36, 40:72]
    other = v
    if made:
        blocks = v.reshape(2, 8, 2, 16)
        other = blocks.transpose(2, 1, 0, 3).reshape(16, 32)
    assert np.array_equal(b[8:24, 8:40], v + np.abs(other))


def test_column_major_tiles():
    tile, matrix = f"!xetile.tile<16x32xf32, {COLUMNS}>", "strided<[1, 32]>"
    text = f"""
    func.func @k(%a: memref<32x64xf32, {matrix}>, %b: memref<32x64xf32, {matrix}>,
                 %i: index) {{
      %t = xetile.init_tile %a[%i, 5] : memref<32x64xf32, {matrix}> -> {tile}
      xetile.prefetch_tile %t : {tile}
      %m = xetile.update_tile_offset %t, [%i, %i] : {tile}
      %v = xetile.load_tile %m {{padding = 3.0 : f32}} : {tile} -> vector<16x32xf32>
      %u = xetile.init_tile %b[20, 40] : memref<32x64xf32, {matrix}> -> {tile}
      xetile.store_tile %v, %u : vector<16x32xf32>, {tile}
      %o = xetile.atomic_rmw addf %v, %u
        : vector<16x32xf32>, {tile} -> vector<16x32xf32>
      return
    }}"""
    a = np.asfortranarray(some(32, 64))
    _, b, _ = run_both(text, a, np.zeros_like(a), -3)
    wide = np.full((40, 70), 3.0, "f4")
    wide[6:38, :64] = a
    expected = np.zeros((40, 80), "f4")
    expected[20:36, 40:72] = 2 * wide[:16, 2:34]
    assert np.array_equal(b, expected[:32, :64])


@pytest.mark.parametrize("plane", [1, 2])
def test_leading_offsets_choose_a_matrix(plane):
    """Of no size where there is none: nothing is read and nothing written."""
    text = """
    func.func @k(%a: memref<2x3x32x64xf32>, %b: memref<2x3x32x64xf32>, %i: index) {
      %t = xetile.init_tile %a[%i, 2, 20, 5] : memref<2x3x32x64xf32> -> !xetile.tile<16x32xf32>
      %v = xetile.load_tile %t : !xetile.tile<16x32xf32> -> vector<16x32xf32>
      %u = xetile.init_tile %b[1, %i, 20, 40] : memref<2x3x32x64xf32> -> !xetile.tile<16x32xf32>
      xetile.store_tile %v, %u : vector<16x32xf32>, !xetile.tile<16x32xf32>
      return
    }"""  # noqa: E501 - types stand in one line
    a = some(2, 3, 32, 64)
    b = np.ones_like(a)
    expected = b.copy()
    expected[1, plane, 20:32, 40:64] = a[plane, 2, 20:32, 5:29] if plane < 2 else 0
    assert np.array_equal(run_both(text, a, b, plane)[1], expected)


def test_a_bare_address():
    text = """
    func.func @k(%p: i64, %b: memref<16x32xf32>, %h: index) {
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %t = xetile.init_tile %p[20, 40], [%h, %c64], [%c64, %c1]
        : i64 -> !xetile.tile<16x32xf32>
      %v = xetile.load_tile %t {padding = 7.0 : f32}
        : !xetile.tile<16x32xf32> -> vector<16x32xf32>
      %u = xetile.init_tile %b[0, 0] : memref<16x32xf32> -> !xetile.tile<16x32xf32>
      xetile.store_tile %v, %u : vector<16x32xf32>, !xetile.tile<16x32xf32>
      return
    }"""
    a = some(32, 64)
    _, b, _ = run_both(text, a.ctypes.data, np.zeros((16, 32), "f4"), 32)
    expected = np.full((16, 32), 7.0, "f4")
    expected[:12, :24] = a[20:, 40:]
    assert np.array_equal(b, expected)


def test_of_two_dimensions_of_one_element_a_subview_keeps_the_first():
    """As MLIR has it; the type of the result says no more than the stride kept."""
    part = "memref<1x4xf32, strided<[?, ?], offset: ?>>"
    text = f"""
    func.func @k(%a: memref<2x3x4xf32>, %n: memref<2xindex>) {{
      %s = memref.subview %a[0, 1, 0] [1, 1, 4] [1, 1, 1]
        : memref<2x3x4xf32> to {part}
      %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %s
        : {part} -> memref<f32>, index, index, index, index, index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      memref.store %strides#0, %n[%c0] : memref<2xindex>
      memref.store %strides#1, %n[%c1] : memref<2xindex>
      return
    }}"""
    _, n = run_both(text, some(2, 3, 4), np.zeros(2, "i8"))
    assert n.tolist() == [12, 1]


def test_an_offset_counts_from_the_origin_of_a_memory():
    """`reinterpret_cast` of a subview starts where the array does."""
    part = "memref<8x8xf32, strided<[16, 1], offset: 35>>"
    text = f"""
    func.func @k(%a: memref<16x16xf32>, %b: memref<4x4xf32>, %n: memref<2xindex>) {{
      %s = memref.subview %a[2, 3] [8, 8] [1, 1] : memref<16x16xf32> to {part}
      %r = memref.reinterpret_cast %s to offset: [5], sizes: [4, 4], strides: [1, 16]
        : {part} to memref<4x4xf32, strided<[1, 16], offset: 5>>
      memref.copy %r, %b
        : memref<4x4xf32, strided<[1, 16], offset: 5>> to memref<4x4xf32>
      %base, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %s
        : {part} -> memref<f32>, index, index, index, index, index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      memref.store %offset, %n[%c0] : memref<2xindex>
      %size = memref.dim %a, %c1 : memref<16x16xf32>
      memref.store %size, %n[%c1] : memref<2xindex>
      return
    }}"""
    a = some(16, 16)
    _, b, n = run_both(text, a, np.zeros((4, 4), "f4"), np.zeros(2, "i8"))
    assert np.array_equal(b, a[:4, 5:9].T)
    assert n.tolist() == [35, 16]


def test_shared_bytes_as_other_elements():
    tile = f"!xetile.tile<16x32xf16, {SHARED}>"
    text = f"""
    func.func @k(%a: memref<16x32xf16>, %b: memref<16x32xf16>) {{
      %m = memref.alloc() : memref<4096xi8, 3>
      %c = arith.constant 1024 : index
      %x = memref.view %m[%c][] : memref<4096xi8, 3> to memref<16x32xf16, 3>
      %ta = xetile.init_tile %a[0, 0] : memref<16x32xf16> -> !xetile.tile<16x32xf16>
      %v = xetile.load_tile %ta : !xetile.tile<16x32xf16> -> vector<16x32xf16>
      %ts = xetile.init_tile %x[0, 0] : memref<16x32xf16, 3> -> {tile}
      xetile.store_tile %v, %ts : vector<16x32xf16>, {tile}
      gpu.barrier
      %w = xetile.load_tile %ts : {tile} -> vector<16x32xf16>
      %d = arith.addf %w, %v : vector<16x32xf16>
      %tb = xetile.init_tile %b[0, 0] : memref<16x32xf16> -> !xetile.tile<16x32xf16>
      xetile.store_tile %d, %tb : vector<16x32xf16>, !xetile.tile<16x32xf16>
      return
    }}"""
    a = some(16, 32, dtype="f2")
    assert np.array_equal(run_both(text, a, np.zeros_like(a))[1], 2 * a)


def test_masked_and_indexed_accesses():
    text = """
    func.func @k(%a: memref<10x9xf32>, %b: memref<10x9xf32>, %i: index) {
      %c1 = arith.constant 1 : index
      %m = vector.constant_mask [5] : vector<8xi1>
      %p = arith.constant dense<3.0> : vector<8xf32>
      %v = vector.maskedload %a[%i, %c1], %m, %p
        : memref<10x9xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      %x = arith.constant dense<[7, 6, 5, 4, 0, 1, 2, 3]> : vector<8xi32>
      %g = vector.gather %a[%c1, %c1] [%x], %m, %v
        : memref<10x9xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32>
        into vector<8xf32>
      vector.maskedstore %b[%c1, %c1], %m, %g
        : memref<10x9xf32>, vector<8xi1>, vector<8xf32>
      vector.scatter %b[%i, %c1] [%x], %m, %g
        : memref<10x9xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32>
      return
    }"""
    a, b = some(10, 9), np.zeros((10, 9), "f4")
    expected = b.copy()
    places = [7, 6, 5, 4, 0]
    row = a[1, 1:][places]
    expected[1, 1:6] = row
    expected[7, 1:][places] = row
    assert np.array_equal(run_both(text, a, b, 7)[1], expected)


def test_transfers_pad_and_permute():
    text = """
    func.func @k(%a: memref<10x9xf32>, %b: memref<10x9xf32>, %p: f32, %i: index) {
      %c5 = arith.constant 5 : index
      %v = vector.transfer_read %a[%i, %c5], %p : memref<10x9xf32>, vector<4x8xf32>
      %w = vector.transfer_read %a[%c5, %c5], %p
        {permutation_map = affine_map<(i, j) -> (j, i)>}
        : memref<10x9xf32>, vector<8x4xf32>
      %t = vector.transpose %w, [1, 0] : vector<8x4xf32> to vector<4x8xf32>
      %s = arith.addf %v, %t : vector<4x8xf32>
      vector.transfer_write %s, %b[%i, %c5] : vector<4x8xf32>, memref<10x9xf32>
      return
    }"""
    a, b = some(10, 9), np.zeros((10, 9), "f4")
    wide = np.full((20, 20), 3.5, "f4")
    wide[:10, :9] = a
    expected = b.copy()
    expected[7:, 5:] = (wide[7:11, 5:13] + wide[5:9, 5:13])[:3, :4]
    assert np.array_equal(run_both(text, a, b, 3.5, 7)[1], expected)


def test_what_has_no_place_is_refused_with_its_line():
    text = """
    func.func @k(%n: index) {
      %m = memref.alloc(%n) : memref<?xf32>
      return
    }"""
    with pytest.raises(IRError, match="static shape") as caught:
        xetl.load_mlir(text)["k"][1](3, backend="cpu")
    assert (caught.value.code, caught.value.line) == ("X0705", 3)


@pytest.mark.parametrize("dtype", ["i1", "i8", "i64", "f16", "bf16", "f64"])
def test_atomics_of_every_kind(dtype):
    kinds = ["addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", "assign"]
    if dtype[0] == "i":
        kinds = [
            "addi",
            "muli",
            "maxs",
            "maxu",
            "mins",
            "minu",
            "andi",
            "ori",
            "xori",
            "assign",
        ]
    tile, vector = f"!xetile.tile<4x8x{dtype}>", f"vector<4x8x{dtype}>"
    steps = [
        f"%r{i} = xetile.atomic_rmw {kind} %v, %t : {vector}, {tile} -> {vector}"
        for i, kind in enumerate(kinds)
    ]
    stores = [
        f"vector.store %r{i}, %o[%c{i}, %c0, %c0] : "
        f"memref<{len(kinds)}x4x8x{dtype}>, {vector}"
        for i in range(len(kinds))
    ]
    numbers = [f"%c{i} = arith.constant {i} : index" for i in range(len(kinds))]
    lines = [
        f"func.func @k(%a: memref<4x8x{dtype}>, %b: memref<4x8x{dtype}>, "
        f"%o: memref<{len(kinds)}x4x8x{dtype}>) {{",
        *numbers,
        f"%v = vector.load %b[%c0, %c0] : memref<4x8x{dtype}>, {vector}",
        f"%t = xetile.init_tile %a[0, 0] : memref<4x8x{dtype}> -> {tile}",
        *steps,
        *stores,
        "return\n}",
    ]
    rng, kind = np.random.default_rng(0), DTYPES[dtype]
    a, b = (given(rng, (4, 8), kind) for _ in range(2))
    old = np.zeros((len(kinds), 4, 8), kind)
    _, _, old = run_both("\n".join(lines), a, b, old)
    assert np.array_equal(old[0], a)


def test_elements_there_is_no_code_for_are_named():
    text = """
    func.func @k(%o: memref<8xi8>, %n: i32) {
      %c0 = arith.constant 0 : index
      %x = arith.trunci %n : i32 to i4
      %y = arith.extui %x : i4 to i8
      memref.store %y, %o[%c0] : memref<8xi8>
      return
    }"""
    with pytest.raises(IRError, match="1, 8, 16, 32 or 64 bits") as caught:
        xetl.load_mlir(text)["k"][1](np.zeros(8, "i1"), 3, backend="cpu")
    assert (caught.value.code, caught.value.line) == ("X0705", 4)


def test_lanes_behind_a_tile_are_not_gathered():
    """A vector of 4 rows is read with more lanes: what stands behind it is no index."""
    text = """
    func.func @k(%a: memref<1x4x2xi64>, %b: memref<2x1x4xi64>) {
      %zero = arith.constant 0 : index
      %v = vector.load %a[%zero, %zero, %zero] : memref<1x4x2xi64>, vector<1x4x2xi64>
      %t = vector.transpose %v, [2, 0, 1] : vector<1x4x2xi64> to vector<2x1x4xi64>
      vector.store %t, %b[%zero, %zero, %zero] : memref<2x1x4xi64>, vector<2x1x4xi64>
      return
    }"""
    a = some(1, 4, 2, dtype="i8")
    _, b = run_both(text, a, np.zeros((2, 1, 4), "i8"))
    assert np.array_equal(b, a.transpose(2, 0, 1))
