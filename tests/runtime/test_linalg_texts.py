"""Texts with operations of `linalg` on memrefs run, on every backend that launches."""

import ml_dtypes
import numpy as np
import pytest

from xetl import load_mlir
from xetl.errors import IRError, LaunchError

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
    assert text.count("xsmm.brgemm.tile") == 1
    assert "xsmm.pack" in text


def test_rows_of_matrices_of_any_size_are_read_as_vectors():
    report = str(matmul("f32", "f32", *["?x?"] * 3).explain(target="avx2"))
    assert "programs run as one, with a larger tile" in report
    assert "gathered" not in report


def test_a_text_is_explained():
    a, b, c = (np.zeros((512, 512), np.float32) for _ in range(3))
    kernel = matmul("f32", "f32", *["512x512"] * 3)
    for given in ((), (a, b, c)):
        said = kernel.explain(*given, target="avx2")
        assert (said.kernel, said.backend, said.target) == ("entry", "cpu", "avx2")
        (first, *_), lines = said.remarks, MATMUL.split("\n")
        assert (first.topic, first.line, first.file) == ("brgemm", 3, "<text>")
        assert first.source.split("(")[0] == lines[2].split("(")[0]
        assert "the loop over k is one batch-reduce GEMM" in str(said)
        with pytest.raises(LaunchError, match="there is no page about `entry`"):
            said.html()
    with pytest.raises(LaunchError, match="no option of a launch"):
        kernel.explain(grid=(1,))


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


PAIRED = """
#rows = affine_map<(d0) -> (d0 * 32)>
#a = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3)>
#b = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3 floordiv 2, d2, d4)>
#c = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2)>
!plain = memref<96x96xbf16>
!block = memref<32x32xbf16, strided<[96, 1], offset: ?>>
func.func @entry(%arg0: !plain, %arg1: !plain, %arg2: !plain) {
  %pa = memref.alloc() {alignment = 64 : i64} : memref<3x3x32x32xbf16>
  scf.forall (%i, %j) in (3, 3) {
    %0 = affine.apply #rows(%i)
    %1 = affine.apply #rows(%j)
    %s = memref.subview %arg0[%0, %1] [32, 32] [1, 1] : !plain to !block
    %t = memref.subview %pa[%i, %j, 0, 0] [1, 1, 32, 32] [1, 1, 1, 1] :
      memref<3x3x32x32xbf16> to memref<32x32xbf16, strided<[32, 1], offset: ?>>
    linalg.copy ins(%s : !block)
      outs(%t : memref<32x32xbf16, strided<[32, 1], offset: ?>>)
  }
  %pb = memref.alloc() {alignment = 64 : i64} : memref<3x3x16x32x2xbf16>
  scf.forall (%i, %j) in (3, 3) {
    %0 = affine.apply #rows(%j)
    %1 = affine.apply #rows(%i)
    %s = memref.subview %arg1[%0, %1] [32, 32] [1, 1] : !plain to !block
    %t = memref.subview %pb[%i, %j, 0, 0, 0] [1, 1, 16, 32, 2] [1, 1, 1, 1, 1] :
      memref<3x3x16x32x2xbf16> to memref<16x32x2xbf16, strided<[64, 2, 1], offset: ?>>
    %e = memref.expand_shape %s [[0, 1], [2]] output_shape [16, 2, 32] :
      !block into memref<16x2x32xbf16, strided<[192, 96, 1], offset: ?>>
    linalg.transpose
      ins(%e : memref<16x2x32xbf16, strided<[192, 96, 1], offset: ?>>)
      outs(%t : memref<16x32x2xbf16, strided<[64, 2, 1], offset: ?>>)
      permutation = [0, 2, 1]
  }
  scf.forall (%i, %j) in (3, 3) {
    %0 = affine.apply #rows(%i)
    %1 = affine.apply #rows(%j)
    %x = memref.subview %pa[%i, 0, 0, 0] [1, 3, 32, 32] [1, 1, 1, 1] :
      memref<3x3x32x32xbf16> to memref<3x32x32xbf16, strided<[1024, 32, 1], offset: ?>>
    %y = memref.subview %pb[%j, 0, 0, 0, 0] [1, 3, 16, 32, 2] [1, 1, 1, 1, 1] :
      memref<3x3x16x32x2xbf16> to
      memref<3x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>
    %z = memref.subview %arg2[%0, %1] [32, 32] [1, 1] : !plain to !block
    linalg.generic {indexing_maps = [#a, #b, #c], iterator_types =
        ["reduction", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %y : memref<3x32x32xbf16, strided<[1024, 32, 1], offset: ?>>,
        memref<3x16x32x2xbf16, strided<[1024, 64, 2, 1], offset: ?>>)
      outs(%z : !block) {
      ^bb0(%in: bf16, %other: bf16, %out: bf16):
        %2 = arith.mulf %in, %other : bf16
        %3 = arith.addf %out, %2 : bf16
        linalg.yield %3 : bf16
      }
  }
  memref.dealloc %pa : memref<3x3x32x32xbf16>
  memref.dealloc %pb : memref<3x3x16x32x2xbf16>
  return
}
"""


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_the_first_listing_of_seed_003(backend):
    """Blocks of A are copied, those of B put in pairs of k, and batches reduced."""
    rng = np.random.default_rng(0)
    a, b, c = (
        rng.integers(-1, 2, (96, 96)).astype(ml_dtypes.bfloat16) for _ in range(3)
    )
    wanted = c.astype("f4") + a.astype("f4") @ b.astype("f4")
    load_mlir(PAIRED)["entry"][1](a, b, c, backend=backend)
    assert np.array_equal(c.astype("f4"), wanted)


BATCH = """
#a = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#b = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#c = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
func.func @entry(%a: memref<3x16x8xf32>, %b: memref<3x8x24xf32>,
                 %c: memref<16x24xf32>) {{
  linalg.generic {{indexing_maps = [#a, #b, #c],
      iterator_types = ["reduction", "parallel", "parallel", "reduction"]}}
    ins(%a, %b : memref<3x16x8xf32>, memref<3x8x24xf32>) outs(%c : memref<16x24xf32>) {{
    ^bb0(%in: f32, %other: f32, %out: f32):
      %2 = arith.mulf %in, %other : f32
      %3 = arith.{0} %out, %2 : f32
      linalg.yield %3 : f32
    }}
  return
}}
"""


def test_batches_of_f32_are_reduced():
    rng = np.random.default_rng(0)
    shapes = (3, 16, 8), (3, 8, 24), (16, 24)
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    wanted = c + (a @ b).sum(0)
    load_mlir(BATCH.format("addf"))["entry"][1](a, b, c)
    assert np.array_equal(c, wanted)
    with pytest.raises(IRError, match="it is no batch-reduce product"):
        load_mlir(BATCH.format("subf"))["entry"][1](a, b, c)


def test_a_matrix_is_transposed():
    text = """
    func.func @entry(%a: memref<40x70xf32>, %b: memref<70x40xf32>) {
      linalg.transpose ins(%a : memref<40x70xf32>) outs(%b : memref<70x40xf32>)
        permutation = [1, 0]
      return
    }
    """
    a = np.arange(2800, dtype=np.float32).reshape(40, 70)
    b = np.zeros((70, 40), np.float32)
    load_mlir(text)["entry"][1](a, b)
    assert np.array_equal(b, a.T)
