"""The gradient of a convolution by its weight, with a stride: exact in integers."""

from __future__ import annotations

from typing import Any

import pytest

from xetl import ops

torch: Any = pytest.importorskip("torch")

# images, channels, rows, columns; channels of the result, taps, stride, padding,
# dilation, groups
SHAPES = [
    (2, 3, 15, 13, 4, 3, 2, 1, 1, 1),
    (1, 3, 32, 32, 16, 7, 2, 3, 1, 1),
    (3, 8, 14, 14, 16, 5, 2, 0, 1, 1),
    (2, 4, 17, 19, 6, 3, 3, 1, 2, 2),
    (2, 64, 12, 12, 32, 3, 2, 1, 1, 1),
    (4, 300, 6, 6, 20, 3, 2, 1, 1, 1),
    (9, 16, 28, 28, 32, 3, 2, 1, 1, 1),
    (2, 32, 8, 8, 64, 2, 2, 0, 1, 4),
    (1, 1, 300, 40, 70, 5, 3, 2, 1, 1),
    (2, 16, 1, 50, 8, 1, 2, 0, 1, 1),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("is_last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integers(shape: tuple[int, ...], is_last: bool, dtype: str) -> None:
    images, channels, rows, columns, outer, taps, *how, groups = shape
    kind, layout = getattr(torch, dtype), torch.contiguous_format
    layout = torch.channels_last if is_last else layout
    made = torch.Generator().manual_seed(0)

    def small(*size: int) -> Any:
        return torch.randint(-2, 3, size, generator=made).to(kind)

    x = small(images, channels, rows, columns).to(memory_format=layout)
    weight = small(outer, channels // groups, min(taps, rows), taps).requires_grad_()
    out = ops.conv2d(x, weight, None, *how, groups)
    grad = small(*out.shape).to(memory_format=layout)
    (found,) = torch.autograd.grad(out, weight, grad)
    exact = weight.detach().double().requires_grad_()
    expected = torch.nn.functional.conv2d(x.double(), exact, None, *how, groups)
    expected.backward(grad.double())
    assert torch.equal(found, exact.grad.to(kind))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["gaps", "expanded", "turned"])
def test_gradients_as_they_lie(layout: str, groups: int) -> None:
    made = torch.Generator().manual_seed(0)

    def small(*size: int) -> Any:
        return torch.randint(-2, 3, size, generator=made).float()

    x, weight = small(3, 8, 13, 12), small(6, 8 // groups, 3, 3).requires_grad_()
    how = 2, 1, 1, groups
    out = ops.conv2d(x, weight, None, *how)
    a, b, m, n = out.shape
    grad = {
        "gaps": small(a, 2 * b, 2 * m, 3 * n)[:, ::2, ::2, ::3],
        "expanded": torch.arange(n).float().expand(out.shape),
        "turned": small(a, b, n, m).transpose(2, 3),
    }[layout]
    (found,) = torch.autograd.grad(out, weight, grad)
    exact = weight.detach().double().requires_grad_()
    expected = torch.nn.functional.conv2d(x.double(), exact, None, *how)
    expected.backward(grad.double())
    assert torch.equal(found, exact.grad.float())
