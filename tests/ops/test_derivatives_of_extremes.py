"""Derivatives of what chooses elements: `amax`, `max`, `sort`, `topk`, and again."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops

CASES = [
    ((), ()),
    ((7,), 0),
    ((5, 9), 1),
    ((300, 70), 0),
    ((300, 70), 1),
    ((3, 1000), 0),
    ((3, 1000), 1),
    ((4, 5, 6), ()),
    ((4, 5, 6), (0, 2)),
    ((4, 50, 60), (-1, -2)),
    ((2, 3, 4, 5), (3, 1)),
]


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("shape", "dim"), CASES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_equal_extremes_share(
    shape: Any, dim: Any, dtype: Any, keepdim: bool, name: str
) -> None:
    x = torch.randint(-3, 3, shape).to(dtype)
    order = tuple(reversed(range(x.ndim)))
    turned = x.permute(order).contiguous().permute(order)
    for given in (x, turned):
        ours, theirs = (given.detach().requires_grad_() for _ in "12")
        wanted = getattr(torch, name)(theirs, dim, keepdim)
        grad = torch.randn_like(wanted)
        wanted.backward(grad)
        getattr(ops, name)(ours, dim, keepdim).backward(grad)
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("columns", [3, 200])
@pytest.mark.parametrize("dim", [0, 1])
def test_all_gradients_are_nan_beside_a_nan(dim: int, columns: int) -> None:
    x = torch.randn(columns, columns)
    x[1, 2] = float("nan")
    ours, theirs = (x.clone().requires_grad_() for _ in "12")
    ops.amax(ours, dim).sum().backward()
    torch.amax(theirs, dim).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, equal_nan=True)


CHOOSING = {
    "amax": lambda x: ops.amax(x, 0),
    "amin of all": ops.amin,
    "max": lambda x: ops.max(x, 1)[0],
    "min": lambda x: ops.min(x, 0, True)[0],
    "sort": lambda x: ops.sort(x, 0)[0],
    "topk": lambda x: ops.topk(x, 2)[0],
    "gather": lambda x: ops.gather(x, 1, torch.zeros(4, 3).long()),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_second_derivatives(name: str) -> None:
    x = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda v: CHOOSING[name](v).square(), (x,))
