"""Losses of rows of classes against torch's: many rows, rows that do not count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops
from xetl.ops.losses.kernels import cross_entropy_rows
from xetl.xetile import f32


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


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy"])
def test_classes_out_of_range_of_images(
    name: str, reduction: str, weighted: bool
) -> None:
    """The classes are the second dimension: columns are added up."""
    make = torch.Generator().manual_seed(1)
    x = torch.randn(2, 19, 5, 7, generator=make).log_softmax(1)
    target = torch.randint(19, (2, 5, 7), generator=make)
    weight = torch.rand(19, generator=make) if weighted else None
    options: dict[str, Any] = {"weight": weight, "reduction": reduction}
    ignored, outside = target.clone(), target.clone()
    ignored[:, ::2], outside[:, ::2] = -100, 19
    outside[:, 2] = -1
    theirs, ours = getattr(torch.nn.functional, name), getattr(ops, name)
    one, two, three = (x.clone().requires_grad_() for _ in range(3))
    wanted = theirs(one, ignored, **options)
    wanted.sum().backward()
    for each, labels in ((two, ignored), (three, outside)):
        found = ours(each, labels, **options)
        _close(found, wanted)
        found.sum().backward()
        _close(each.grad, one.grad)


def _close(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(found, wanted, equal_nan=True)


@pytest.mark.parametrize(("spreads", "loops"), [(False, 2), (True, 3)])
def test_what_is_not_spread_is_one_element_of_a_row(spreads: bool, loops: int) -> None:
    constants = {"SPREADS": spreads, "ACC": f32, "WIDTH": 1024}
    types = "f32[M,N] i64[M] None f32[M] f32[M] i64 f32"
    said: Any = cross_entropy_rows.explain(types, **constants, target="avx512")
    *_, passes = [each.text for each in said.remarks if each.topic == "passes"]
    assert f"{loops} times" in passes


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_that_are_infinite_or_nan(
    smoothing: float, reduction: str, weighted: bool
) -> None:
    """NaN where a row counts that has one, infinity where its class has none."""
    make = torch.Generator().manual_seed(0)
    x = torch.randn(24, 19, generator=make)
    target = torch.randint(4, 19, (24,), generator=make)
    x[1], target[1] = float("nan"), -100
    x[2, 3] = float("inf") if smoothing else -float("inf")
    if reduction == "none":
        x[3, 7] = float("nan")
        x[4, 5], target[4] = -float("inf"), 5
    options: dict[str, Any] = {"reduction": reduction, "label_smoothing": smoothing}
    if weighted:
        options["weight"] = torch.rand(19, generator=make)
    wanted = torch.nn.functional.cross_entropy(x, target, **options)
    _close(ops.cross_entropy(x, target, **options), wanted)


SHAPES = [(5,), (9, 5), (9, 19), (300, 100), (3, 5, 2, 4), (2, 19, 3, 70)]
BOUNDS = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", SHAPES)
def test_probabilities(
    shape: tuple[int, ...],
    reduction: str,
    smoothing: float,
    is_turned: bool,
    dtype: Any,
) -> None:
    """The loss and its derivatives, with weights and without, in any layout."""
    make = torch.Generator().manual_seed(1)
    x, y = (torch.rand(shape, generator=make).to(dtype) for _ in "xy")
    if is_turned and len(shape) > 1:
        y = y.transpose(0, 1).contiguous().transpose(0, 1)
    weight = torch.rand(shape[:2][-1], generator=make).to(dtype)
    options: dict[str, Any] = {"reduction": reduction, "label_smoothing": smoothing}
    for each in (None, weight):
        ours = [t.clone().requires_grad_() for t in (x, y)]
        theirs = [t.double().requires_grad_() for t in (x, y)]
        found = ops.cross_entropy(*ours, each, **options)
        exact = None if each is None else each.double()
        wanted = torch.nn.functional.cross_entropy(*theirs, exact, **options)
        grad = torch.rand(found.shape, generator=make).to(dtype)
        pairs = zip(
            (found, *torch.autograd.grad(found, ours, grad)),
            (wanted, *torch.autograd.grad(wanted, theirs, grad.double())),
        )
        for one, two in pairs:
            assert one.dtype == dtype
            bound = BOUNDS[dtype] * two.abs().max().item()
            torch.testing.assert_close(one.double(), two, rtol=0, atol=bound)


@pytest.mark.parametrize("classes", [3, 40])
def test_what_has_no_probability_may_be_impossible(classes: int) -> None:
    """With a probability of 0, minus infinity adds nothing, where torch gives NaN."""
    x, y = torch.zeros(4, classes), torch.zeros(4, classes)
    x[:, 0], y[:, 1] = -float("inf"), 1.0
    wanted = torch.log(torch.tensor(classes - 1.0))
    _close(ops.cross_entropy(x, y), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_derivative_of_nll_loss_goes_along_rows_in_pieces(
    weighted: bool, dtype: Any
) -> None:
    make = torch.Generator().manual_seed(2)
    ours, theirs = (torch.zeros(9, 700, dtype=dtype).requires_grad_() for _ in range(2))
    target = torch.tensor([0, 255, 256, 511, 512, 699, -100, 300, 1])
    weight = torch.rand(700, generator=make).to(dtype) if weighted else None
    ops.nll_loss(ours, target, weight).backward()
    torch.nn.functional.nll_loss(theirs, target, weight).backward()
    _close(ours.grad, theirs.grad)


@pytest.mark.parametrize("classes", [5, 300])
def test_saturated_rows_have_no_subnormal_gradients(classes: int) -> None:
    """An Intel core is 20 times slower at products of subnormal numbers."""
    make = torch.Generator().manual_seed(0)
    x = 40 * torch.randn((70, classes), generator=make)
    target = torch.randint(classes, (70,), generator=make)
    ours, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
    ops.cross_entropy(ours, target).backward()
    torch.nn.functional.cross_entropy(theirs, target).backward()
    least = 2.0**-126
    assert ((theirs.grad != 0) & (theirs.grad.abs() < least)).any()
    assert ((ours.grad == 0) | (ours.grad.abs() >= least)).all()
    # Differences of up to 300 are rounded to f32, and exponentials by as much.
    torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=4e-5, atol=1e-8)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 3, 1)])
@pytest.mark.parametrize("classes", [3, 20])
def test_images_with_gaps(classes: int, order: tuple[int, ...]) -> None:
    whole = torch.randn(5, classes, 4, 9).permute(order).contiguous()
    x = whole.permute(*np.argsort(order).tolist())[..., :7].requires_grad_()
    labels = torch.randint(-1, classes, (5, 4, 7))
    whole = x.detach().double().contiguous().requires_grad_()
    for name in ("cross_entropy", "nll_loss"):
        found = getattr(ops, name)(x, labels, ignore_index=-1)
        theirs = getattr(torch.nn.functional, name)
        wanted = theirs(whole, labels, ignore_index=-1)
        assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
        (by_ours,) = torch.autograd.grad(found, x)
        (by_theirs,) = torch.autograd.grad(wanted, whole)
        torch.testing.assert_close(by_ours, by_theirs.float(), atol=1e-6, rtol=1e-4)
