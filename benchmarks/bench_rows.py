"""Kernels without products against NumPy and torch: rows, chains, indices, orders.

Rates count the matrix once read and once written, whatever else moves, so columns
compare within a line only. The functions and their inputs stand in `row_functions.py`.
"""

import argparse

from harness import Contest, Contestant, parse_options, write_csv

SHAPES = ((64, 1024), (1000, 777), (4096, 1024), (4096, 4096))
WHAT = {
    "softmax": SHAPES,
    "layer norm": SHAPES,
    "rms norm": SHAPES,
    "row sum": SHAPES,
    "column sum": SHAPES,
    "sum": SHAPES,
    "cumsum": SHAPES,
    "transpose": ((64, 64), (1024, 1024), (4096, 4096)),
    "add": ((64, 64), (1024, 1024), (4096, 4096)),
    "gelu": ((64, 64), (1024, 1024), (4096, 4096)),
    "topk": ((4096, 1024),),
    "sort": ((4096, 1024),),
    "dropout": ((4096, 1024),),
    "histogram": ((1024, 1024),),
    "embedding": ((4096, 512),),
    "convolution": ((56 * 56, 64),),
}
CONTEST = Contest(
    "GB/s",
    [Contestant("xetl", "row_functions:in_xetl")],
    [
        Contestant("numpy", "row_functions:in_numpy"),
        Contestant("torch", "row_functions:in_torch"),
    ],
    Contestant("copy", "row_functions:copied"),
)

if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [
        {"what": what, "rows": rows, "columns": columns}
        for what, shapes in WHAT.items()
        for rows, columns in shapes
    ]
    write_csv("bench_rows", CONTEST.run(cases, options))
