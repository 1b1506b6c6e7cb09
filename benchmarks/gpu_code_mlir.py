"""The product of `bench_gpu_code` in MLIR's XeGPU, lowered by MLIR alone.

A subgroup owns 32 x 64 of C and steps over K by 32, as in our kernel; blocks are those
that MLIR 22 lowers, 8 x 16 of A and C, 16 x 16 of B.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

MLIR_OPT = shutil.which("mlir-opt-22")
PIPELINE = (
    "--gpu-lower-to-xevm-pipeline="
    "xegpu-op-level=subgroup zebin-chip=pvc binary-format=bin"
)
ROWS, COLUMNS = range(4), range(4)
"""Blocks of C of a subgroup."""

HEAD = """
gpu.module @m {{
  gpu.func @gemm(%A: memref<512x512x{t}>, %B: memref<512x512x{t}>,
                 %C: memref<512x512xf32>, %K: index) kernel
      attributes {{known_block_size = array<i32: 512, 1, 1>,
                   intel_reqd_sub_group_size = 16 : i32}} {{
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %sg = gpu.subgroup_id : index
    %i = arith.divui %sg, %c4 : index
    %j = arith.remui %sg, %c4 : index
    %x = gpu.block_id x
    %y = gpu.block_id y
    %mx = arith.muli %x, %c256 : index
    %ny = arith.muli %y, %c256 : index
    %mi = arith.muli %i, %c32 : index
    %nj = arith.muli %j, %c64 : index
    %m = arith.addi %mx, %mi : index
    %n = arith.addi %ny, %nj : index
    %a = xegpu.create_nd_tdesc %A : memref<512x512x{t}> -> !xegpu.tensor_desc<8x16x{t}>
    %b = xegpu.create_nd_tdesc %B : memref<512x512x{t}> -> !xegpu.tensor_desc<16x16x{t}>
    %c = xegpu.create_nd_tdesc %C : memref<512x512xf32> -> !xegpu.tensor_desc<8x16xf32>
    %zero = arith.constant dense<0.0> : vector<8x16xf32>"""


def _lines(t: str) -> Iterator[str]:
    yield HEAD.format(t=t)
    for name, step, numbers in (("m", 8, ROWS), ("n", 16, COLUMNS)):
        for k in numbers:
            yield f"%{name}{k}_by = arith.constant {k * step} : index"
            yield f"%{name}{k} = arith.addi %{name}, %{name}{k}_by : index"
    sums = [f"%s{i}{j}" for i in ROWS for j in COLUMNS]
    types = ", ".join(["vector<8x16xf32>"] * len(sums))
    carried = ", ".join(f"{name} = %zero" for name in sums)
    yield "%r:16 = scf.for %k0 = %c0 to %K step %c32"
    yield f"    iter_args({carried}) -> ({types}) {{"
    yield "%k1 = arith.addi %k0, %n1_by : index"
    for k in (0, 1):
        for i in ROWS:
            yield f"%a{i}{k} = xegpu.load_nd %a[%m{i}, %k{k}]"
            yield f"    : !xegpu.tensor_desc<8x16x{t}> -> vector<8x16x{t}>"
        for j in COLUMNS:
            yield f"%b{j}{k} = xegpu.load_nd %b[%k{k}, %n{j}]"
            yield f"    : !xegpu.tensor_desc<16x16x{t}> -> vector<16x16x{t}>"
    for i in ROWS:
        for j in COLUMNS:
            for k, source, target in ((0, "s", "t"), (1, "t", "u")):
                yield f"%{target}{i}{j} = xegpu.dpas"
                yield f"    %a{i}{k}, %b{j}{k}, %{source}{i}{j}"
                yield f"    : vector<8x16x{t}>, vector<16x16x{t}>, vector<8x16xf32>"
                yield "    -> vector<8x16xf32>"
    yield f"scf.yield {', '.join(name.replace('s', 'u') for name in sums)} : {types} }}"
    for place, _ in enumerate(sums):
        i, j = divmod(place, len(COLUMNS))
        yield f"xegpu.store_nd %r#{place}, %c[%m{i}, %n{j}]"
        yield "    : vector<8x16xf32>, !xegpu.tensor_desc<8x16xf32>"
    yield "gpu.return } }"


def spirv(dtype: str) -> bytes:
    """The SPIR-V that MLIR makes of the product of ``f16`` or ``bf16``."""
    assert MLIR_OPT is not None
    done = subprocess.run(
        [MLIR_OPT, "-", PIPELINE],
        input="\n".join(_lines(dtype)),
        capture_output=True,
        text=True,
        check=True,
    )
    longest = max(re.findall(r'"([^"]*)"', done.stdout), key=len)
    pieces = re.findall(r"\\(\\|[0-9A-F]{2})|([^\\]+)", longest)
    return b"".join(
        plain.encode() if plain else b"\\" if code == "\\" else bytes.fromhex(code)
        for code, plain in pieces
    )
