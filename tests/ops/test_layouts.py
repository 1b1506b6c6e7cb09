"""Arrays whose elements lie in memory in another order than by rows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from xetl import ops
from xetl.ops.calling.operands import dense_strides, order_of

torch = pytest.importorskip("torch")
functional = torch.nn.functional

LAYOUTS = {
    "transposed": lambda: torch.randn(130, 70).T,
    "rotated": lambda: torch.randn(3, 5, 70).permute(2, 0, 1),
    "rotated back": lambda: torch.randn(3, 5, 70).permute(1, 2, 0),
    "batch of transposed": lambda: torch.randn(3, 70, 80).transpose(1, 2),
    "with gaps": lambda: torch.randn(6, 40, 30).transpose(1, 2)[::2, ::3],
    "part of rows": lambda: torch.randn(40, 300)[:, :100],
    "every second row": lambda: torch.randn(6, 40, 30)[::2, ::2],
    "channels last": lambda: torch.randn(2, 3, 9, 8).to(
        memory_format=torch.channels_last
    ),
    "extent of 1": lambda: torch.randn(5, 1, 6).transpose(0, 2),
    "column for all": lambda: torch.randn(40, 1).expand(40, 9),
    "long rows": lambda: torch.randn(2, 3, 70_001).transpose(0, 1),
    "long columns": lambda: torch.randn(2, 65_536, 3).permute(2, 0, 1),
}


@pytest.fixture(params=LAYOUTS)
def x(request: Any) -> Any:
    torch.manual_seed(0)
    return LAYOUTS[request.param]()


def again(call: Any) -> Any:
    """The result of the third call, which native code has done."""
    call(), call()
    return call()


def near(found: Any, wanted: Any) -> None:
    torch.testing.assert_close(
        found.double(), wanted.double(), rtol=2e-5, atol=2e-5, equal_nan=True
    )


def test_results_of_elements_lie_as_their_inputs_do(x):
    wanted = functional.silu(x)
    found = again(lambda: ops.silu(x))
    near(found, wanted)
    if 0 not in x.stride():
        assert found.stride() == wanted.stride()
    array = x.numpy()
    found = again(lambda: ops.relu(array))
    np.testing.assert_array_equal(found, np.maximum(array, 0))
    assert found.strides == np.maximum(array, 0).strides


@pytest.mark.parametrize("gives_out", [False, True])
def test_operands_that_lie_differently(x, gives_out):
    y = torch.randn(x.shape)
    for a, b in ((x, y), (y, x)):
        out = torch.zeros(x.shape) if gives_out else None
        found = again(lambda a=a, b=b, out=out: ops.swiglu(a, b, out=out))
        near(found, functional.silu(a) * b)


def test_gradients(x):
    y = torch.randn(x.shape)
    x = x.clone(memory_format=torch.preserve_format)
    losses = [
        (lambda f: f.mse_loss(x, y)),
        (lambda f: (f.silu(x) * y).sum()),
        (lambda f: (f.softmax(x, -1) * y).sum()),
        (lambda f: (f.softmax(x, 0) * y).sum()),
    ]
    for loss in losses:
        x.requires_grad_()
        grads = [torch.autograd.grad(loss(f), x)[0] for f in (ops, functional)]
        near(*grads)


def dims_of(rank: int) -> list[Any]:
    some = range(1, rank + 1)
    return [None, *(c for k in some for c in itertools.combinations(range(rank), k))]


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "var"])
def test_reductions(x, name):
    for dim in dims_of(x.ndim):
        every = tuple(range(x.ndim)) if dim is None else dim
        for keepdim in (False, True):
            options = {"dim": every, "keepdim": keepdim}
            if name == "var":
                options["correction"] = 0
            wanted = getattr(torch, name)(x.double(), **options)
            found = again(lambda o=options: getattr(ops, name)(x, **o))
            torch.testing.assert_close(
                found.double(), wanted, rtol=1e-4, atol=3e-4, equal_nan=True
            )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(x, name):
    for dim in (None, *range(x.ndim)):
        for keepdim in (False, True):
            wanted = getattr(torch, name)(x, dim, keepdim)
            found = again(lambda d=dim, k=keepdim: getattr(ops, name)(x, d, k))
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(x, name, dim):
    wanted = getattr(torch, name)(x, dim)
    found = again(lambda: getattr(ops, name)(x, dim))
    near(found, wanted)
    assert found.is_contiguous()


def test_norms(x):
    shape = x.shape[-1:]
    weight = torch.randn(shape)
    near(
        again(lambda: ops.layer_norm(x, shape, weight)),
        functional.layer_norm(x, shape, weight),
    )
    near(
        again(lambda: ops.rms_norm(x, shape, weight, 1e-6)),
        functional.rms_norm(x, shape, weight, 1e-6),
    )


SCORES = {
    "rows": lambda: torch.randn(30, 50),
    "few classes": lambda: torch.randn(300, 3),
    "transposed": lambda: torch.randn(50, 30).T,
    "images": lambda: torch.randn(2, 5, 9, 40),
    "channels last": lambda: torch.randn(2, 20, 9, 8).to(
        memory_format=torch.channels_last
    ),
    "few channels last": lambda: torch.randn(2, 3, 9, 8).to(
        memory_format=torch.channels_last
    ),
    "images transposed": lambda: torch.randn(2, 5, 9, 40).transpose(2, 3),
    "with gaps": lambda: torch.randn(4, 10, 9, 40)[::2, ::2, ::3, 1:30],
}


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_losses_of_classes(name, is_weighted, reduction):
    torch.manual_seed(0)
    x = SCORES[name]().requires_grad_()
    classes = x.shape[1]
    target = torch.randint(0, classes, (x.shape[0], *x.shape[2:]))
    options = {"reduction": reduction, "ignore_index": 1}
    smooth = {"label_smoothing": 0.1} if is_weighted else {}
    if is_weighted:
        options["weight"] = torch.rand(classes)
    for loss, more in (("cross_entropy", smooth), ("nll_loss", {})):
        exact = x.double().contiguous()  # torch's derivative needs it so
        wanted = getattr(functional, loss)(exact, target, **double(options), **more)
        found = again(lambda f=loss, m=more: getattr(ops, f)(x, target, **options, **m))
        near(found, wanted)
        slope = torch.rand(found.shape)
        by_x = [torch.autograd.grad(y, x, slope.to(y))[0] for y in (found, wanted)]
        near(*by_x)


def double(options: dict[str, Any]) -> dict[str, Any]:
    return {
        k: v.double() if isinstance(v, torch.Tensor) else v for k, v in options.items()
    }


def test_torch_is_told_the_strides(x):
    if 0 in x.stride():
        x = x.contiguous()
    for operator in (torch.ops.xetl.relu, torch.ops.xetl.silu):
        torch.library.opcheck(operator, (x,), test_utils="test_faketensor")


def test_order_and_strides_are_inverse():
    for order in itertools.permutations(range(4)):
        strides = dense_strides((2, 3, 4, 5), order)
        assert (order_of((2, 3, 4, 5), strides) or (0, 1, 2, 3)) == order
    assert order_of((4, 9), (1, 0)) is None
    assert order_of((4, 1, 9), (1, 1, 4)) == (2, 1, 0)
