"""Kernels that are loops over elements against numba; millions of elements a second.

Elements of f32 are Python's floats in xetl, so they are computed in f64; numba computes
some of them in f32. The functions stand in `element_functions.py`.
"""

import argparse

from harness import Contest, Contestant, parse_options, write_csv

CONTEST = Contest(
    "M elements/s",
    [Contestant("xetl", "element_functions:in_xetl")],
    [Contestant("numba", "element_functions:in_numba")],
)

if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [
        {"what": what, "dtype": dtype}
        for what in (
            *("five_points", "choice", "down", "paths", "product", "windows"),
            *("count", "pooled", "distances", "turned"),
            *("ring", "warping", "integral"),
        )
        for dtype in ("float32", "float64")
    ]
    write_csv("bench_elements", CONTEST.run(cases, options))
