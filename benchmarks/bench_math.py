"""Elementary functions: nanoseconds a vector, in cache, beside NumPy on one thread.

A vector is 16 f32 or 8 f64 with AVX-512, half of that with AVX2 (``XETL_TARGET``).
Arrays have 8,192 elements; the time is CPU time, the least of several rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from xetl import xetile
from xetl.xetile import constexpr

NAMES = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh"
NAMES += " tanh erf sigmoid sqrt rsqrt cbrt"
IN_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
SIZE, LAUNCHES = 8192, 50


@xetile.kernel
def mapped(X, Y, FUNCTION: constexpr, N: constexpr):  # noqa: D103
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    xetile.store_tile(FUNCTION(x), xetile.init_tile(Y, [0], (N,)))


@xetile.kernel
def mapped_two(X, Y, FUNCTION: constexpr, N: constexpr):  # noqa: D103
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    y = xetile.load_tile(xetile.init_tile(Y, [0], (N,)))
    xetile.store_tile(FUNCTION(x, y), xetile.init_tile(Y, [0], (N,)))


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """CPU time of a call, the least of several rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(LAUNCHES):
            call()
        best = min(best, (time.thread_time() - start) / LAUNCHES)
    return best


def main() -> None:
    """Print a row for each function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--bytes", type=int, default=64, help="of a vector")
    options = parser.parse_args()
    print(f"{'ns a vector':12} {'f32':>6} {'NumPy':>6} {'f64':>6} {'NumPy':>6}")
    for name in NAMES.split():
        cells = list[str]()
        for dtype in (np.float32, np.float64):
            x = np.random.default_rng(0).uniform(0.01, 0.99, SIZE).astype(dtype)
            y = np.ones(SIZE, dtype)
            launch = (mapped_two if name == "atan2" else mapped)[1]
            function = getattr(xetile, name)
            ours = seconds(lambda: launch(x, y, function, SIZE), options.rounds)
            vectors = SIZE * x.itemsize / options.bytes
            cells.append(f"{ours / vectors * 1e9:.1f}")
            peer: Any = getattr(np, IN_NUMPY.get(name, name), None)
            if peer is None:
                cells.append("-")
                continue
            given = (x, y) if name == "atan2" else (x,)
            theirs = seconds(lambda: peer(*given, out=y), options.rounds)
            cells.append(f"{theirs / vectors * 1e9:.1f}")
        print(f"{name:12} " + " ".join(f"{cell:>6}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
