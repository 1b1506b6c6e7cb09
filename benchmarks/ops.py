"""The functions of `xetl.ops` against torch's, with tensors of torch.

Rates are GB/s of the first tensor once read, whatever else moves, so that columns
compare within a line only; the last but one is the ratio. The functions and their
arguments stand in `ops_functions.py`.
"""

import argparse

from harness import Contest, Contestant, parse_options, write_csv
from ops_functions import WHAT

SHAPES = ((16, 16), (1024, 1024), (8192, 1024))
CONTEST = Contest(
    "GB/s",
    [Contestant("xetl", "ops_functions:in_xetl")],
    [Contestant("torch", "ops_functions:in_torch")],
)

if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [
        {"what": what, "dtype": dtype, "rows": rows, "columns": columns}
        for what in WHAT
        for dtype in ("float32", "bfloat16")
        for rows, columns in SHAPES
    ]
    write_csv("ops", CONTEST.run(cases, options))
