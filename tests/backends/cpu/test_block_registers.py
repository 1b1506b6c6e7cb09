"""block-registers keeps the meaning, and mlir-opt accepts what it leaves."""

import shutil
import subprocess

import numpy as np
import pytest
from xdsl.context import Context

from tests.run_module import run_module
from xetl.dialects.parser import parse_module
from xetl_cpu.lowering.block_registers import BlockRegistersPass

MLIR_OPT = shutil.which("mlir-opt-22") or shutil.which("mlir-opt")
SHAPES = [(2, 16, 64, 4), (3, 20, 37, 9), (1, 7, 5, 3), (2, 8, 32, 1)]


def contraction(batch: int, m: int, n: int, k: int) -> str:
    a, b, c = f"{batch}x{m}x{k}xf32", f"{batch}x{k}x{n}xf32", f"{m}x{n}xf32"
    iterators = '["reduction", "parallel", "parallel", "reduction"]'
    return f"""
#a = affine_map<(b, m, n, k) -> (b, m, k)>
#b = affine_map<(b, m, n, k) -> (b, k, n)>
#c = affine_map<(b, m, n, k) -> (m, n)>
func.func @f(%A: memref<{a}>, %B: memref<{b}>, %C: memref<{c}>) {{
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %0 = vector.transfer_read %A[%c0, %c0, %c0], %z {{in_bounds = [true, true, true]}}
     : memref<{a}>, vector<{a}>
  %1 = vector.transfer_read %B[%c0, %c0, %c0], %z {{in_bounds = [true, true, true]}}
     : memref<{b}>, vector<{b}>
  %2 = vector.transfer_read %C[%c0, %c0], %z {{in_bounds = [true, true]}}
     : memref<{c}>, vector<{c}>
  %3 = vector.contract {{indexing_maps = [#a, #b, #c], iterator_types = {iterators},
     kind = #vector.kind<add>}} %0, %1, %2 : vector<{a}>, vector<{b}> into vector<{c}>
  vector.transfer_write %3, %C[%c0, %c0] {{in_bounds = [true, true]}}
     : vector<{c}>, memref<{c}>
  func.return
}}
"""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sizes", [(8, 32, 1), (6, 16, 2), ()])
def test_the_meaning_stays(shape, sizes):
    batch, m, n, k = shape
    module = parse_module(contraction(*shape), "f.mlir")
    BlockRegistersPass(sizes).apply(Context(), module)
    module.verify()
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (batch, m, k)).astype(np.float32)
    b = rng.integers(-4, 5, (batch, k, n)).astype(np.float32)
    c = rng.integers(-4, 5, (m, n)).astype(np.float32)
    want = c + (a @ b).sum(0)
    run_module(module, (1,), [a, b, c])
    assert np.array_equal(c, want)


@pytest.mark.skipif(MLIR_OPT is None, reason="mlir-opt is not installed")
@pytest.mark.parametrize("shape", SHAPES[:2])
def test_mlir_accepts_it(shape):
    module = parse_module(contraction(*shape), "f.mlir")
    BlockRegistersPass((8, 32, 1)).apply(Context(), module)
    done = subprocess.run(
        [MLIR_OPT], input=str(module), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
