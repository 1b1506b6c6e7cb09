"""``out=``: what cannot take a result is refused, and inputs may be it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xetl
from xetl.errors import LaunchError

torch: Any = pytest.importorskip("torch")
ops: Any = xetl.ops
X = torch.arange(12.0).reshape(3, 4)
LABELS = torch.tensor([0, 1, 2])


@pytest.mark.parametrize("wrong", ["a", 3, [1.0, 2.0], X, (X[0], X[0], X[0])], ids=str)
@pytest.mark.parametrize("name", ["max", "min", "sort"])
def test_no_pair(name: str, wrong: object) -> None:
    with pytest.raises(LaunchError):
        getattr(ops, name)(X, 1, out=wrong)


@pytest.mark.parametrize(
    "wrong", ["a", 3, [1.0], torch.zeros(3), torch.zeros(3, 4, dtype=torch.int32)]
)
@pytest.mark.parametrize("name", ["mse_loss", "kl_div"])
def test_losses_of_elements(name: str, wrong: object) -> None:
    with pytest.raises(LaunchError):
        getattr(ops, name)(X, X, reduction="none", out=wrong)


@pytest.mark.parametrize("wrong", ["a", torch.zeros(2, 3), torch.zeros(3).int()])
@pytest.mark.parametrize("call", ["sum", "cross_entropy"])
def test_where_torch_sees_the_call(call: str, wrong: object) -> None:
    """Under autocast torch's operator computes, and a result was broadcast."""
    given = (X, 1) if call == "sum" else (X, LABELS)
    how = {} if call == "sum" else {"reduction": "none"}
    with torch.autocast("cpu"), pytest.raises(LaunchError):
        getattr(ops, call)(*given, **how, out=wrong)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_scatter_add_to_its_source(dim: int) -> None:
    """As if the source had been read before the result is written."""
    random = np.random.default_rng(0)
    x, src = (random.integers(-8, 8, (4, 6, 8)).astype(np.float32) for _ in range(2))
    index = random.integers(0, 3, (2, 3, 4))
    wanted = x.copy()
    for place in np.ndindex(index.shape):
        to = list(place)
        to[dim] = index[place]
        wanted[tuple(to)] += src[place]
    for _ in range(3):
        given = src.copy()
        ops.scatter_add(x, dim, index, given, out=given)
        np.testing.assert_array_equal(given, wanted)
