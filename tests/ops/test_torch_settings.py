"""Tensors on `meta`, `torch.autocast`, wrong calls: as torch's functions do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
from torch.nn import functional

from tests.ops.function_cases import CASES, Case
from tests.ops.test_custom import product
from xetl import ops
from xetl.errors import LaunchError


def test_tensors_without_elements_have_results_without_elements() -> None:
    x = torch.rand(4, 8)
    ops.softmax(x, -1)  # the same call, of elements, is known
    ops.softmax(x, -1)
    x = x.to("meta")
    for found, wanted in (
        (ops.softmax(x, -1), torch.softmax(x, -1)),
        (ops.linear(x, x, x[:, 0]), functional.linear(x, x, x[:, 0])),
        (ops.sum(x, 1), x.sum(1)),
        (ops.bmm(x[None], x.T[None]), torch.bmm(x[None], x.T[None])),
    ):
        assert found.is_meta
        assert found.shape == wanted.shape
    image, weight = (torch.rand(2, 3, n, n, device="meta") for n in (6, 3))
    found = ops.conv2d(image, weight)
    assert found.is_meta
    assert found.shape == (2, 2, 4, 4)


def test_out_and_derivatives_on_meta() -> None:
    x = torch.rand(4, 8, device="meta")
    assert ops.relu(x, out=torch.empty_like(x)).is_meta
    x.requires_grad_()
    ops.layer_norm(x, (8,)).sum().backward()
    assert x.grad.is_meta
    assert x.grad.shape == (4, 8)


def test_tensors_with_and_without_elements_do_not_mix() -> None:
    with pytest.raises(LaunchError, match="X0813"):
        ops.matmul(torch.rand(4, 8), torch.rand(8, 4, device="meta"))
    with pytest.raises(LaunchError, match="`b` is on device `meta`, `a` on `cpu`"):
        torch.ops.xetl.matmul(torch.rand(4, 8), torch.rand(8, 4, device="meta"))


def _products(of: Any, f: Any, x: Any) -> list[Callable[[], Any]]:
    """Of our functions, or of torch's."""
    b, heads = x[None], x[None, None]
    return [
        lambda: of.matmul(x, x.to(torch.bfloat16)),
        lambda: f.linear(x, x, x[0]),
        lambda: of.bmm(b, b),
        lambda: of.addmm(x, x, x),
        lambda: of.baddbmm(b, b, b),
        lambda: f.conv1d(b, x[:, :, None]),
        lambda: f.conv2d(heads, heads[..., :3, :3]),
        lambda: f.scaled_dot_product_attention(heads, heads, heads),
    ]


def _others(of: Any, f: Any, x: Any) -> list[Callable[[], Any]]:
    target = torch.arange(8)
    return [
        lambda: f.cross_entropy(x, target),
        lambda: f.nll_loss(x, target),
        lambda: f.mse_loss(x, x + 1),
        lambda: f.kl_div(x, x, reduction="sum"),
        lambda: f.softmax(x, -1),
        lambda: f.layer_norm(x, (8,)),
        lambda: of.sum(x),
        lambda: f.gelu(x),
    ]


@pytest.mark.parametrize("made", [_products, _others])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("to", ["bfloat16", "float16"])
def test_autocast(made: Any, name: str, to: str) -> None:
    x = torch.rand(8, 8).to(getattr(torch, name))
    with torch.autocast("cpu", getattr(torch, to)):
        pairs = zip(made(ops, ops, x), made(torch, functional, x))
        for i, (ours, theirs) in enumerate(pairs):
            for _ in range(3):  # also calls like earlier ones
                found, wanted = ours(), theirs()
                assert found.dtype == wanted.dtype, i
                torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)


def test_autocast_leaves_f64_and_integers() -> None:
    x = torch.rand(4, 4, dtype=torch.float64)
    bytes_ = torch.ones(4, 4, dtype=torch.int8)
    with torch.autocast("cpu", torch.bfloat16):
        assert ops.matmul(x, x).dtype == torch.float64
        assert ops.matmul(bytes_, bytes_).dtype == torch.int32


def test_autocast_of_a_product_with_bias_and_activation() -> None:
    x, bias = torch.randn(4, 4), torch.randn(4)
    narrow = [each.bfloat16() for each in (x, x)]
    wanted = ops.matmul(*narrow, bias=bias.bfloat16(), activation="silu")
    with torch.autocast("cpu", torch.bfloat16):
        for _ in range(3):
            found = ops.matmul(x, x, bias=bias, activation="silu")
            assert torch.equal(found, wanted)


def test_random_numbers_are_drawn_once_under_autocast() -> None:
    x, q = torch.ones(64), torch.randn(1, 2, 8, 4).bfloat16()
    calls: list[Callable[[], Any]] = [
        lambda: ops.dropout(x, 0.5),
        lambda: ops.scaled_dot_product_attention(q, q, q, dropout_p=0.5),
    ]
    for call in calls:
        torch.manual_seed(0)
        wanted = [call() for _ in range(3)]
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16):
            for each in wanted:
                assert torch.equal(call(), each)


def test_a_call_is_known_and_then_autocast_is_on() -> None:
    x = torch.rand(4, 4)
    for _ in range(3):
        assert ops.matmul(x, x).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert ops.matmul(x, x).dtype == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert ops.matmul(x, x).dtype == torch.float32
    assert ops.matmul(x, x).dtype == torch.float32


def test_derivatives_under_autocast() -> None:
    x, weight = (torch.rand(4, 4, requires_grad=True) for _ in range(2))
    with torch.autocast("cpu", torch.bfloat16):
        ours, theirs = ops.linear(x, weight), functional.linear(x, weight)
    found, wanted = (
        torch.autograd.grad(y.float().square().sum(), (x, weight))
        for y in (ours, theirs)
    )
    for one, other in zip(found, wanted):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)


def test_autocast_in_a_compiled_function() -> None:
    def block(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return ops.matmul(x, x)

    x = torch.rand(4, 4)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    assert compiled(x).dtype == torch.bfloat16


X = torch.ones(3, 8)


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        (lambda: ops.max(X, X), "X0829", "`max` was given two arrays"),
        (lambda: ops.min(X, torch.tensor(1)), "X0829", "`min` was given two arrays"),
        (lambda: ops.max(X, 1, out=X), "X0827", "`max`: `out` is no sequence of 2"),
        (lambda: ops.sort(X, out=(X, X)), "X0828", "`sort` cannot give its result"),
        (lambda: ops.relu(None), "X0805", "`input` is not an array but a NoneType"),
        (lambda: ops.nll_loss(X, X), "X0828", "a target of f32"),
        (lambda: ops.cross_entropy(X, X.int()), "X0828", "a target of i32"),
        (lambda: ops.cross_entropy(X, X.double()), "X0828", "target of f64"),
        (lambda: ops.cross_entropy(X, X[1:]), "X0827", "`target` is .2, "),
        (
            lambda: ops.cross_entropy(X, X, ignore_index=0),
            "X0829",
            "`ignore_index` is 0, but `target` has probabilities",
        ),
        (
            lambda: ops.nll_loss(X[:, :0], torch.zeros(3, dtype=torch.int64)),
            "X0827",
            "`nll_loss`: `target` is .3,., but `input` is .3, 0.",
        ),
        (
            lambda: ops.embedding(torch.tensor([1]), X, 3),
            "X0827",
            "which has no row 3",
        ),
        (
            lambda: ops.cross_entropy(
                X.clone().requires_grad_(), torch.tensor([0, 1, 2]), out=torch.ones(())
            ),
            "X0838",
            "`cross_entropy` was given `out=`",
        ),
    ],
)
def test_what_is_said_of_wrong_calls(call: Any, code: str, said: str) -> None:
    with pytest.raises(LaunchError, match=said) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.file == __file__
    assert caught.value.help


@pytest.mark.parametrize("case", [case for case in CASES if case.smooth], ids=str)
def test_saved_tensors_are_unpacked_once(case: Case) -> None:
    check_unpacked_once(case.ours, case.make(torch.float32), case.smooth)


def test_saved_tensors_of_a_users_operator_are_unpacked_once() -> None:
    check_unpacked_once(product, (torch.ones(2, 3), torch.ones(3, 4)), 2)


def test_saved_tensors_of_norms_of_channels_are_unpacked_once() -> None:
    x, mean, variance, weight, bias = torch.randn(2, 4, 3), *torch.ones(4, 4)

    def both(x: Any, weight: Any, bias: Any) -> Any:
        x = ops.group_norm(x, 2, weight, bias)
        return ops.batch_norm(x, mean, variance, weight.clone(), bias)

    check_unpacked_once(both, (x, weight, bias), 3)


def check_unpacked_once(function: Any, given: Any, smooth: int) -> None:
    """Activation checkpoints compute a tensor again for one unpacking, and no more."""
    unpacked: list[int] = []

    def pack(x: Any) -> Any:
        packed.append(x)
        return len(packed) - 1

    def unpack(place: int) -> Any:
        unpacked.append(place)
        return packed[place]

    packed: list[Any] = []
    for each in given[:smooth]:
        each.requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        found = function(*given)
    first = found if isinstance(found, torch.Tensor) else found[0]
    first.sum().backward()
    assert sorted(unpacked) == sorted(set(unpacked))


def test_a_trace_sees_functions_that_were_called_before() -> None:
    x = torch.randn(16, 16)
    for _ in range(3):
        ops.relu(x)
    with pytest.warns(DeprecationWarning, match="trace"):
        traced = torch.jit.trace(lambda x: ops.relu(x) + 1, x)
    assert torch.equal(traced(x - 1), (x - 1).relu() + 1)
