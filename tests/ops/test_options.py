"""Options of functions of `xetl.ops`: what is no number of its kind is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xetl
from xetl.errors import LaunchError

ops: Any = xetl.ops

X = np.arange(20, dtype=np.float32).reshape(4, 5)
LABELS = np.arange(4)
Q = np.ones((2, 3, 4, 8), np.float32)
BOOLS: list[Callable[[Any], Any]] = [
    lambda x: ops.sum(X, 1, x),
    lambda x: ops.kl_div(X, X, log_target=x),
]
INTS: list[Callable[[Any], Any]] = [
    lambda x: ops.topk(X, x),
    lambda x: ops.cumsum(X, x),
    lambda x: ops.cross_entropy(X, LABELS, ignore_index=x),
    lambda x: ops.sum(X, (x,)),
]
FLOATS: list[Callable[[Any], Any]] = [
    lambda x: ops.cross_entropy(X, LABELS, label_smoothing=x),
    lambda x: ops.linear_cross_entropy(X, X, LABELS, label_smoothing=x),
    lambda x: ops.dropout(X, x),
    lambda x: ops.layer_norm(X, (5,), eps=x),
    lambda x: ops.scaled_dot_product_attention(Q, Q, Q, scale=x),
]


@pytest.mark.parametrize("wrong", ["a", "1", 1.0, None, True, [1], X, {1}], ids=str)
@pytest.mark.parametrize("call", INTS)
def test_no_ints(call: Any, wrong: object) -> None:
    refused(call, wrong)


@pytest.mark.parametrize("wrong", ["a", "0.5", [0.5], 1j, X], ids=str)
@pytest.mark.parametrize("call", FLOATS)
def test_no_floats(call: Any, wrong: object) -> None:
    refused(call, wrong)


@pytest.mark.parametrize("wrong", ["a", 1, None, [True], X], ids=str)
def test_no_bools(wrong: object) -> None:
    for call in BOOLS:
        refused(call, wrong)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, 2, float("nan")])
def test_label_smoothing_out_of_range(wrong: float) -> None:
    for call in FLOATS[:2]:
        refused(call, wrong)


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "mse_loss", "kl_div"])
@pytest.mark.parametrize("given", [{"size_average": False}, {"reduce": True}], ids=str)
def test_old_names_of_reductions(name: str, given: Any) -> None:
    """torch gives them a meaning, so that to ignore them would give another number."""
    target = LABELS if name in ("cross_entropy", "nll_loss") else X
    call = getattr(ops, name)
    refused(lambda x: call(X, target, **x), given)


def test_numbers_of_numpy_and_torch() -> None:
    one, half, yes = np.int64(1), np.float32(0.5), np.bool_(True)
    np.testing.assert_array_equal(ops.sum(X, one, yes), X.sum(1, keepdims=True))
    np.testing.assert_array_equal(ops.sum(X, [np.int32(0), one]), X.sum())
    np.testing.assert_array_equal(ops.softmax(X, one), ops.softmax(X, 1))
    wide = ops.layer_norm(X, np.int64(5))
    np.testing.assert_array_equal(wide, ops.layer_norm(X, (5,)))
    wanted = ops.cross_entropy(X, LABELS, label_smoothing=0.5)
    assert ops.cross_entropy(X, LABELS, label_smoothing=half) == wanted
    assert ops.topk(X, np.array(2))[0].shape == (4, 2)


@pytest.mark.parametrize("dim", [1, np.int64(1), (np.int64(1),), [0, 1], [], None])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "var"])
def test_derivatives_know_dims(name: str, dim: Any) -> None:
    torch = pytest.importorskip("torch")
    some: Any = (0, 1) if dim is None or isinstance(dim, list) else (1,)
    ours, theirs = (torch.tensor(X, requires_grad=True) for _ in range(2))
    getattr(ops, name)(ours, dim).square().sum().backward()
    getattr(torch, name)(theirs, some).square().sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_symbols_stay() -> None:
    """An extent that torch.compile does not know is not taken as a constant."""
    torch = pytest.importorskip("torch")

    def normalised(x: Any) -> Any:
        return ops.layer_norm(x, x.shape[-1:], eps=1e-3)

    compiled = torch.compile(normalised, fullgraph=True, dynamic=True, backend="eager")
    for n in (5, 7):
        x = torch.randn(3, n)
        torch.testing.assert_close(compiled(x), normalised(x))


def refused(call: Callable[[Any], Any], wrong: object) -> None:
    with pytest.raises(LaunchError) as caught:
        call(wrong)
    assert caught.value.code == "X0829"
    assert caught.value.file == __file__


def test_objects_of_other_kinds_are_refused() -> None:
    x = np.ones((2, 3, 3), np.float32)
    refused(lambda wrong: ops.sum(x, dtype=wrong), [1])
    refused(lambda wrong: ops.mean(x, 0, dtype=wrong), np.ones(3))
    refused(lambda wrong: ops.dropout(x, training=wrong), np.ones(3))
    refused(lambda wrong: ops.mse_loss(x, x, reduction=wrong), np.ones(3))


def test_lists_are_no_batches() -> None:
    x: Any = np.ones((2, 3, 3), np.float32)
    for given in ((x.tolist(), x), (x, x.tolist()), (None, x)):
        with pytest.raises(LaunchError, match="is not an array") as caught:
            ops.bmm(*given)
        assert caught.value.code == "X0805"
