"""`ops.linear_cross_entropy`: as the product and the loss, with less memory."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.losses import fused_losses


@pytest.fixture(autouse=True)
def few_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_losses, "_SCORES", 64 * 50)


def made(dtype: Any) -> list[Any]:
    make = torch.Generator().manual_seed(0)
    shapes = (150, 24), (50, 24), (50,)
    return [torch.randn(each, generator=make).to(dtype) for each in shapes]


def labels() -> Any:
    found = torch.arange(150) * 7 % 50
    found[::9] = -100
    return found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"reduction": "sum", "label_smoothing": 0.1}, {"reduction": "none"}],
)
def test_loss_and_gradients(dtype: Any, is_weighted: bool, options: Any) -> None:
    if is_weighted:
        options = options | {"weight": (torch.arange(50) % 8 / 8).to(dtype)}
    ours, theirs = ([x.requires_grad_() for x in made(dtype)] for _ in range(2))
    x, w, b = ours
    found = ops.linear_cross_entropy(x, w, labels(), linear_bias=b, **options)
    x, w, b = theirs
    scores = torch.nn.functional.linear(x, w, b)
    wanted = torch.nn.functional.cross_entropy(scores, labels(), **options)
    close(found, wanted, BOUNDS[dtype])
    (3 * found).sum().backward()
    (3 * wanted).sum().backward()
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 4 * BOUNDS[dtype])


@pytest.mark.parametrize("which", range(3))
def test_only_the_gradients_that_are_wanted(which: int) -> None:
    x = made(torch.float32)
    x[which].requires_grad_()
    found = ops.linear_cross_entropy(*x[:2], labels(), linear_bias=x[2])
    saved = found.grad_fn.saved_tensors
    assert [each.numel() > 0 for each in saved] == [i == which for i in range(3)]
    (gradient,) = torch.autograd.grad(found, x[which])
    scores = torch.nn.functional.linear(*x)
    loss = torch.nn.functional.cross_entropy(scores, labels())
    (wanted,) = torch.autograd.grad(loss, x[which])
    close(gradient, wanted, 4 * BOUNDS[torch.float32])


def test_numpy_gradcheck_and_opcheck() -> None:
    x, w, _ = made(torch.float32)
    arrays = (x.numpy(), w.numpy(), labels().numpy())
    found = ops.linear_cross_entropy(*arrays)
    wanted = torch.nn.functional.cross_entropy(x @ w.T, labels())
    assert float(found) == pytest.approx(wanted.item(), rel=1e-5)
    operator = torch.ops.xetl.fused_class_loss.default
    given = [each.requires_grad_() for each in (x, w)]
    options = (None, None, -100, "mean", 0.0, True, True, False)
    torch.library.opcheck(operator, (*given, labels(), *options))
    compiled = torch.compile(
        lambda x, w: ops.linear_cross_entropy(x, w, labels()),
        fullgraph=True,
        backend="aot_eager",
    )
    close(compiled(x, w), wanted, 1e-5)


def test_what_is_refused() -> None:
    x, w, _ = made(torch.float32)
    for code, call in (
        ("X0829", lambda: ops.linear_cross_entropy(x, w, labels(), reduction="all")),
        ("X0827", lambda: ops.linear_cross_entropy(x, w, labels(), weight=x[0])),
        ("X0827", lambda: ops.linear_cross_entropy(x, w.T, labels())),
        ("X0828", lambda: ops.linear_cross_entropy(x, w, labels().int())),
    ):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.code == code
        assert caught.value.file == __file__


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_no_rows(reduction: str) -> None:
    x, w, b = (each.requires_grad_() for each in made(torch.float32))
    none = labels()[:0]
    found = ops.linear_cross_entropy(x[:0], w, none, linear_bias=b, reduction=reduction)
    scores = torch.nn.functional.linear(x[:0], w, b)
    wanted = torch.nn.functional.cross_entropy(scores, none, reduction=reduction)
    torch.testing.assert_close(found, wanted, equal_nan=True)
    found = torch.autograd.grad(
        ops.linear_cross_entropy(x[:0], w, none, linear_bias=b, reduction="sum"), (w, b)
    )
    assert not any(each.any() for each in found)


def test_a_class_out_of_range_counts_for_neither_the_loss_nor_the_gradients() -> None:
    x, w, _ = (each.requires_grad_() for each in made(torch.float32))
    some, ignored = labels(), labels()
    some[3], ignored[3] = 50, -100
    found = ops.linear_cross_entropy(x, w, some)
    wanted = ops.linear_cross_entropy(x, w, ignored)
    assert found.item() == wanted.item()
    (by_found,), (by_wanted,) = (torch.autograd.grad(y, w) for y in (found, wanted))
    torch.testing.assert_close(by_found, by_wanted)
