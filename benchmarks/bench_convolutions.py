"""Convolutions of one image against torch: layers of ResNet-50, groups, one channel.

Tensors of torch, new results; torch runs what it thinks best (oneDNN). Rates count two
operations for each tap, the padding included.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from harness import Contest, Contestant, Job, parse_options, write_csv
from library_torch import DTYPES
from torch.nn import functional

from xetl import ops


class Layer(NamedTuple):
    """Channels of the input and the result, sides of image and kernel."""

    inner: int
    outer: int
    side: int
    taps: int
    stride: int = 1
    groups: int = 1


LAYERS = (
    Layer(3, 64, 224, 7, 2),
    *(Layer(64, 64, 56, 1), Layer(64, 64, 56, 3), Layer(64, 256, 56, 1)),
    *(Layer(128, 128, 56, 3, 2), Layer(128, 128, 28, 3), Layer(512, 128, 28, 1)),
    *(Layer(256, 512, 56, 1, 2), Layer(256, 256, 28, 3, 2), Layer(256, 256, 14, 3)),
    *(Layer(1024, 256, 14, 1), Layer(512, 512, 14, 3, 2), Layer(512, 512, 7, 3)),
    Layer(2048, 512, 7, 1),
    *(Layer(128, 128, 56, 3, 1, 32), Layer(256, 256, 28, 3, 1, 32)),
    *(Layer(256, 256, 56, 3, 2, 32), Layer(512, 512, 14, 3, 1, 32)),
    *(Layer(96, 96, 56, 7, 1, 96), Layer(144, 144, 56, 3, 2, 144)),
)
CONTEST = Contest(
    "GFLOP/s",
    [Contestant("xetl", "bench_convolutions:in_xetl")],
    [Contestant("torch", "bench_convolutions:in_torch")],
)


def _job(function: Callable[..., Any], dtype: str, layer: dict[str, int]) -> Job:
    each, make = Layer(**layer), torch.Generator().manual_seed(0)
    size = each.outer, each.inner // each.groups, each.taps, each.taps
    shapes = (1, each.inner, each.side, each.side), size
    x, w = (torch.randn(n, generator=make).to(DTYPES[dtype]) for n in shapes)

    def run() -> Any:
        how = each.stride, each.taps // 2, 1, each.groups
        return function(x, w, None, *how)

    return Job([run], 2e-9 * run().numel() * w[0].numel())


def in_xetl(dtype: str, **layer: int) -> Job:
    """`xetl.ops.conv2d`."""
    return _job(ops.conv2d, dtype, layer)


def in_torch(dtype: str, **layer: int) -> Job:
    """`torch.nn.functional.conv2d`."""
    return _job(functional.conv2d, dtype, layer)


if __name__ == "__main__":
    options = parse_options(argparse.ArgumentParser(description=__doc__))
    cases = [
        {"dtype": dtype, **layer._asdict()}
        for dtype in ("f32", "bf16")
        for layer in LAYERS
    ]
    write_csv("bench_convolutions", CONTEST.run(cases, options))
