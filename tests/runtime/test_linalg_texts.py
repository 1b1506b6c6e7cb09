"""Texts with operations of `linalg` on memrefs run, on every backend that launches."""

import ml_dtypes
import numpy as np
import pytest

from xetl import load_mlir
from xetl.errors import IRError

DTYPES = {
    **{"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16},
    **{"f64": np.float64, "i8": np.int8, "i32": np.int32},
}
MATMUL = """
func.func @entry(%a: {a}, %b: {b}, %c: {c}) {{
  linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c})
  return
}}
"""


def matmul(element: str, sums: str, *shapes: str):
    a, b, c = (
        f"memref<{shape}x{type_}>"
        for shape, type_ in zip(shapes, (element, element, sums))
    )
    return load_mlir(MATMUL.format(a=a, b=b, c=c))["entry"]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("shape", [(64, 48, 96), (130, 33, 271), (1, 300, 5)])
@pytest.mark.parametrize(
    ("element", "sums"),
    [
        *[(name, name) for name in ("f32", "bf16", "f16", "f64")],
        *[("bf16", "f32"), ("i8", "i32")],
    ],
)
def test_products(backend, element, sums, shape, is_dynamic):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-1, 2, each).astype(DTYPES[element]) for each in ((m, k), (k, n))
    )
    c = rng.integers(-1, 2, (m, n)).astype(DTYPES[sums])
    known = [f"{m}x{k}", f"{k}x{n}", f"{m}x{n}"]
    kernel = matmul(element, sums, *(["?x?"] * 3 if is_dynamic else known))
    wanted = c.astype("f8") + a.astype("f8") @ b.astype("f8")
    kernel[1](a, b, c, backend=backend)
    assert np.array_equal(c.astype("f8"), wanted.astype(DTYPES[sums]).astype("f8"))


def test_a_product_is_raised_and_packed_once():
    a, b, c = (np.zeros((512, 512), np.float32) for _ in range(3))
    kernel = matmul("f32", "f32", *["512x512"] * 3)
    text = str(kernel.ir("xsmm", a, b, c, target="avx2"))
    assert text.count('"xsmm.brgemm.tile"') == 1
    assert "xsmm.pack_b" in text


COPIES = """
func.func @entry(%a: memref<64x96xf32>, %b: memref<64x96xf32>, %v: memref<3x300xf32>) {
  %two = arith.constant 2.0 : f32
  linalg.fill ins(%two : f32) outs(%v : memref<3x300xf32>)
  scf.forall (%i, %j) in (2, 3) {
    %row = affine.apply affine_map<(d0) -> (d0 * 32)>(%i)
    %col = affine.apply affine_map<(d0) -> (d0 * 32)>(%j)
    %s = memref.subview %a[%row, %col] [32, 32] [1, 1] :
      memref<64x96xf32> to memref<32x32xf32, strided<[96, 1], offset: ?>>
    %t = memref.subview %b[%row, %col] [32, 32] [1, 1] :
      memref<64x96xf32> to memref<32x32xf32, strided<[96, 1], offset: ?>>
    linalg.copy ins(%s : memref<32x32xf32, strided<[96, 1], offset: ?>>)
      outs(%t : memref<32x32xf32, strided<[96, 1], offset: ?>>)
  }
  return
}
"""


def test_blocks_are_copied_and_filled():
    a = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    b, v = np.zeros_like(a), np.zeros((3, 300), np.float32)
    load_mlir(COPIES)["entry"][1](a, b, v)
    assert np.array_equal(a, b)
    assert (v == 2).all()


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["memref<8x9xf32>", *["memref<8x8xf32>"] * 2], "extents do not agree"),
        (["tensor<8x8xf32>"] * 3, "it takes memrefs: bufferize tensors"),
        (["memref<2x8x8xf32>"] * 3, "it takes matrices"),
    ],
)
def test_what_is_no_product_of_matrices(types, message):
    a, b, c = types
    with pytest.raises(IRError, match=message):
        load_mlir(MATMUL.format(a=a, b=b, c=c))


@pytest.mark.parametrize(
    ("element", "sums", "message"),
    [("f32", "bf16", "added up in f32"), ("i32", "i32", "no products of i32 by i32")],
)
def test_types_without_products(element, sums, message):
    a, c = np.zeros((8, 8), DTYPES[element]), np.zeros((8, 8), DTYPES[sums])
    with pytest.raises(IRError, match=message):
        matmul(element, sums, *["8x8"] * 3)[1](a, a, c)
