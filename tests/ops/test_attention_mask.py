"""The derivative of attention by a mask of floats, such as a bias of positions."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops

attention = torch.nn.functional.scaled_dot_product_attention

CASES = [
    # b, heads, s, t, d, mask, options
    (2, 3, 17, 17, 16, (3, 17, 17), {}),
    (2, 2, 9, 70, 8, (9, 70), {}),
    (2, 2, 40, 24, 16, (2, 1, 40, 24), {"scale": 0.3}),
    (1, 2, 5, 33, 8, (2, 1, 33), {}),
    (1, 1, 150, 200, 64, (1, 1, 150, 200), {}),
    (2, 1, 300, 700, 32, (300, 700), {}),
]


def _numbers(*shape: int, dtype: Any) -> Any:
    return torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_()


def _check(ours: Any, theirs: Any, arrays: Any, mask: Any, dtype: Any) -> Any:
    grad = torch.randn(ours.shape).to(dtype)
    given = (*arrays, mask)
    found = torch.autograd.grad(ours, given, grad)
    wanted = torch.autograd.grad(theirs, given, grad.to(theirs.dtype))
    for one, other in zip(found, wanted):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        close(one, other, 8 * BOUNDS[dtype])
    return found[-1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(("b", "h", "s", "t", "d", "shape", "options"), CASES)
def test_gradient_of_a_mask(
    b: int, h: int, s: int, t: int, d: int, shape: Any, options: Any, dtype: Any
) -> None:
    torch.manual_seed(0)
    arrays = [_numbers(b, h, n, d, dtype=dtype) for n in (s, t, t)]
    mask = _numbers(*shape, dtype=dtype)
    ours = ops.scaled_dot_product_attention(*arrays, mask, **options)
    exact = [x.double() for x in (*arrays, mask)]
    _check(ours, attention(*exact, **options), arrays, mask, dtype)


@pytest.mark.parametrize("mask", [(24, 24), (4, 24, 24), (2, 1, 24, 24)])
@pytest.mark.parametrize("is_causal", [False, True])
def test_with_shared_heads_and_keys_not_seen(mask: Any, is_causal: bool) -> None:
    """What no query sees has a gradient of 0, in blocks that are left out as well."""
    torch.manual_seed(1)
    q = _numbers(2, 4, 24, 16, dtype=torch.float32)
    k, v = (_numbers(2, 2, 24, 16, dtype=torch.float32) for _ in range(2))
    bias = _numbers(*mask, dtype=torch.float32)
    left = torch.ones(24, 24, dtype=torch.bool).tril()
    hidden = bias.masked_fill(~left, -torch.inf) if is_causal else bias
    how = {"enable_gqa": True, "is_causal": is_causal}
    ours = ops.scaled_dot_product_attention(q, k, v, bias, **how)
    theirs = attention(q, k, v, hidden, enable_gqa=True)
    _check(ours, theirs, (q, k, v), bias, torch.float32)


def test_a_long_causal_bias() -> None:
    """Blocks behind the diagonal are not computed; their gradient is 0."""
    q, k, v = (_numbers(1, 1, 600, 16, dtype=torch.float32) for _ in range(3))
    bias = _numbers(600, 600, dtype=torch.float32)
    ours = ops.scaled_dot_product_attention(q, k, v, bias, is_causal=True)
    left = torch.ones(600, 600, dtype=torch.bool).tril()
    theirs = attention(q, k, v, bias.masked_fill(~left, -torch.inf))
    found = _check(ours, theirs, (q, k, v), bias, torch.float32)
    assert not found.triu(1).any()


def test_dropped_weights_count_in_the_gradient_of_a_mask() -> None:
    """With dropout: against differences of the same function in f64."""
    q, k, v = (_numbers(1, 5, 4, dtype=torch.float64) for _ in range(3))
    bias = _numbers(5, 5, dtype=torch.float64)
    seed = torch.tensor([7])

    def loss(bias: Any) -> Any:
        how = {"dropout_p": 0.4, "seed": seed}
        return ops.scaled_dot_product_attention(q, k, v, bias, **how)

    assert torch.autograd.gradcheck(loss, (bias,))
