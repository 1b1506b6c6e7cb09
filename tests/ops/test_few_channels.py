"""`ops.conv2d` of few channels: what its gradients are computed from."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_convolutions import WIDE, normal
from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops
from xetl.language.dtypes import bf16, f32
from xetl.ops.calling.declarations import temporary
from xetl.ops.calling.views import sums_of
from xetl.ops.convolution import by_weight, costs, plans, weight_kernels
from xetl.ops.convolution.geometry import Geometry, phases
from xetl.ops.convolution.windows import LAST


def endless(*_: Any) -> float:
    """The cost of a way that is not to be taken, on whatever machine."""
    return inf


def a_line(*_: Any) -> int:
    """The elements of k that products on tiles take, on whatever machine."""
    return 32


def only_rows(monkeypatch: Any) -> None:
    """Let sums of rows be the only way, for as many channels as of AVX-512."""
    monkeypatch.setattr(
        plans, "vectors_of", lambda x: (32, 512 // sums_of(x.dtype).bits)
    )
    for other in ("cost_of_products", "cost_of_scattering"):
        monkeypatch.setattr(plans, other, endless)
    monkeypatch.setattr(plans, "_of_windows", None)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize(
    ("shape", "kernel", "how"),
    [
        ((2, 3, 33, 64), (40, 3, 3, 3), (1, 1, 1, 1)),
        ((3, 1, 50, 141), (20, 1, 7, 5), (2, (1, 3), (2, 1), 1)),
        ((70, 1, 16, 29), (6, 1, 1, 2), (1, 0, 1, 1)),
        ((2, 12, 35, 95), (21, 4, 2, 3), (1, (1, 0), 1, 3)),
    ],
)
def test_gradient_of_few_channels_by_the_weight(
    shape: Any, kernel: Any, how: Any, dtype: Any, monkeypatch: Any
) -> None:
    """Sums of rows; no product is made."""
    monkeypatch.setattr(by_weight, "room_of", lambda _: 1 << 18)
    monkeypatch.setattr(by_weight, "cost_of_weight_products", endless)
    for product in ("convolution_by_weight", "convolution_by_windows"):
        monkeypatch.setattr(by_weight, product, None)
    x, weight = normal(*shape).to(dtype), normal(*kernel).to(dtype).requires_grad_()
    wanted = torch.nn.functional.conv2d(x, weight, None, *how)
    grad = normal(*wanted.shape).to(dtype)
    (found,) = torch.autograd.grad(ops.conv2d(x, weight, None, *how), weight, grad)
    close(found, *torch.autograd.grad(wanted, weight, grad), 8 * BOUNDS[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "padding"),
    [
        ((2, 3, 17, 23), (90, 3, 5, 4), (2, 3), (1, 2)),
        ((1, 1, 1, 300), (60, 1, 1, 11), (1, 4), 0),
        ((2, 2, 10, 14), (5, 2, 2, 2), 3, 0),  # some pixels are in no window
    ],
)
def test_gradient_of_few_channels_by_the_input(
    shape: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    is_last: bool,
    dtype: Any,
    monkeypatch: Any,
) -> None:
    """One product and sums over windows; phases of the stride are not computed."""
    monkeypatch.setattr(plans, "cost_of_scattering", lambda *_: 0)
    monkeypatch.setattr(plans, "by_input", None)
    kind = torch.channels_last if is_last else torch.contiguous_format
    x = normal(*shape).to(dtype).to(memory_format=kind).requires_grad_()
    weight = normal(*kernel).to(dtype)
    out, exact = ops.conv2d(x, weight, None, stride, padding), x.double()
    wanted = torch.conv2d(exact, weight.double(), None, stride, padding)
    grad = normal(*out.shape).to(dtype)
    (found,) = torch.autograd.grad(out, x, grad)
    close(found, *torch.autograd.grad(wanted, x, grad.double()), BOUNDS[dtype])


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize(
    ("shape", "kernel", "how"),
    [
        ((2, 6, 21, 30), (6, 6, 3, 3), (1, 1)),
        ((2, 5, 19, 48), (3, 5, 4, 2), (1, (2, 0), (1, 2))),
        ((1, 16, 40, 62), (1, 16, 9, 9), (1, 4)),
    ],
)
def test_few_channels_are_sums_of_rows(
    shape: Any, kernel: Any, how: Any, dtype: Any, monkeypatch: Any
) -> None:
    """Products would leave lanes of their vectors without use."""
    only_rows(monkeypatch)
    x, weight = normal(*shape).to(dtype), normal(*kernel).to(dtype)
    exact = torch.conv2d(x.double(), weight.double(), None, *how)
    close(ops.conv2d(x, weight, None, *how), exact.to(dtype), BOUNDS[dtype])


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize(
    ("shape", "kernel", "how"),
    [
        ((2, 1, 28, 28), (8, 1, 5, 5), (2, 2)),
        ((2, 3, 17, 32), (16, 3, 3, 3), (1, 1)),
        ((1, 4, 30, 45), (6, 4, 3, 5), ((2, 3), (1, 0))),
        ((1, 2, 60, 60), (4, 2, 3, 3), (3, 0, 2)),
    ],
)
def test_gradient_of_few_channels_as_sums_of_rows(
    shape: Any, kernel: Any, how: Any, dtype: Any, monkeypatch: Any
) -> None:
    """Each phase of the stride is a part of the result."""
    only_rows(monkeypatch)
    x, weight = normal(*shape).to(dtype).requires_grad_(), normal(*kernel).to(dtype)
    out, exact = ops.conv2d(x, weight, None, *how), x.double()
    wanted = torch.conv2d(exact, weight.double(), None, *how)
    grad = normal(*out.shape).to(dtype)
    (found,) = torch.autograd.grad(out, x, grad)
    close(found, *torch.autograd.grad(wanted, x, grad.double()), BOUNDS[dtype])


@pytest.mark.parametrize("order", [None, LAST])
def test_few_channels_that_lie_last_stay_so(order: Any, monkeypatch: Any) -> None:
    """Their gradient by the weight is a product, which took half of the time."""
    monkeypatch.setattr(by_weight, "cost_of_weight_products", endless)
    g = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (32, 64))
    shapes = (2, 8, 32, 64), (2, 3, 32, 64)
    grad, x = (temporary(shape, f32, order=order) for shape in shapes)
    steps = by_weight.by_weight(grad, x, temporary((8, 3, 3, 3), f32), g, 1)
    launched = [step.launch.kernel for step in steps]
    assert (weight_kernels.direct_by_weight in launched) == (order is None)


ONE, TWO = (1, 1), (2, 2)


@pytest.mark.parametrize(
    ("channels", "side", "taps", "stride", "ways"),
    [
        ((8, 8), 56, (3, 3), ONE, "rows rows rows"),
        ((8, 8), 28, (3, 3), ONE, "rows rows rows"),
        ((8, 16), 7, (3, 3), ONE, "product product product"),
        ((64, 64), 28, (3, 3), ONE, "product product product"),
        ((64, 3), 56, (3, 3), ONE, "rows rows rows"),
        ((3, 16), 32, (3, 3), ONE, "rows rows rows"),
        ((1, 8), 28, (5, 5), TWO, "rows rows rows"),
        ((3, 64), 64, (4, 4), (4, 4), "rows scattered product"),
        ((3, 64), 112, (7, 7), TWO, "product rows product"),
    ],
)
def test_the_ways_of_a_machine_with_vectors_of_16(
    channels: Any, side: int, taps: Any, stride: Any, ways: str, monkeypatch: Any
) -> None:
    """What was measured to be the fastest in f32: forward, by the input, the weight."""
    for module in (costs, plans, by_weight):
        monkeypatch.setattr(module, "vectors_of", lambda _: (32, 16))
    for module in (plans, by_weight):
        monkeypatch.setattr(module, "room_of", lambda _: 1 << 18)
    inner, outer = channels
    first = 0 if taps == stride else taps[0] // 2
    size = (side + 2 * first - taps[0]) // stride[0] + 1
    g = Geometry(taps, stride, ONE, (first, first), (size, size))
    x, made = (
        temporary(shape, f32)
        for shape in ((1, inner, side, side), (1, outer, size, size))
    )
    parts = phases((side, side), taps, (stride, ONE, (first, first)))
    forward = plans.adds_rows(x, made, [g], channels)
    back = made, x, parts, (outer, inner)
    by_input = "rows" if plans.adds_rows(*back) else "product"
    if plans.scatters(made, x, g, parts, (outer, inner)):
        by_input = "scattered"
    weight = by_weight.suits_sums(x, g, channels)
    found = ["rows" if is_so else "product" for is_so in (forward, weight)]
    assert [found[0], by_input, found[1]] == ways.split()


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    ("shape", "kernel", "how"),
    [
        ((2, 6, 15, 37), (20, 6, 3, 3), (1, 1, 1, 1)),
        ((1, 12, 13, 21), (33, 12, 5, 2), ((2, 1), (2, 1), (1, 2), 1)),
        ((2, 20, 9, 12), (40, 10, 3, 3), (1, 1, 1, 2)),
    ],
)
def test_windows_of_no_whole_lines_are_copied_for_tiles(
    shape: Any, kernel: Any, how: Any, order: Any, monkeypatch: Any
) -> None:
    """All taps side by side, so that a tile is one product; on whatever machine."""
    for module in (plans, costs):
        monkeypatch.setattr(module, "step_of_k", a_line)
    monkeypatch.setattr(plans, "cost_of_sums", endless)
    # Private: whether windows are copied cannot be seen from outside.
    seen, copies = list[Any](), plans._copied  # pyright: ignore[reportPrivateUsage]

    def record(*args: Any) -> Any:
        seen.append(copies(*args))
        return seen[-1]

    monkeypatch.setattr(plans, "_copied", record)
    x, weight = normal(*shape).bfloat16(), normal(*kernel).bfloat16()
    x[0, 0, 0, 0], x[-1, -1, -1, -1] = inf, torch.nan
    x = x.to(memory_format=order)
    wanted = torch.nn.functional.conv2d(x.double(), weight.double(), None, *how)
    found = ops.conv2d(x, weight, None, *how)
    assert torch.equal(found.isnan(), wanted.isnan())
    torch.testing.assert_close(
        found.double(), wanted, rtol=BOUNDS[torch.bfloat16], atol=0.05, equal_nan=True
    )
    assert seen
    assert all(columns % 32 == 0 for _, columns in seen)


def test_gradient_by_the_weight_of_whole_steps(monkeypatch: Any) -> None:
    """Zeros behind rows of 14 pixels make whole steps of k; none meets a pixel."""
    for module in (by_weight, costs):
        monkeypatch.setattr(module, "step_of_k", a_line)
    monkeypatch.setattr(by_weight, "cost_of_weight_sums", endless)
    g = Geometry((3, 3), (1, 1), (1, 1), (1, 1), (14, 14))
    shapes = (3, 40, 14, 14), (3, 24, 14, 14), (40, 24, 3, 3)
    grad, x, made = (temporary(shape, bf16) for shape in shapes)
    steps = by_weight.by_weight(grad, x, made, g, 1)
    last = [s for s in steps if s.launch.kernel is weight_kernels.convolution_by_weight]
    assert last[0].launch.constants[-1] == 14 * 16
    images, pixels = normal(*shapes[1]).bfloat16(), normal(*shapes[0]).bfloat16()
    images[0, 0, 0, 0], images[0, 0, -1, -1] = inf, inf
    weight = normal(*shapes[2]).bfloat16().requires_grad_()
    out = ops.conv2d(images, weight, None, 1, 1)
    (found,) = torch.autograd.grad(out, weight, pixels)
    images[0, 0, 0, 0], images[0, 0, -1, -1] = 0, 0
    exact = weight.detach().double().requires_grad_()
    out = torch.nn.functional.conv2d(images.double(), exact, None, 1, 1)
    (wanted,) = torch.autograd.grad(out, exact, pixels.double())
    # Only the taps that see these pixels are not finite.
    seen = torch.zeros(3, 3, dtype=torch.bool)
    seen[:2, :2] = seen[1:, 1:] = True
    assert torch.equal(~found[:, 0].isfinite(), seen.expand(40, 3, 3))
    found[:, 0, seen], wanted[:, 0, seen] = 0, 0
    close(found, wanted.bfloat16(), 8 * BOUNDS[torch.bfloat16])
