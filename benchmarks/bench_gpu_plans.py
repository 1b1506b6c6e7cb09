"""How the plan that the model of costs makes for a GEMM ranks among all others.

No GPU is needed: each map of C is compiled for both GPUs by Intel's offline compiler.
A plan is ranked by the bytes that a workgroup spills, then by the instructions that all
of its subgroups have together: the work is the same in each. What caches and memory
make of a plan is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness import write_csv

from xetl import xetile
from xetl.runtime.report import Stats
from xetl.xetile import cdiv, constexpr, f32
from xetl_xegpu.offline.ocloc import SETUP, find_ocloc

TYPES = "bf16[M,K] bf16[K,N] f32[M,N]"
TILES = ((256, 256), (128, 128), (64, 256))
MOST_SUBGROUPS = 32


@xetile.kernel(grid=lambda a: (cdiv(a.C.shape[0], a.BM), cdiv(a.C.shape[1], a.BN)))
def gemm(A, B, C, BM: constexpr, BN: constexpr, MAP: constexpr = None):
    """C = A @ B by a given map, or the chosen one."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    acc = xetile.zeros((BM, BN), f32)
    for k in range(0, A.shape[1], 32):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (BM, 32)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (32, BN)))
        acc = xetile.tile_mma(a, b, acc, wg_map=MAP)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (BM, BN)))


class Plan(NamedTuple):
    """What a map costs a workgroup; the first of some plans is the best."""

    spilled: int
    instructions: int
    name: str


def plan(name: str, stats: Stats) -> Plan:
    """A plan as it was compiled."""
    subgroups = stats.subgroups or 1
    spilled, instructions = stats.spill_bytes or 0, stats.instructions or 0
    return Plan(spilled * subgroups, instructions * subgroups, name)


def plans(target: str, rows: int, columns: int) -> Iterator[Plan]:
    """The chosen plan, and those of all maps with subgroups of 8x16 or more."""
    options = {"backend": "xegpu", "target": target, "BM": rows, "BN": columns}
    yield plan("chosen", gemm.stats(TYPES, **options))
    powers = [1 << n for n in range(MOST_SUBGROUPS.bit_length())]
    for down in powers:
        for across in powers:
            part = rows // down, columns // across
            fits = down * across <= MOST_SUBGROUPS and part[0] >= 8 and part[1] >= 16
            if fits and part[0] * part[1] <= 64 * 64:
                wg_map = xetile.wg_map([down, across], list(part))
                stats = gemm.stats(TYPES, MAP=wg_map, **options)
                yield plan(f"{down}x{across} of {part[0]}x{part[1]}", stats)


def main() -> None:
    """Print where the chosen plan stands, and the best one."""
    if find_ocloc() is None:
        print(f"left out: Intel's offline compiler is missing, {SETUP}")
        return
    written: list[dict[str, object]] = []
    for target in ("pvc", "bmg"):
        for rows, columns in TILES:
            chosen, *others = plans(target, rows, columns)
            ahead = [each for each in others if each[:2] < chosen[:2]]
            best = min(others)
            print(
                f"{target} {rows}x{columns}: rank {1 + len(ahead)} of {len(others)}, "
                f"{chosen.spilled} bytes spilled, {chosen.instructions} instructions; "
                f"best: {best.name}, {best.spilled}, {best.instructions}"
            )
            where = {"target": target, "tile": f"{rows}x{columns}"}
            found = {
                "rank": 1 + len(ahead),
                "plans": len(others),
                "of the best's instructions": chosen.instructions / best.instructions,
            }
            written += [{**where, "figure": f, "value": v} for f, v in found.items()]
    write_csv("bench_gpu_plans", written)


if __name__ == "__main__":
    main()
