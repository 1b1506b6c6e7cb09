"""The kernel behind `xetl.ops.scaled_dot_product_attention`.

A program computes some queries. It loops over all keys, block by block (FlashAttention:
Dao et al., arXiv 2205.14135), so that memory never holds all scores. For each query it
keeps the largest score so far, the sum of exponentials and the weighted sum of values.
When a larger score comes, both sums are scaled by the exponential of the difference.
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, Vector, constexpr, f32, f64, i32

LEAST = -3e38
"""The initial largest score. It is finite, because inf - inf would be NaN."""

COARSE = 2.0**27
"""The limit of exponents of two. From half of it on, f32 has only multiples of 8."""

EXPONENT, TO_COARSE = 0xFF << 23, (2 * 127 + 26) << 23
"""The exponent bits of an f32. TO_COARSE minus those of x are the bits of 2^26 divided
by the power of two of x."""

MIXED = 0x1E3779B97F4A7C15
"""The factor of the index of a matrix in its seed, so that no two seeds are near."""


@xetile.function
def dropout_factors(
    seed: Array, number: int, first: int, n: int, keys: int, p: float, like: Vector
) -> Vector:
    """Return the factors of dropout for a block of probabilities: 0 or 1 / (1 - p)."""
    row = xetile.arange(like.shape[0])[:, None] + first
    column = xetile.arange(like.shape[1])[None, :] + n
    drawn = xetile.rand(seed[0] + number * MIXED, row * keys + column)
    return xetile.where(drawn >= p, 1.0 / (1.0 - p), 0.0).to(like.dtype)


@xetile.function
def masked(
    scores: Vector,
    bias: Array | None,
    first: int,
    n: int,
    shift: int,
    limit: int,
    bias_factor: float,
    MASKED: constexpr,
    LEFT: constexpr,
    RIGHT: constexpr,
) -> Vector:
    """Return a block of scores plus the bias, and -inf if a query does not see a key.

    Args:
        first: the first query of the block.
        n: the first key of the block.
        shift: the number of keys minus the number of queries, or 0.
        limit: the number of keys.
        MASKED: whether a query of the block may not see a key.
    """
    if bias is not None:
        added = xetile.load_tile(xetile.init_tile(bias, [first, n], scores.shape))
        if bias.dtype == xetile.i1:
            scores = xetile.where(added, scores, -xetile.inf)
        else:
            scores = scores + added.to(scores.dtype) * bias_factor
    if MASKED:
        column = xetile.arange(scores.shape[1])[None, :] + n
        row = xetile.arange(scores.shape[0])[:, None] + (first + shift)
        seen = column < limit
        if RIGHT is not None:
            seen = seen & (column <= row + RIGHT)
        if LEFT is not None:
            seen = seen & (column >= row - LEFT)
        scores = xetile.where(seen, scores, -xetile.inf)
    return scores


@xetile.function
def coarse_scale(largest: Vector) -> Vector:
    """Return factors that scale numbers to half of `COARSE` or more; cheap on GPUs."""
    if largest.dtype == f64:
        return COARSE / abs(largest)
    exponent = largest.to(i32, bitcast=True) & EXPONENT
    return (TO_COARSE - exponent).to(f32, bitcast=True)


@xetile.function
def scale_of(largest: Vector, factor: float) -> Vector:
    """Return the factors of scores. If exp2 could overflow, only the largest counts.

    Then others are at least 4 less.
    """
    scale = xetile.full(largest.shape, factor, largest.dtype)
    is_small = abs(largest) < COARSE / factor
    return xetile.where(is_small, scale, coarse_scale(largest))


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
    begin: int,
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
) -> tuple[Vector, Vector, Vector]:
    """Return the largest scores, and the sums of exponentials and of weighted values.

    Args:
        rows: some queries; for the others see `attention`.
        begin: the first key, a multiple of BN.
        limit: the end of the keys, ``begin`` or less if there are none.
        CLEAN: whether memory may have keys behind ``limit``, and ``shift`` may be
            negative.
    """
    largest = xetile.full((rows.shape[0], 1), LEAST, ACC)
    total = xetile.zeros((rows.shape[0], 1), ACC)
    acc = xetile.zeros((rows.shape[0], E), ACC)
    start, end, whole = begin, limit, limit // BN * BN
    if RIGHT is not None:
        reach = first + shift + RIGHT
        end, whole = min(end, reach + rows.shape[0]), min(whole, (reach + 1) // BN * BN)
    whole = max(whole, begin)  # `shift` may be negative, and `begin` behind all keys
    if LEFT is not None:
        start = max(first + shift - LEFT, begin) // BN * BN
        whole = start
    # A block needs no mask if every query sees all of its keys.
    for is_masked in xetile.static_range(2):
        for n in range(whole if is_masked else start, end if is_masked else whole, BN):
            at, source, taken = n, keys, values
            if pages is not None:
                page, at = pages[n // keys.shape[1]], n % keys.shape[1]
                source, taken = keys[page], values[page]
            k = xetile.load_tile(xetile.init_tile(source, [at, 0], (BN, rows.shape[1])))
            scores = xetile.tile_mma(rows, k.T)
            if NEGATIVE:
                scores = -scores
            place, window = (first, n, shift, limit), (is_masked, LEFT, RIGHT)
            scores = masked(scores, bias, *place, bias_factor, *window)
            # A NaN among the scores makes `e` NaN, so the maximum need not be NaN.
            best = scores.max(1, keepdims=True, propagate_nan=False)
            new = xetile.maximum(largest, best, propagate_nan=False)
            # `new * by` is rounded, but equally for all keys of a block, so it cancels
            # out.
            by = scale_of(new, factor)
            shifted, is_coarse = new * by, values.dtype == xetile.bf16
            power = scores * by - shifted
            e = xetile.exp2(power, approximate=is_coarse, nonpositive=True)
            fade = xetile.exp2((largest - new) * by)  # exactly 1 if it is the same
            v = xetile.load_tile(xetile.init_tile(taken, [at, 0], (BN, E)))
            if is_masked and CLEAN:  # behind the keys may be NaN, which 0 does not hide
                inside = xetile.arange(BN)[:, None] + n < limit
                v = xetile.where(inside, v, 0.0).to(v.dtype)
            largest, mul = new, values.dtype if MUL is None else MUL
            total = total * fade + e.sum(1, keepdims=True)
            if seed is not None:
                e = e * dropout_factors(seed, number, first, n, limit, p, e)
            acc = xetile.tile_mma(e.to(mul), v.to(mul), acc * fade)
    return largest, total, acc


@xetile.function
def mean_of(total: Vector, acc: Vector) -> Vector:
    """Return the weighted mean of values; 0 for a query that sees no key."""
    # One division for each query: a division takes as long as 16 products.
    return xetile.where(total == 0, 0.0, acc * (1.0 / total))


@xetile.kernel
def attention(
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
    before: int = 0,
    PART: constexpr = None,
) -> None:
    """``out = softmax(q @ k.T * scale) @ v`` for each matrix of a batch.

    Args:
        q: (..., s, D); with ``lengths`` (batch, HEADS, s, D), with ``q_starts`` (HEADS,
            all queries, D).
        k: (..., t, D), dtype of ``q``. With ``lengths`` or ``q_starts`` it has HEADS /
            SHARE heads; with ``table`` it is (heads, pages, keys of a page, D).
        v: as ``k``, with E columns.
        bias: (..., s, t), is added to scores, or i1: whether a query sees a key; or
            None.
        out: as ``q``, with E columns; 0 for a query that sees no key.
        seed: (1,), the seed of dropout; None: no dropout.
        lengths: (batch,), the number of keys of each sequence. The last query sees the
            last of them. Or None.
        table: (batch, pages of a sequence), the indices of its pages; or None.
        q_starts: (batch + 1,), the first query of each sequence; or None.
        k_starts: the same for keys.
        factor: abs(scale) * log2(e), more than 0: exp2 is cheaper than exp.
        bias_factor: log2(e) / factor.
        p: the probability of dropout.
        HEADS: heads of ``q``.
        SHARE: heads of ``q`` with the same keys.
        LEFT: how many keys before its own a query sees; None: all.
        RIGHT: how many keys behind its own a query sees; None: all.
        NEGATIVE: whether the scale is negative.
        ACC: the dtype of the computation.
        BM: queries of a program.
        BN: keys of a block, a divisor of the keys of a page.
        D: columns of ``q`` and ``k``.
        E: columns of ``v`` and ``out``.
        MUL: the dtype of the product with ``v``; None: that of ``v``.
        before: the number of matrices of the launches before this one.
        PART: keys of a program, a multiple of BN; None: all. With it, ``out`` gets what
            `joined_parts` joins: (matrices, parts, s, E + 2 or more).
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
    begin, is_cut = 0, lengths is not None or q_starts is not None
    if PART is not None:
        begin = xetile.program_id(2) * PART
        limit = min(limit, begin + PART)
    sources = (rows, keys, values, added, pages, seed, before + number)
    place, scales = (first, begin, shift, limit), (factor, bias_factor, p)
    how = (is_cut, LEFT, RIGHT, NEGATIVE, MUL, ACC, BN, E)
    largest, total, acc = attended(*sources, *place, *scales, *how)
    if PART is None:
        put(mean_of(total, acc), to, [first, 0])
    else:
        part = out[number, xetile.program_id(2)]
        put(acc, part, [first, 0])
        put(largest, part, [first, E])
        put(total, part, [first, E + 1])


@xetile.kernel
def joined_parts(
    parts: Array,
    out: Array,
    factor: float,
    ACC: constexpr,
    BM: constexpr,
    E: constexpr,
) -> None:
    """Join the results of parts of the keys, as `attended` joins blocks.

    Args:
        parts: (matrices, parts, s, E + 2 or more): the weighted sum of values, the
            largest score and the sum of exponentials of each query.
        out: (..., s, E).
        factor: that of `attention`.
        ACC: the dtype of ``parts``.
        BM: queries of a program.
    """
    row, number = xetile.program_id(0) * BM, xetile.program_id(1)
    source = parts[number]
    largest = xetile.full((BM, 1), LEAST, ACC)
    for i in range(source.shape[0]):
        its = take(source[i], [row, E], (BM, 1), ACC)
        largest = xetile.maximum(largest, its)
    by = scale_of(largest, factor)
    total, acc = xetile.zeros((BM, 1), ACC), xetile.zeros((BM, E), ACC)
    for i in range(source.shape[0]):
        part = source[i]
        its = take(part, [row, E], (BM, 1), ACC)
        share = xetile.exp2((its - largest) * by, nonpositive=True)
        total = total + take(part, [row, E + 1], (BM, 1), ACC) * share
        acc = acc + take(part, [row, 0], (BM, E), ACC) * share
    put(mean_of(total, acc), matrix(out, number), [row, 0])
