"""What a launch costs, in microseconds, beside the cheapest calls of NumPy and torch.

The kernel has one program and almost nothing to do. All calls are timed in turn, in
one process, and the best of several rounds counts. ``--tail`` times each of many calls
instead and prints percentiles; there a kernel of many programs runs as well, on the
threads of ``NUMBA_NUM_THREADS``. ``--kinds`` has calls with all kinds of arguments,
``--functions`` calls of `xetl.ops` as programs make them: lengths that change, files,
autocast.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import timeit
from collections.abc import Callable
from itertools import cycle
from types import ModuleType

import numpy as np
import torch
from torch.nn import functional

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


@xetile.kernel
def filled(C, D, value, K: constexpr = 1):
    """A row of C, and of D if there is one: constants and numbers of all kinds."""
    row = xetile.full((1, 16), K, C.dtype) + value
    assert C.shape[1] >= 16, "too narrow"
    xetile.store_tile(row, xetile.init_tile(C, [0, 0], (1, 16)))
    if D is not None:
        xetile.store_tile(row, xetile.init_tile(D, [0, 0], (1, 16)))


class Exporter:
    """An array of a library that is known by its DLPack methods only."""

    def __init__(self, array: np.ndarray) -> None:
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


def kinds() -> dict[str, Callable[[], object]]:
    """Calls that differ in the kinds of their arguments; and a peer."""
    A, B, C = (np.ones((16, 32), np.float32) for _ in range(3))
    a, b, c = (torch.ones(16, 32) for _ in range(3))
    views = {
        "every second column": np.s_[:, ::2],
        "rows backwards": np.s_[::-1, :16],
        "columns backwards": np.s_[:, 15::-1],
    }
    calls: dict[str, Callable[[], object]] = {
        f"arrays, {name}": lambda v=view: add[1](A[v], B[v], C[v])
        for name, view in views.items()
    }
    constants, exported = iter(range(10**9)), Exporter(A)
    return calls | {
        "arrays, column-major": lambda: add[1](A.T[:16], B[:, :16], C[:, :16]),
        "keywords": lambda: add[1](A=A, B=B, C=C),
        "tensors, every second column": lambda: add[1](a[:, ::2], b[:, ::2], c[:, ::2]),
        "DLPack": lambda: add[1](exported, B, C),
        "None, an assertion": lambda: filled[1](C, None, 2.5),
        "a float": lambda: filled[1](C, A, 2.5),
        "a number of NumPy": lambda: filled[1](C, A, np.float32(2)),
        "two constants in turns": lambda: filled[1](C, A, 2.5, next(constants) % 2),
        "np.add(A, B, out=C)": lambda: np.add(A, B, out=C),
    }


def functions() -> dict[str, Callable[[], object]]:
    """Calls of functions in other circumstances; with tensors, beside torch's."""
    A, B, C = (np.ones((16, 16), np.float32) for _ in range(3))
    with tempfile.TemporaryFile() as opened:
        file = np.memmap(opened, np.float32, "w+", shape=A.shape)
    x, weight = torch.ones(16, 512), torch.ones(16, 512)
    query, keys = torch.ones(1, 8, 1, 64), torch.ones(1, 8, 600, 64)
    values = torch.ones(1, 8, 600, 64)
    few, many = cycle(range(100, 500, 40)), cycle(range(1, 600))

    def attention(of: ModuleType, lengths: cycle[int]) -> object:
        n = next(lengths)
        run = of.scaled_dot_product_attention
        return run(query, keys[:, :, :n], values[:, :, :n])

    def narrow(call: Callable[[], object]) -> object:
        with torch.autocast("cpu", torch.bfloat16):
            return call()

    calls: dict[str, Callable[[], object]] = {
        "softmax(A), A in a file": lambda: ops.softmax(file, 1),
        "softmax(A, dtype=np.float32)": lambda: ops.softmax(A, 1, dtype=np.float32),
    }
    for name, of in (("xetl", ops), ("torch", functional)):
        calls |= {
            f"{name}: 10 lengths in turns": lambda of=of: attention(of, few),
            f"{name}: 599 lengths in turns": lambda of=of: attention(of, many),
            f"{name}: linear, autocast": lambda of=of: narrow(
                lambda: of.linear(x, weight)
            ),
            f"{name}: softmax, autocast": lambda of=of: narrow(
                lambda: of.softmax(x, 1)
            ),
        }
    return calls | {"np.add(A, B, out=C)": lambda: np.add(A, B, out=C)}


def tails(calls: int) -> None:
    """Print percentiles of the times of single calls."""
    found = cases()
    A, B, C = (np.ones((4096, 16), np.float32) for _ in range(3))
    wide = add[256]
    few = ("launcher(A, B, C)", "plan()", "kernel[grid](torch tensors)")
    some = {name: found[name] for name in few}
    some["launcher of 256 programs"] = lambda: wide(A, B, C)
    some["np.add(A, B, out=C)"] = found["np.add(A, B, out=C)"]
    print(f"{'us':30} {'median':>8} {'p99':>8} {'p99.9':>8} {'max':>8}")
    for name, call in some.items():
        times = np.empty(calls, np.int64)
        for _ in range(1000):
            call()
        for i in range(calls):
            start = time.perf_counter_ns()
            call()
            times[i] = time.perf_counter_ns() - start
        shown = np.percentile(times, (50, 99, 99.9, 100)) / 1000
        print(f"{name:30}" + "".join(f" {each:8.2f}" for each in shown))


def main() -> None:
    """Print a line for each call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--tail", action="store_true", help="percentiles of 10^5 calls")
    parser.add_argument("--kinds", action="store_true", help="of arguments")
    parser.add_argument("--functions", action="store_true", help="of xetl.ops")
    options = parser.parse_args()
    if options.tail:
        tails(100_000)
        return
    found = kinds() if options.kinds else cases()
    found = functions() if options.functions else found
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
