"""`ops.batch_norm` in training: by the statistics of the batch."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st

from xetl import ops
from xetl.errors import LaunchError

nn: Any = torch.nn
F: Any = torch.nn.functional
BOUNDS = {
    torch.float64: 1e-13,
    torch.float32: 2e-6,
    torch.bfloat16: 2**-7,
    torch.float16: 2**-10,
}
"""Of an element, relative to the largest one."""


def last(x: Any) -> Any:
    return x.to(memory_format=torch.channels_last)


BATCHES: dict[str, Callable[[], Any]] = {
    "rows": lambda: torch.randn(70, 6),
    "more rows than a part": lambda: torch.randn(1200, 33),
    "many channels": lambda: torch.randn(40, 2100),
    "three numbers": lambda: torch.randn(3, 5),
    "lines": lambda: torch.randn(4, 6, 18),
    "short lines": lambda: torch.randn(9, 24, 3),
    "images": lambda: torch.randn(3, 40, 9, 13),
    "small images": lambda: torch.randn(5, 24, 7, 7),
    "one image": lambda: torch.randn(1, 3, 40, 41),
    "pixels": lambda: torch.randn(30, 24, 1, 1),
    "volumes": lambda: torch.randn(2, 3, 4, 5, 6),
    "few channels last": lambda: last(torch.randn(2, 3, 9, 8)),
    "channels last": lambda: last(torch.randn(3, 48, 19, 17)),
    "part of channels": lambda: last(torch.randn(3, 40, 5, 8))[:, 3:20],
    "every second channel": lambda: torch.randn(3, 40, 5, 8)[:, ::2],
    "a part of each image": lambda: last(torch.randn(3, 12, 8, 8))[:, :, 1:5, 2:],
    "samples inward": lambda: torch.randn(12, 5, 8, 3).permute(3, 0, 1, 2),
    "transposed rows": lambda: torch.randn(24, 50).T,
}


def near(found: Any, wanted: Any, bound: float) -> None:
    largest = float(wanted.detach().abs().max()) if wanted.numel() else 0.0
    found = found.to(wanted.dtype)
    torch.testing.assert_close(found, wanted, rtol=bound, atol=bound * largest)


def trained(function: Any, x: Any, is_affine: bool, dtype: Any) -> list[Any]:
    """Return the result, the running statistics and the gradients."""
    make, n = torch.Generator().manual_seed(1), x.shape[1]

    def numbers(*shape: int) -> Any:
        return torch.randn(*shape, generator=make).to(x.dtype).to(dtype)

    seen = [numbers(n), numbers(n).abs()]
    affine = [numbers(n).requires_grad_() for _ in "ab"] if is_affine else [None] * 2
    x, slope = x.to(dtype).requires_grad_(), numbers(*x.shape)
    y = function(x, *seen, *affine, True, 0.3, 1e-3)
    wanted = [each for each in (x, *affine) if each is not None]
    return [y, *seen, *torch.autograd.grad(y, wanted, slope)]


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("batch", BATCHES)
def test_training(batch: str, dtype: Any) -> None:
    torch.manual_seed(0)
    x = (2 * BATCHES[batch]() + 3).to(dtype)
    for is_affine in (False, True):
        wanted = trained(F.batch_norm, x, is_affine, torch.float64)
        for _ in range(2):  # the second call is answered by native code
            found = trained(ops.batch_norm, x, is_affine, dtype)
            for one, two in zip(found, wanted, strict=True):
                assert one.dtype == dtype
                near(one, two, BOUNDS[dtype])
    assert found[0].stride() == F.batch_norm(x, None, None, training=True).stride()


@given(
    shape=st.lists(st.integers(1, 20), min_size=2, max_size=4),
    is_last=st.booleans(),
    seed=st.integers(0, 99),
)
def test_any_shape(shape: list[int], is_last: bool, seed: int) -> None:
    if shape[0] * int(np.prod(shape[2:])) < 3:  # the gradient of two numbers is 0
        shape[0] += 2
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    x = x.movedim(1, -1).contiguous().movedim(-1, 1) if is_last else x
    wanted = trained(F.batch_norm, x, True, torch.float64)
    for one, two in zip(trained(ops.batch_norm, x, True, x.dtype), wanted):
        near(one, two, 2e-5)


@pytest.mark.parametrize("batch", ["rows", "lines", "channels last"])
def test_derivatives(batch: str) -> None:
    torch.manual_seed(0)
    x = BATCHES[batch]().double().requires_grad_()
    affine = [torch.randn(x.shape[1]).double().requires_grad_() for _ in "ab"]
    for training in (True, False):
        seen = torch.rand(2, x.shape[1]).double()

        def call(*a: Any, training: bool = training, seen: Any = seen) -> Any:
            return ops.batch_norm(a[0], *seen.clone(), *a[1:], training)

        assert torch.autograd.gradcheck(call, (x, *affine), fast_mode=True)
    y = ops.batch_norm(x, None, None, *affine, training=True)
    (first,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
    with pytest.raises(LaunchError, match="`batch_norm` twice"):
        first.sum().backward()


@pytest.mark.parametrize("batch", ["rows", "images", "channels last"])
def test_a_large_mean_is_exact(batch: str) -> None:
    torch.manual_seed(0)
    x = BATCHES[batch]() / 50 + 100
    y = ops.batch_norm(x, None, None, training=True)
    wanted = F.batch_norm(x.double(), None, None, training=True)
    bound = 4 * 2**-23 * 100 * 50  # ulps of the mean, divided by the deviation
    torch.testing.assert_close(y.double(), wanted, rtol=0, atol=bound)
    mean, variance = torch.zeros(2, x.shape[1])
    ops.batch_norm(x, mean, variance, training=True, momentum=1.0)
    dims = [i for i in range(x.ndim) if i != 1]
    # Means of parts are rounded: by 2 ** -18, and they differ by a tenth of 0.02.
    torch.testing.assert_close(
        variance.double(), x.double().var(dims), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize(
    ("is_compiled", "momentum"), [(False, 0.1), (True, 0.1), (False, None)]
)
def test_modules(monkeypatch: Any, is_compiled: bool, momentum: float | None) -> None:
    torch.manual_seed(0)
    theirs = nn.BatchNorm2d(6, momentum=momentum)
    ours, batches = deepcopy(theirs), torch.randn(4, 3, 6, 5, 4)
    optimisers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (ours, theirs)]

    def train(module: Any, optimiser: Any) -> None:
        call = module
        if is_compiled:
            torch.compiler.reset()
            call = torch.compile(module, backend="aot_eager", fullgraph=True)
        for x in batches:
            optimiser.zero_grad()
            call(x).cos().sum().backward()
            optimiser.step()

    train(theirs, optimisers[1])
    monkeypatch.setattr(F, "batch_norm", ops.batch_norm)
    train(ours, optimisers[0])
    states = ours.state_dict(), theirs.state_dict()
    torch.testing.assert_close(*states, rtol=1e-5, atol=1e-5)
    found = ours.eval()(batches[0])
    monkeypatch.undo()
    torch.testing.assert_close(found, theirs.eval()(batches[0]), rtol=1e-5, atol=1e-5)


def test_what_torch_is_told() -> None:
    x = torch.randn(4, 6, 5, requires_grad=True)
    affine = [torch.randn(6, requires_grad=True) for _ in "ab"]
    operators = torch.ops.xetl
    torch.library.opcheck(operators.batch_norm_training.default, (x, *affine, 1e-5))
    no_affine = last(torch.randn(2, 9, 4, 4)), None, None, 1e-5
    torch.library.opcheck(operators.batch_norm_training.default, no_affine)
    torch.library.opcheck(
        operators.batch_norm_step.default, (*torch.rand(4, 6).unbind(), 0.1)
    )
    backward = operators.batch_norm_training_backward.default
    torch.library.opcheck(backward, (x.detach(), x.detach(), None, 1e-5))
    mean, variance = torch.zeros(2, 6).unbind()
    ops.batch_norm(x, mean, variance, training=True)
    assert mean._version == variance._version > 0
    assert not mean.requires_grad
    with pytest.raises(LaunchError, match=r"xetl\.ops\.batch_norm") as caught:
        operators.batch_norm(x.detach(), mean, variance, training=True)
    assert caught.value.code == "X0829"


def test_arrays_of_numpy_out_and_wider_statistics() -> None:
    x = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    mean, variance = np.zeros(5, np.float64), np.ones(5, np.float64)
    out = np.zeros_like(x)
    assert ops.batch_norm(x, mean, variance, training=True, out=out) is out
    wanted = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    np.testing.assert_allclose(out, wanted, atol=1e-5)
    np.testing.assert_allclose(mean, 0.1 * x.mean(0), atol=1e-7)
    np.testing.assert_allclose(variance, 0.9 + 0.1 * x.var(0, ddof=1), atol=1e-6)
    given = torch.from_numpy(x).requires_grad_()
    with pytest.raises(LaunchError) as caught:
        ops.batch_norm(given, None, None, training=True, out=torch.zeros(20, 5))
    assert caught.value.code == "X0838"
    assert caught.value.file == __file__


def test_nothing_and_nan() -> None:
    for shape in ((0, 3, 4), (2, 3, 0)):
        x, seen = torch.zeros(shape, requires_grad=True), torch.ones(2, 3)
        y = ops.batch_norm(x, *seen, training=True)
        assert y.shape == shape
        assert bool((seen == 1).all())
        y.sum().backward()
        assert x.grad.shape == shape
    x = torch.randn(4, 3, 5)
    x[1, 1, 2] = float("nan")
    y = ops.batch_norm(x, None, None, training=True)
    wanted = F.batch_norm(x, None, None, training=True)
    torch.testing.assert_close(y, wanted, equal_nan=True)
    same = ops.batch_norm(torch.full((4, 24, 5), 0.1), None, None, training=True)
    assert same.abs().max() < 1e-4
