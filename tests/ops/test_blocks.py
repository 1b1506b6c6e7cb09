"""Blocks of models learn as with torch's functions: the ones that are measured."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["gpt", "mixer"])
def test_the_same_losses(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    blocks: Any = importlib.import_module("blocks")

    def losses(functions: Any) -> list[float]:
        x, *weights = blocks.arguments(what, (2, 12, 32), torch.float32)
        wanted, found = torch.randn(x.shape), list[float]()
        for _ in range(100):
            made = blocks.BLOCKS[what](functions, x.detach(), *weights)
            loss = (made - wanted).square().mean()
            for weight, slope in zip(weights, torch.autograd.grad(loss, weights)):
                weight.data -= 0.1 * slope
            found.append(loss.item())
        return found

    ours, theirs = losses(ops), losses(torch.nn.functional)
    assert theirs[-1] < 0.7 * theirs[0]
    assert ours == pytest.approx(theirs, rel=1e-4)
