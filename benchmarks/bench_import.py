"""How long a fresh process takes until xetl is imported, and until a first result.

Imports are timed inside the process, after NumPy's own; wall times include the start
and the end of Python.  The first result is a vector add whose code is in xetl's cache
on disk.  All take turns; the best of each counts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from harness import write_csv

TIMED = """
from time import perf_counter
import numpy as np
start = perf_counter()
{}
print(perf_counter() - start)
"""
IMPORT = "import xetl; from xetl import xetile"
FIRST_RESULT = """
from kernels import add
x = np.ones(1000, np.float32); y = np.empty_like(x)
add[1](x, x, y)
assert y.sum() == 2000
"""
PROGRAMS = {
    "import xetl, above NumPy's": (TIMED.format(IMPORT), True),
    "import and first result, above NumPy's": (TIMED.format(FIRST_RESULT), True),
    "wall: python": ("", False),
    "wall: python, NumPy": ("import numpy", False),
    "wall: python, NumPy, xetl": (f"import numpy; {IMPORT}", False),
    "wall: python, NumPy, xetl, first result": (
        f"import numpy as np{FIRST_RESULT}",
        False,
    ),
}


def seconds(program: str, timed_inside: bool, cache: str) -> float:
    """Run ``program`` in a new process."""
    start = perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent,
        env={
            **os.environ,
            "XETL_CACHE_DIR": cache,
            "PYTHONDONTWRITEBYTECODE": "",
        },
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout) if timed_inside else perf_counter() - start


def main() -> None:
    """Print a line for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    best = dict.fromkeys(PROGRAMS, float("inf"))
    with tempfile.TemporaryDirectory() as cache:
        for number in range(rounds + 1):
            for name, (program, timed_inside) in PROGRAMS.items():
                taken = seconds(program, timed_inside, cache)
                if number > 0:  # the first round fills the cache and __pycache__
                    best[name] = min(best[name], taken)
    for name, taken in best.items():
        print(f"{name:42} {taken * 1e3:8.1f} ms")
    write_csv("bench_import", [{"what": n, "ms": t * 1e3} for n, t in best.items()])


if __name__ == "__main__":
    main()
