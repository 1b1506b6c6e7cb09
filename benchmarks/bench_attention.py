"""Attention against torch: 16 heads of 64 and 128, as many keys as queries.

`xetl.ops.scaled_dot_product_attention` is a kernel written in the language. torch's own
is told to use AVX-512 where a C compiler is at hand, as for the products. Rates count
the products of all pairs of queries and keys, or half of them with ``causal``.
"""

import argparse

from harness import Contest, Contestant, parse_options, write_csv

LENGTHS = (512, 1024, 2048, 4096)
DIMS = (64, 128)
CONTEST = Contest(
    "GFLOP/s",
    [Contestant("xetl", "library_xetl:attention")],
    [Contestant("torch", "library_torch:attention")],
)

if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [
        {"dtype": dtype, "length": length, "dim": dim, "causal": causal}
        for dtype in ("f32", "bf16")
        for dim in DIMS
        for length in LENGTHS
        for causal in (False, True)
    ]
    write_csv("bench_attention", CONTEST.run(cases, options))
