"""The machine code of a GEMM for Intel GPUs, ours and MLIR's: no GPU is needed.

A subgroup owns 32 x 64 of C and steps over K by 32. Bars: 32 dpas and at most 5 block
loads a step, nothing spilled. The prototype is one written by hand before xetl was
begun; of it only the instructions are known. It asks for its tiles in each step, as
"xetl, by hand" does; what the compiler inserts asks for those of the first steps, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpu_code_mlir import MLIR_OPT, spirv
from harness import write_csv

import xetl
from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32
from xetl_xegpu.offline.isa import assembly_text
from xetl_xegpu.offline.ocloc import SETUP, find_ocloc

PROTOTYPE = {"pvc": 417, "bmg": 395}
"""Instructions, with 6 prefetches a step; ocloc 26.27."""

FIGURES = (
    *("instructions", "registers", "bytes spilled", "dpas", "block loads"),
    "prefetches",
)
KINDS = (("xetl", 0, None), ("xetl, by hand", 3, None), ("xetl, none", 0, 0))
"""Names; steps that the kernel asks ahead itself; steps given by the setting."""

HEADLINE = re.compile(
    r"// gemm: (\d+) instructions, (\d+) registers, (\d+) bytes spilled; "
    r"(\d+) dpas, (\d+) block loads, (\d+) prefetches"
)
MAP = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 256), cdiv(a.C.shape[1], 256)))
def gemm(A, B, C, AHEAD: constexpr = 3):
    """C = A @ B, asking so many steps ahead; 0: not at all."""
    m, n = xetile.program_id(0) * 256, xetile.program_id(1) * 256
    a = xetile.init_tile(A, [m, 0], (256, 32))
    b = xetile.init_tile(B, [0, n], (32, 256))
    acc = xetile.zeros((256, 256), f32)
    for _ in range(0, A.shape[1], 32):
        if AHEAD:
            xetile.prefetch_tile(xetile.update_tile_offset(a, [0, AHEAD * 32]))
            xetile.prefetch_tile(xetile.update_tile_offset(b, [AHEAD * 32, 0]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=MAP)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (256, 256)))


def codes(dtype: str, target: str) -> Iterator[tuple[str, str]]:
    """Who made the code, and its text."""
    types = f"{dtype}[M,K] {dtype}[K,N] f32[M,N]"
    for name, ahead, distance in KINDS:
        xetl.config.prefetch = distance
        options = {"backend": "xegpu", "target": target, "AHEAD": ahead}
        yield name, gemm.ir("asm", types, **options)
    del xetl.config.prefetch
    if MLIR_OPT is not None:
        yield "MLIR 22", assembly_text(spirv(dtype), target, large_registers=True)


def main() -> None:
    """Print a line for each code."""
    if find_ocloc() is None:
        print(f"left out: Intel's offline compiler is missing, {SETUP}")
        return
    print(f"{'':28}", *(f"{figure:>14}" for figure in FIGURES))
    rows: list[dict[str, object]] = []
    for target, instructions in PROTOTYPE.items():
        for dtype in ("f16", "bf16"):
            for name, text in codes(dtype, target):
                found = HEADLINE.search(text)
                assert found is not None
                print(
                    f"{target:4}{dtype:5}{name:19}",
                    *(f"{n:>14}" for n in found.groups()),
                )
                where = {"target": target, "dtype": dtype, "code": name}
                rows += [
                    {**where, "figure": f, "value": int(n)}
                    for f, n in zip(FIGURES, found.groups())
                ]
        print(f"{target:9}{'prototype':19} {instructions:>14}")
    write_csv("bench_gpu_code", rows)


if __name__ == "__main__":
    main()
