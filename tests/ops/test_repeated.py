"""Calls like an earlier one: the same results, whatever else has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from xetl import ops  # noqa: E402
from xetl.errors import LaunchError  # noqa: E402

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
