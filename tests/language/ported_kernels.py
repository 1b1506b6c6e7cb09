"""Kernels of the usual collections, as they are written here; see the tests beside."""

from __future__ import annotations

from xetl import xetile
from xetl.xetile import constexpr, f32, i32


@xetile.function
def row_of(X, row, WIDTH):
    return xetile.init_tile(X, [row, 0], (1, WIDTH))


@xetile.function
def loaded(X, row, WIDTH):
    return xetile.load_tile(row_of(X, row, WIDTH))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def layer_norm_backward(X, W, DY, DX, DW, DB, WIDTH: constexpr):
    """Gradients of a layer norm; those of weight and bias are summed by atomics."""
    row, n = xetile.program_id(0), X.shape[1]
    x, dy = loaded(X, row, WIDTH), loaded(DY, row, WIDTH)
    w = xetile.load_tile(xetile.init_tile(W, [0], (WIDTH,)))[None, :]
    inside = xetile.arange(WIDTH)[None, :] < n
    centred = xetile.where(inside, x - x.sum(1, keepdims=True) / n, 0.0)
    scale = xetile.rsqrt((centred * centred).sum(1, keepdims=True) / n + 1e-5)
    normal, weighted = centred * scale, dy * w
    along = (normal * weighted).sum(1, keepdims=True) / n
    mean = weighted.sum(1, keepdims=True) / n
    dx = (weighted - mean - normal * along) * scale
    xetile.store_tile(dx, row_of(DX, row, WIDTH))
    xetile.atomic_rmw_tile("add", dy * normal, row_of(DW, 0, WIDTH))
    xetile.atomic_rmw_tile("add", dy, row_of(DB, 0, WIDTH))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def rope(X, Cos, Sin, Y, HALF: constexpr):
    """Rotary embedding: pairs of halves are turned by the angle of their position."""
    row = xetile.program_id(0)
    a = loaded(X, row, HALF)
    b = xetile.load_tile(xetile.init_tile(X, [row, HALF], (1, HALF)))
    c, s = loaded(Cos, row, HALF), loaded(Sin, row, HALF)
    xetile.store_tile(a * c - b * s, xetile.init_tile(Y, [row, 0], (1, HALF)))
    xetile.store_tile(b * c + a * s, xetile.init_tile(Y, [row, HALF], (1, HALF)))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def cross_entropy(X, Labels, Loss, ignored, WIDTH: constexpr):
    """``log(sum(exp(x))) - x[label]`` of each row; 0 for a label that is ignored."""
    row = xetile.program_id(0)
    x = xetile.load_tile(row_of(X, row, WIDTH), padding=-xetile.inf)
    top = x.max()
    loss = xetile.log(xetile.exp(x - top).sum()) + top - X[row, Labels[row]]
    Loss[row] = xetile.where(Labels[row] == ignored, 0.0, loss)


@xetile.kernel(grid=1)
def segmented_sums(X, Starts, Y, N: constexpr):
    """Running sums that begin anew where a segment starts."""
    x = xetile.load_tile(xetile.init_tile(X, [0], (N,)))
    start = xetile.load_tile(xetile.init_tile(Starts, [0], (N,)))
    _, sums = xetile.associative_scan(
        (start, x),
        0,
        lambda f1, v1, f2, v2: (f1 | f2, xetile.where(f2 != 0, v2, v1 + v2)),
    )
    xetile.store_tile(sums, xetile.init_tile(Y, [0], (N,)))


@xetile.kernel(grid=lambda a: (a.A.shape[0] // 16, a.C.shape[1] // 16))
def int4_gemm(A, B, Scales, C, BK: constexpr):
    """Two rows of B in the nibbles of a byte, a scale for 32 rows of a column."""
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 16
    acc = xetile.zeros((16, 16), f32)
    for k in range(0, A.shape[1], BK):
        packed = xetile.load_tile(xetile.init_tile(B, [k // 2, n], (BK // 2, 16)))
        low, high = (packed & 15).to(f32) - 8.0, (packed >> 4).to(f32) - 8.0
        scale = xetile.load_tile(xetile.init_tile(Scales, [k // 32, n], (1, 16)))
        rows, at = m + xetile.arange(16)[:, None], k + 2 * xetile.arange(BK // 2)
        acc = xetile.tile_mma(A[rows, at], low * scale, acc)
        acc = xetile.tile_mma(A[rows, at + 1], high * scale, acc)
    xetile.store_tile(acc, xetile.init_tile(C, [m, n], (16, 16)))


@xetile.kernel(grid=lambda a: xetile.cdiv(a.Y.shape[0] * a.Y.shape[1], 16))
def convolution(X, W, Y, OUT: constexpr, IN: constexpr):
    """3 x 3, padded, as an implicit product: X (h, w, c), W (9 c, out)."""
    pixel = xetile.program_id(0) * 16 + xetile.arange(16)
    i, j = pixel // Y.shape[1], pixel % Y.shape[1]
    acc = xetile.zeros((16, OUT), f32)
    for tap in range(9):
        rows, columns = i + (tap // 3 - 1), j + (tap % 3 - 1)
        a = X[rows[:, None], columns[:, None], xetile.arange(IN)[None, :]]
        b = xetile.load_tile(xetile.init_tile(W, [tap * IN, 0], (IN, OUT)))
        acc = xetile.tile_mma(a, b, acc)
    Y[i[:, None], j[:, None], xetile.arange(OUT)[None, :]] = acc


@xetile.kernel(grid=lambda a: a.Q.shape[0])
def paged_attention(Q, K, V, Table, Lengths, Out, PAGE: constexpr, D: constexpr):
    """One query a sequence; its keys lie in pages that a table lists."""
    row = xetile.program_id(0)
    q = xetile.load_tile(row_of(Q, row, D)) * (D**-0.5)
    best, total = xetile.full((1, 1), -xetile.inf, f32), xetile.zeros((1, 1), f32)
    acc = xetile.zeros((1, D), f32)
    for page in range(0, xetile.cdiv(Lengths[row], PAGE)):
        at = Table[row, page] * PAGE
        keys = xetile.load_tile(xetile.init_tile(K, [at, 0], (PAGE, D)))
        values = xetile.load_tile(xetile.init_tile(V, [at, 0], (PAGE, D)))
        seen = page * PAGE + xetile.arange(PAGE)[None, :] < Lengths[row]
        scores = xetile.where(seen, xetile.tile_mma(q, keys.T), -xetile.inf)
        top = xetile.maximum(best, scores.max(1, keepdims=True))
        p, old = xetile.exp(scores - top), xetile.exp(best - top)
        total = total * old + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p, values, acc * old)
        best = top
    xetile.store_tile(acc / total, row_of(Out, row, D))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def selective_scan(X, Delta, A, B, C, Y, STATE: constexpr):
    """A state-space model: ``h = exp(d a) h + d b x``, ``y = c h``, step by step."""
    channel = xetile.program_id(0)
    a = xetile.load_tile(xetile.init_tile(A, [channel, 0], (1, STATE)))
    h = xetile.zeros((1, STATE), f32)
    for t in range(X.shape[1]):
        b, c = (
            xetile.load_tile(row_of(B, t, STATE)),
            xetile.load_tile(row_of(C, t, STATE)),
        )
        d = Delta[channel, t]
        h = xetile.exp(a * d) * h + b * (d * X[channel, t])
        Y[channel, t] = (h * c).sum()


@xetile.kernel(grid=lambda a: (xetile.cdiv(a.Order.shape[0], 16), a.W.shape[0]))
def experts(X, W, Order, Starts, Y, D: constexpr, OUT: constexpr):
    """Rows sorted by expert, each expert with a matrix of its own."""
    expert = xetile.program_id(1)
    first = Starts[expert] + xetile.program_id(0) * 16
    place = first + xetile.arange(16)
    rows = xetile.where(place < Starts[expert + 1], Order[place], -1)
    a = X[rows[:, None], xetile.arange(D)[None, :]]
    w = xetile.load_tile(xetile.init_tile(W[expert], [0, 0], (D, OUT)))
    Y[rows[:, None], xetile.arange(OUT)[None, :]] = xetile.tile_mma(a, w)


@xetile.kernel(grid=lambda a: a.Y.shape[0])
def sparse_times_vector(Values, Columns, Begins, X, Y, STEP: constexpr):
    """A matrix in CSR form: a row's elements lie one after another."""
    row = xetile.program_id(0)
    begin, end = Begins[row], Begins[row + 1]
    total = xetile.zeros((STEP,), f32)
    for k in range(begin, end, STEP):
        at = k + xetile.arange(STEP)
        at = xetile.where(at < end, at, -1)
        total = total + Values[at] * X[Columns[at]]
    Y[row] = total.sum()


@xetile.kernel(grid=lambda a: (a.C.shape[0] // 16, a.C.shape[1] // 16, a.SPLITS))
def split_k(A, B, C, SPLITS: constexpr, BK: constexpr):
    """Programs share the steps along k, and add up what they have by atomics."""
    m, n = xetile.program_id(0) * 16, xetile.program_id(1) * 16
    acc = xetile.zeros((16, 16), f32)
    for k in range(xetile.program_id(2) * BK, A.shape[1], SPLITS * BK):
        a = xetile.load_tile(xetile.init_tile(A, [m, k], (16, BK)))
        b = xetile.load_tile(xetile.init_tile(B, [k, n], (BK, 16)))
        acc = xetile.tile_mma(a, b, acc)
    xetile.atomic_rmw_tile("add", acc, xetile.init_tile(C, [m, n], (16, 16)))


@xetile.kernel(grid=lambda a: a.X.shape[0])
def sampled(X, Draws, Tokens, WIDTH: constexpr, K: constexpr):
    """One of the K most likely tokens of each row, by its share."""
    row = xetile.program_id(0)
    x = xetile.load_tile(row_of(X, row, WIDTH), padding=-xetile.inf)
    best, tokens = xetile.topk(x, K, 1)
    shares = xetile.exp(best - best.max(1, keepdims=True))
    sums = xetile.cumsum(shares, 1)
    chosen = (sums < Draws[row] * shares.sum()).to(i32).sum()
    Tokens[row] = xetile.where(xetile.arange(K)[None, :] == chosen, tokens, 0).sum()


@xetile.kernel(grid=lambda a: a.X.shape[0])
def quantised_norm(X, R, W, Y, Scales, eps, WIDTH: constexpr):
    """RMSNorm of the residual, which grows by x, as bytes with a scale for each row."""
    row, i = xetile.program_id(0), xetile.arange(WIDTH)
    x = X[row, i].to(f32) + R[row, i].to(f32)
    R[row, i] = x.to(R.dtype)
    y = x * xetile.rsqrt(xetile.sum(x * x) / X.shape[1] + eps) * W[i].to(f32)
    scale = xetile.maximum(xetile.abs(y).max(), 1e-12) / 127
    Y[row, i] = xetile.clamp(xetile.round(y / scale), -127, 127).to(Y.dtype)
    Scales[row] = scale


@xetile.kernel
def gptq_gemm(A, Words, Zeros, Scales, C, GROUP: constexpr, N: constexpr, K: constexpr):
    """Weights of 4 bits, eight along k in a word, zero points eight along n."""
    m, n = xetile.arange(8), xetile.program_id(0) * N + xetile.arange(N)
    acc = xetile.zeros((8, N))
    for first in range(0, A.shape[1], K):
        k = first + xetile.arange(K)
        group = k[:, None] // GROUP
        weights = Words[k[:, None] // 8, n[None, :]] >> (k % 8 * 4)[:, None] & 15
        zeros = Zeros[group, n[None, :] // 8] >> (n % 8 * 4)[None, :] & 15
        b = (weights - zeros).to(f32) * Scales[group, n[None, :]]
        acc += A[m[:, None], k[None, :]] @ b.to(A.dtype)
    C[m[:, None], n[None, :]] = acc


@xetile.kernel(grid=1)
def suppressed(Boxes, Scores, Kept, limit, N: constexpr):
    """Of boxes that overlap, the one of the highest score is kept."""
    i = xetile.arange(N)
    x0, y0, x1, y1 = Boxes[i, 0], Boxes[i, 1], Boxes[i, 2], Boxes[i, 3]
    area, left = (x1 - x0) * (y1 - y0), i < Boxes.shape[0]
    Kept[i] = (i < 0).to(Kept.dtype)
    while xetile.any(left):
        best = xetile.where(left, Scores[i], -xetile.inf).argmax()
        Kept[best] = 1
        wide = xetile.minimum(x1, x1[best]) - xetile.maximum(x0, x0[best])
        high = xetile.minimum(y1, y1[best]) - xetile.maximum(y0, y0[best])
        both = xetile.maximum(wide, 0.0) * xetile.maximum(high, 0.0)
        left = left & (both <= limit * (area + area[best] - both)) & (i != best)


@xetile.kernel(grid=1)
def viterbi(Emitted, Steps, Back, Path, N: constexpr):
    """The likeliest path of a hidden Markov model, traced back through memory."""
    s, (length, states) = xetile.arange(N), Emitted.shape
    known = (s[:, None] < states) & (s[None, :] < states)
    steps = xetile.where(known, Steps[s[:, None], s[None, :]], -xetile.inf)
    score = Emitted[0, s]
    for t in range(1, length):
        score, Back[t, s] = xetile.max(score[:, None] + steps, 0, return_indices=True)
        score = score + Emitted[t, s]
    last = xetile.where(s < states, score, -xetile.inf).argmax()
    for t in range(length - 1, -1, -1):
        Path[t] = last
        last = Back[t, last]
