"""Print a table: ``python -m tests.reliability [--scale 1] [CHECK ...]``."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

from tests.reliability import checks, native

CHECKS: dict[str, Callable[[float], str]] = {
    each.__name__: each
    for each in (
        *(checks.cache_storm, checks.launches, checks.specialisations),
        *(checks.threads, checks.interrupts, checks.processes, checks.folders),
        *(checks.guard_pages, native.valgrind, native.sanitizers),
    )
}


def main() -> int:
    """Run what is named, or everything; 1 if something does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("checks", nargs="*", choices=[*CHECKS, []])
    given = parser.parse_args()
    names = given.checks or list(CHECKS)
    print(
        f"scale {given.scale}, {platform.machine()}, Python {platform.python_version()}"
    )
    print("| check | result | seconds |\n|---|---|---|", flush=True)
    failed = 0
    for name in names:
        start = time.perf_counter()
        try:
            found = CHECKS[name](given.scale)
        except Exception as error:
            found, failed = f"**failed**: {type(error).__name__}: {error}", 1
        print(f"| {name} | {found} | {time.perf_counter() - start:.0f} |", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
