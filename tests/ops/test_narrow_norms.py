"""Norms of short rows and channels, of which a program computes several at once."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops
from xetl.ops.calling.calls import Launch

BOUNDS = {torch.float32: 1e-5, torch.bfloat16: 4e-2, torch.float64: 1e-12}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9, 16, 24, 40, 100, 200])
def test_layer_norm(columns: int, dtype: Any) -> None:
    for rows, eps in ((1, 1e-5), (7, 1e-5), (33, 0.0), (1100, 0.0)):
        if columns <= 2 and eps == 0:
            continue  # the variance is 0, or the gradient, of terms without bounds
        shapes = (rows, columns), (columns,), (columns,)
        given = [torch.randn(shape).to(dtype) for shape in shapes]
        grad = torch.randn(rows, columns).to(dtype)
        ours = [x.clone().requires_grad_() for x in given]
        exact = [x.double().clone().requires_grad_() for x in given]
        ops.layer_norm(ours[0], (columns,), *ours[1:], eps).backward(grad)
        wanted = torch.nn.functional.layer_norm(exact[0], (columns,), *exact[1:], eps)
        wanted.backward(grad.double())
        for one, two in zip(ours, exact):
            scale = two.grad.abs().max().item() + 1
            torch.testing.assert_close(
                one.grad.double(), two.grad, rtol=0, atol=BOUNDS[dtype] * scale
            )


@pytest.mark.parametrize("function", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("rows", [0, 1, 8, 64, 65])
def test_gradients_of_few_long_rows(rows: int, function: str) -> None:
    """Few rows are read once more for weight and bias; rounding of the mean is left."""
    columns = 1003
    shapes = (rows, columns), (columns,), (columns,)
    given = [torch.randn(shape) for shape in shapes[: 2 + (function == "layer_norm")]]
    given[0] += 1000.0 * (function == "layer_norm")
    grad = torch.randn(rows, columns)
    ours = [x.clone().requires_grad_() for x in given]
    exact = [x.double().clone().requires_grad_() for x in given]
    getattr(ops, function)(ours[0], (columns,), *ours[1:]).backward(grad)
    wanted = getattr(torch.nn.functional, function)
    wanted(exact[0], (columns,), *exact[1:]).backward(grad.double())
    for one, two in zip(ours, exact):
        bound = 1e-5 * (two.grad.abs().max().item() + 1) if rows else 0
        torch.testing.assert_close(one.grad.double(), two.grad, rtol=0, atol=bound)


@pytest.mark.parametrize("rows", [7, 100])
def test_gradients_that_nobody_needs(rows: int, monkeypatch: Any) -> None:
    """If weight and bias need none, one launch finds the gradient of the input."""
    launched: list[str] = []
    run = Launch.run

    def noted(self: Launch, *args: Any, **kwargs: Any) -> None:
        launched.append(self.kernel.__name__)
        run(self, *args, **kwargs)

    monkeypatch.setattr(Launch, "run", noted)
    ours = torch.randn(rows, 1000, requires_grad=True)
    exact = ours.detach().double().requires_grad_()
    weight, bias = torch.randn(2, 1000)
    y = ops.layer_norm(ours, (1000,), weight, bias)
    launched.clear()
    grad = torch.randn(rows, 1000)
    y.backward(grad)
    assert launched == ["norm_backward_rows"]
    both = weight.double(), bias.double()
    wanted = torch.nn.functional.layer_norm(exact, (1000,), *both)
    wanted.backward(grad.double())
    torch.testing.assert_close(ours.grad.double(), exact.grad, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize(
    "shape",
    [
        (70, 8),
        (5, 12, 3),
        (3, 8, 16),
        (3, 64, 3),
        (4, 30, 7, 7),
        (2, 6, 100),
        (2, 6, 900),
    ],
)
@pytest.mark.parametrize("groups", [1, 2, None])
def test_group_norm(groups: int | None, shape: Any, dtype: Any) -> None:
    """Channels of few elements and small groups are computed together."""
    groups = groups or shape[1] // 2
    given = [torch.randn(each).to(dtype) for each in (shape, shape[1:2], shape[1:2])]
    grad = torch.randn(shape).to(dtype)
    for count in (1, 2, 3):  # without weight, with it, and with bias
        ours = [x.clone().requires_grad_() for x in given[:count]]
        exact = [x.double().clone().requires_grad_() for x in given[:count]]
        found = ops.group_norm(ours[0], groups, *ours[1:])
        wanted = torch.nn.functional.group_norm(exact[0], groups, *exact[1:])
        found.backward(grad)
        wanted.backward(grad.double())
        pairs = [(found, wanted), *((a.grad, b.grad) for a, b in zip(ours, exact))]
        for one, two in pairs:
            bound = BOUNDS[dtype] * (two.abs().max().item() + 1)
            torch.testing.assert_close(one.double(), two, rtol=0, atol=bound)
