"""`ops.dropout`: how much is kept, the same again in the derivative, by which seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")

from xetl import ops
from xetl.errors import LaunchError


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_what_is_kept_is_scaled_and_has_the_derivative(dtype: Any) -> None:
    x = torch.randn(70, 300, dtype=dtype).add(10).requires_grad_()
    y = ops.dropout(x, 0.3)
    kept = y != 0
    assert abs(kept.double().mean().item() - 0.7) < 0.02
    wanted = torch.where(kept, x / 0.7, 0)
    torch.testing.assert_close(y, wanted, rtol=0.01, atol=0)
    y.backward(torch.ones_like(y))
    assert torch.equal(x.grad != 0, kept)
    torch.testing.assert_close(x.grad[kept], torch.full_like(x[kept], 1 / 0.7))


def test_seeds_are_those_of_the_library() -> None:
    x = torch.ones(1000)
    torch.manual_seed(1)
    one, two = ops.dropout(x), ops.dropout(x)
    torch.manual_seed(1)
    assert torch.equal(ops.dropout(x), one)
    assert not torch.equal(one, two)
    np.random.seed(1)
    array = ops.dropout(x.numpy())
    np.random.seed(1)
    assert np.array_equal(ops.dropout(x.numpy()), array)


def test_a_mask_does_not_depend_on_strides() -> None:
    seed, x = torch.tensor([5]), torch.rand(40, 60) + 1
    wanted = ops.dropout(x, 0.5, seed=seed)
    turned = ops.dropout(x.T.contiguous().T, 0.5, seed=seed)
    assert torch.equal(turned, wanted)
    out = torch.empty(60, 40).T
    assert ops.dropout(x, 0.5, seed=seed, out=out) is out
    assert torch.equal(out, wanted)
    assert ops.dropout(x, 0.5, inplace=True, seed=seed) is x
    assert torch.equal(x, wanted)


def test_ends_and_what_is_refused() -> None:
    x = torch.ones(5)
    assert ops.dropout(x, 0.5, training=False) is x
    assert ops.dropout(x, 0) is x
    assert torch.equal(ops.dropout(x, 1), torch.zeros(5))
    with pytest.raises(LaunchError, match="probability of 2") as caught:
        ops.dropout(x, 2)
    assert caught.value.code == "X0829"
    assert caught.value.file == __file__


def test_torch_compile_draws_anew_each_time() -> None:
    x = torch.ones(1000, requires_grad=True)
    compiled = torch.compile(
        lambda x: ops.dropout(x, 0.5), fullgraph=True, backend="aot_eager"
    )
    one, two = compiled(x), compiled(x)
    assert not torch.equal(one, two)
    one.sum().backward()
    assert torch.equal(x.grad, one)
    seed = torch.tensor([3])
    torch.library.opcheck(torch.ops.xetl.seeded_dropout.default, (x, seed, 0.5))
    wide = torch.randn(64, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: ops.dropout(x, 0.5, seed=seed), (wide,))
