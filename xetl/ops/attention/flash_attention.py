"""``flash_attn_varlen_func`` and ``flash_attn_with_kvcache``: sequences of any length.

Names, shapes and keywords are those of flash-attn 2 (github.com/Dao-AILab); pages are
those of PagedAttention (Kwon et al., arXiv 2309.06180).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, sqrt
from typing import Any

from xetl.errors import LaunchError
from xetl.language.dtypes import i32
from xetl.language.ops import cdiv
from xetl.ops.attention.blocks import are_merged, blocks_of, multiplied_as
from xetl.ops.attention.dot_product_attention import (
    attention_gradients,
    factors_of,
    window_of,
)
from xetl.ops.attention.kernel import attention
from xetl.ops.calling.calls import Launch, View
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Dims,
    Operand,
    Step,
    result,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Numbers
from xetl.ops.calling.views import floats

_PAGE = 16
"""The number of keys of a page is a multiple of this."""


def _heads_first(x: Numbers) -> Numbers:
    return x.swapaxes(-3, -2)


def _pages_of_heads(x: Numbers) -> Numbers:
    """View (pages, keys, heads, d) as (heads, pages, keys, d)."""
    return x.swapaxes(-3, -2).swapaxes(0, 1)


def _check(name: str, q: Operand, k: Operand, v: Operand, rank: int) -> None:
    """Refuse operands that do not fit."""
    fits = q.ndim == k.ndim == v.ndim == rank and k.shape[:-1] == v.shape[:-1]
    fits = fits and q.shape[-1] == k.shape[-1] > 0 and k.shape[-2] > 0
    if not fits or q.shape[-2] % k.shape[-2]:
        problem = f"`q` is {q.shape}, keys are {k.shape} and values {v.shape}"
        lead = "(all tokens" if rank == 3 else "(batch, s"
        raise wrong_shape(name, problem, f"pass {lead}, heads, d) three times")
    floats(name, q, k, v)


def _check_numbers(name: str, x: Operand | None, *shape: int) -> None:
    """Refuse an array that is not i32 or has another shape; -1 allows any extent."""
    if x is None:
        return
    if x.dtype != i32:
        problem = f"`{name}` was given `{x.name}` of {x.dtype}"
        raise LaunchError(problem, code="X0828", help="pass i32")
    if x.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, x.shape)):
        wanted = str(tuple("any" if n == -1 else n for n in shape))
        problem = f"`{x.name}` is {x.shape}"
        raise wrong_shape(name, problem, f"pass {wanted.replace(chr(39), '')}")


def _attention(
    operands: Sequence[Operand | None],
    views: Sequence[View],
    queries: int,
    keys: int,
    batch: int,
    scale: float | None,
    window: tuple[int | None, int | None],
    page: int = 0,
) -> Call:
    """Return the launch.

    Args:
        operands: q, k, v, lengths, table, q_starts, k_starts.
        views: those of k and v.
        queries: the most queries of a sequence.
        keys: the most keys of a sequence.
        batch: sequences.
        scale: the factor of scores; None: 1 / sqrt(d).
        window: how many keys before and behind its own a query sees; None: all.
        page: the keys of a page; 0: no pages.
    """
    q, k, v = (x for x in operands[:3] if x is not None)
    heads, d = q.shape[-2:]
    share = heads // k.shape[-2]
    sees_all = operands[3] is not None and queries == 1 and window[0] is None
    spec = result((*q.shape[:-1], v.shape[-1]), q.dtype)

    def steps(made: Sequence[Operand]) -> list[Step]:
        by_heads: View = _heads_first
        matrices, rows, how = heads, queries, (share, *window)
        if sees_all and are_merged((q, k, v), batch * heads // share):
            matrices, rows, how = heads // share, share, (1, None, None)
            by_heads = lambda x: x.reshape(batch, matrices, rows, x.shape[-1])
        each, block = blocks_of((q, k, v), (rows, keys), is_masked=True)
        block = gcd(block, page or block)
        number = 1 / sqrt(d) if scale is None else scale
        constants = (matrices, *how, number < 0, SUMS[q.dtype])
        seen = (by_heads, *views, None, by_heads, *[None] * 5)
        grid = (cdiv(rows, each), batch * matrices, 1)
        tile = (each, block, d, v.shape[-1], multiplied_as((q, k, v), each))
        launch = Launch(attention, seen, (), grid, (*constants, *tile))
        given = (q, k, v, None, *made, None, *operands[3:])
        return [Step(launch, given, (*factors_of(number), 0.0))]

    return Call((spec,), steps)


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    q, k, v, q_starts, k_starts, out = context.saved
    scale, window = context["softmax_scale"], context["window_size"]
    scale = 1 / sqrt(q.shape[-1]) if scale is None else scale
    g, a, b, c, y = (x.transpose(0, 1).contiguous() for x in (grad, q, k, v, out))
    given = (g, a, b, c, y, None, None, q_starts, k_starts, window, context["causal"])
    *found, _ = attention_gradients(*given, scale, 0.0, False)
    return dict(zip("qkv", (x.transpose(0, 1) for x in found)))


@function(
    backward=_backward, saves=["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "result"]
)
def flash_attn_varlen_func(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    cu_seqlens_q: ArrayLike,
    cu_seqlens_k: ArrayLike,
    max_seqlen_q: int,
    max_seqlen_k: int,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Dims = (-1, -1),
    *,
    out: ArrayLike = None,
) -> Any:
    """Attention of sequences of several lengths, stored one behind the other.

    Args:
        q: (all queries, heads, d); f16, bf16, f32 or f64, from any library as for
            `scaled_dot_product_attention`.
        k: (all keys, heads of keys, d), dtype of ``q``. The number of heads of ``q`` is
            a multiple of that of ``k``.
        v: (all keys, heads of keys, e), dtype of ``q``.
        cu_seqlens_q: (batch + 1,), i32: the first query of each sequence, and the end
            of the last one. They must be ascending and inside of ``q``; this is not
            checked.
        cu_seqlens_k: the same for keys.
        max_seqlen_q: the queries of the longest sequence, or more.
        max_seqlen_k: the keys of the longest sequence, or more.
        softmax_scale: the factor of scores; None: 1 / sqrt(d).
        causal: whether a query sees only keys up to its own. The last query of a
            sequence belongs to the last key.
        window_size: how many keys before and behind its own a query sees; -1: all.
        out: the array that gets the result: (all queries, heads, e), of any float
            dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    name = "flash_attn_varlen_func"
    _check(name, q, k, v, 3)
    batch = cu_seqlens_q.shape[0] - 1
    _check_numbers(name, cu_seqlens_q, -1)
    _check_numbers(name, cu_seqlens_k, batch + 1)
    operands = (q, k, v, None, None, cu_seqlens_q, cu_seqlens_k)
    window = window_of(name, window_size, is_causal=causal)
    sizes = max_seqlen_q, max_seqlen_k, batch
    return _attention(operands, (_heads_first,) * 2, *sizes, softmax_scale, window)


@function()
def flash_attn_with_kvcache(
    q: ArrayLike,
    k_cache: ArrayLike,
    v_cache: ArrayLike,
    cache_seqlens: ArrayLike,
    block_table: ArrayLike | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Dims = (-1, -1),
    *,
    out: ArrayLike = None,
) -> Any:
    """Attention of new queries to the keys of a cache, which may be in pages.

    Args:
        q: (batch, s, heads, d); dtypes as for `flash_attn_varlen_func`. The last query
            of a sequence belongs to its last key.
        k_cache: (batch, t, heads of keys, d). With a table it is (pages, keys of a
            page, heads of keys, d), and the keys of a page are a multiple of 16.
        v_cache: the same for values.
        cache_seqlens: (batch,), i32: the number of keys of each sequence, with those of
            ``q``. Later keys of the cache are not read. The numbers are not checked.
        block_table: (batch, pages of a sequence), i32: the indices of its pages. Those
            behind its keys are not read.
        softmax_scale: the factor of scores; None: 1 / sqrt(d).
        causal: whether a query sees only keys up to its own.
        window_size: how many keys before and behind its own a query sees; -1: all.
        out: the array that gets the result: (batch, s, heads, e), of any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    name = "flash_attn_with_kvcache"
    _check(name, q, k_cache, v_cache, 4)
    batch, keys, page = q.shape[0], k_cache.shape[1], 0
    _check_numbers(name, cache_seqlens, batch)
    views = _heads_first, _heads_first
    if block_table is not None:
        page = keys
        _check_numbers(name, block_table, batch, -1)
        keys = block_table.shape[1] * page
        views = _pages_of_heads, _pages_of_heads
    if page % _PAGE or (not page and k_cache.shape[0] != batch):
        problem = f"`q` is {q.shape} and `k_cache` {k_cache.shape}"
        help_ = f"pass a cache for each sequence, or pages of {_PAGE}, 32, ... keys"
        raise wrong_shape(name, problem, help_)
    operands = (q, k_cache, v_cache, cache_seqlens, block_table, None, None)
    window = window_of(name, window_size, is_causal=causal)
    sizes = q.shape[1], keys, batch
    return _attention(operands, views, *sizes, softmax_scale, window, page)
