"""How much code a step of the named kernels takes on Intel GPUs: no GPU is needed.

A line for each kernel: instructions of the whole kernel and of its longest loop (or for
each element), messages through shared memory and barriers in that loop, bytes spilled.
docs/gpu.md has the bars.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from harness import write_csv

from xetl import xetile
from xetl.language.ops import cdiv
from xetl.ops.attention.kernel import attention
from xetl.ops.products.product import gelu, product
from xetl.ops.rows.normalization import norm_folded_rows, norm_rows
from xetl.ops.rows.softmaxes import softmax_folded_rows, softmax_rows
from xetl.runtime.kernel import Kernel
from xetl.xetile import constexpr, f32
from xetl_xegpu.offline.isa import IsaCounts, count, loops
from xetl_xegpu.offline.ocloc import SETUP, find_ocloc

LANES = 16
SPILLED = re.compile(r"(\d+) bytes spilled")


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)))
def gemm(A, B, C, BM: constexpr = 256, BN: constexpr = 256):
    """C = A @ B."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], 256), cdiv(a.C.shape[1], 256)))
def turned(A, B, C, LEFT: constexpr = False, RIGHT: constexpr = False):
    """C = A @ B where A, or B, is the transpose of what is given."""
    m, n = xetile.program_id(0) * 256, xetile.program_id(1) * 256
    a, b = A.T if LEFT else A, B.T if RIGHT else B
    acc = xetile.zeros((256, 256), f32)
    for k in range(0, a.shape[1], 32):
        left = xetile.load_tile(xetile.init_tile(a, [m, k], (256, 32)))
        right = xetile.load_tile(xetile.init_tile(b, [k, n], (32, 256)))
        acc = xetile.tile_mma(left, right, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (256, 256)))


class Case(NamedTuple):
    """A kernel to look at.

    Attributes:
        name: what is printed.
        kernel: of ours.
        types: of its arguments.
        constants: of the compile time.
        elements: of a program, where elements are counted; 0: a step of the loop.
        twin: whether the kernel for any memory is looked at.
    """

    name: str
    kernel: Kernel
    types: str
    constants: dict[str, Any]
    elements: int = 0
    twin: bool = False


def cases() -> Iterator[Case]:
    """All of them."""
    for dtype in ("f16", "bf16"):
        for depth in (64, 128):
            for causal in (False, True):
                types = " ".join([f"{dtype}[S,{depth}]"] * 3)
                yield Case(
                    f"attention {dtype} {depth}{' causal' if causal else ''}",
                    attention,
                    f"{types} None {dtype}[S,{depth}] {'None ' * 5}f32 f32 f32",
                    {
                        "HEADS": 1,
                        "SHARE": 1,
                        "LEFT": None,
                        "RIGHT": 0 if causal else None,
                    }
                    | {"NEGATIVE": False, "ACC": f32, "BM": 128}
                    | {"BN": 64, "D": depth, "E": depth},
                )
    types = "bf16[M,K] bf16[K,N] f32[M,N]"
    yield Case("gemm bf16", gemm, types, {})
    yield Case("gemm bf16, any memory", gemm, types, {}, twin=True)
    yield Case("gemm bf16, K = 1001", gemm, "bf16[M,1001] bf16[1001,N] f32[M,N]", {})
    for side in ("LEFT", "RIGHT"):
        name = f"gemm bf16, {'A' if side == 'LEFT' else 'B'} transposed"
        types = "bf16[D,E] bf16[F,G] f32[M,N]"
        yield Case(name, turned, types, {side: True})
    for rows in (1, 8, 16):
        constants = {"BIAS_DIM": 1, "B_IS_TURNED": False, "ACC": f32, "BM": rows}
        constants |= {"BN": 32, "BK": 32, "ACTIVATION": None}
        types = "bf16[M,4096] bf16[4096,4096] bf16[M,4096] None None None"
        yield Case(f"product M = {rows}", product, types, constants)
    constants = {**constants, "BM": 128, "BN": 128, "ACTIVATION": gelu}
    types = "bf16[M,K] bf16[K,N] bf16[M,N] None None None"
    yield Case("product and gelu", product, types, constants, 128 * 128)
    row: dict[str, Any] = {"ACC": f32, "SHAPE": (64, 16), "EACH": 2, "PITCH": 64}
    row["MAP"] = xetile.wg_map(sg_layout=[1, 1], sg_data=[64, 16])
    types = "f32[M,16] f32[M,16]"
    yield Case("softmax f32 1024", softmax_folded_rows, types, row, 2048)
    types = "f32[M,16] f32[64,16] f32[64,16] f32[M,16] f32"
    norm = {**row, "CENTERED": True}
    yield Case("layer norm f32 1024", norm_folded_rows, types, norm, 2048)
    norm["PITCH"] = 80
    yield Case("layer norm f32 1024, 1280 apart", norm_folded_rows, types, norm, 2048)
    row = {"ACC": f32, "WIDTH": 1024, "ROWS": 8, "IS_FULL": True}
    row["MAP"] = xetile.wg_map(sg_layout=[1, 4], sg_data=[8, 256])
    types = "f32[M,N] f32[M,N]"
    yield Case("softmax f32 1024, gaps", softmax_rows, types, row, 8192)
    types = "f32[M,N] f32[N] f32[N] f32[M,N] f32"
    norm = {**row, "CENTERED": True}
    yield Case("layer norm f32 1024, gaps", norm_rows, types, norm, 8192)
    types, row = "f32[M,N] f32[M,N]", {**row, "IS_FULL": False}
    yield Case("softmax f32 1000", softmax_rows, types, row, 8192)


FIGURES = ("instructions", "step", "dpas", "slm", "barriers", "spilled")


def figures(case: Case, target: str) -> dict[str, float]:
    """What is counted of a kernel."""
    options = {"backend": "xegpu", "target": target, **case.constants}
    text = case.kernel.ir("asm", case.types, **options)
    parts = re.split(r"^// ", text, flags=re.MULTILINE)[1:]
    part = parts[-1 if case.twin else 0]
    spilled = SPILLED.search(part)
    assert spilled is not None
    whole = count(part)
    found = loops(part)
    step = max(found, key=lambda each: (each.dpas, -each.instructions), default=whole)
    subgroups = _subgroups(case, options) if case.elements else 1
    return {
        "instructions": whole.instructions,
        "step": whole.instructions * subgroups * LANES / case.elements
        if case.elements
        else step.instructions,
        "dpas": step.dpas,
        "slm": _named(step, "slm"),
        "barriers": _named(step, "signal"),
        "spilled": int(spilled[1]),
    }


def _subgroups(case: Case, options: dict[str, Any]) -> int:
    lanes = re.search(
        r"work_group = array<i64: (\d+)", case.kernel.ir("lanes", case.types, **options)
    )
    assert lanes is not None
    return int(lanes[1]) // LANES


def _named(step: IsaCounts, word: str) -> int:
    return sum(n for name, n in step.names.items() if word in name)


def main() -> None:
    """Print a line for each kernel and target."""
    if find_ocloc() is None:
        print(f"left out: Intel's offline compiler is missing, {SETUP}")
        return
    wanted = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    rows: list[dict[str, object]] = []
    print(f"{'':32}", *(f"{figure:>12}" for figure in FIGURES))
    for case in cases():
        if not wanted.search(case.name):
            continue
        for target in ("pvc", "bmg"):
            found = figures(case, target)
            print(f"{case.name:28}{target:4}", *(f"{n:>12.4g}" for n in found.values()))
            rows += [
                {"kernel": case.name, "target": target, "figure": k, "value": v}
                for k, v in found.items()
            ]
    write_csv("bench_gpu_bars", rows)


if __name__ == "__main__":
    main()
