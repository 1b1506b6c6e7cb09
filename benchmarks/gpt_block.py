"""A block of a GPT in bf16, forward and backward: `xetl.ops`, torch, torch.compile.

512 tokens of 512 numbers, 8 heads. Rates are blocks/s; the last but one is the ratio to
the better one of torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from harness import Contest, Contestant, Job, parse_options, write_csv
from torch.nn import functional

from xetl import ops

TOKENS, WIDTH, HEADS = 512, 512, 8
CONTEST = Contest(
    "blocks/s",
    [Contestant("xetl", "gpt_block:in_xetl")],
    [
        Contestant("torch", "gpt_block:in_torch"),
        Contestant("compiled", "gpt_block:compiled"),
    ],
)


def block(f: Any, x: Any, *weights: Any) -> Any:
    """Attention and a layer of gelu, with the functions of ``f``."""
    norm1, shift1, w_in, b_in, w_out, b_out, norm2, shift2, up, b_up, down, b_down = (
        weights
    )
    h = f.linear(f.layer_norm(x, (WIDTH,), norm1, shift1), w_in, b_in)
    q, k, v = h.view(1, TOKENS, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + f.linear(seen.transpose(1, 2).reshape(x.shape), w_out, b_out)
    h = f.gelu(f.linear(f.layer_norm(x, (WIDTH,), norm2, shift2), up, b_up))
    return x + f.linear(h, down, b_down)


def in_xetl(kind: str) -> Job:
    """With `xetl.ops`."""
    return _job(kind, lambda *args: block(ops, *args))


def in_torch(kind: str) -> Job:
    """With torch, function by function."""
    return _job(kind, lambda *args: block(functional, *args))


def compiled(kind: str) -> Job:
    """The same, compiled by torch."""
    return _job(kind, torch.compile(lambda *args: block(functional, *args)))


def _job(kind: str, function: Callable[..., Any]) -> Job:
    torch.manual_seed(0)

    def matrix(*shape: int) -> Any:
        return (torch.randn(shape) * WIDTH**-0.5).bfloat16().requires_grad_()

    norms = [torch.ones(WIDTH).bfloat16().requires_grad_() for _ in range(4)]
    sizes = (3 * WIDTH, WIDTH), (WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH)
    weights = [part for size in sizes for part in (matrix(*size), matrix(size[0]))]
    args = [
        matrix(1, TOKENS, WIDTH),
        *norms[:2],
        *weights[:4],
        *norms[2:],
        *weights[4:],
    ]
    grad = torch.ones(1, TOKENS, WIDTH).bfloat16()

    def forward() -> None:
        with torch.no_grad():
            function(*args)

    def training() -> None:
        torch.autograd.grad(function(*args), args, grad)

    return Job([training if kind == "training" else forward], 1.0)


if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [{"kind": kind} for kind in ("forward", "training")]
    write_csv("gpt_block", CONTEST.run(cases, options))
