"""Windows, dropout, ragged sequences and caches in pages, against torch."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.ops.test_like_torch import BOUNDS, close
from xetl import ops
from xetl.errors import LaunchError
from xetl_cpu import CpuBackend

slow = pytest.mark.slow  # each compiles kernels of its own
attention = torch.nn.functional.scaled_dot_product_attention

WINDOWS = (20, -1), (-1, 9), (0, 0)
CAUSAL, WINDOW = {"causal": True}, {"window_size": (9, 0)}


def normal(*shape: int, dtype: Any = torch.float32) -> Any:
    make = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=make).to(dtype)


def seen(s: int, t: int, window: tuple[int, int], shift: int = 0) -> Any:
    """Which keys are in the windows of queries."""
    behind = torch.arange(t) - torch.arange(s)[:, None] - shift
    left, right = (t + s if size == -1 else size for size in window)
    return (behind >= -left) & (behind <= right)


def window_of(options: Any) -> Any:
    return (-1, 0) if "causal" in options else options.get("window_size", (-1, -1))


@pytest.mark.parametrize(
    "window", [(3, 5), *(pytest.param(x, marks=slow) for x in WINDOWS)]
)
@pytest.mark.parametrize("shape", [(70, 90), (5, 21)])
def test_windows(window: Any, shape: tuple[int, int]) -> None:
    s, t = shape
    shapes = (2, 3, s, 16), (2, 3, t, 16), (2, 3, t, 24)
    ours, theirs = ([normal(*x).requires_grad_() for x in shapes] for _ in "12")
    found = ops.scaled_dot_product_attention(*ours, window_size=window)
    wanted = attention(*theirs, seen(s, t, window))
    close(found, wanted.nan_to_num(), 1e-5)
    weights = normal(*found.shape)
    found.backward(weights)
    wanted.backward(weights)
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad.nan_to_num(), 4e-5)


def test_a_causal_window() -> None:
    q, k, v = (normal(1, 2, 40, 16) for _ in range(3))
    options: Any = {"is_causal": True, "window_size": (6, 6)}
    found = ops.scaled_dot_product_attention(q, k, v, **options)
    close(found, attention(q, k, v, seen(40, 40, (6, 0))), 1e-5)


@slow
def test_dropout() -> None:
    """Of values that are the identity the result is what is kept of probabilities."""
    s, t, seed = 70, 90, torch.tensor([7])
    q, k = normal(2, 3, s, 16), normal(2, 3, t, 16)
    whole = ops.scaled_dot_product_attention(q, k, torch.eye(t))
    kept = ops.scaled_dot_product_attention(q, k, torch.eye(t), None, 0.3, seed=seed)
    factors = kept / whole
    assert 0.68 < (factors > 0).float().mean() < 0.72
    close(factors, (factors > 0) / 0.7, 1e-4)
    assert not torch.equal(factors[0, 0], factors[0, 1])
    # The derivative drops the same ones.
    ours, theirs = ([x.clone().requires_grad_() for x in (q, k)] for _ in "12")
    v = normal(2, 3, t, 16)
    found = ops.scaled_dot_product_attention(*ours, v, None, 0.3, seed=seed)
    scores = theirs[0] @ theirs[1].mT / 4
    wanted = scores.softmax(-1) * factors @ v
    close(found, wanted, 1e-4)
    found.square().sum().backward()
    wanted.square().sum().backward()
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 1e-3)
    torch.manual_seed(0)
    drawn = [ops.scaled_dot_product_attention(q, k, v, None, 0.3) for _ in "12"]
    assert not torch.equal(*drawn)


@pytest.mark.parametrize("queries", [1, 23])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"window_size": (4, 3)},
        {"dropout_p": 0.4, "seed": torch.tensor([3])},
        {"attn_mask": True},
    ],
)
def test_the_derivative_of_heads_that_share_keys(options: Any, queries: int) -> None:
    """It is that of keys that are repeated, whether or not heads are rows of one."""
    if "attn_mask" in options:
        options = {"attn_mask": normal(queries, 19, dtype=torch.float64) > 0}
    make: Any = lambda h, n: normal(2, h, n, 8, dtype=torch.float64)
    ours = [make(6, queries), make(2, 19), make(2, 19) * 2]
    theirs = [x.clone() for x in ours]
    for x in (*ours, *theirs):
        x.requires_grad_()
    call = ops.scaled_dot_product_attention
    found = call(*ours, enable_gqa=True, **options)
    q, *shared = theirs
    wanted = call(q, *(x.repeat_interleave(3, 1) for x in shared), **options)
    close(found, wanted, 1e-12)
    weights = normal(*found.shape, dtype=torch.float64)
    found.backward(weights)
    wanted.backward(weights)
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 1e-12)


@pytest.mark.parametrize("scale", [0.3, 1e5])
@pytest.mark.parametrize("cache", [None, 1])
def test_the_derivative_of_all_keys(
    monkeypatch: pytest.MonkeyPatch, cache: int | None, scale: float
) -> None:
    """Whether one block of scores has all keys or, as the cache is small, some."""
    if cache is not None:
        monkeypatch.setattr(CpuBackend, "private_cache", lambda *_: cache)
    heads = 2 if cache is None else 3  # of other shapes, so that no plan is known
    for s, t in ((1, 1), (40, 77), (130, 16), (0, 19)):
        make: Any = lambda n, d: normal(heads, n, d, dtype=torch.float64)
        ours = [make(s, 8), make(t, 8), make(t, 24)]
        theirs = [x.clone().requires_grad_() for x in ours]
        ours = [x.requires_grad_() for x in ours]
        found = ops.scaled_dot_product_attention(*ours, scale=scale)
        wanted = attention(*theirs, scale=scale)
        weights = normal(*found.shape, dtype=torch.float64)
        found.backward(weights)
        wanted.backward(weights)
        for one, two in zip(ours, theirs):
            close(one.grad / scale, two.grad / scale, 1e-11 if scale > 1 else 1e-13)


def test_what_is_dropped_does_not_depend_on_strides() -> None:
    """Of these the host goes through the batch."""
    shapes = (2, 20, 4, 8), (2, 20, 2, 8), (2, 20, 2, 8)
    seed = torch.tensor([7])
    options: Any = {"dropout_p": 0.5, "seed": seed, "enable_gqa": True}
    ours = [normal(*shape).transpose(1, 2) for shape in shapes]
    theirs = [x.contiguous() for x in ours]
    for x in (*ours, *theirs):
        x.requires_grad_()
    call = ops.scaled_dot_product_attention
    pair = [call(*given, **options) for given in (ours, theirs)]
    assert torch.equal(*pair)
    for found in pair:
        found.square().sum().backward()
    for one, two in zip(ours, theirs):
        assert torch.equal(one.grad, two.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "options", [CAUSAL, *(pytest.param(x, marks=slow) for x in ({}, WINDOW))]
)
def test_ragged_sequences(options: Any, dtype: Any) -> None:
    q_lengths, k_lengths = (5, 0, 70, 30), (9, 4, 50, 100)
    shapes = (105, 4, 16), (163, 2, 16), (163, 2, 24)
    ours, theirs = (
        [normal(*each, dtype=dtype).requires_grad_() for each in shapes] for _ in "12"
    )
    starts = [
        torch.tensor([0, *each]).cumsum(0).int() for each in (q_lengths, k_lengths)
    ]
    found = ops.flash_attn_varlen_func(*ours, *starts, 70, 100, **options)
    lengths = q_lengths, k_lengths, k_lengths
    wanted: list[Any] = []
    for parts in zip(*(x.split(n) for x, n in zip(theirs, lengths))):
        s, t = len(parts[0]), len(parts[1])
        mask = seen(s, t, window_of(options), t - s)
        some = mask.any(1)  # torch gives NaN to queries that see no key
        q, k, v = (x.transpose(0, 1) for x in parts)
        whole = attention(q[:, some], k, v, mask[some], enable_gqa=True)
        none = whole.new_zeros(s, *whole.transpose(0, 1).shape[1:])
        wanted.append(none.index_put((some,), whole.transpose(0, 1)))
    close(found, torch.cat(wanted), BOUNDS[dtype])
    weights = normal(*found.shape, dtype=dtype)
    found.backward(weights)
    torch.cat(wanted).backward(weights)
    for one, two in zip(ours, theirs):
        close(one.grad, two.grad, 4 * BOUNDS[dtype])


@slow
def test_the_derivative_of_ragged_sequences() -> None:
    shapes = (9, 4, 3), (8, 2, 3), (8, 2, 5)
    given = [normal(*each, dtype=torch.float64).requires_grad_() for each in shapes]
    starts = torch.tensor([0, 4, 9]).int(), torch.tensor([0, 5, 8]).int()

    def called(*tensors: Any) -> Any:
        return ops.flash_attn_varlen_func(*tensors, *starts, 5, 5, causal=True)

    assert torch.autograd.gradcheck(called, given, fast_mode=True)


def test_no_heads_that_share_keys() -> None:
    x = normal(2, 0, 5, 8)
    found = ops.scaled_dot_product_attention(x, x, x, enable_gqa=True)
    assert found.shape == x.shape
    with pytest.raises(LaunchError, match="multiple of"):
        ops.scaled_dot_product_attention(normal(2, 4, 5, 8), x, x, enable_gqa=True)


def test_the_derivative_without_queries() -> None:
    """Of bf16: the gradient by queries, of no elements, is summed in f32 and copied."""
    given = [normal(n, 1, 16, dtype=torch.bfloat16).requires_grad_() for n in (0, 8, 8)]
    starts = torch.tensor([0, 0]).int(), torch.tensor([0, 8]).int()
    ops.flash_attn_varlen_func(*given, *starts, 0, 8).sum().backward()
    assert given[0].grad.shape == (0, 1, 16)
    assert not any(x.grad.any() for x in given)


@pytest.mark.parametrize("page", [0, 16, pytest.param(48, marks=slow)])
@pytest.mark.parametrize(
    "options", [CAUSAL, *(pytest.param(x, marks=slow) for x in ({}, WINDOW))]
)
@pytest.mark.parametrize("s", [1, 3])
def test_caches(page: int, options: Any, s: int) -> None:
    lengths = (70, 3, 144)
    q = normal(3, s, 12, 16)
    k, v = normal(3, 144, 4, 16), normal(3, 144, 4, 24)
    wanted: list[Any] = []
    for i, t in enumerate(lengths):
        window = window_of(options)
        heads = [x.transpose(0, 1) for x in (q[i], k[i, :t], v[i, :t])]
        each = attention(*heads, seen(s, t, window, t - s), enable_gqa=True)
        wanted.append(each.transpose(0, 1))
        k[i, t:], v[i, t:] = torch.nan, torch.nan  # what is not read
    table = None
    if page:
        count = 144 // page
        order = torch.randperm(3 * count)
        k, v = (x.reshape(3 * count, page, 4, -1)[order] for x in (k, v))
        table = order.argsort().reshape(3, count).int()
    sizes = torch.tensor(lengths, dtype=torch.int32)
    found = ops.flash_attn_with_kvcache(q, k, v, sizes, table, **options)
    close(found, torch.stack(wanted), 1e-5)


@pytest.mark.parametrize("mask", [None, (1, 90), (2, 1, 1, 90), (1, 12, 1, 90)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_query_of_heads_that_share_keys(mask: Any, dtype: Any) -> None:
    """Their queries are rows of one matrix, so keys are read once: twice as fast."""
    q = normal(2, 1, 12, 16, dtype=dtype).transpose(1, 2)
    k, v = normal(2, 4, 90, 16, dtype=dtype), normal(2, 4, 90, 24, dtype=dtype)
    bias = None if mask is None else normal(*mask, dtype=dtype)
    wide = [None if x is None else x.double() for x in (q, k, v, bias)]
    wanted = attention(*wide, enable_gqa=True).to(dtype)
    out = torch.empty(2, 1, 12, 24, dtype=dtype).transpose(1, 2)
    ops.scaled_dot_product_attention(q, k, v, bias, enable_gqa=True, out=out)
    found = ops.scaled_dot_product_attention(q, k, v, bias, enable_gqa=True)
    for each in (found, out):
        close(each, wanted, BOUNDS[dtype])


@slow
def test_what_torch_is_told() -> None:
    q, k = (normal(9, 2, 16).requires_grad_() for _ in "12")
    starts = torch.tensor([0, 4, 9]).int()
    varlen = torch.ops.xetl.flash_attn_varlen_func.default
    torch.library.opcheck(varlen, (q, k, k, starts, starts, 5, 5))
    cached = torch.ops.xetl.flash_attn_with_kvcache.default
    x = normal(2, 9, 2, 16)
    torch.library.opcheck(cached, (x[:, :1], x, x, torch.tensor([4, 9]).int()))
    plain = torch.ops.xetl.scaled_dot_product_attention.default
    x = normal(1, 2, 9, 16).requires_grad_()
    options: Any = {"window_size": (2, 2), "seed": torch.tensor([7])}
    torch.library.opcheck(plain, (x, x, x, None, 0.5), options)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("X0827", lambda q, n: ops.flash_attn_varlen_func(q, q, q, n, n, 4, 4)),
        ("X0827", lambda q, n: ops.flash_attn_with_kvcache(q, q[:1], q[:1], n)),
        ("X0827", lambda q, n: ops.flash_attn_with_kvcache(q, q, q, n, n[:, None])),
        ("X0827", lambda q, n: ops.flash_attn_with_kvcache(q, q, q, n[:1])),
        ("X0828", lambda q, n: ops.flash_attn_with_kvcache(q, q, q, n.long())),
        ("X0827", lambda q, n: ops.flash_attn_with_kvcache(q, q[..., :3, :], q, n)),
    ],
)
def test_what_is_refused(code: str, call: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        call(torch.ones(2, 4, 4, 8), torch.ones(2, dtype=torch.int32))
    assert caught.value.code == code
    assert caught.value.file == __file__
