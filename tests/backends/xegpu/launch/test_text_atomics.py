"""Atomics of text modules on opencl:cpu: what the reference says, for all types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xetl

pytest.importorskip("dpctl", reason="dpctl is not installed: pip install dpctl")

TEXT = """
gpu.module @m {{
  gpu.func @k(%a: memref<8x20x{t}>, %b: memref<8x20x{t}>, %o: memref<8x20x{t}>,
              %n: memref<4x{t}>) kernel
      attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
    %c1 = arith.constant 1 : index
    %ta = xetile.init_tile %a[0, 4] : memref<8x20x{t}> -> !xetile.tile<8x20x{t}>
    %tb = xetile.init_tile %b[0, 4] : memref<8x20x{t}> -> !xetile.tile<8x20x{t}>
    %to = xetile.init_tile %o[0, 0] : memref<8x20x{t}> -> !xetile.tile<8x20x{t}>
    %v = xetile.load_tile %ta : !xetile.tile<8x20x{t}> -> vector<8x20x{t}>
    %old = xetile.atomic_rmw {kind} %v, %tb
        : vector<8x20x{t}>, !xetile.tile<8x20x{t}> -> vector<8x20x{t}>
    xetile.store_tile %old, %to : vector<8x20x{t}>, !xetile.tile<8x20x{t}>
    %x = memref.load %a[%c1, %c1] : memref<8x20x{t}>
    %was = memref.atomic_rmw {kind} %x, %n[%c1] : ({t}, memref<4x{t}>) -> {t}
    memref.store %was, %o[%c1, %c1] : memref<8x20x{t}>
    gpu.return
  }}
}}
"""
DTYPES = {
    **{"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32},
    **{"i64": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"f32": np.float32, "f64": np.float64},
}
FLOATS = ("addf", "mulf", "minimumf", "maximumf", "assign")
INTEGERS = (
    *("addi", "muli", "mins", "maxs", "minu", "maxu", "andi", "ori", "xori"),
    "assign",
)
CASES = [
    *(("i1", kind) for kind in INTEGERS),
    *((t, INTEGERS[n % 10]) for n, t in enumerate(["i8", "i16", "i32", "i64"])),
    *((t, FLOATS[n]) for n, t in enumerate(["f16", "bf16", "f32", "f64"])),
]
OTHERS = [
    (t, kind)
    for t in DTYPES
    for kind in (FLOATS if "f" in t else INTEGERS)
    if (t, kind) not in CASES
]


def results(t: str, kind: str, backend: str) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    shapes = (8, 20), (8, 20), (8, 20), (4,)
    most = 2 if t == "i1" else 100
    arrays = [rng.integers(0, most, shape).astype(DTYPES[t]) for shape in shapes]
    xetl.load_mlir(TEXT.format(t=t, kind=kind))["k"][1](*arrays, backend=backend)
    return arrays


def check(t: str, kind: str) -> None:
    for found, wanted in zip(
        results(t, kind, "xegpu"), results(t, kind, "reference"), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("t", "kind"), CASES)
def test_atomics_of_text(t: str, kind: str):
    check(t, kind)


@pytest.mark.slow
@pytest.mark.parametrize(("t", "kind"), OTHERS)
def test_all_other_atomics_of_text(t: str, kind: str):
    check(t, kind)
