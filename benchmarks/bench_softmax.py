"""Softmax of rows against NumPy and torch, and against the copy of an array.

Rates count the bytes that must move: each element is read once and written once.
"""

import argparse

from harness import Contest, Contestant, parse_options, write_csv

SHAPES = ((4096, 4096), (4096, 1024), (4096, 1000), (256, 1024))
CONTEST = Contest(
    "GB/s",
    [Contestant("xetl", "library_xetl:softmax")],
    [Contestant(name, f"library_{name}:softmax") for name in ("numpy", "torch")],
    Contestant("copy", "library_copy:softmax"),
)

if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [{"rows": rows, "columns": columns} for rows, columns in SHAPES]
    write_csv("bench_softmax", CONTEST.run(cases, options))
