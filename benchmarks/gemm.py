"""Products of matrices against OpenBLAS, MKL and oneDNN, and against the peak.

Parts, in GFLOP/s unless stated; whatever is packed or converted is inside the timing:

* products   kernels of the language with tiles of 256 and of 64, and xetl.ops.matmul.
* installed  the same against torch as it is installed, which MKL slows down on AMD.
* prepacked  the same where B is constant (`xetl.ops.prepack`).
* odd-lines  both, with rows of all matrices an odd number of cache lines apart.
* tiles      kernels with tiles of 32 to 512: what the user chooses should not matter.
* epilogue   a bias and an exact GELU fused to the product, against the plain product.
* calls      our own micro-kernels against calls of libxsmm in their place.
* compile    milliseconds to compile, and to come from the cache on disk.

Results have the dtype of the operands, those of i8 are i32. A peer is the best of what
its library offers for a case (`library_*.py`). The peak is that of FMA in registers;
for bf16 of the dot product of pairs; of AMX tiles on random numbers, where the machine
has them. Shapes are m x k x n.

Parts may be run one by one, with few cases (``--only "f32 512"``): the CSV file and the
plot gather what was measured, each bar being the last figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import gemm_compile
import gemm_plot
from harness import RESULTS, Case, Contest, Contestant, parse_options, update_csv

SQUARE = [f"{n}x{n}x{n}" for n in (512, 1000, 1024, 2048, 4096)]
SKINNY = ["128x4096x4096", "16x4096x4096", "4096x4096x16", "1x4096x4096"]
OTHERS = ["197x768x3072", "256x1024x4096", "749x2048x512"]
XETL = [
    Contestant("kernel", "library_xetl:gemm"),
    Contestant("tiles64", "library_xetl:gemm_small_tiles"),
    Contestant("ops", "library_xetl:matmul"),
]
PEERS = [
    Contestant("openblas", "library_numpy:gemm"),
    Contestant("mkl", "library_torch:gemm"),
    Contestant("onednn", "library_torch:linear"),
]
TILED = [f"tiles_{extent}" for extent in (32, 64, 128, 256, 512)]
ODD_LINES = {"BENCH_ODD_LINES": "1"}
PEAK = Contestant("peak", "library_peak:gemm")


def of(*names: str, **variables: str) -> list[Contestant]:
    """Functions of `library_xetl` by name."""
    return [
        Contestant(name.replace("_", "-"), f"library_xetl:{name}", variables)
        for name in names
    ]


CONTESTS = {
    "products": Contest("GFLOP/s", XETL, PEERS, PEAK),
    "installed": Contest(
        "GFLOP/s",
        of("gemm", "matmul"),
        [Contestant("torch", "library_torch:gemm", {"LD_PRELOAD": ""})],
    ),
    "prepacked": Contest("GFLOP/s", of("gemm_prepacked", "matmul_prepacked"), (), PEAK),
    "odd-lines": Contest(
        "GFLOP/s",
        of("gemm", "matmul", "gemm_prepacked", "matmul_prepacked", **ODD_LINES),
        [replace(peer, variables=ODD_LINES) for peer in PEERS[:2]],
        PEAK,
    ),
    "tiles": Contest("GFLOP/s", of(*TILED), (), PEAK),
    "epilogue": Contest(
        "GFLOP/s", of("gemm_gelu", "matmul_gelu"), of("gemm", "matmul")
    ),
    "calls": Contest(
        "GFLOP/s",
        [Contestant("inline", "library_xetl:gemm", {"XETL_XSMM": "inline"})],
        [Contestant("libxsmm", "library_xetl:gemm", {"XETL_XSMM": "libxsmm"})],
    ),
}
CASES = {
    "products": {
        "f32": SQUARE + SKINNY + OTHERS,
        "bf16": SQUARE + SKINNY + OTHERS,
        "f16": SQUARE[1:4],
        "i8": SQUARE[:4],
    },
    "installed": {"f32": SQUARE},
    "prepacked": {t: [*SQUARE[:4], SKINNY[0]] for t in ("f32", "bf16")},
    "odd-lines": {t: [*SQUARE[:1], *SQUARE[2:]] for t in ("f32", "bf16", "i8")},
    "tiles": {t: [SQUARE[2]] for t in ("f32", "bf16")},
    "epilogue": {t: SQUARE[2:4] for t in ("f32", "bf16")},
    "calls": {t: SQUARE[:4] for t in ("f32", "bf16")},
}


def cases_of(part: str) -> list[Case]:
    """What is measured in a part."""
    return [
        {"dtype": dtype, "shape": shape}
        for dtype, shapes in CASES[part].items()
        for shape in shapes
    ]


def measure(parts: Sequence[str], options: argparse.Namespace) -> None:
    """Each part: a table, and rows for the CSV file."""
    for part in parts:
        print(f"-- {part}", flush=True)
        if part == "compile":
            rows = gemm_compile.measure(options.rounds)
        else:
            rows = CONTESTS[part].run(cases_of(part), options)
            rows = [{"part": part, **row} for row in rows]
        update_csv("gemm", rows)


def main() -> None:
    """Measure, then draw what is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = [*CONTESTS, "compile"]
    parser.add_argument("--part", nargs="+", choices=parts, default=parts)
    parser.add_argument("--plot", type=Path, default=RESULTS / "gemm.png")
    options = parse_options(parser)
    measure(options.part, options)
    gemm_plot.draw("gemm", options.plot)


if __name__ == "__main__":
    main()
