"""Blocks of a GPT and of an MLP-Mixer in bf16, forward and backward.

By `xetl.ops`, torch, torch.compile. GPT: 512 tokens of 512 numbers, 8 heads (Radford et
al., 2019). Mixer: 4 images of 196 patches of 512 numbers (Tolstikhin et al.,
arXiv 2105.01601). Rates are blocks/s; the last but one is the ratio to the better one
of torch.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
from harness import Contest, Contestant, Job, parse_options, write_csv
from torch.nn import functional

from xetl import ops

HEADS = 8
SHAPES = {"gpt": (1, 512, 512), "mixer": (4, 196, 512)}
CONTEST = Contest(
    "blocks/s",
    [Contestant("xetl", "blocks:in_xetl")],
    [Contestant("torch", "blocks:in_torch"), Contestant("compiled", "blocks:compiled")],
)


def gpt(f: Any, x: Any, *weights: Any) -> Any:
    """Attention and a layer of gelu, with the functions of ``f``."""
    norm1, shift1, norm2, shift2, w_in, b_in, w_out, b_out, *layer = weights
    batch, tokens, width = x.shape
    h = f.linear(f.layer_norm(x, (width,), norm1, shift1), w_in, b_in)
    q, k, v = h.view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + f.linear(seen.transpose(1, 2).reshape(x.shape), w_out, b_out)
    return x + _layer(f, f.layer_norm(x, (width,), norm2, shift2), *layer)


def mixer(f: Any, x: Any, *weights: Any) -> Any:
    """A layer of gelu across patches, then one across the numbers of each."""
    norm1, shift1, norm2, shift2, up, b_up, down, b_down, *layer = weights
    width = x.shape[-1:]
    across = f.layer_norm(x, width, norm1, shift1).transpose(1, 2)
    x = x + _layer(f, across, up, b_up, down, b_down).transpose(1, 2)
    return x + _layer(f, f.layer_norm(x, width, norm2, shift2), *layer)


def _layer(f: Any, x: Any, up: Any, b_up: Any, down: Any, b_down: Any) -> Any:
    return f.linear(f.gelu(f.linear(x, up, b_up)), down, b_down)


BLOCKS: dict[str, Callable[..., Any]] = {"gpt": gpt, "mixer": mixer}


def arguments(what: str, shape: Sequence[int], kind: Any = torch.bfloat16) -> list[Any]:
    """The input of a block, and what it learns."""
    torch.manual_seed(0)
    _, tokens, width = shape
    first = [(3 * width, width), (width, width)]
    if what == "mixer":
        first = [(width // 2, tokens), (tokens, width // 2)]

    def some(*shape: int) -> Any:
        return (torch.randn(shape) * width**-0.5).to(kind).requires_grad_()

    norms = [torch.ones(width).to(kind).requires_grad_() for _ in range(4)]
    sizes = *first, (4 * width, width), (width, 4 * width)
    weights = [part for size in sizes for part in (some(*size), some(size[0]))]
    return [some(*shape), *norms, *weights]


def in_xetl(what: str, kind: str) -> Job:
    """With `xetl.ops`."""
    return _job(what, kind, lambda *args: BLOCKS[what](ops, *args))


def in_torch(what: str, kind: str) -> Job:
    """With torch, function by function."""
    return _job(what, kind, lambda *args: BLOCKS[what](functional, *args))


def compiled(what: str, kind: str) -> Job:
    """The same, compiled by torch."""
    call: Any = torch.compile(lambda *args: BLOCKS[what](functional, *args))
    return _job(what, kind, call)


def _job(what: str, kind: str, function: Callable[..., Any]) -> Job:
    args = arguments(what, SHAPES[what])
    grad = torch.ones_like(args[0])

    def forward() -> None:
        with torch.no_grad():
            function(*args)

    def training() -> None:
        torch.autograd.grad(function(*args), args, grad)

    return Job([training if kind == "training" else forward], 1.0)


if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [{"what": w, "kind": k} for w in BLOCKS for k in ("forward", "training")]
    write_csv("blocks", CONTEST.run(cases, options))
