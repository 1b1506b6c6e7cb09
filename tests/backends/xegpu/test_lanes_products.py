"""Blocks and products: what messages bring is what the matrix unit takes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lane_interpreter import launch
from test_lanes_values import kernel

Array = np.ndarray[Any, np.dtype[Any]]
DTYPES = {
    **{"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"i8": np.int8, "i16": np.int16, "i32": np.int32},
}


def matrix(rows: int, columns: int, e: str, seed: int = 0) -> Array:
    """Small integers: sums of floats are exact."""
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, (rows, columns)).astype(DTYPES[e])


def described(
    name: str, argument: int, array: Array, block: str, more: str = ""
) -> str:
    """`%name`, a descriptor of a static array."""
    rows, columns = array.shape
    e = block.rpartition("x")[2]
    return (
        f"%{name} = xegpu.create_nd_tdesc %a{argument} : memref<{rows}x{columns}x{e}>"
        f" -> !xegpu.tensor_desc<{block}{more}>"
    )


def typed(array: Array, e: str) -> str:
    return f"{array.shape[0]}x{array.shape[1]}x{e}"


COUNT = ", #xegpu.block_tdesc_attr<array_length = 2>"


@pytest.mark.parametrize("rows", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize(("e", "count"), [("f32", 1), ("bf16", 2), ("i8", 1)])
def test_blocks_beyond_the_edge_are_zero_and_not_stored(rows: int, e: str, count: int):
    x, y = matrix(40, 48, e), matrix(40, 48, e, 1)
    more, whole = (COUNT, "2x") if count == 2 else ("", "")
    block, wide = f"{rows}x16x{e}", f"vector<{whole}{rows}x16x{e}>"
    height = min(rows, 8)
    last = "%v" if count == 1 else "%v1"
    pick = f"%v1 = vector.extract %v[1] : vector<{block}> from {wide}"
    body = f"""
    {described("s", 0, x, block, more)}
    {described("t", 1, y, f"{height}x16x{e}")}
    %y = arith.constant -3 : index
    %x = arith.constant 40 : index
    %v = xegpu.load_nd %s[%y, %x] : !xegpu.tensor_desc<{block}{more}> -> {wide}
    {pick if count == 2 else ""}
    %p = vector.extract_strided_slice {last} {{offsets = [{rows - height}, 0],
        sizes = [{height}, 16], strides = [1, 1]}}
        : vector<{block}> to vector<{height}x16x{e}>
    %z = arith.constant {40 - height // 2} : index
    xegpu.store_nd %p, %t[%z, %x]
        : vector<{height}x16x{e}>, !xegpu.tensor_desc<{height}x16x{e}>
    xegpu.prefetch_nd %t[%z, %x] : !xegpu.tensor_desc<{height}x16x{e}>
    """
    padded = np.zeros((100, 128), x.dtype)
    padded[3:43, :48] = x
    # Where the block begins, in the padded matrix.
    top, left = rows - height, 40 + 16 * (count - 1)
    wanted = y.copy()
    inside = height - height // 2
    wanted[40 - height // 2 :, 40:] = padded[top : top + height // 2, left : left + 8]
    assert inside
    launch(kernel(body, typed(x, e), typed(y, e)), x, y)
    assert np.array_equal(y, wanted)


def test_a_transposed_load():
    x, y = matrix(32, 32, "f32"), np.zeros((8, 16), np.float32)
    body = f"""
    {described("s", 0, x, "16x8xf32")}
    {described("t", 1, y, "8x16xf32")}
    %y = arith.constant 5 : index
    %x = arith.constant 9 : index
    %v = xegpu.load_nd %s[%y, %x] <{{transpose = array<i64: 1, 0>}}>
        : !xegpu.tensor_desc<16x8xf32> -> vector<8x16xf32>
    xegpu.store_nd %v, %t[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    launch(kernel(body, typed(x, "f32"), typed(y, "f32")), x, y)
    assert np.array_equal(y, x[5:21, 9:17].T)


def accumulated(a: Array, b: Array, c: Array) -> Array:
    wide = np.int64 if c.dtype == np.int32 else np.float64
    return (a.astype(wide) @ b.astype(wide) + c.astype(wide)).astype(c.dtype)


def product(load: str, a: Array, b: Array, e: str, c: str, signs: str = "") -> None:
    """Run ``load``, which makes `%a` and `%b`, multiply, and compare."""
    m, k = a.shape
    found = matrix(m, 16, c, 7)
    wanted = accumulated(a, b, found)
    b_type = f"{k // 2}x16x2x{e}" if "packed2" in load else f"{k}x16x{e}"
    if "packed4" in load:
        b_type = f"{k // 4}x16x4x{e}"
    body = f"""
    {described("s", 0, a, f"{m}x{k}x{e}")}
    {load}
    {described("u", 2, found, f"{m}x16x{c}")}
    %acc = xegpu.load_nd %u[%c0, %c0]
        : !xegpu.tensor_desc<{m}x16x{c}> -> vector<{m}x16x{c}>
    %d = xegpu.dpas %a, %b, %acc {{{signs}}} : vector<{m}x{k}x{e}>, vector<{b_type}>,
        vector<{m}x16x{c}> -> vector<{m}x16x{c}>
    xegpu.store_nd %d, %u[%c0, %c0]
        : vector<{m}x16x{c}>, !xegpu.tensor_desc<{m}x16x{c}>
    """
    text = kernel(body, typed(a, e), typed(b, e), typed(found, c))
    launch(text, a, b, found)
    assert np.array_equal(found, wanted)


def load_a(m: int, k: int, e: str) -> str:
    return f"""%a = xegpu.load_nd %s[%c0, %c0]
        : !xegpu.tensor_desc<{m}x{k}x{e}> -> vector<{m}x{k}x{e}>"""


def load_b(b: Array, e: str, factor: int = 1) -> str:
    k = b.shape[0]
    made = (
        f"vector<{k}x16x{e}>"
        if factor == 1
        else f"vector<{k // factor}x16x{factor}x{e}>"
    )
    packed = "" if factor == 1 else "<{packed}>"
    return f"""{described("t", 1, b, f"{k}x16x{e}")}
    %b = xegpu.load_nd %t[%c0, %c0] {packed}
        : !xegpu.tensor_desc<{k}x16x{e}> -> {made}  // packed{factor}"""


@pytest.mark.parametrize("m", [1, 2, 4, 8])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("e", "c"), [("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16")]
)
def test_products_of_16_bits(m: int, packed: bool, e: str, c: str):
    a, b = matrix(m, 16, e, 1), matrix(16, 16, e, 2)
    product(load_a(m, 16, e) + "\n" + load_b(b, e, 2 if packed else 1), a, b, e, c)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "signs", ["", "a_unsigned", "b_unsigned", "a_unsigned, b_unsigned"]
)
def test_products_of_bytes(packed: bool, signs: str):
    a = np.random.default_rng(3).integers(-128, 128, (8, 32)).astype(np.int8)
    b = np.random.default_rng(4).integers(-128, 128, (32, 16)).astype(np.int8)
    load = load_a(8, 32, "i8") + "\n" + load_b(b, "i8", 4 if packed else 1)
    found = matrix(8, 16, "i32", 7)
    wide_a = a.view(np.uint8) if "a_un" in signs else a
    wide_b = b.view(np.uint8) if "b_un" in signs else b
    wanted = accumulated(wide_a, wide_b, found)
    b_type = "8x16x4xi8" if packed else "32x16xi8"
    body = f"""
    {described("s", 0, a, "8x32xi8")}
    {load}
    {described("u", 2, found, "8x16xi32")}
    %acc = xegpu.load_nd %u[%c0, %c0]
        : !xegpu.tensor_desc<8x16xi32> -> vector<8x16xi32>
    %d = xegpu.dpas %a, %b, %acc {{{signs}}} : vector<8x32xi8>, vector<{b_type}>,
        vector<8x16xi32> -> vector<8x16xi32>
    xegpu.store_nd %d, %u[%c0, %c0] : vector<8x16xi32>, !xegpu.tensor_desc<8x16xi32>
    """
    launch(
        kernel(body, typed(a, "i8"), typed(b, "i8"), typed(found, "i32")), a, b, found
    )
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_a_of_bytes_that_was_computed_is_gathered_from_lanes(m: int):
    a, b = matrix(m, 32, "i8", 1), matrix(32, 16, "i8", 2)
    halves = (
        "\n".join(
            f"""
        %h{n} = xegpu.load_nd %h[%c0, %h_at{n}]
            : !xegpu.tensor_desc<{m}x16xi8> -> vector<{m}x16xi8>
        %b{n} = vector.insert_strided_slice %h{n}, %b{n}_
            {{offsets = [0, {16 * n}], strides = [1, 1]}}
            : vector<{m}x16xi8> into vector<{m}x32xi8>"""
            for n in range(2)
        )
        .replace("%b0_", "%none")
        .replace("%b1_", "%b0")
        .replace("%b1 =", "%a =")
    )
    load = f"""
    {described("h", 0, a, f"{m}x16xi8")}
    %h_at0 = arith.constant 0 : index
    %h_at1 = arith.constant 16 : index
    %none = arith.constant dense<0> : vector<{m}x32xi8>
    {halves}
    {load_b(b, "i8", 4)}"""
    product(load, a, b, "i8", "i32")


@pytest.mark.parametrize(
    ("m", "loaded"),
    # There is no message of one row: 16 lanes cannot share 8 elements.
    [(1, False), (2, False), (4, False), (8, False), (2, True), (4, True), (8, True)],
)
def test_products_of_tf32(m: int, loaded: bool):
    a, b = matrix(m, 16, "f32", 1), matrix(8, 16, "f32", 2)
    load_half = f"""
    {described("h", 0, a, f"{m}x16xf32")}
    %h0 = xegpu.load_nd %h[%c0, %c0]
        : !xegpu.tensor_desc<{m}x16xf32> -> vector<{m}x16xf32>
    %a = vector.extract_strided_slice %h0 {{offsets = [0, 8], sizes = [{m}, 8],
        strides = [1, 1]}} : vector<{m}x16xf32> to vector<{m}x8xf32>"""
    load_all = f"""
    {described("h", 0, a, f"{m}x8xf32")}
    %c8 = arith.constant 8 : index
    %a = xegpu.load_nd %h[%c0, %c8]
        : !xegpu.tensor_desc<{m}x8xf32> -> vector<{m}x8xf32>"""
    found = matrix(m, 16, "f32", 7)
    wanted = accumulated(a[:, 8:], b, found)
    body = f"""
    {load_all if loaded else load_half}
    {load_b(b, "f32")}
    {described("u", 2, found, f"{m}x16xf32")}
    %acc = xegpu.load_nd %u[%c0, %c0]
        : !xegpu.tensor_desc<{m}x16xf32> -> vector<{m}x16xf32>
    %d = xegpu.dpas %a, %b, %acc : vector<{m}x8xf32>, vector<8x16xf32>,
        vector<{m}x16xf32> -> vector<{m}x16xf32>
    xegpu.store_nd %d, %u[%c0, %c0] : vector<{m}x16xf32>, !xegpu.tensor_desc<{m}x16xf32>
    """
    if loaded and m == 1:
        pytest.skip("16 lanes cannot share 8 elements evenly: no such message")
    launch(
        kernel(body, typed(a, "f32"), typed(b, "f32"), typed(found, "f32")), a, b, found
    )
    assert np.array_equal(found, wanted)


def test_b_transposed_as_pairs_of_32_bits():
    """B^T of bf16 is loaded as 32-bit words, transposed: that is B packed."""
    a, bt = matrix(8, 16, "bf16", 1), matrix(16, 16, "bf16", 2)
    words = bt.view(np.int32).copy()
    found = matrix(8, 16, "f32", 7)
    wanted = accumulated(a, bt.T, found)
    body = f"""
    {described("s", 0, a, "8x16xbf16")}
    {load_a(8, 16, "bf16")}
    {described("t", 1, words, "16x8xi32")}
    %w = xegpu.load_nd %t[%c0, %c0] <{{transpose = array<i64: 1, 0>}}>
        : !xegpu.tensor_desc<16x8xi32> -> vector<8x16xi32>
    %h = vector.bitcast %w : vector<8x16xi32> to vector<8x32xbf16>
    %b = vector.shape_cast %h : vector<8x32xbf16> to vector<8x16x2xbf16>
    {described("u", 2, found, "8x16xf32")}
    %acc = xegpu.load_nd %u[%c0, %c0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %d = xegpu.dpas %a, %b, %acc : vector<8x16xbf16>, vector<8x16x2xbf16>,
        vector<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %d, %u[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    text = kernel(body, typed(a, "bf16"), typed(words, "i32"), typed(found, "f32"))
    launch(text, a, words, found)
    assert np.array_equal(found, wanted)


def test_parts_of_a_large_packed_load():
    a, b = matrix(8, 16, "f16", 1), matrix(32, 16, "f16", 2)
    load = f"""
    {load_a(8, 16, "f16")}
    {described("t", 1, b, "32x16xf16")}
    %p = xegpu.load_nd %t[%c0, %c0] <{{packed}}>
        : !xegpu.tensor_desc<32x16xf16> -> vector<16x16x2xf16>
    %b = vector.extract_strided_slice %p {{offsets = [8], sizes = [8], strides = [1]}}
        : vector<16x16x2xf16> to vector<8x16x2xf16>  // packed2"""
    found = matrix(8, 16, "f32", 7)
    wanted = accumulated(a, b[16:], found)
    body = f"""
    {described("s", 0, a, "8x16xf16")}
    {load}
    {described("u", 2, found, "8x16xf32")}
    %acc = xegpu.load_nd %u[%c0, %c0] : !xegpu.tensor_desc<8x16xf32> -> vector<8x16xf32>
    %d = xegpu.dpas %a, %b, %acc : vector<8x16xf16>, vector<8x16x2xf16>,
        vector<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %d, %u[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    launch(
        kernel(body, typed(a, "f16"), typed(b, "f16"), typed(found, "f32")), a, b, found
    )
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(("e", "k", "c"), [("i8", 32, "i32"), ("f32", 8, "f32")])
@pytest.mark.parametrize("first", [0, 8, 12])
def test_rows_of_an_operand_that_was_loaded_at_once(e: str, k: int, c: str, first: int):
    a, b = matrix(16, k, e, 1), matrix(k, 16, e, 2)
    rows = 16 - first if first else 8
    found = matrix(rows, 16, c, 7)
    wanted = accumulated(a[first : first + rows], b, found)
    body = f"""
    {described("s", 0, a, f"16x{k}x{e}")}
    %all = xegpu.load_nd %s[%c0, %c0]
        : !xegpu.tensor_desc<16x{k}x{e}> -> vector<16x{k}x{e}>
    %a = vector.extract_strided_slice %all {{offsets = [{first}, 0],
        sizes = [{rows}, {k}], strides = [1, 1]}}
        : vector<16x{k}x{e}> to vector<{rows}x{k}x{e}>
    {load_b(b, e)}
    {described("u", 2, found, f"{rows}x16x{c}")}
    %acc = xegpu.load_nd %u[%c0, %c0]
        : !xegpu.tensor_desc<{rows}x16x{c}> -> vector<{rows}x16x{c}>
    %d = xegpu.dpas %a, %b, %acc : vector<{rows}x{k}x{e}>, vector<{k}x16x{e}>,
        vector<{rows}x16x{c}> -> vector<{rows}x16x{c}>
    xegpu.store_nd %d, %u[%c0, %c0]
        : vector<{rows}x16x{c}>, !xegpu.tensor_desc<{rows}x16x{c}>
    """
    launch(kernel(body, typed(a, e), typed(b, e), typed(found, c)), a, b, found)
    assert np.array_equal(found, wanted)


CONTRACTION = """indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
    affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>"""


@pytest.mark.parametrize("m", [1, 2, 4, 8])
def test_products_by_lanes(m: int):
    a, b, found = (
        matrix(m, 16, "f32", 1),
        matrix(16, 16, "f32", 2),
        matrix(m, 16, "f32"),
    )
    wanted = accumulated(a, b, found)
    c_type = f"vector<{m}x16xf32>"
    body = f"""
    {described("s", 0, a, f"{m}x16xf32")}
    {load_a(m, 16, "f32")}
    {load_b(b, "f32")}
    {described("u", 2, found, f"{m}x16xf32")}
    %acc = xegpu.load_nd %u[%c0, %c0] : !xegpu.tensor_desc<{m}x16xf32> -> {c_type}
    %d = vector.contract {{{CONTRACTION}}} %a, %b, %acc
        : {c_type}, vector<16x16xf32> into {c_type}
    xegpu.store_nd %d, %u[%c0, %c0] : {c_type}, !xegpu.tensor_desc<{m}x16xf32>
    """
    text = kernel(body, typed(a, "f32"), typed(b, "f32"), typed(found, "f32"))
    launch(text, a, b, found)
    assert np.array_equal(found, wanted)


def test_tf32_rounds_what_it_multiplies():
    """The matrix unit does not look at the last bits; the language rounds them."""
    rng = np.random.default_rng(5)
    a = rng.standard_normal((8, 8)).astype(np.float32)
    a[0, 0], a[1, 1] = np.nan, np.inf
    b = np.eye(8, 16, dtype=np.float32)
    found = np.zeros((8, 16), np.float32)
    body = f"""
    {described("s", 0, a, "8x8xf32")}
    {load_a(8, 8, "f32")}
    {load_b(b, "f32")}
    {described("u", 2, found, "8x16xf32")}
    %d = xegpu.dpas %a, %b
        : vector<8x8xf32>, vector<8x16xf32> -> vector<8x16xf32>
    xegpu.store_nd %d, %u[%c0, %c0] : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>
    """
    launch(
        kernel(body, typed(a, "f32"), typed(b, "f32"), typed(found, "f32")), a, b, found
    )
    finite = np.isfinite(a).all(axis=1)
    error = np.abs(found[finite, :8] - a[finite])
    assert np.all(error <= np.abs(a[finite]) * 2.0**-11)
    assert np.isnan(found[0]).all()
    assert np.isnan(found[1, 0])
