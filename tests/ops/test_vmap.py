"""``torch.func`` of functions of `xetl.ops`: ``vmap``, folded or not, and ``grad``."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import close
from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.calling.declare import FUNCTIONS

attention = torch.nn.functional.scaled_dot_product_attention


def normal(*shape: int) -> Any:
    make = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=make)


X, W = normal(3, 4, 18), normal(18)
FOLDED = [
    (ops.gelu, (X,), 0),
    (ops.gelu, (X,), 1),
    (ops.swiglu, (X, normal(3, 18)), (1, None)),
    (lambda x: ops.softmax(x, 0), (X,), 2),
    (lambda x: ops.log_softmax(x, -1), (X,), 1),
    (ops.sum, (X,), 0),
    (lambda x: ops.mean(x, (0,), True), (X,), 0),
    (lambda x: ops.argmax(x, 0), (X,), 0),
    (lambda x, w: ops.layer_norm(x, (18,), w), (X, W), (0, None)),
    (ops.matmul, (X, normal(2, 18, 5)), (0, None)),
    (ops.matmul, (normal(2, 4, 18), normal(3, 18, 5)), (None, 0)),
    (ops.linear, (X, normal(5, 18)), (1, None)),
    (
        lambda q, k, m: ops.scaled_dot_product_attention(q, k, k, m),
        (normal(2, 3, 4, 5, 8), normal(4, 7, 8), normal(2, 5, 7)),
        (0, None, 0),
    ),
]
LOOPED = [
    (ops.gelu, (W,), 0),
    (lambda x, w: ops.layer_norm(x, (18,), w), (X, normal(3, 18)), (0, 0)),
    (ops.matmul, (normal(3, 18), normal(18, 5)), (0, None)),
    (lambda x: ops.sort(x, 0), (X,), 2),
    (lambda x: ops.cumsum(x, 0), (W,), 0),
    (lambda x: ops.max(x, 1), (X,), 0),
]


@pytest.mark.parametrize("looped", [False, True])
@pytest.mark.parametrize("number", range(max(len(FOLDED), len(LOOPED))))
def test_each_is_as_a_loop(number: int, looped: bool) -> None:
    cases = LOOPED if looped else FOLDED
    if number >= len(cases):
        return
    function, given, dims = cases[number]
    dims = dims if isinstance(dims, tuple) else (dims,)
    size = next(x.shape[d] for x, d in zip(given, dims) if d is not None)
    wanted = []
    for i in range(size):
        each = function(
            *(x if d is None else x.select(d, i) for x, d in zip(given, dims))
        )
        wanted.append(each if isinstance(each, tuple) else (each,))
    found = torch.func.vmap(function, in_dims=dims)(*given)
    found = found if isinstance(found, tuple) else (found,)
    for one, two in zip(found, zip(*wanted)):
        close(one, torch.stack(two), 1e-5)


def test_a_fold_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """And derivatives of what is outside of the batch are there."""
    shapes: list[Any] = []
    declared = FUNCTIONS["xetl::silu"]
    compute = declared.compute

    def counted(*args: Any) -> Any:
        shapes.append(tuple(args[0].shape))
        return compute(*args)

    monkeypatch.setattr(declared, "compute", counted)
    x = X.clone().requires_grad_()
    y = torch.func.vmap(torch.func.vmap(ops.silu), in_dims=1)(x)
    assert len(shapes) == 1
    y.sum().backward()
    like = X.clone().requires_grad_()
    torch.nn.functional.silu(like).sum().backward()
    close(x.grad, like.grad, 1e-5)


B = normal(18, 5)
SLOPES = [
    (lambda x: ops.softmax(x, 1), lambda x: torch.softmax(x, 1)),
    (lambda x: ops.matmul(x, B), lambda x: x @ B),
    (
        lambda x: ops.layer_norm(ops.gelu(x), (18,), W),
        lambda x: torch.layer_norm(torch.nn.functional.gelu(x), (18,), W),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), SLOPES)
def test_gradients(ours: Any, theirs: Any) -> None:
    func = torch.func
    of, like = (func.grad(lambda x, f=f: f(x).square().sum()) for f in (ours, theirs))
    for _ in range(3):
        close(of(X[0]), like(X[0]), 1e-5)
    close(func.vmap(of)(X), func.vmap(like)(X), 1e-5)  # of each sample
    close(func.jacrev(ours)(X[0]), func.jacrev(theirs)(X[0]), 1e-5)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_forwards_there_is_no_derivative() -> None:
    """Torch would take the tangent for zeros."""
    x = X[0]
    for _ in range(3):
        ops.softmax(x, 1)
        with pytest.raises(LaunchError, match="`softmax` has no derivative forwards"):
            torch.func.jvp(lambda x: ops.softmax(x, 1), (x,), (x,))
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            for function in (ops.softmax, torch.ops.xetl.softmax):
                with pytest.raises(LaunchError, match="`input` has a tangent"):
                    function(dual, 1)
