"""``xetl.ops.scaled_dot_product_attention``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, bf16
from xetl.language.ops import cdiv
from xetl.ops.activations import cleared, copied
from xetl.ops.attention.backward_kernel import attention_backward, whole_backward
from xetl.ops.attention.blocks import (
    are_merged,
    blocks_of,
    gradient_blocks,
    multiplied_as,
    parts_of,
    whole_gradient_blocks,
)
from xetl.ops.attention.kernel import attention, joined_parts
from xetl.ops.calling.calls import Launch, View, chain, itself, split_batch
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Dims,
    Operand,
    Step,
    common_dtype_of,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declarations import result as new_one
from xetl.ops.calling.declare import function
from xetl.ops.calling.operands import Shape
from xetl.ops.calling.views import array_of
from xetl.ops.dropouts import new_seed
from xetl.ops.products.host_tiles import STREAMED
from xetl.ops.rows.softmaxes import LOG2_E

_NAME = "scaled_dot_product_attention"

_LEAST_FACTOR = 2.0**-126
"""The least factor of scores: 0 times a masked score (minus infinity) would be NaN."""

_OUT = 4
"""The place of the result among the operands of `attention`."""

_ALL = -1, -1
"""The window with all keys."""


def _completed(values: list[Any]) -> None:
    """Accept the former form ``(q, k, v, causal, scale, out)``; draw a missing seed."""
    mask, scale, out = values[3:6]
    if isinstance(mask, bool):
        values[3:6] = None, 0.0, mask
        values[6] = scale or values[6]
        if hasattr(out, "shape"):
            values[-1] = out
    if values[4] and values[9] is None:
        values[9] = new_seed(values[0])


def window_of(name: str, window: Any, *, is_causal: bool) -> tuple[Any, Any]:
    """Return how many keys a query sees before and behind its own; None: all.

    Raises:
        LaunchError: ``window`` is not a pair of numbers from -1.
    """
    found = tuple(window)
    if len(found) != 2 or min(found) < -1:
        problem = f"a window of {window}"
        raise wrong_shape(name, problem, "pass (before, behind), -1 for no end")
    left, right = (None if size == -1 else int(size) for size in found)
    return left, 0 if is_causal else right


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    q, k, v, mask, seed, out = context.saved
    dropped, is_causal, scale, is_grouped, window = context.values[4:9]
    batch = out.shape[:-2]
    shared = (*batch[:-1], k.shape[-3]) if is_grouped else batch
    inputs = (q, batch), (k, shared), (v, shared)
    # torch takes about a microsecond even to expand, or sum, to the same shape.
    whole = [
        x if x.shape[:-2] == lead else x.expand(*lead, *x.shape[-2:])
        for x, lead in inputs
    ]
    dense = [x.contiguous() for x in (grad, *whole, out)]
    if mask is not None:
        s, t = q.shape[-2], k.shape[-2]
        mask = mask.expand(*(batch if mask.ndim > 2 else ()), s, t)
        mask = mask.reshape(-1, s, t) if mask.ndim > 2 else mask.contiguous()
    drawn = seed if dropped else None
    scale = 1 / sqrt(q.shape[-1]) if scale is None else scale
    by_mask = context.needs("attn_mask")
    given: Any = (*dense, mask, drawn, None, None, window, is_causal)
    given += scale, dropped, by_mask
    *found, by_bias = attention_gradients(*given)
    by = (
        x if x.shape == given.shape else x.sum_to_size(given.shape)
        for x, given in zip(found, (q, k, v))
    )
    gradients = dict[str, Any](zip(("query", "key", "value"), by))
    if by_mask:
        bias = context.saved[3]
        gradients["attn_mask"] = by_bias.sum_to_size(bias.shape).to(bias.dtype)
    return gradients


@function(results=4)
def attention_gradients(
    grad: ArrayLike,
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    result: ArrayLike,
    attn_mask: ArrayLike | None,
    seed: ArrayLike | None,
    q_starts: ArrayLike | None,
    k_starts: ArrayLike | None,
    window: Dims,
    is_causal: bool,
    scale: float,
    dropout_p: float,
    by_mask: bool,
) -> Any:
    """The gradients of query, key and value, and if asked for of floats ``attn_mask``.

    Leading dimensions are equal, but ``attn_mask`` has one or none, and those of
    ``query`` may be a multiple: so many adjacent heads share a matrix of keys. With
    ``q_starts`` they are (heads, all queries or keys, ...).
    """
    found = tuple(new_one(x.shape, x.dtype) for x in (query, key, value))
    (s, d), (t, e) = query.shape[-2:], value.shape[-2:]
    b, acc = prod(key.shape[:-2]), SUMS[query.dtype]
    found += (new_one((*query.shape[:-1], t) if by_mask else (0,), acc),)
    share = prod(query.shape[:-2]) // max(b, 1)
    # Where the place of a query does not count, those of all heads are one matrix.
    sides = window_of(_NAME, window, is_causal=is_causal)
    is_alike = q_starts is None and sides == (None, None) and not dropout_p
    if is_alike and (attn_mask is None or attn_mask.ndim > 2):
        share, s = 1, share * s
    may_be_whole = is_alike and share == 1

    flat: View = lambda x: x.reshape(b, *x.shape[-2:])
    rows: View = lambda x: x.reshape(b * share, s, x.shape[-1])

    def steps(made: Any) -> Any:
        scores: View = lambda x: x.reshape(b * share, s, t)
        seen: View = lambda x: x if x.ndim == 2 else scores(x)
        *to, by_bias = made
        to.append(by_bias if by_mask else None)
        whole = whole_gradient_blocks(query, value, t) if may_be_whole else None
        if whole is not None:
            views = [rows, flat, flat, seen, rows, rows, rows, flat, flat, scores]
            constants = (t < whole[1], acc, *whole, d, e)
            launch = Launch(whole_backward, views, (), (b, 1, 1), constants)
            arrays = (query, key, value, attn_mask, result, grad, *to)
            return [Step(launch, arrays, (scale * LOG2_E, scale))]
        kept = temporary((b * share, s, 2), acc)
        by_q = to[0] if acc == query.dtype else temporary(query.shape, acc)
        inputs = (query, key, value, attn_mask, result, grad, seed)
        arrays = (*inputs, q_starts, k_starts, kept, by_q, *to[1:])
        ragged = q_starts is not None
        blocks = gradient_blocks(query, (s, t), sides, is_ragged=ragged)
        mul = query.dtype if query.dtype is bf16 else acc
        constants = (b, share, *sides, mul, acc, *blocks, d, e)
        sequences = b if q_starts is None else b * (q_starts.shape[0] - 1)
        grid = (sequences, 1, 1)
        views = [rows, flat, flat, seen, rows, rows, *[None] * 4, rows, flat, flat]
        launch = Launch(attention_backward, [*views, scores], (), grid, constants)
        # Blocks that no query sees are not computed.
        first = [cleared(by_bias)] if by_mask and sides != (None, None) else []
        step = Step(launch, arrays, (scale * LOG2_E, scale, dropout_p))
        last = [] if by_q is to[0] else [copied(by_q, made[0], acc)]
        return [*first, step, *last]

    return Call(found, steps)


@function(
    backward=_backward,
    saves=["query", "key", "value", "attn_mask", "seed", "result"],
    aliases={"q": "query", "k": "key", "v": "value", "causal": "is_causal"},
    adapt=_completed,
)
def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    window_size: Dims = _ALL,
    seed: ArrayLike | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``softmax(q @ k.T * scale + mask) @ v``, with the shapes of torch's function.

    Leading dimensions are batches (and heads) and broadcast. Scores and sums are f32
    (f64 for f64). For 16-bit products, the weights of ``value`` are rounded to its
    dtype. Memory for scores does not grow with s and t.

    Args:
        query: (..., s, d); f16, bf16, f32 or f64. NumPy (bf16 by ml_dtypes), torch,
            memory of a device (USM), anything with ``__dlpack__``.
        key: (..., t, d), dtype of ``query``.
        value: (..., t, e), dtype of ``query``.
        attn_mask: (..., s, t), or a shape that broadcasts to it. A bool says whether a
            query sees a key; floats are added to the scores. The derivative by floats
            takes memory for all scores.
        dropout_p: the probability, below 1, that a weight of a value becomes 0. The
            other weights are multiplied by 1 / (1 - dropout_p).
        is_causal: whether query i sees only keys 0 to i.
        scale: the factor of scores; None: 1 / sqrt(d).
        enable_gqa: whether several heads of ``query``, dimension -3, share one of
            ``key`` and ``value``.
        window_size: how many keys before and behind key i query i sees; -1: all.
        seed: an array of one i64 for dropout, as for `dropout`. None: a new seed.
        out: the array that gets the result: (..., s, e), of any float dtype. It must
            not share memory with another argument.

    Returns:
        ``out``, or a new array of the library of ``query``: (..., s, e), dtype of
        ``query``. A query that sees no key gives 0.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, ``out`` shares memory
            (X0807) or is read-only (X0806), or ``dropout_p`` is not 0 to 1 (X0829).
    """
    if not 0 <= dropout_p < 1:
        problem = f"`{_NAME}` was given a dropout of {dropout_p}"
        raise LaunchError(problem, "X0829", "`dropout_p` is from 0 to less than 1")
    left, right = window_of(_NAME, window_size, is_causal=is_causal)
    q, k, v, mask = query, key, value, attn_mask
    groups = _groups(q, k, v) if enable_gqa else 1
    shape = _result_shape(*(_split_heads(x, groups)[0] for x in (q, k, v)))
    dtype = common_dtype_of(_NAME, {"q": q.dtype, "k": k.dtype, "v": v.dtype})
    result_shape = shape if groups == 1 else (*shape[:-4], q.shape[-3], *shape[-2:])
    if mask is not None:
        _check_mask(mask, dtype, (*result_shape[:-1], k.shape[-2]))

    def steps(made: Any) -> Any:
        is_masked, sums = left is not None or right is not None, SUMS[dtype]
        # If each head has one query, those of a group can be rows of one matrix.
        is_alike = q.shape[-2] == 1 and not is_masked and not dropout_p
        matrices = prod(result_shape[:-2]) // groups
        t, both = k.shape[-2], k.shape[-1] + v.shape[-1]
        shares = parts_of(t, both, matrices)
        merged = is_alike and are_merged((q, k, v), matrices * shares)
        s = q.shape[-2] * (groups if merged else 1)
        aligned = [q, k, v, *made]
        seen = [_split_heads(x, groups, merged=merged)[1] for x in aligned]
        if mask is not None:
            aligned.insert(3, mask)
            seen.insert(3, _mask_view(mask, groups, s, t, merged=merged))
        found = split_batch([view(array_of(x)) for view, x in zip(seen, aligned)])
        chained: list[View | None] = [chain(a, b) for a, b in zip(seen, found.views)]
        if mask is None:
            chained.insert(3, None)
        block, columns = blocks_of((q, k, v), (s, t), is_masked=is_masked)
        number = 1 / sqrt(q.shape[-1]) if scale is None else scale
        rest = (number < 0, sums, block, columns, q.shape[-1], v.shape[-1])
        rest += (multiplied_as((q, k, v), block),)
        grid = (cdiv(s, block), found.matrices, 1)
        operands = (q, k, v, mask, *made, seed if dropout_p else None, *[None] * 4)
        constants = (1, 1, left, right, *rest, 0)
        given = operands, [*chained, *[None] * 5], found.loops, grid, constants
        numbers = (*factors_of(number), dropout_p)
        if dropout_p:
            return _with_dropout(*given, numbers)
        parts = 1 if is_masked else parts_of(t, both, grid[0] * grid[1])
        return attention_steps(*given, numbers, (s, t), parts)

    return Call((new_one(result_shape, dtype),), steps)


def attention_steps(
    operands: Sequence[Operand | None],
    views: Sequence[View | None],
    loops: Shape,
    grid: tuple[int, int, int],
    constants: tuple[Any, ...],
    numbers: tuple[float, ...],
    extents: tuple[int, int],
    parts: int,
) -> list[Step]:
    """Return the launches of `attention`, in parts of the keys if there are several.

    Args:
        grid: that without parts.
        constants: those without parts.
        extents: the numbers of queries and keys of a matrix.
        parts: see `parts_of`.
    """
    if parts == 1:
        launch = Launch(attention, views, loops, grid, constants)
        return [Step(launch, operands, numbers)]
    (blocks, matrices, _), (s, t), out = grid, extents, operands[_OUT]
    assert out is not None
    acc, rows, block, _, e = constants[5:10]
    part = cdiv(cdiv(t, parts), block) * block
    parts = cdiv(t, part)
    # Rows of whole cache lines: the sums of a row, and what joins them.
    between = temporary((*loops, matrices, parts, s, cdiv(e + 2, 16) * 16), acc)
    arrays, seen = [*operands], [*views]
    arrays[_OUT], seen[_OUT] = between, itself
    how = (*constants, part)
    first = Launch(attention, seen, loops, (blocks, matrices, parts), how)
    rows = min(rows, STREAMED)
    joined = (itself, views[_OUT]), loops, (cdiv(s, rows), matrices, 1), (acc, rows, e)
    last = Launch(joined_parts, *joined)
    return [Step(first, arrays, numbers), Step(last, (between, out), numbers[:1])]


def _with_dropout(
    operands: Sequence[Operand | None],
    views: Sequence[View | None],
    loops: Shape,
    grid: tuple[int, int, int],
    constants: tuple[Any, ...],
    numbers: tuple[float, ...],
) -> list[Step]:
    """Return a launch for each turn of the host's loops: it has to know its matrices.

    The last of ``constants`` is replaced by the number of matrices before.
    """
    steps = list[Step]()
    for i, index in enumerate(np.ndindex(loops)):
        inner = [_turn(view, index) for view in views]
        known = (*constants[:-1], i * grid[1])
        steps.append(Step(Launch(attention, inner, (), grid, known), operands, numbers))
    return steps


def factors_of(scale: float) -> tuple[float, ...]:
    """Return the factors of the scores, and of the bias that is added to them."""
    factor = max(abs(scale) * LOG2_E, _LEAST_FACTOR)
    return factor, LOG2_E / factor


def _groups(q: Operand, k: Operand, v: Operand) -> int:
    """Return how many heads of q share one head of k and v.

    Raises:
        LaunchError: the heads of q are no multiple of those of k and v.
    """
    fits = min(q.ndim, k.ndim, v.ndim) > 2 and k.shape[-3] == v.shape[-3]
    heads, shared = (x.shape[-3] if fits else 0 for x in (q, k))
    if not fits or heads % (shared or heads + 1):
        problem = f"q is {q.shape}, k is {k.shape} and v is {v.shape}"
        help_ = "the heads of q, dimension -3, are a multiple of those of k and v"
        raise wrong_shape(_NAME, problem, help_)
    return heads // (shared or 1) or 1


def _split_heads(
    x: Operand, groups: int, *, merged: bool = False
) -> tuple[Shape, View]:
    """Return the shape and view with heads as (heads of k, groups or 1).

    Args:
        x: query, key, value or the result.
        groups: how many heads of the query share one of the key.
        merged: whether the rows of a group are those of one matrix.
    """
    if groups == 1:
        return x.shape, itself
    *lead, heads, rows, columns = x.shape
    inner = 1 if x.name in ("key", "value") else groups
    matrix = (inner * rows, columns) if merged else (inner, rows, columns)
    shape = (*lead, heads // inner, *matrix)
    return shape, lambda a: a.reshape(shape)


def _turn(view: View | None, index: tuple[int, ...]) -> View | None:
    """Return the part of a view that a turn of a loop reads."""
    return chain(view, lambda x: x[index]) if view and index else view


def _mask_view(mask: Operand, groups: int, s: int, t: int, *, merged: bool) -> View:
    """Return the view of a mask as (..., s, t), with heads as those of the query."""
    lead, rows = mask.shape[:-2], mask.shape[-2:]
    if groups > 1 and lead:
        heads = lead[-1]
        split = (1, 1) if heads == 1 else (heads // groups, groups)
        lead = (*lead[:-1], *split)
        if merged:
            lead, rows = lead[:-1], (lead[-1], rows[-1])
    return lambda a: np.broadcast_to(a.reshape(*lead, *rows), (*lead, s, t), subok=True)


def _check_mask(mask: Operand, dtype: DType, wanted: Shape) -> None:
    """Refuse a mask that does not broadcast, or whose dtype does not fit."""
    pairs = zip(reversed(mask.shape), reversed(wanted))
    fits = 2 <= mask.ndim <= len(wanted) and all(n in (1, m) for n, m in pairs)
    if not fits:
        problem = f"`attn_mask` is {mask.shape}, but scores are {wanted}"
        raise wrong_shape(_NAME, problem, "pass what broadcasts to that shape")
    is_float = mask.dtype in SUMS and mask.dtype.bits <= SUMS[dtype].bits
    if not mask.dtype.is_bool and not is_float:
        common_dtype_of(_NAME, {"q": dtype, "attn_mask": mask.dtype})


def _result_shape(q: Shape, k: Shape, v: Shape) -> Shape:
    """Return (..., s, e); raise a LaunchError if the shapes do not fit together."""
    help_ = "q is (..., s, d), k is (..., t, d), v is (..., t, e), with d at least 1"
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2] or not q[-1]:
        raise wrong_shape(_NAME, f"q is {q}, k is {k} and v is {v}", help_)
    try:
        batch = np.broadcast_shapes(q[:-2], k[:-2], v[:-2])
    except ValueError:
        problem = f"the batches {q[:-2]}, {k[:-2]} and {v[:-2]} do not broadcast"
        raise wrong_shape(_NAME, problem, help_) from None
    return (*batch, q[-2], v[-1])
