"""Losses of rows of classes against torch's: many rows, rows that do not count."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops  # noqa: E402


@pytest.mark.parametrize("rows", [1, 127, 128, 300])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(rows: int, reduction: str, weighted: bool) -> None:
    make = torch.Generator().manual_seed(rows)
    x = torch.randn(rows, 19, generator=make).log_softmax(1)
    target = torch.randint(19, (rows,), generator=make)
    target[target == 3] = 4
    target[::5] = 3
    weight = torch.rand(19, generator=make) if weighted else None
    options: dict[str, Any] = {
        "weight": weight,
        "ignore_index": 3,
        "reduction": reduction,
    }
    wanted = torch.nn.functional.nll_loss(x, target, **options)
    _close(ops.nll_loss(x, target, **options), wanted)
    # A class out of range is that of no row, as one that is ignored.
    outside = torch.tensor([19, -1, 1 << 40])
    target[::5] = outside[torch.arange(len(target[::5])) % 3]
    _close(ops.nll_loss(x, target, **options), wanted)


def _close(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(found, wanted, equal_nan=True)
