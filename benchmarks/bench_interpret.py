"""The interpreter: one program of a GEMM, and 97 programs of an addition.

With and without the checks of `kernel.interpret`; the best of many runs counts. Limits
are those of the project: 1 ms and 5 ms without checks, three times that with all.
"""

import argparse
from time import perf_counter

import numpy as np
from harness import write_csv
from kernels import gemm

from xetl import xetile
from xetl.xetile import constexpr

ALL = "oob,uninit,race"


@xetile.kernel
def add(A, B, C, N: constexpr = 64):
    """C = A + B."""
    i = xetile.program_id(0) * N
    a = xetile.load_tile(xetile.init_tile(A, [i], (N,)))
    b = xetile.load_tile(xetile.init_tile(B, [i], (N,)))
    xetile.store_tile(a + b, xetile.init_tile(C, [i], (N,)))


def gemm_program(check):
    """64 x 64 of a product, 256 deep."""
    a = np.ones((64, 256), np.float32)
    b, c = np.ones((256, 64), np.float32), np.zeros((64, 64), np.float32)
    sizes = {"BM": 64, "BN": 64, "WG": None}
    gemm.interpret(a, b, c, check=check, **sizes)
    assert (c == 256).all()
    return lambda: gemm.interpret(a, b, c, check=check, **sizes)


def vector_add(check):
    """97 programs of 64 elements."""
    x, y = np.ones(97 * 64, np.float32), np.zeros(97 * 64, np.float32)
    add.interpret(x, x, y, grid=97, check=check)
    assert (y == 2).all()
    return lambda: add.interpret(x, x, y, grid=97, check=check)


CASES = {"gemm 64x64x256": (gemm_program, 1.0), "add 97 programs": (vector_add, 5.0)}


def best_ms(call, rounds):
    """The best of several runs."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return 1e3 * min(times)


def main():
    """Print a table and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    rows = []
    print(f"{'kernel':<18} {'checks':<16} {'ms':>7} {'limit':>6}")
    for name, (prepare, limit) in CASES.items():
        for check in ("", ALL):
            ms = best_ms(prepare(check), options.rounds)
            most = 3 * limit if check else limit
            print(f"{name:<18} {check or '-':<16} {ms:>7.3f} {most:>6}")
            rows.append({"kernel": name, "checks": check, "ms": round(ms, 4)})
    write_csv("bench_interpret", rows)


if __name__ == "__main__":
    main()
