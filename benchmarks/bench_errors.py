"""Errors: how long a wrong kernel takes to be refused, for each in tests/errors.

First imports aside, best of three runs. The limit is that of the project: 50 ms.
"""

import importlib.util
import sys
from pathlib import Path
from time import perf_counter

from harness import write_csv

from xetl.errors import CompileError
from xetl.frontend import build_module

TESTS = Path(__file__).parents[1] / "tests" / "errors"
LIMIT_MS = 50


def cases():
    """The wrong kernels, and what makes a signature for each."""
    sys.path.insert(0, str(TESTS))
    spec = importlib.util.spec_from_file_location(
        "wrong_kernels", TESTS / "test_wrong_kernels.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [case.values[0] for case in module.CASES], module.signature_of


def milliseconds(kernel, signature):
    """The shortest of three refusals."""
    times = []
    for _ in range(3):
        start = perf_counter()
        try:
            build_module(kernel, signature)
        except CompileError:
            times.append(perf_counter() - start)
    return min(times) * 1e3


def main():
    """Print the slowest ones."""
    kernels, signature_of = cases()
    rows = sorted(
        ((milliseconds(k, signature_of(k)), k.__name__) for k in kernels), reverse=True
    )
    for time, name in rows[:5]:
        print(f"{time:8.2f} ms  {name}")
    print(f"{len(rows)} wrong kernels, limit {LIMIT_MS} ms")
    write_csv("errors", [{"kernel": name, "ms": time} for time, name in rows])


if __name__ == "__main__":
    main()
