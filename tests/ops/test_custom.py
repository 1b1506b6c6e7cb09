"""`@xetl.op`: functions of users as operators of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xetl
from xetl import xetile
from xetl.errors import LaunchError
from xetl.xetile import constexpr

torch: Any = pytest.importorskip("torch")


@xetile.kernel
def scale_kernel(X, Y, factor: float, N: constexpr):
    first = xetile.program_id(0) * N
    x = xetile.load_tile(xetile.init_tile(X, [first], (N,)))
    xetile.store_tile(x * factor, xetile.init_tile(Y, [first], (N,)))


def launch(x: Any, y: Any, factor: float) -> None:
    scale_kernel[xetile.cdiv(x.size if isinstance(x, np.ndarray) else x.numel(), 64)](
        x.reshape(-1), y.reshape(-1), factor, 64
    )


def scale_backward(grad: Any, factor: float) -> Any:
    found = torch.empty_like(grad)
    launch(grad.contiguous(), found, factor)
    return found


@xetl.op("tests::scale", backward=scale_backward)
def scale(x, factor: float = 2.0):
    """``x * factor``."""
    y = np.empty_like(x) if isinstance(x, np.ndarray) else torch.empty_like(x)
    launch(x, y, factor)
    return y


def product_backward(ctx: Any, grad: Any) -> Any:
    a, b, _ = ctx.saved_tensors
    return grad @ b.T, a.T @ grad


@xetl.op(
    "tests::product",
    out=lambda a, b: a.new_empty(a.shape[0], b.shape[1]),
    backward=product_backward,
)
def product(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    xetl.ops.matmul(a, b, out=out)


def split_backward(g: Any, h: Any, x: Any) -> Any:
    return g * (x > 0) - h * (x < 0)


@xetl.op("tests::split", out=("x", "x"), backward=split_backward)
def split(x):
    return x.clamp(min=0), (-x).clamp(min=0)


@xetl.op("tests::plain", out=lambda x: (x.shape[0],))
def plain(x):
    return x.sum(1)


@xetile.kernel(grid=lambda a: xetile.cdiv(a.X.shape[0], 64))
def filled_kernel(X, Y, N: constexpr = 64):
    first = xetile.program_id(0) * N
    x = xetile.load_tile(xetile.init_tile(X, [first], (N,)))
    xetile.store_tile(x + 1, xetile.init_tile(Y, [first], (N,)))


filled = xetl.op("tests::filled", out="X")(filled_kernel)


@pytest.mark.parametrize("needs", [False, True])
def test_several_results_are_declared(needs: bool) -> None:
    @xetl.op("tests::two", backward=lambda grad, x: grad)
    def two(x):
        return 2 * x, 3 * x

    x = torch.ones(3, requires_grad=needs)
    with pytest.raises(LaunchError, match="`two` gave 2 results") as caught:
        (two if needs else torch.ops.tests.two)(x)
    assert caught.value.code == "X0829"


@pytest.mark.parametrize("out", ["Y", ("X", "Z")])
def test_out_that_names_no_argument(out: Any) -> None:
    with pytest.raises(LaunchError, match=f"`out=` .* names `{out[-1]}`") as caught:
        xetl.op("tests::wrong", out=out)(filled_kernel)
    assert caught.value.code == "X0829"
    assert caught.value.help == "name the argument that the result is like: `X`"


def model(x: Any, w: Any) -> Any:
    one, two = split(scale(x + 1, 3.0) * 2)
    return product(one + 2 * two, w).sin()


def expected(x: Any, w: Any) -> Any:
    y = (x + 1) * 6
    return ((y.clamp(min=0) + 2 * (-y).clamp(min=0)) @ w).sin()


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives(compiled: bool) -> None:
    torch._dynamo.reset()
    ours = [torch.randn(7, 16), torch.randn(16, 9)]
    theirs = [each.clone().requires_grad_() for each in ours]
    ours = [each.requires_grad_() for each in ours]
    called = model
    if compiled:
        called = torch.compile(model, fullgraph=True, backend="aot_eager")
    found, wanted = called(*ours), expected(*theirs)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    found.sum().backward()
    wanted.sum().backward()
    for one, two in zip(ours, theirs):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-3, atol=1e-3)


def test_opcheck() -> None:
    x, w = torch.randn(7, 16, requires_grad=True), torch.randn(16, 9)
    for operator, args in (
        (torch.ops.tests.scale.default, (x, 3.0)),
        (torch.ops.tests.product.default, (x, w.requires_grad_())),
        (torch.ops.tests.plain.default, (x.detach(),)),
    ):
        torch.library.opcheck(operator, args)


def test_arrays_of_numpy() -> None:
    x = np.ones((2, 70), np.float32)
    found = scale(x, factor=5.0)
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, 5 * x)
    assert np.array_equal(filled(x[0]), 2 * x[0])
    assert scale.__doc__ == "``x * factor``."


def test_a_kernel_is_an_operator() -> None:
    x = torch.randn(100)
    assert torch.equal(filled(x), x + 1)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda x: filled(x) * 2, fullgraph=True, backend="aot_eager"
    )
    assert torch.equal(compiled(x), (x + 1) * 2)


def test_what_has_no_derivative_says_so() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    with pytest.raises(LaunchError, match="`plain` cannot be differentiated") as caught:
        plain(x).sum().backward()
    assert caught.value.code == "X0838"


@pytest.mark.parametrize("count", [1, 3])
def test_each_array_needs_a_gradient(count: int) -> None:
    @xetl.op(f"tests::gradients{count}", backward=lambda grad, a, b: (grad,) * count)
    def both(a, b):
        return a * b

    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    problem = f"gave {count} gradients for 2 arrays"
    with pytest.raises(LaunchError, match=problem) as caught:
        both(a, b).sum().backward()
    assert caught.value.code == "X0829"


def test_wrong_names() -> None:
    names: list[Any] = ["scale", "a::", "a::b::c", "1::2", len]
    for wrong in names:
        with pytest.raises(LaunchError) as caught:
            xetl.op(wrong)
        assert caught.value.code == "X0829"
        assert caught.value.file == __file__


def test_what_is_no_function() -> None:
    wrong: Any = 3
    with pytest.raises(LaunchError, match="is made of 3, no function") as caught:
        xetl.op("tests::wrong")(wrong)
    assert (caught.value.code, caught.value.file) == ("X0829", __file__)
    with pytest.raises(LaunchError, match="is given 3, no function"):
        xetl.op("tests::wrong", backward=wrong)(lambda x: x)


def test_a_name_declared_again_is_the_new_function_everywhere() -> None:
    for step in (1.0, 2.0):

        @xetl.op("tests::again")
        def again(x: Any, step: float = step) -> Any:
            return x + step

        x = torch.zeros(2)
        for called in (again, torch.ops.tests.again):
            assert (called(x) == step).all()


def test_functions_inside_are_under_autocast() -> None:
    x, seen = torch.randn(4, 4, requires_grad=True), list[Any]()

    @xetl.op("tests::dtype_inside")
    def product_inside(x):
        seen.append(xetl.ops.matmul(x, x).dtype)
        return x.clone()

    with torch.autocast("cpu", torch.bfloat16):
        for _ in range(3):
            product_inside(x.detach())
    assert seen == [torch.bfloat16] * 3
