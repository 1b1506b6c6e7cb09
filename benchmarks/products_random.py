"""`xetl.ops.matmul` against torch's on random shapes and layouts.

Shapes that are named in advance hide what lies between them. Extents are log-uniform,
so that each size is as likely; a factor may be the transpose of a matrix in memory.
Only products that take from 2 us to 20 ms at 100 GFLOP/s are measured. A case is
``m x k x n``, with ``T`` behind it for ``A.T`` and ``t`` for ``B.T``. The last lines
are the ratios to torch in order, and the worst cases.
"""

import argparse

import numpy as np
import torch
from harness import Case, Contest, Contestant, Job, parse_options, update_csv
from operands import extents, flops

from xetl import ops

CONTEST = Contest(
    "GFLOP/s",
    [Contestant("xetl", "products_random:in_xetl")],
    [Contestant("torch", "products_random:in_torch")],
)


def in_xetl(dtype: str, shape: str, turned: str) -> Job:
    """Checked against torch's product of f64 before it is timed."""
    a, b, c = _tensors(dtype, shape, turned)
    ops.matmul(a, b, out=c)
    expected = a.double() @ b.double()
    bound = torch.finfo(a.dtype).eps * (a.double().abs() @ b.double().abs())
    if not ((c - expected).abs() <= 4 * bound).all():
        raise SystemExit(f"wrong result: {dtype} {shape} {turned}")
    return Job([lambda: ops.matmul(a, b, out=c)], flops(shape))


def in_torch(dtype: str, shape: str, turned: str) -> Job:
    """The same tensors."""
    a, b, c = _tensors(dtype, shape, turned)
    return Job([lambda: torch.matmul(a, b, out=c)], flops(shape))


def _tensors(dtype: str, shape: str, turned: str) -> list[torch.Tensor]:
    """A, B and an empty C."""
    m, k, n = extents(shape)
    kind = getattr(torch, dtype)
    a = torch.randn((k, m) if "T" in turned else (m, k)).to(kind)
    b = torch.randn((n, k) if "t" in turned else (k, n)).to(kind)
    a, b = (a.t() if "T" in turned else a), (b.t() if "t" in turned else b)
    return [a, b, torch.empty(m, n, dtype=kind)]


def random_cases(seed: int, count: int, dtypes: list[str]) -> list[Case]:
    """``count`` of each dtype."""
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < count:
        m, k, n = (int(e) for e in np.exp2(rng.uniform(0, 12, 3)))
        turned = str(rng.choice(["-", "T", "t", "Tt"]))
        if 2e5 < 2 * m * k * n < 2e9:
            cases.append({"shape": f"{m}x{k}x{n}", "turned": turned})
    return [{"dtype": dtype, **case} for dtype in dtypes for case in cases]


def summarise(rows: list[dict[str, object]]) -> None:
    """Print how many products are slower than torch's, and the worst."""
    rates: dict[str, dict[str, float]] = {}
    for row in rows:
        case = " ".join(str(row[f]) for f in ("threads", "dtype", "shape", "turned"))
        rates.setdefault(case, {})[str(row["contestant"])] = float(str(row["rate"]))
    ratios = sorted((one["xetl"] / one["torch"], case) for case, one in rates.items())
    if ratios:
        tenths = [ratios[(len(ratios) - 1) * i // 10][0] for i in range(11)]
        print("tenths:", *(f"{ratio:.2f}" for ratio in tenths))
        print("worst:")
        for ratio, case in ratios[:12]:
            print(f"{ratio:.2f} {case}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60, help="of each dtype")
    parser.add_argument(
        "--dtypes", nargs="+", default=["float32", "bfloat16", "float64"]
    )
    options = parse_options(parser)
    cases = random_cases(options.seed, options.count, options.dtypes)
    rows = CONTEST.run(cases, options)
    update_csv("products_random", rows)
    summarise(rows)
