"""What a launch costs, in microseconds, beside the cheapest calls of NumPy and torch.

The kernel has one program and almost nothing to do. All calls are timed in turn, in
one process, and the best of several rounds counts.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable

import numpy as np
import torch

from xetl import ops, xetile
from xetl.xetile import constexpr


@xetile.kernel(grid=lambda m: m.C.shape[0] // m.BM)
def add(A, B, C, BM: constexpr = 16):  # noqa: D103
    m = xetile.program_id(0) * BM
    a = xetile.load_tile(xetile.init_tile(A, [m, 0], (BM, 16)))
    b = xetile.load_tile(xetile.init_tile(B, [m, 0], (BM, 16)))
    xetile.store_tile(a + b, xetile.init_tile(C, [m, 0], (BM, 16)))


def cases() -> dict[str, Callable[[], object]]:
    """The calls to compare, the peers last."""
    A, B, C = (np.ones((16, 16), np.float32) for _ in range(3))
    a, b, c = (torch.ones(16, 16) for _ in range(3))
    launcher, packed = add[1], ops.prepack(B)
    plan, torch_plan = add.bind(A, B, C, grid=1), add.bind(a, b, c, grid=1)
    return {
        "plan()": plan,
        "launcher(A, B, C)": lambda: launcher(A, B, C),
        "kernel[grid](A, B, C)": lambda: add[1](A, B, C),
        "kernel[grid](A, B, C, BM=16)": lambda: add[1](A, B, C, BM=16),
        "kernel(A, B, C), grid a function": lambda: add(A, B, C),
        "kernel[grid](torch tensors)": lambda: add[1](a, b, c),
        "plan() of torch tensors": torch_plan,
        "ops.matmul(A, B, out=C)": lambda: ops.matmul(A, B, C),
        "ops.matmul(A, prepacked, out=C)": lambda: ops.matmul(A, packed, C),
        "ops.matmul(torch tensors)": lambda: ops.matmul(a, b, c),
        "np.add(A, B, out=C)": lambda: np.add(A, B, out=C),
        "torch.add(a, b, out=c)": lambda: torch.add(a, b, out=c),
    }


def main() -> None:
    """Print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=20_000)
    options = parser.parse_args()
    found = cases()
    best = dict.fromkeys(found, float("inf"))
    for _ in range(options.rounds):
        for name, call in found.items():
            seconds = timeit.timeit(call, number=options.calls) / options.calls
            best[name] = min(best[name], seconds * 1e6)
    peer = best["np.add(A, B, out=C)"]
    for name, microseconds in best.items():
        print(f"{name:34} {microseconds:8.2f} us {microseconds / peer:7.1f} x np.add")


if __name__ == "__main__":
    main()
