"""The listings of seeds 003 and 004, from `linalg.matmul` to calls of C functions.

Each is loaded as it stands and run as machine code, by the pipeline that kernels from
Python go through, against NumPy.
"""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from xetl import load_mlir
from xetl.errors import IRError

BF16 = ml_dtypes.bfloat16
BLOCKS, BLOCK = 32, 32
"""Seed 003's: along each side of a matrix, and their extents."""


def listing(name):
    return (Path(__file__).parent / "listings" / f"{name}.txt").read_text()


def small(*shape, dtype=np.float32):
    """Numbers whose products and sums of products are exact."""
    return np.random.default_rng(len(shape)).integers(-1, 2, shape).astype(dtype)


def in_blocks(a, b):
    """A in blocks; B in blocks, whose rows are in pairs: (k / 2, n, 2)."""
    blocks, half = (BLOCKS, BLOCK) * 2, BLOCK // 2
    of_a = a.reshape(blocks).transpose(0, 2, 1, 3)
    of_b = b.reshape(BLOCKS, half, 2, BLOCKS, BLOCK).transpose(3, 0, 1, 4, 2)
    return np.ascontiguousarray(of_a), np.ascontiguousarray(of_b)


@pytest.mark.parametrize("number", range(2, 8))
def test_seed_003(number):
    a, b, c = (small(1024, 1024, dtype=BF16) for _ in range(3))
    sums = c.astype(np.float32) + a.astype(np.float32) @ b.astype(np.float32)
    kernel = load_mlir(listing(f"amx_configuration_{number}"))["entry"]
    given = (a, b) if number == 2 else in_blocks(a, b)
    kernel[1](*given, c, backend="cpu")
    assert np.array_equal(c.astype(np.float32), sums.astype(BF16).astype(np.float32))


@pytest.mark.parametrize("number", range(3, 8))
def test_seed_003_is_one_product(number):
    """Its loops over blocks, and its tasks, are those of a product of matrices."""
    kernel = load_mlir(listing(f"amx_configuration_{number}"))["entry"]
    report = str(kernel.explain(backend="cpu", target="amx"))
    assert "a is computed once, before the programs run" in report
    assert "b is computed once, before the programs run" in report
    assert "the loop over k is one batch-reduce GEMM" in report
    assert "programs run as one, with a larger tile" in report
    assert kernel.ir("loops", backend="cpu", target="amx").count("xsmm.block_gemm") == 1


@pytest.mark.parametrize("number", [4, 6, 7])
def test_seed_003_on_tiles(number):
    """Tiles are set up once for a thread, whatever the text says of them."""
    kernel = load_mlir(listing(f"amx_configuration_{number}"))["entry"]
    text = kernel.ir("canonicalize", backend="cpu", target="amx")
    assert text.count('"cpu.thread_tiles"') == 1
    assert '"xsmm.IntelAMXtileConfig"' not in text


def test_seed_003_on_tensors():
    with pytest.raises(IRError, match="it takes memrefs: bufferize tensors"):
        load_mlir(listing("amx_configuration_1"))


CALLS = "amx_configuration_7"
BRGEMM = "amx_configuration_4"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (BRGEMM, "[32, 32, 32", "[32, 32, 16", r"are of \[32, 32, 32, .* is for"),
        (BRGEMM, "(vnni_b)", "(none)", "b has to be in pairs of k with vnni_b"),
        (BRGEMM, "(vnni_b)", "(vnni_b, vnni_a)", "no products with vnni_a"),
        (BRGEMM, "constant 32 : i64", "constant 33 : i64", "32 blocks, not 33"),
        (BRGEMM, "data_type = bf16\n", "data_type = f32\n", "its kernel is for f32"),
        (CALLS, "%10, %offset,", "%10, %offset_4,", "address and offset of a memref"),
        (CALLS, "%c2_i64 = arith.constant 2", "%c2_i64 = arith.constant 7", "number 7"),
        (CALLS, "llvm.inttoptr %9", "llvm.inttoptr %c2_i64", "address and offset"),
    ],
)
def test_what_micro_kernels_are_called_wrongly(name, old, new, message):
    text = listing(name)
    assert old in text
    a, b = in_blocks(*(small(1024, 1024, dtype=BF16) for _ in range(2)))
    kernel = load_mlir(text.replace(old, new))["entry"]
    with pytest.raises(IRError, match=message):
        kernel[1](a, b, small(1024, 1024, dtype=BF16), backend="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_seed_004(number):
    shapes = (128, 256, 512), (128, 512, 256), (256, 256)
    a, b, c = (small(*shape) for shape in shapes)
    sums = c + (a @ b).sum(0)
    text = listing(f"vector_blocking_{number}")
    load_mlir(text)["brgemm_blocking"][1](a, b, c, backend="cpu")
    assert np.array_equal(c, sums)


def test_seed_004_with_a_script():
    text = listing("vector_blocking_3")
    with pytest.raises(IRError, match="leave the script's module out"):
        load_mlir(text)
    kernel = load_mlir(text[: text.index("module attributes")])["vector_matmul"]
    a, b, c = small(64, 128), small(128, 64), small(64, 64)
    sums = c + a @ b
    kernel[1](a, b, c, backend="cpu")
    assert np.array_equal(c, sums)


def test_seed_004_with_its_offsets():
    """Each of 2,048 steps takes column 1 of A, row 1 of B and the same part of C."""
    a, b, c = small(64, 128), small(128, 64), small(64, 64)
    sums = c.copy()
    sums[1:9, 1:33] += 8 * 2 * 128 * np.outer(a[1:9, 1], b[1, 1:33])
    load_mlir(listing("vector_blocking_4"))["vector_matmul"][1](a, b, c, backend="cpu")
    assert np.array_equal(c, sums)
