"""What is measured, in torch: MKL and oneDNN are behind it."""

import torch
from harness import Job
from operands import (
    attention_flops,
    extents,
    flops,
    normal_heads,
    normal_matrices,
    row_distance,
)

DTYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
}


def gemm(dtype: str, shape: str) -> Job | None:
    """Whatever torch.mm takes; that is MKL for f32 and oneDNN for bf16 and i8.

    The f16 GEMM of torch's CPU build runs at 1 to 4 GFLOP/s; in f32 and back is faster.
    """
    a, b = _operands(dtype, shape)
    m, _, n = extents(shape)
    c = _empty(m, n, a.dtype)
    if dtype == "i8":
        c = torch.empty(m, n, dtype=torch.int32)  # it takes no other rows
        calls = [lambda: torch._int_mm(a, b, out=c)]
    elif dtype == "f16":
        calls = [lambda: c.copy_(torch.mm(a.float(), b.float()))]
    else:
        calls = [lambda: torch.mm(a, b, out=c)]
        if m == 1:
            calls += [lambda: torch.mv(b.t(), a[0], out=c[0])]
    return Job(calls, flops(shape))


def linear(dtype: str, shape: str) -> Job | None:
    """OneDNN, asked for by name; without AVX-512 it has no product of bf16."""
    no_bf16 = not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    if dtype in ("f16", "i8") or (dtype == "bf16" and no_bf16):
        return None
    a, b = _operands(dtype, shape)
    call = torch.ops.mkldnn._linear_pointwise
    return Job([lambda: call(a, b.t(), None, "none", [], "")], flops(shape))


def _operands(dtype: str, shape: str) -> list[torch.Tensor]:
    return [
        _empty(*x.shape, DTYPES[dtype]).copy_(torch.from_numpy(x))
        for x in normal_matrices(dtype, shape)
    ]


def _empty(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    distance = row_distance(columns, dtype.itemsize)
    return torch.empty(rows, distance, dtype=dtype)[:, :columns]


def attention(dtype: str, length: int, dim: int, causal: bool) -> Job:
    """The fused one; it has no ``out=``."""
    q, k, v = (
        torch.from_numpy(x)[None].to(DTYPES[dtype]) for x in normal_heads(length, dim)
    )
    run = torch.nn.functional.scaled_dot_product_attention
    work = attention_flops(length, dim, causal)
    return Job([lambda: run(q, k, v, is_causal=causal)], work)
