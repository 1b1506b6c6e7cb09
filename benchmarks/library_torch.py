"""What is measured, in torch."""

import torch
from harness import Job
from operands import integer_matrices, normal_rows

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def gemm(dtype: str, n: int) -> Job:
    """torch.mm takes MKL for f32; oneDNN is asked for by name.

    The f16 GEMM of torch's CPU build runs at 1 to 4 GFLOP/s; in f32 and back is faster.
    """
    a, b = (torch.from_numpy(x).to(DTYPES[dtype]) for x in integer_matrices(n))
    c = torch.empty_like(a)
    linear = torch.ops.mkldnn._linear_pointwise
    if dtype == "f16":
        calls = [lambda: c.copy_(torch.mm(a.float(), b.float()))]
    else:
        calls = [
            lambda: torch.mm(a, b, out=c),
            lambda: linear(a, b.t(), None, "none", [], ""),
        ]
    return Job(calls, 2e-9 * n**3)


def softmax(rows: int, columns: int) -> Job:
    """With ``out=``: a result that is allocated anew costs more than the softmax."""
    x = torch.from_numpy(normal_rows(rows, columns))
    y = torch.empty_like(x)
    return Job([lambda: torch.softmax(x, 1, out=y)], 2e-9 * x.nbytes)
