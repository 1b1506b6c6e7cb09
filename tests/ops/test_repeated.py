"""Calls like an earlier one: the same results, whatever else has changed."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch.nn import functional

from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.calling import calls as calls_of_ops
from xetl.ops.calling import repeated
from xetl.ops.calling.calls import Launch
from xetl.ops.calling.declare import Function

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "softmax": (ops.softmax, lambda x: torch.softmax(x, -1)),
    "relu": (ops.relu, torch.relu),
    "sum": (ops.sum, torch.sum),
    "columns": (lambda x: ops.sum(x, 0), lambda x: torch.sum(x, 0)),
    "norm": (
        lambda x: ops.layer_norm(x, (20,)),
        lambda x: functional.layer_norm(x, (20,)),
    ),
}


def some(seed: int, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(512, 20, generator=generator).to(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_elements(name: str, dtype: Any) -> None:
    ours, theirs = FUNCTIONS[name]
    for seed in range(3):
        x = some(seed, dtype)
        torch.testing.assert_close(ours(x), theirs(x), atol=1e-2, rtol=2e-2)
        strided = some(seed, dtype).T.contiguous().T
        found = ours(strided)
        torch.testing.assert_close(found, theirs(strided), atol=1e-2, rtol=2e-2)
    if dtype is torch.float32:
        for seed in range(3):
            array = some(seed).numpy()
            found = torch.from_numpy(np.array(ours(array)))
            torch.testing.assert_close(found, theirs(some(seed)), atol=1e-4, rtol=1e-4)


def test_autograd_hears_of_results() -> None:
    x, out = some(0), torch.empty(512, 20)
    for _ in range(3):
        before = out._version
        assert ops.softmax(x, out=out) is out
        assert out._version > before
    for _ in range(2):  # after calls that nobody recorded
        leaf = some(1).requires_grad_()
        ops.softmax(leaf).square().sum().backward()
        other = some(1).requires_grad_()
        torch.softmax(other, -1).square().sum().backward()
        torch.testing.assert_close(leaf.grad, other.grad, atol=1e-5, rtol=1e-4)
        with torch.no_grad():
            torch.testing.assert_close(ops.softmax(leaf), torch.softmax(leaf, -1))


def test_a_sign_that_is_not_applied() -> None:
    """Of equal shape, strides and dtype as tensors that kernels read where they are."""
    pairs = torch.complex(some(0), some(1))
    plain, turned = pairs.imag, pairs.conj().imag
    assert turned.is_neg()
    for function in (ops.relu, ops.softmax):
        for _ in range(2):
            function(plain)
        with pytest.raises(LaunchError, match="`input` is a tensor whose sign"):
            function(turned)
        torch.testing.assert_close(ops.relu(plain), torch.relu(plain))


def test_other_kinds_of_tensors() -> None:
    x = some(3)
    for _ in range(2):
        ops.relu(x)
    parameter = torch.nn.Parameter(x.clone())
    assert ops.relu(parameter).requires_grad
    with torch.inference_mode():
        inner = some(3)
        torch.testing.assert_close(ops.relu(inner), torch.relu(inner))
    halves = torch.vmap(ops.relu)(x.reshape(2, 256, 20))
    torch.testing.assert_close(halves.reshape(512, 20), torch.relu(x))


def test_results_without_dimensions_and_several_results() -> None:
    for seed in range(3):
        x = some(seed)
        total = ops.sum(x)
        assert total.shape == ()
        torch.testing.assert_close(total, x.sum(), atol=1e-3, rtol=1e-4)
        mine, theirs = ops.sort(x, 1), torch.sort(x, 1)
        torch.testing.assert_close(mine[0], theirs[0])
        array = ops.sum(x.numpy())
        assert isinstance(array, np.ndarray)
        assert array.shape == ()


@pytest.mark.parametrize("of_numpy", [True, False])
def test_in_place_and_parts_of_one_array(of_numpy: bool) -> None:
    for seed in range(3):
        x = some(seed)
        wanted, whole = torch.relu(x), some(seed)
        out = whole[1:]
        if of_numpy:
            x, whole = x.numpy(), whole.numpy()
            out = whole[1:]
        ops.relu(x, out=x)
        torch.testing.assert_close(torch.as_tensor(x), wanted)
        with pytest.raises(LaunchError, match="memory"):
            ops.relu(whole[:-1], out=out)


def test_one_array_as_two_operands_and_then_two() -> None:
    for seed in range(4):
        a, b = torch.rand(2, 24, 24, generator=torch.Generator().manual_seed(seed))
        second = a if seed < 2 else b
        found = ops.addmm(b, a, second)
        torch.testing.assert_close(found, torch.addmm(b, a, second))
        torch.testing.assert_close(ops.matmul(a, second), a @ second)


def test_arrays_that_must_not_or_cannot_be_used() -> None:
    x, out = some(0).numpy(), np.empty((512, 20), np.float32)
    for _ in range(2):
        ops.relu(x, out=out)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="read-only"):
        ops.relu(x, out=out)
    odd = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
    odd[...] = x
    np.testing.assert_array_equal(ops.relu(odd), np.maximum(x, 0))
    tensor = some(0)
    for _ in range(2):
        ops.relu(tensor)
    tensor = some(0)  # one that NumPy has not seen, for then torch resizes none
    tensor.untyped_storage().resize_(8)
    with pytest.raises(LaunchError, match="storage"):
        ops.relu(tensor)


def test_settings_count_from_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    x = some(0)[:2]
    for _ in range(2):
        ops.softmax(x)
    monkeypatch.setenv("XETL_BACKEND", "nothing")
    with pytest.raises(LaunchError, match="nothing"):
        ops.softmax(x)


def test_arrays_of_earlier_calls_are_not_kept() -> None:
    array = some(0).numpy().copy()
    kept = weakref.ref(array)
    for _ in range(2):
        ops.relu(array)
        ops.matmul(array, array[:20])
    del array
    gc.collect()
    assert kept() is None


def squared(x: Any) -> Any:
    return ops.matmul(x, b=x)


def turned(x: Any) -> Any:
    """Neither rows nor columns first in memory, as heads of attention lie."""
    return x.reshape(8, 64, 20).swapaxes(0, 1)


@pytest.mark.usefixtures("records_first_calls")
def test_a_second_call_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, zeros = torch.randint(20, (512,)), torch.zeros(512, 1, 2, dtype=torch.int64)
    calls: list[Callable[[Any], Any]] = [
        ops.relu,
        ops.sum,
        lambda x: ops.sum(x, dim=(0, 1), keepdim=True),
        lambda x: ops.sort(x, 1),
        lambda x: ops.matmul(x[1:20], x.T),
        lambda x: squared(x[:20]),
        lambda x: ops.layer_norm(x[2:], (20,), weight=x[0], bias=x[1]),
        lambda x: ops.cross_entropy(x, labels if x is tensor else labels.numpy()),
        lambda x: ops.nll_loss(
            x[:, None, None, :2], zeros if x is tensor else zeros.numpy()
        ),
        lambda x: ops.sum(x[:, :18], dim=0),  # rows with gaps, of which many are summed
        lambda x: ops.relu(turned(x)),
        lambda x: ops.relu(turned(x), out=turned(x)),
        lambda x: ops.swiglu(turned(x), turned(x)),
        lambda x: ops.softmax(x, dim=1, dtype=np.float64),
    ]
    tensor = some(0)
    ops.relu(tensor)  # the first call of a process loads the code that repeats calls
    for x in (tensor, tensor.numpy()):
        for call in calls:
            call(x)

    def fail(*_: Any) -> Any:
        raise AssertionError("planned again")

    monkeypatch.setattr(Function, "_compute", fail)
    monkeypatch.setattr(Launch, "run_seen", fail)
    for x in (tensor, tensor.numpy()):
        for call in calls:
            call(x)


def test_shapes_that_come_once_are_not_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls_of_ops, "_MANY_PLANS", 0)
    monkeypatch.setattr(repeated, "_MOST", 5)
    counts = {"general": 0, "recorded": 0}

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            counts[name] += 1
            return function(*args)

        return run

    general = counted("general", Function._compute)
    monkeypatch.setattr(Function, "_compute", general)
    monkeypatch.setattr(repeated, "_recorded", counted("recorded", repeated._recorded))
    x = torch.rand(3, 600)
    for width in range(500, 520):
        torch.testing.assert_close(
            ops.softmax(x[:, :width], 1), torch.softmax(x[:, :width], 1)
        )
    assert counts == {"general": 20, "recorded": 0}
    for _ in range(3):
        ops.softmax(x, 1)
    assert counts == {"general": 22, "recorded": 1}
    for _ in range(32):  # more shapes than are kept
        for width in range(500, 520):
            ops.softmax(x[:, :width], 1)
    assert counts["recorded"] <= 1 + 20 * 5


def test_what_is_drawn_for_a_call_is_drawn_for_each() -> None:
    q = some(0).reshape(1, 8, 64, 20)
    draws: list[list[Any]] = []
    for _ in range(2):
        torch.manual_seed(0)
        call = lambda: ops.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        draws.append([call() for _ in range(4)])
    assert torch.equal(torch.stack(draws[0]), torch.stack(draws[1]))
    assert len({float(each.sum()) for each in draws[0]}) == 4


def test_what_torch_records_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = some(0).requires_grad_(), torch.randn(20, requires_grad=True)
    weights = torch.randn(3, 20, requires_grad=True)
    calls: list[Callable[[], Any]] = [
        lambda: ops.relu(x),
        lambda: ops.softmax(x, dim=1),
        lambda: ops.layer_norm(x, (20,), weight=w),
        lambda: ops.linear(x, weights, w[:3]),
        lambda: ops.matmul(x, weights.T),
    ]

    def gradients(call: Callable[[], Any]) -> list[Any]:
        known = torch.autograd.grad(
            call().square().sum(), (x, w, weights), allow_unused=True
        )
        return [each for each in known if each is not None]

    def looked(*_: Any) -> Any:
        raise AssertionError("looked at")

    _, _, first = ([gradients(call) for call in calls] for _ in range(3))
    monkeypatch.setattr(Function, "way_of", looked)
    for call, known in zip(calls, first):
        torch.testing.assert_close(gradients(call), known)
        with torch.no_grad():
            assert not call().requires_grad
    out = torch.empty(512, 20)
    others: list[Callable[[], Any]] = [
        lambda: ops.relu(x, out=out),
        lambda: ops.relu(x[:3]),
        lambda: ops.relu(x.double()),
        lambda: torch.vmap(ops.relu)(x),
    ]
    for other in others:
        with pytest.raises(AssertionError, match="looked at"):
            other()


def test_a_place_given_by_position_is_refused_with_a_gradient() -> None:
    x, out = some(0), torch.empty(512, 20)
    needed = x.clone().requires_grad_()
    for _ in range(3):
        ops.softmax(needed, -1)
        ops.softmax(x, out)
    with pytest.raises(LaunchError, match="was given `out=`"):
        ops.softmax(needed, out)


def test_of_several_results_the_first_has_derivatives_and_no_zeros_are_made() -> None:
    x, target = some(0).requires_grad_(), torch.arange(512) % 20
    args = x, target, None, -100, "mean", 0.0, False
    for _ in range(3):
        loss, total = torch.ops.xetl.class_loss(*args)
        found = torch.autograd.grad(total, x, allow_unused=True, retain_graph=True)
        assert found == (None,)
        wanted = torch.autograd.grad(functional.cross_entropy(x, target), x)
        torch.testing.assert_close(torch.autograd.grad(loss, x), wanted)


@pytest.mark.usefixtures("records_first_calls")
def test_settings_that_change_often(monkeypatch: pytest.MonkeyPatch) -> None:
    x, compute, calls = some(0), Function._compute, [0]

    def counted(*args: Any) -> Any:
        calls[0] += 1
        return compute(*args)

    monkeypatch.setattr(Function, "_compute", counted)
    for i in range(12):
        monkeypatch.setenv("XETL_PREFETCH", str(i))
        ops.relu(x)
        calls[0] = 0
        for _ in range(2):
            ops.relu(x)
        assert not calls[0]
