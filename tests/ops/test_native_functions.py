"""Functions that native code answers: what they look like, and what they refuse."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode

from xetl import ops
from xetl.errors import LaunchError
from xetl.ops.calling import repeated
from xetl.ops.calling.declare import FUNCTIONS, Function
from xetl.ops.products import matrix_product
from xetl_cpu.launch import fastcall


@pytest.fixture
def general(monkeypatch: pytest.MonkeyPatch, records_first_calls: None) -> list[str]:
    """The functions whose calls go the general way from now on."""
    fastcall._entry()
    found: list[str] = []
    run = Function._compute

    def counted(self: Any, *args: Any) -> Any:
        found.append(self.name)
        return run(self, *args)

    def product(*args: Any, **kwargs: Any) -> Any:
        found.append("matmul")
        return matmul(*args, **kwargs)

    matmul = matrix_product.compute_product
    monkeypatch.setattr(Function, "_compute", counted)
    monkeypatch.setattr(matrix_product, "compute_product", product)
    return found


def matrix(*shape: int) -> Any:
    return torch.rand(shape or (6, 10), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("function", [ops.softmax, ops.matmul, ops.linear])
def test_they_look_like_functions(function: Any) -> None:
    assert callable(function)
    assert inspect.isroutine(function)
    assert function.__doc__
    assert function.__name__ in pydoc.plain(pydoc.render_doc(function))
    assert function.__module__.startswith("xetl.ops.")
    assert list(inspect.signature(function).parameters)[-1] in ("out", "other")
    for same in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
        assert same is function

    class Layer:
        act = function

    assert Layer().act.__func__ is function
    assert Layer.act is function


def test_kinds_of_arrays_are_told_apart(general: list[str]) -> None:
    x = matrix()
    for _ in range(3):
        assert type(ops.relu(x)) is torch.Tensor
        assert type(ops.relu(x.numpy())) is np.ndarray
        parameter = torch.nn.Parameter(x, requires_grad=False)
        assert type(ops.relu(parameter)) is torch.Tensor
    assert general == ["relu"] * 3


def test_options_count_by_value(general: list[str]) -> None:
    x = matrix(4, 3, 5)
    for _ in range(3):
        sizes = tuple(x.numpy().shape[1:])  # made anew
        ops.layer_norm(x, sizes)
        ops.layer_norm(x, x.shape[1:])
        ops.sum(x, dim=(0, 1))
        ops.sum(x, dim=(1, 2))
        ops.sum(x, dim=1)
        ops.sum(x, dim=1, keepdim=True)
        ops.gelu(x, approximate="".join(["ta", "nh"]))
    assert sorted(general) == ["gelu", *["layer_norm"] * 2, *["sum"] * 4]
    for dim in (0, 1, -1):
        torch.testing.assert_close(ops.sum(x, dim=dim), x.sum(dim))
    torch.testing.assert_close(ops.sum(x, dim=1), x.sum(1))
    whole, part = ops.layer_norm(x, (3, 5)), ops.layer_norm(x, (5,))
    wanted = torch.nn.functional.layer_norm
    torch.testing.assert_close(whole, wanted(x, (3, 5)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(part, wanted(x, (5,)), atol=1e-5, rtol=1e-5)


def test_calls_by_name_and_with_out(general: list[str]) -> None:
    a, b, out = matrix(6, 6), matrix(6, 6).T, torch.empty(6, 6)
    row = matrix(6)
    for _ in range(3):
        torch.testing.assert_close(ops.matmul(a, other=b), a @ b)
        torch.testing.assert_close(ops.matmul(b=b, a=a), a @ b)
        assert ops.matmul(a, b, out) is out
        torch.testing.assert_close(ops.matmul(a, b, bias=row), a @ b + row)
        values, places = ops.sort(a, 1, out=(out, torch.empty(6, 6, dtype=torch.int64)))
        assert values is out
        torch.testing.assert_close(places, torch.sort(a, 1)[1])
    assert general.count("matmul") == 4


@pytest.mark.parametrize("of_numpy", [True, False])
def test_prepacked_operands(of_numpy: bool, general: list[str]) -> None:
    a, b = matrix(40, 24), matrix(24, 30)
    wanted = a @ b
    a, b = (x.numpy() if of_numpy else x for x in (a, b))
    packed, other = ops.prepack(b), ops.prepack(2 * b)
    for _ in range(3):
        for operand, factor in ((packed, 1), (other, 2)):
            found = torch.as_tensor(ops.matmul(a, operand))
            torch.testing.assert_close(found, wanted * factor)
        torch.testing.assert_close(torch.as_tensor(ops.matmul(a, b)), wanted)
    assert general == ["matmul"] * 3
    known, gone = matrix_product._product.natives[0].known.known, weakref.ref(packed)
    del packed, operand
    gc.collect()
    assert gone() is None
    assert len(matrix_product._product.natives[0].known.known) == len(known) - 1


@pytest.mark.parametrize("of_numpy", [True, False])
def test_linear_layers_with_prepacked_weights(
    of_numpy: bool, general: list[str]
) -> None:
    x, w, row = matrix(100, 70), matrix(70, 70), matrix(70)
    wanted = torch.nn.functional.linear(x, w, row)
    product = x @ w
    x, w, row = (each.numpy() if of_numpy else each for each in (x, w, row))
    packed = ops.prepack(w)
    for _ in range(3):
        found = torch.as_tensor(ops.linear(x, packed, row))
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(torch.as_tensor(ops.matmul(x, packed)), product)
    assert general == ["matmul", "matmul"]
    assert len(packed.kept) == 2  # as it is, and turned


@pytest.mark.parametrize("of_numpy", [True, False])
def test_linear_layers(of_numpy: bool, general: list[str]) -> None:
    columns = 7 + of_numpy  # calls of the other case are not like these
    x, w, row = matrix(5, columns), matrix(9, columns), matrix(9)
    out = torch.empty(5, 9)
    wanted = torch.nn.functional.linear(x, w, row)
    given = [each.numpy() if of_numpy else each for each in (x, w, row, out)]
    for _ in range(3):
        for found in (
            ops.linear(*given[:3]),
            ops.linear(given[0], given[1], bias=given[2], out=given[3]),
            ops.linear(given[0], weight=given[1]) + given[2],
        ):
            torch.testing.assert_close(torch.as_tensor(found), wanted)
    assert general == ["matmul"] * 3
    with pytest.raises(LaunchError, match="`linear`") as wrong:
        ops.linear(given[0], given[2][:3])
    assert wrong.value.file == __file__
    x.requires_grad_()
    assert ops.linear(x, w, row).grad_fn is not None
    torch.testing.assert_close(ops.linear(x[0].detach(), w[0]), wanted[0, 0] - row[0])


def test_lists_may_change(general: list[str]) -> None:
    x, sizes = matrix(4, 3, 5), [3, 5]
    for _ in range(3):
        ops.layer_norm(x, sizes)
    assert len(general) == 1
    sizes[:] = [5]
    wanted = torch.nn.functional.layer_norm(x, [5])
    torch.testing.assert_close(ops.layer_norm(x, sizes), wanted, atol=1e-5, rtol=1e-5)


class Counting(TorchDispatchMode):
    """Counts operators."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(
        self, function: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_and_transforms_see_them(general: list[str]) -> None:
    x = matrix()
    for _ in range(2):
        ops.relu(x)
    with Counting() as mode:
        ops.relu(x)
    assert "xetl.relu.default" in mode.names
    doubled = torch.vmap(lambda row: ops.relu(row) + ops.relu(x[0]))(x)
    torch.testing.assert_close(doubled, x + x[0])
    leaf = x.clone().requires_grad_()
    assert ops.relu(leaf).grad_fn is not None
    assert ops.relu(leaf.detach()).grad_fn is None
    with torch.no_grad():
        assert not ops.relu(leaf).requires_grad
    with torch.inference_mode():
        assert ops.relu(x).is_inference()
    del general[:]
    ops.relu(x)
    assert not general


def test_what_only_the_general_way_takes(general: list[str]) -> None:
    class Mine(torch.Tensor):
        pass

    x = matrix()
    for _ in range(2):
        ops.relu(x)
    del general[:]
    ops.relu(x.as_subclass(Mine))
    assert general
    for wrong in (x.to_sparse(), x.to(torch.complex64), "text"):
        with pytest.raises((LaunchError, TypeError)):
            ops.relu(wrong)
    with pytest.raises(TypeError, match="no argument"):
        ops.relu(x, nothing=1)
    with pytest.raises(TypeError, match="needs"):
        ops.relu()
    with pytest.raises(LaunchError) as found:
        ops.softmax(x, 5)
    assert found.value.file == __file__


@pytest.mark.parametrize("make", [matrix, lambda *s: matrix(*s).numpy()])
def test_many_shapes_are_remembered(make: Any, general: list[str]) -> None:
    arrays = [make(2 + i % 5, 1 + i) for i in range(30)]
    for _ in range(3):
        for x in arrays:
            found = torch.as_tensor(ops.softmax(x))
            torch.testing.assert_close(found, torch.softmax(torch.as_tensor(x), -1))
    assert len(general) == len(arrays)


def test_references_stay_counted(general: list[str]) -> None:
    x, n, out = matrix(), matrix().numpy(), torch.empty(6, 10)
    calls: list[Callable[[], Any]] = [
        lambda: ops.softmax(x),
        lambda: ops.softmax(n, dim=-1),
        lambda: ops.softmax(x, out=out),
        lambda: ops.sort(x, 1),
        lambda: ops.matmul(x, other.T),
    ]
    other, sizes = matrix(8, 10), (10,)

    def counts() -> list[int]:
        return [sys.getrefcount(each) for each in (x, n, out, sizes, ops.softmax, None)]

    def many() -> None:
        for _ in range(1000):
            for call in calls:
                call()
            ops.layer_norm(n, sizes)

    many()
    gc.collect()
    before = counts()
    tracemalloc.start()
    many()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    after = counts()
    assert after[:-1] == before[:-1]
    assert abs(after[-1] - before[-1]) < 500
    assert kept < 50_000
    assert len(general) <= 6


def test_an_array_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native way ends, without an exception, and the general way does the call."""
    fastcall._entry()
    fails, x = [False], np.ones((3, 7), np.float32)

    def empty(shape: Any, dtype: Any) -> Any:
        if fails[0]:
            raise MemoryError
        return np.empty(shape, dtype)

    monkeypatch.setattr(repeated, "_maker", lambda x: (empty, (x.shape, x.dtype)))
    for fail in (False, False, True, False):
        fails[0] = fail
        values, _ = ops.sort(x, 1)
        assert np.array_equal(values, x)
        assert gc.isenabled()


def test_threads_at_once() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for i in range(200):
            x = np.full((3 + i % 7, 8), number + i, np.float32)
            if not np.array_equal(ops.relu(x), x) or ops.sum(x) != x.sum():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_arrays_that_changed_meanwhile(general: list[str]) -> None:
    n = np.ones((4, 6), np.float32)
    x = matrix(4, 6)
    for _ in range(2):
        ops.relu(n)
        ops.relu(x)
    n.resize((2, 6), refcheck=False)
    assert ops.relu(n).shape == (2, 6)
    n.flags.writeable = False
    assert np.array_equal(ops.relu(n), n)
    with pytest.raises(LaunchError, match="read-only"):
        ops.relu(n, out=n)
    x.resize_(2, 3)
    torch.testing.assert_close(ops.relu(x), torch.relu(x))
    x = matrix(4, 6)
    x.untyped_storage().resize_(0)
    with pytest.raises(LaunchError, match="storage"):
        ops.relu(x)


def test_convolutions(general: list[str]) -> None:
    x, weight, row = matrix(6, 20).reshape(2, 3, 20), matrix(4, 9), matrix(4)
    weight, out = weight.reshape(4, 3, 3), torch.empty(2, 4, 20)
    image, taps = matrix(15, 20).reshape(3, 5, 20), matrix(4, 27).reshape(4, 3, 3, 3)
    functional = torch.nn.functional
    for _ in range(3):
        for given in (x, x[0]):
            found = ops.conv1d(given, weight, row, padding=1)
            wanted = functional.conv1d(given, weight, row, padding=1)
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
        found = ops.conv2d(image, taps, stride=2)
        wanted = functional.conv2d(image, taps, stride=2)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
        assert ops.conv1d(x, weight, padding=1, out=out) is out
        wanted = functional.conv1d(x, weight, padding=1)
        torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-5)
    assert general == ["convolution"] * 4


def test_losses_of_few_rows(general: list[str]) -> None:
    x, weight, row = matrix(12, 8), matrix(5, 8), matrix(5)
    labels = torch.arange(12) % 5
    labels[::4] = -100
    trained = [each.clone().requires_grad_() for each in (x, weight)]
    functional = torch.nn.functional
    wanted = functional.cross_entropy(functional.linear(*trained), labels)
    slopes = torch.autograd.grad(wanted, trained)
    for _ in range(3):
        loss = ops.linear_cross_entropy(*trained, labels)
        torch.testing.assert_close(loss, wanted)
        torch.testing.assert_close(torch.autograd.grad(loss, trained), slopes)
        torch.testing.assert_close(ops.linear_cross_entropy(x, weight, labels), wanted)
        biased = ops.linear_cross_entropy(x, weight, labels, linear_bias=row)
        scores = functional.linear(x, weight, row)
        torch.testing.assert_close(biased, functional.cross_entropy(scores, labels))
        arrays = [each.numpy() for each in (x, weight, labels)]
        assert np.allclose(ops.linear_cross_entropy(*arrays), wanted.item())
    assert general == ["fused_class_loss"] * 4


def recorded_calls() -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """Ours and torch's, of x (1, 4, 6, 6), w (4, 4, 3, 3) and a row of 4."""
    torch_ops, classes = torch.nn.functional, torch.tensor([2, 0, 1, 3])
    return {
        "silu": (lambda x, w, r: ops.silu(x), lambda x, w, r: torch_ops.silu(x)),
        "by name": (
            lambda x, w, r: ops.softmax(dim=1, input=x),
            lambda x, w, r: torch.softmax(x, 1),
        ),
        "without a bias": (
            lambda x, w, r: ops.linear(x[0, 0, :, :3], w[0, :1, 0]),
            lambda x, w, r: torch_ops.linear(x[0, 0, :, :3], w[0, :1, 0]),
        ),
        "bias by name": (
            lambda x, w, r: ops.matmul(x[0, 0, :, :4], w[:, :, 0, 0], bias=r),
            lambda x, w, r: x[0, 0, :, :4] @ w[:, :, 0, 0] + r,
        ),
        "activation": (
            lambda x, w, r: ops.matmul(x[0, 0, :, :4], w[0, :, 0], activation="silu"),
            lambda x, w, r: torch_ops.silu(x[0, 0, :, :4] @ w[0, :, 0]),
        ),
        "loss": (
            lambda x, w, r: ops.cross_entropy(x[0, :, 0], classes),
            lambda x, w, r: torch_ops.cross_entropy(x[0, :, 0], classes),
        ),
        "images": (
            lambda x, w, r: ops.conv2d(x, w, r, 1, [1, 1]),
            lambda x, w, r: torch_ops.conv2d(x, w, r, 1, [1, 1]),
        ),
        "one image": (
            lambda x, w, r: ops.conv2d(x[0], w, r, padding=1),
            lambda x, w, r: torch_ops.conv2d(x[0], w, r, padding=1),
        ),
    }


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("name", recorded_calls())
def test_what_torch_records(
    name: str, both: bool, records_first_calls: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fastcall._entry()
    ours, theirs = recorded_calls()[name]
    shapes = ((1, 4, 6, 6), (4, 4, 3, 3), (4,))
    given = [matrix(*shape).requires_grad_() for shape in shapes]
    calls: list[str] = []
    monkeypatch.setattr(Function, "call_values", counted(Function.call_values, calls))
    for turn in range(4):
        if both:
            with torch.no_grad():
                ours(*given)
        known = len(calls)
        found, wanted = ours(*given), theirs(*given)
        torch.testing.assert_close(found, wanted)
        gradients = (
            torch.autograd.grad((each * each).sum(), given, allow_unused=True)
            for each in (found, wanted)
        )
        for one, other in zip(*gradients):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
        if turn > 1 and name != "one image":
            assert len(calls) == known


def counted(function: Any, calls: list[str]) -> Any:
    """The function, which notes the names of those whose calls it does."""

    def noting(self: Any, *args: Any) -> Any:
        calls.append(self.name)
        return function(self, *args)

    return noting


def test_tensors_of_one_memory_have_gradients_of_their_own() -> None:
    x = matrix(8, 8)
    for _ in range(3):
        ops.matmul(x, x)
        one, other = x.detach().requires_grad_(), x.detach().requires_grad_()
        a, b = torch.autograd.grad(ops.matmul(one, other).sum(), (one, other))
        both = x.detach().requires_grad_()
        (c,) = torch.autograd.grad(ops.matmul(both, both).sum(), both)
        torch.testing.assert_close(a + b, c)
        assert not torch.equal(a, b)


def test_numbers_that_vary_where_torch_records() -> None:
    x = matrix(5, 9).requires_grad_()
    for eps in (1e-5, 1.0, 0.1):
        with torch.no_grad():
            ops.layer_norm(x, (9,), eps=eps)
        for found, wanted in (
            (f(x, (9,), eps=eps) for f in (ops.layer_norm, torch.layer_norm)),
            (f(x, (9,), None, None, eps) for f in (ops.layer_norm, torch.layer_norm)),
        ):
            torch.testing.assert_close(found, wanted)
            seed = torch.arange(45.0).reshape(5, 9)
            one, other = (torch.autograd.grad(y, x, seed)[0] for y in (found, wanted))
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_errors_where_torch_records(monkeypatch: pytest.MonkeyPatch) -> None:
    x = matrix(7, 3)
    for _ in range(3):
        ops.tanh(x)

    def fails(*_: Any) -> Any:
        raise LaunchError("none", "X0801", "try")

    x.requires_grad_()
    ops.tanh(x)
    declared = FUNCTIONS["xetl::tanh"]
    monkeypatch.setattr(declared, "recorder", fails)
    with pytest.raises(LaunchError, match="none") as wrong:
        ops.tanh(x)
    assert wrong.value.file == __file__
