"""Random calls of `xetl.ops` against torch's: shapes, dimensions, dtypes and strides.

Named shapes hide what lies between them. The same ``--seed`` gives the same calls;
ours are checked against torch's before they are timed. The worst ratios come last.
"""

import argparse
import math
import random
from dataclasses import replace
from typing import Any

import torch
from harness import Case, Contest, Contestant, Job, parse_options, text_of, write_csv
from ops_functions import job_of
from torch.nn import functional

from xetl import ops

ELEMENTS = ("relu", "gelu", "silu", "sigmoid", "tanh", "mse_loss", "kl_div")
REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "max", "min", "argmax", "argmin")
ALONG = (*REDUCTIONS, "softmax", "log_softmax", "cumsum", "sort", "topk")
NORMS = ("layer_norm", "rms_norm", "group_norm", "batch_norm")
LOSSES = ("cross_entropy", "nll_loss")
INDEXED = ("gather", "scatter_add", "index_select", "embedding")
NAMES = (*ELEMENTS, *ALONG, *NORMS, *LOSSES, *INDEXED)
PAIRS = ("max", "min", "sort", "topk")
WITHOUT_DERIVATIVE = ("argmax", "argmin", "kl_div", "scatter_add", "batch_norm")
DTYPES = ("float32", "bfloat16", "float64")
LAYOUTS = ("contiguous", "contiguous", "transposed", "sliced")
MOST = 1 << 21  # elements of an array
TOLERANCES = {"float32": 1e-4, "bfloat16": 3e-2, "float64": 1e-9}


def cases_of(seed: int, count: int) -> list[Case]:
    """Return ``count`` calls; an earlier part of more calls of a seed is the same."""
    draw = random.Random(seed)
    return [_case(draw, draw.choice(NAMES)) for _ in range(count)]


def _case(draw: random.Random, name: str) -> Case:
    rank = 2 if name == "embedding" else draw.choice((2, 2, 2, 3, 4))
    bits = draw.uniform(2, math.log2(MOST))
    cuts = sorted(draw.uniform(0, bits) for _ in range(rank - 1))
    sides = [b - a for a, b in zip([0, *cuts], [*cuts, bits], strict=True)]
    is_trained = draw.random() < 0.3 and name not in WITHOUT_DERIVATIVE
    return {
        "name": name,
        "how": "training" if is_trained else "",
        "dtype": draw.choice(DTYPES),
        "shape": "x".join(str(round(2**side)) for side in sides),
        "dim": draw.randrange(rank),
        "layout": draw.choice(LAYOUTS),
    }


def in_xetl(**case: Any) -> Job:
    """The function of `xetl.ops`, once its result is torch's.

    Raises:
        AssertionError: it is another.
    """
    name, args = case["name"], _arguments(**case)
    ours, theirs = getattr(ops, name), _torch(name)
    found, wanted = (_floats(function(*args)) for function in (ours, theirs))
    tolerance = TOLERANCES[case["dtype"]]
    for one, other in zip(found, wanted, strict=True):
        atol = tolerance * max(1.0, other.nan_to_num().abs().max().item())
        torch.testing.assert_close(one, other, rtol=0, atol=atol, equal_nan=True)
    return _job(ours, args, case)


def in_torch(**case: Any) -> Job:
    """That of torch."""
    return _job(_torch(case["name"]), _arguments(**case), case)


def _job(function: Any, args: tuple[Any, ...], case: Case) -> Job:
    chosen = function
    if case["name"] in PAIRS and case["how"]:
        chosen = lambda *given: function(*given)[0]
    return replace(job_of(chosen, args, f"{case['name']} {case['how']}"), work=1.0)


def _torch(name: str) -> Any:
    return getattr(functional, name, None) or getattr(torch, name)


def _floats(found: Any) -> list[torch.Tensor]:
    """Return the results that equal elements cannot exchange."""
    every = [found] if isinstance(found, torch.Tensor) else [found[0]]
    return [each.double() for each in every if each.is_floating_point()]


def _arguments(
    name: str, how: str, dtype: str, shape: str, dim: int, layout: str
) -> tuple[Any, ...]:
    torch.manual_seed(0)
    kind, sides = getattr(torch, dtype), [int(n) for n in shape.split("x")]
    x = _laid_out(sides, layout, kind)
    channels, columns = sides[1], sides[-1]
    if name in LOSSES:
        return x, torch.randint(channels, (sides[0], *sides[2:]))
    if name == "embedding":
        return torch.randint(sides[0], (sides[0],)), x
    if name in INDEXED:
        index = torch.randint(sides[dim], sides)
        if name == "index_select":
            return x, dim, index.flatten()[: sides[dim]]
        return (x, dim, index) if name == "gather" else (x, dim, index, x.clone())
    if name == "topk":
        return x, min(8, sides[dim]), dim
    if name in ALONG:
        return x, dim
    others: dict[str, tuple[Any, ...]] = {
        "mse_loss": (torch.randn(sides).to(kind),),
        "kl_div": (torch.rand(sides).to(kind), None, None, "sum"),
        "layer_norm": ((columns,), *torch.randn(2, columns).to(kind)),
        "rms_norm": ((columns,), torch.randn(columns).to(kind)),
        "group_norm": (math.gcd(channels, 8),),
        "batch_norm": (torch.randn(channels).to(kind), torch.rand(channels).to(kind)),
    }
    return x, *others.get(name, ())


def _laid_out(sides: list[int], layout: str, kind: torch.dtype) -> torch.Tensor:
    if layout == "transposed":
        return torch.randn(*sides[:-2], sides[-1], sides[-2]).to(kind).mT
    gap = 3 if layout == "sliced" else 0
    return torch.randn(*sides[:-1], sides[-1] + gap).to(kind)[..., : sides[-1]]


CONTEST = Contest(
    "calls/s",
    [Contestant("xetl", "ops_random:in_xetl")],
    [Contestant("torch", "ops_random:in_torch")],
)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--worst", type=int, default=30, help="how many are listed")
    options = parse_options(parser)
    rows = CONTEST.run(cases_of(options.seed, options.count), options)
    write_csv("ops_random", rows)
    pairs = zip(rows[::2], rows[1::2], strict=True)
    ratios = [(float(str(a["rate"])) / float(str(b["rate"])), a) for a, b in pairs]
    for ratio, row in sorted(ratios, key=lambda pair: pair[0])[: options.worst]:
        print(f"{ratio:.2f} {text_of(row)}")
