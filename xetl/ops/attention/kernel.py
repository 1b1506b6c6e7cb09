"""The kernel behind `xetl.ops.scaled_dot_product_attention`.

A program goes with some queries over all keys, block by block (FlashAttention: Dao et
al., arXiv 2205.14135): scores never stand in memory as a whole. It keeps, for each
query, the largest score so far, the sum of the exponentials and the weighted sum of
values; when a larger score comes, both sums fade by the power of the difference.
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import matrix, put
from xetl.xetile import Array, Vector, constexpr, f32, f64, i32

LEAST = -3e38
"""The largest score before any is seen: finite, for inf - inf would be NaN."""

COARSE = 2.0**27
"""Powers of two from here on are rounded to multiples of 8, in f32."""

EXPONENT, TO_COARSE = 0xFF << 23, (2 * 127 + 26) << 23
"""The bits of an f32's exponent, and what is 2^26 over a power of two without them."""

MIXED = 0x1E3779B97F4A7C15
"""What the numbers of matrices are multiplied by in seeds: no two seeds are near."""


@xetile.function
def dropout_factors(
    seed: Array, number: int, first: int, n: int, keys: int, p: float, like: Vector
) -> Vector:
    """What dropout multiplies a block of probabilities by: 0 or 1 / (1 - p)."""
    row = xetile.arange(like.shape[0])[:, None] + first
    column = xetile.arange(like.shape[1])[None, :] + n
    drawn = xetile.rand(seed[0] + number * MIXED, row * keys + column)
    return xetile.where(drawn >= p, 1.0 / (1.0 - p), 0.0).to(like.dtype)


@xetile.function
def is_seen(
    column: Vector, row: Vector, LEFT: constexpr, RIGHT: constexpr
) -> Vector | bool:
    """Whether a key is in the window of a query; None: it has no end at that side."""
    seen = column >= 0
    if RIGHT is not None:
        seen = column <= row + RIGHT
    if LEFT is not None:
        seen = seen & (column >= row - LEFT)
    return seen


@xetile.function
def coarse_scale(largest: Vector) -> Vector:
    """What makes numbers half as large as `COARSE` or more; cheap on GPUs."""
    if largest.dtype == f64:
        return COARSE / abs(largest)
    exponent = largest.to(i32, bitcast=True) & EXPONENT
    return (TO_COARSE - exponent).to(f32, bitcast=True)


@xetile.function
def attend(
    q: Vector,
    keys: Array,
    values: Array,
    bias: Array | None,
    pages: Array | None,
    seed: Array | None,
    number: int,
    n: int,
    first: int,
    shift: int,
    limit: int,
    largest: Vector,
    total: Vector,
    acc: Vector,
    factor: float,
    bias_factor: float,
    p: float,
    MASKED: constexpr,
    CLEAN: constexpr,
    LEFT: constexpr,
    RIGHT: constexpr,
    NEGATIVE: constexpr,
    MUL: constexpr,
    BN: constexpr,
) -> tuple[Vector, Vector, Vector]:
    """One block of keys from ``n`` on; returns what has become of the three sums."""
    at = n
    if pages is not None:
        page, at = pages[n // keys.shape[1]], n % keys.shape[1]
        keys, values = keys[page], values[page]
    k = xetile.load_tile(xetile.init_tile(keys, [at, 0], (BN, q.shape[1])))
    scores = xetile.tile_mma(q, k.T)
    if NEGATIVE:
        scores = -scores
    if bias is not None:
        added = xetile.load_tile(xetile.init_tile(bias, [first, n], scores.shape))
        if bias.dtype == xetile.i1:
            scores = xetile.where(added, scores, -xetile.inf)
        else:
            scores = scores + added.to(scores.dtype) * bias_factor
    if MASKED:
        column = xetile.arange(BN)[None, :] + n
        seen = column < limit
        if LEFT is not None or RIGHT is not None:
            row = xetile.arange(q.shape[0])[:, None] + (first + shift)
            seen = seen & is_seen(column, row, LEFT, RIGHT)
        scores = xetile.where(seen, scores, -xetile.inf)
    # A score that is NaN shows in `p`, so the largest need not be NaN.
    best = scores.max(1, keepdims=True, propagate_nan=False)
    new = xetile.maximum(largest, best, propagate_nan=False)
    # `new * by` is rounded, for all keys of a block alike: that fades out. Of scores so
    # large that exp2 could overflow by it only the largest count: others are 4 less.
    scale = xetile.full(new.shape, factor, new.dtype)
    by = xetile.where(abs(new) < COARSE / factor, scale, coarse_scale(new))
    shifted = new * by
    is_coarse = values.dtype == xetile.bf16
    e = xetile.exp2(scores * by - shifted, approximate=is_coarse, nonpositive=True)
    fade = xetile.exp2((largest - new) * by)  # exactly 1 while the largest stays
    v = xetile.load_tile(xetile.init_tile(values, [at, 0], (BN, acc.shape[1])))
    if MASKED and CLEAN:  # memory behind the keys may hold NaN, which 0 does not hide
        v = xetile.where(xetile.arange(BN)[:, None] + n < limit, v, 0.0).to(v.dtype)
    total = total * fade + e.sum(1, keepdims=True)
    if seed is not None:
        e = e * dropout_factors(seed, number, first, n, limit, p, e)
    mul = values.dtype if MUL is None else MUL
    acc = xetile.tile_mma(e.to(mul), v.to(mul), acc * fade)
    return new, total, acc


@xetile.function
def attended(
    rows: Vector,
    keys: Array,
    values: Array,
    bias: Array | None,
    pages: Array | None,
    seed: Array | None,
    number: int,
    first: int,
    shift: int,
    limit: int,
    factor: float,
    bias_factor: float,
    p: float,
    CLEAN: constexpr,
    LEFT: constexpr,
    RIGHT: constexpr,
    NEGATIVE: constexpr,
    MUL: constexpr,
    ACC: constexpr,
    BN: constexpr,
    E: constexpr,
) -> Vector:
    """The result of some queries; see `attention` and `attention_with_options`."""
    largest = xetile.full((rows.shape[0], 1), LEAST, ACC)
    total = xetile.zeros((rows.shape[0], 1), ACC)
    acc = xetile.zeros((rows.shape[0], E), ACC)
    start, end = 0, limit
    whole = end // BN * BN
    if RIGHT is not None:
        reach = first + shift + RIGHT
        end, whole = min(end, reach + rows.shape[0]), min(whole, (reach + 1) // BN * BN)
        if CLEAN:  # then a shift may be less than 0
            whole = max(whole, 0)
    if LEFT is not None:
        start = max(first + shift - LEFT, 0) // BN * BN
        whole = start
    sources, place = (rows, keys, values, bias, pages, seed, number), (first, shift)
    scales, how = (factor, bias_factor, p), (CLEAN, LEFT, RIGHT, NEGATIVE, MUL, BN)
    # Blocks that every query sees as a whole need no mask.
    for n in range(start, whole, BN):
        largest, total, acc = attend(
            *sources, n, *place, limit, largest, total, acc, *scales, False, *how
        )
    for n in range(whole, end, BN):
        largest, total, acc = attend(
            *sources, n, *place, limit, largest, total, acc, *scales, True, *how
        )
    # One quotient a query, for a division takes as long as 16 products.
    return xetile.where(total == 0, 0.0, acc * (1.0 / total))


@xetile.kernel
def attention(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    out: Array,
    factor: float,
    bias_factor: float,
    CAUSAL: constexpr,
    NEGATIVE: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
    MUL: constexpr = None,
) -> None:
    """``out = softmax(q @ k.T * scale) @ v`` for each matrix of a batch.

    Args:
        q: (..., s, D).
        k: (..., t, D), dtype of ``q``.
        v: (..., t, E), dtype of ``q``.
        bias: (..., s, t), what is added to scores, or i1: which keys are seen; None.
        out: (..., s, E); 0 where no key is seen.
        factor: size of scale * log2(e), more than 0; powers of two are cheaper than
            those of e.
        bias_factor: log2(e) / factor.
        CAUSAL: whether query i sees only the keys up to i.
        NEGATIVE: whether the scale is.
        ACC: the dtype that is computed in.
        BM: queries of a program.
        BN: keys of a block.
        D: columns of ``q`` and ``k``.
        E: columns of ``v`` and ``out``.
        MUL: the dtype of what multiplies ``v``; None: its own.
    """
    first, number = xetile.program_id(0) * BM, xetile.program_id(1)
    keys, values = matrix(k, number), matrix(v, number)
    queries, to = matrix(q, number), matrix(out, number)
    added = None if bias is None else matrix(bias, number)
    rows = xetile.load_tile(xetile.init_tile(queries, [first, 0], (BM, D)))
    sources = (rows, keys, values, added, None, None, number)
    place, scales = (first, 0, keys.shape[0]), (factor, bias_factor, 0.0)
    how = (False, None, 0 if CAUSAL else None, NEGATIVE, MUL, ACC, BN, E)
    result = attended(*sources, *place, *scales, *how)
    put(result, to, [first, 0])


@xetile.kernel
def attention_with_options(
    q: Array,
    k: Array,
    v: Array,
    bias: Array | None,
    out: Array,
    seed: Array | None,
    lengths: Array | None,
    table: Array | None,
    q_starts: Array | None,
    k_starts: Array | None,
    factor: float,
    bias_factor: float,
    p: float,
    HEADS: constexpr,
    SHARE: constexpr,
    LEFT: constexpr,
    RIGHT: constexpr,
    NEGATIVE: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    D: constexpr,
    E: constexpr,
    MUL: constexpr = None,
) -> None:
    """`attention` with windows and dropout, of sequences of several lengths.

    What is not named here is as of `attention`.

    Args:
        q: as of `attention`; with ``lengths`` (batch, HEADS, s, D), with ``q_starts``
            (HEADS, all queries, D); ``out`` likewise.
        k: the same, of HEADS / SHARE heads; with ``table`` (heads, pages, keys of a
            page, D).
        v: the same.
        seed: (1,), draws which probabilities are dropped; None: none are.
        lengths: (batch,), how many keys there are of each sequence; its last query
            sees the last of them. Or None.
        table: (batch, pages of a sequence): the numbers of its pages; or None.
        q_starts: (batch + 1,), where the queries of each sequence begin; or None.
        k_starts: the same of keys.
        p: the probability that one is dropped.
        HEADS: of ``q``.
        SHARE: heads of ``q`` with the same keys.
        LEFT: how many keys before its own a query sees; None: all.
        RIGHT: how many behind it.
        BN: keys of a block; pages have a multiple of them.
    """
    first, number = xetile.program_id(0) * BM, xetile.program_id(1)
    b, h = number // HEADS, number % HEADS
    pages = None if table is None else table[b]
    added = None if bias is None else matrix(bias, number)
    if q_starts is not None and k_starts is not None:
        one, two = q_starts[b], q_starts[b + 1]
        queries, to = q[h, one:two], out[h, one:two]
        begin, stop = k_starts[b], k_starts[b + 1]
        keys, values = k[h // SHARE, begin:stop], v[h // SHARE, begin:stop]
        limit = keys.shape[0]
        shift = limit - queries.shape[0]
    elif lengths is not None:
        queries, to = q[b, h], out[b, h]
        if table is None:
            keys, values = k[b, h // SHARE], v[b, h // SHARE]
        else:
            keys, values = k[h // SHARE], v[h // SHARE]
        limit = lengths[b]
        shift = limit - queries.shape[0]
    else:
        queries, to = matrix(q, number), matrix(out, number)
        keys, values = matrix(k, number), matrix(v, number)
        limit, shift = keys.shape[0], 0
    rows = xetile.load_tile(xetile.init_tile(queries, [first, 0], (BM, D)))
    sources = (rows, keys, values, added, pages, seed, number)
    place, scales = (first, shift, limit), (factor, bias_factor, p)
    how = (True, LEFT, RIGHT, NEGATIVE, MUL, ACC, BN, E)
    result = attended(*sources, *place, *scales, *how)
    put(result, to, [first, 0])
