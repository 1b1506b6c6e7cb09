"""Arrays whose elements lie in memory in another order than by rows."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

from xetl import ops
from xetl.ops.calling.declare import Function
from xetl.ops.calling.operands import dense_strides, order_of

torch = pytest.importorskip("torch")
functional = torch.nn.functional

LAYOUTS = {
    "every second channel": lambda: torch.randn(4, 6, 5, 8)[:, ::2],
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
    "columns for all": lambda: torch.randn(3, 70, 1).expand(3, 70, 300),
    "one number for all": lambda: torch.randn(()).expand(70, 130),
    "long rows": lambda: torch.randn(2, 3, 70_001).transpose(0, 1),
    "narrow rows, a prime number": lambda: torch.randn(1013, 3),
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


@pytest.mark.parametrize("columns", [1, 3, 4, 20, 70])
def test_gradients_of_pairs_that_lie_in_two_orders(columns):
    """Few columns, too: the tiles of both results have them in two orders."""
    torch.manual_seed(0)
    x, y = torch.rand(300, columns).T, torch.rand(columns, 300)
    for a, b in ((x, y), (y, x)):
        leaves = a.detach().requires_grad_(), b.detach().requires_grad_()
        for name in ("mse_loss", "kl_div"):
            found, wanted = (
                torch.autograd.grad(getattr(f, name)(*leaves, reduction="sum"), leaves)
                for f in (ops, functional)
            )
            for one, other in zip(found, wanted, strict=True):
                near(one, other)


def test_columns_that_repeat_one_are_computed_once(x):
    """Each element is what it is in an array with elements of its own."""
    own = x.contiguous()
    for repeated in (x, own[..., :1].expand(x.shape)):
        same = repeated.contiguous()
        for name in ("relu", "silu"):
            function = getattr(ops, name)
            assert torch.equal(function(repeated), function(same))
        leaf = torch.randn(x.shape, requires_grad=True)
        found, wanted = (
            torch.autograd.grad(ops.silu(leaf), leaf, grad)[0]
            for grad in (repeated, same)
        )
        assert torch.equal(found, wanted)


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


def test_rows_by_number_are_selected_by_native_code(x, monkeypatch):
    """No call copies the array in Python, even if its rows have no common view."""
    for dim in range(x.ndim):
        index = torch.randint(x.shape[dim], (5,))
        wanted = torch.index_select(x, dim, index)
        select = partial(ops.index_select, x, dim, index)
        assert torch.equal(again(select), wanted)
        with monkeypatch.context() as patch:
            patch.setattr(Function, "_compute", None)
            assert torch.equal(select(), wanted)


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


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last)


IMAGES = {
    "few channels": lambda: last(torch.randn(3, 3, 8, 8)),
    "some channels": lambda: last(torch.randn(3, 12, 5, 7)),
    "channels": lambda: last(torch.randn(2, 48, 9, 8)),
    "part of channels": lambda: last(torch.randn(3, 40, 5, 8))[:, 3:20],
    "every second channel": lambda: torch.randn(3, 40, 5, 8)[:, ::2],
    "a part of each image": lambda: last(torch.randn(3, 12, 8, 8))[:, :, 1:5, 2:],
    "samples inward": lambda: torch.randn(12, 5, 8, 3).permute(3, 0, 1, 2),
}


@pytest.mark.parametrize("channels", IMAGES)
def test_norms_of_channels(channels):
    torch.manual_seed(0)
    x = IMAGES[channels]()
    n = x.shape[1]
    mean, variance = torch.randn(n), torch.rand(n) + 0.5
    for gradient in (torch.randn(x.shape), last(torch.randn(x.shape))):
        found = []
        for f in (ops.batch_norm, functional.batch_norm):
            each = x.clone(memory_format=torch.preserve_format).requires_grad_()
            weight, bias = (torch.ones(n, requires_grad=True) for _ in range(2))
            y = again(lambda f=f, a=(each, mean, variance, weight, bias): f(*a))
            y.backward(gradient)
            found.append((y, each.grad, weight.grad, bias.grad))
        for one, two in zip(*found):
            near(one, two)
    y = ops.batch_norm(x, mean, variance)
    near(y, functional.batch_norm(x, mean, variance))
    out = torch.zeros(x.shape)
    near(ops.batch_norm(x, mean, variance, out=out), y)
    call = torch.ops.xetl.batch_norm
    torch.library.opcheck(call, (x, mean, variance), test_utils="test_faketensor")


GROUPED = {
    **IMAGES,
    "more rows than a program has": lambda: last(torch.randn(2, 160, 13, 7)),
    "as many channels as pieces": lambda: last(torch.randn(1, 256, 9, 9)),
    "one element of each": lambda: last(torch.randn(3, 24, 1, 1)),
    "a large mean": lambda: last(torch.randn(2, 48, 9, 8) + 30),
    "in one dimension": lambda: torch.randn(3, 300, 12).transpose(1, 2),
}


@pytest.mark.parametrize("is_affine", [False, True])
@pytest.mark.parametrize("channels", GROUPED)
def test_norms_of_groups(channels, is_affine):
    torch.manual_seed(0)
    x = GROUPED[channels]()
    n = x.shape[1]
    affine = [torch.randn(n) for _ in "ab"] if is_affine else []
    slope = torch.randn(x.shape)
    for groups in {1, n, next(i for i in (4, 3, 17) if n % i == 0)}:
        for gradient in (slope, x * 0 + slope):
            found = []
            for f, dtype in ((ops, torch.float32), (functional, torch.float64)):
                args = [a.detach().to(dtype).requires_grad_() for a in (x, *affine)]
                call = lambda f=f, a=args, g=groups: f.group_norm(a[0], g, *a[1:])
                y = again(call)
                found.append((y, *torch.autograd.grad(y, args, gradient.to(dtype))))
            for one, two in zip(*found):
                bound = 3e-6 * (1 + float(x.detach().abs().max())) * x.numel() ** 0.5
                torch.testing.assert_close(one.double(), two, rtol=1e-5, atol=bound)
    y = ops.group_norm(x, groups, *affine)
    out = torch.zeros(x.shape)
    assert torch.equal(ops.group_norm(x, groups, *affine, out=out), y)
    call = torch.ops.xetl.group_norm
    torch.library.opcheck(call, (x, groups), test_utils="test_faketensor")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_of_groups_of_other_dtypes(dtype):
    torch.manual_seed(0)
    x = last(torch.randn(2, 24, 9, 8).to(dtype)).requires_grad_()
    weight, bias = (torch.randn(24).to(dtype).requires_grad_() for _ in "ab")
    wide = [a.detach().double().requires_grad_() for a in (x, weight, bias)]
    found, wanted = ops.group_norm(x, 3, weight, bias), functional.group_norm
    wanted = wanted(wide[0], 3, *wide[1:])
    slope = torch.randn(x.shape).to(dtype)
    ours = torch.autograd.grad(found, (x, weight, bias), slope)
    theirs = torch.autograd.grad(wanted, wide, slope.double())
    bound = 4 * torch.finfo(dtype).eps
    for one, two in zip((found, *ours), (wanted, *theirs)):
        bounds = {"rtol": bound, "atol": bound * float(two.detach().abs().max())}
        torch.testing.assert_close(one.double(), two, **bounds)
    if dtype is torch.float64:
        call = lambda *a: ops.group_norm(a[0], 3, *a[1:])
        assert torch.autograd.gradcheck(call, (x, weight, bias), fast_mode=True)


def test_norms_of_groups_of_nothing_and_of_nan():
    for shape in ((0, 24, 5, 8), (2, 24, 0, 8)):
        x = last(torch.randn(shape))
        assert ops.group_norm(x, 3).shape == shape
    x = last(torch.randn(2, 24, 5, 8))
    x[0, 9, 2, 3], x[1, 1, 0, 0] = float("nan"), float("inf")
    y = ops.group_norm(x, 3)
    wanted = functional.group_norm(x.contiguous(), 3)
    torch.testing.assert_close(y, wanted, rtol=2e-5, atol=2e-5, equal_nan=True)
    same = ops.group_norm(last(torch.full((2, 24, 5, 8), 0.1)), 3)
    assert same.abs().max() < 1e-4


def test_results_of_channels_lie_as_their_inputs_do():
    x = last(torch.randn(2, 12, 5, 8)).requires_grad_()
    y = ops.group_norm(x, 3)
    (by_x,) = torch.autograd.grad(y.sum(), x)
    of_batch = ops.batch_norm(x, *x.detach()[0, :, 0, :2].T ** 2)
    assert y.stride() == by_x.stride() == of_batch.stride() == x.stride()


SCORES = {
    "rows": lambda: torch.randn(30, 50),
    "few classes": lambda: torch.randn(300, 3),
    "transposed": lambda: torch.randn(50, 30).T,
    "images": lambda: torch.randn(2, 5, 9, 40),
    "channels last": lambda: last(torch.randn(2, 20, 9, 8)),
    "few channels last": lambda: last(torch.randn(2, 3, 9, 8)),
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


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_reductions_across_the_order_of_memory(order: tuple[int, ...]) -> None:
    place = np.argsort(order)
    values = np.random.default_rng(3).permutation(3 * 2 * 5 * 40).reshape(3, 2, 5, 40)
    x = (values / 64).astype(np.float32).transpose(place)
    for dim in range(4):
        wanted = x.astype(np.float64)
        for keep in (False, True):
            how = {"axis": dim, "keepdims": keep}
            assert np.allclose(ops.sum(x, dim, keep), wanted.sum(**how))
            assert np.array_equal(ops.amin(x, dim, keep), x.min(**how))
            assert np.array_equal(ops.argmax(x, dim, keep), x.argmax(**how))
            assert np.array_equal(ops.max(x, dim, keep)[0], x.max(**how))
            found = ops.var(x, dim, correction=0, keepdim=keep)
            assert np.allclose(found, wanted.var(**how))
