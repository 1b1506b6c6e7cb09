"""Kernels of algorithms that are no layers of networks; see the tests beside."""

from __future__ import annotations

from xetl import xetile
from xetl.xetile import cdiv, constexpr, f32, i32, u32


@xetile.kernel(grid=lambda a: cdiv(a.X.shape[0], a.N))
def running_sums(X, Y, Flags, Own, Until, N: constexpr):
    """Running sums in one pass: a program looks back at what those before it have."""
    block = xetile.program_id(0)
    sums = xetile.cumsum(xetile.load_tile(xetile.init_tile(X, [block * N], (N,))), 0)
    mine = xetile.init_tile(Flags, [block], (1,))
    Own[block] = sums[N - 1]
    xetile.atomic_rmw_tile("xchg", 1, mine, sem="release")
    before, j = 0, block - 1
    while j >= 0:
        other = xetile.init_tile(Flags, [j], (1,))
        state = xetile.atomic_rmw_tile("add", 0, other, sem="acquire")[0]
        if state == 2:
            before += Until[j]
            j = -1
        elif state == 1:
            before += Own[j]
            j -= 1
    Until[block] = before + sums[N - 1]
    xetile.atomic_rmw_tile("xchg", 2, mine, sem="release")
    xetile.store_tile(sums + before, xetile.init_tile(Y, [block * N], (N,)))


@xetile.kernel(grid=lambda a: cdiv(a.Keys.shape[0], a.N))
def counted(Keys, Table, Counts, N: constexpr):
    """A hash table: keys look for a place by themselves, until all have one."""
    i = xetile.program_id(0) * N + xetile.arange(N)
    keys, looking = Keys[i], i < Keys.shape[0]
    slot = (keys.to(u32) * u32(2654435761) >> 16).to(i32) % Table.shape[0]
    while xetile.any(looking):
        place = xetile.init_tile(Table, [xetile.where(looking, slot, -1)])
        old = xetile.atomic_cas(place, -1, keys)
        found = looking & ((old == -1) | (old == keys))
        count = xetile.init_tile(Counts, [xetile.where(found, slot, -1)])
        xetile.atomic_rmw_tile("add", 1, count)
        looking = looking & ~found
        slot = (slot + 1) % Table.shape[0]


@xetile.function
def turned(x, n):
    return (x << n) | (x >> (32 - n))


@xetile.function
def quarter(v, a, b, c, d):
    """A quarter of a round of ChaCha, on four of sixteen words."""
    at = (a, b, c, d)
    a, b, c, d = v[a], v[b], v[c], v[d]
    for n, m in ((16, 12), (8, 7)):
        a += b
        d = turned(d ^ a, n)
        c += d
        b = turned(b ^ c, m)
    new = ()
    for k in xetile.static_range(16):
        for place, word in zip(at, (a, b, c, d)):
            if place == k:
                new = (*new, word)
        if k not in at:
            new = (*new, v[k])
    return new


@xetile.kernel(grid=lambda a: cdiv(a.Out.shape[1], a.N))
def chacha(State, Out, N: constexpr):
    """A stream of random words: tuples of vectors that a loop carries."""
    block = xetile.program_id(0) * N + xetile.arange(N)
    start = ()
    for k in xetile.static_range(16):
        start = (*start, xetile.full((N,), State[k], u32))
    start = (*start[:12], start[12] + block.to(u32), *start[13:])
    v = start
    for _ in range(10):
        for k in xetile.static_range(4):
            v = quarter(v, k, 4 + k, 8 + k, 12 + k)
        for k in xetile.static_range(4):
            v = quarter(v, k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    for k in xetile.static_range(16):
        Out[k, block] = v[k] + start[k]


@xetile.kernel(grid=lambda a: a.A.shape[0])
def lu(A, Order, N: constexpr):
    """Factors of small matrices in registers; the largest pivot of each column."""
    b, i = xetile.program_id(0), xetile.arange(N)
    tile = xetile.init_tile(A[b], [0, 0], (N, N))
    a, order = xetile.load_tile(tile), i
    down, along = i[:, None], i[None, :]
    for k in range(A.shape[1]):
        column = xetile.where(along == k, a, 0.0).sum(1)
        p = xetile.where(i >= k, xetile.abs(column), -1.0).argmax(0)
        source = xetile.where(i == k, p, xetile.where(i == p, k, i))
        a = xetile.gather(a, xetile.tile_broadcast(source[:, None], 1, (N, N)), 0)
        order, column = (
            xetile.gather(order, source, 0),
            xetile.gather(column, source, 0),
        )
        row = xetile.where(down == k, a, 0.0).sum(0)
        factor = (column / xetile.where(i == k, row, 0.0).sum())[:, None]
        below = (along == k) & (down > k)
        rest = xetile.where((along > k) & (down > k), a - factor * row[None, :], a)
        a = xetile.where(below, factor, rest)
    xetile.store_tile(a, tile)
    xetile.store_tile(order, xetile.init_tile(Order, [b, 0], (N,)))


@xetile.kernel(grid=lambda a: a.A.shape[0])
def exponential(A, E, N: constexpr, TERMS: constexpr):
    """Of matrices: a series, squared as often as the matrix was halved."""
    b, i = xetile.program_id(0), xetile.arange(N)
    a = xetile.load_tile(xetile.init_tile(A[b], [0, 0], (N, N)))
    norm, halved = xetile.abs(a).sum(1).max(), 0
    while norm > 0.5:
        norm /= 2
        halved += 1
    a = a * xetile.exp2(-halved)
    term = e = (i[:, None] == i[None, :]).to(a.dtype)
    for k in xetile.static_range(1, TERMS + 1):
        term = (term @ a) / k
        e += term
    for _ in range(halved):
        e = e @ e
    xetile.store_tile(e, xetile.init_tile(E[b], [0, 0], (N, N)))


@xetile.kernel(grid=lambda a: a.A.shape[0])
def edit_distance(A, B, Out, N: constexpr):
    """Between texts of bytes, by antidiagonals, two of them in registers."""
    pair, i = xetile.program_id(0), xetile.arange(N)
    m, n = A.shape[1], B.shape[1]
    far = xetile.full((N,), 1 << 20, i32)
    before, last = far, far
    for d in range(m + n + 1):
        j = d - i
        above = xetile.maximum(i - 1, 0)
        up, across = xetile.gather(last, above, 0), xetile.gather(before, above, 0)
        differ = (A[pair, i - 1] != B[pair, j - 1]).to(i32)
        best = xetile.minimum(xetile.minimum(up, last) + 1, across + differ)
        best = xetile.where(i == 0, j, xetile.where(j == 0, i, best))
        inside = (j >= 0) & (j <= n) & (i <= m)
        before, last = last, xetile.where(inside, best, far)
    Out[pair] = xetile.where(i == m, last, 0).sum()


@xetile.kernel(grid=lambda a: a.Draft.shape[0])
def accepted(Draft, Target, Tokens, Draws, Out, Counts, N: constexpr):
    """Of speculative decoding: tokens up to the first one that is refused."""
    b, count = xetile.program_id(0), 0
    for k in range(Tokens.shape[1]):
        token = Tokens[b, k]
        if Draws[b, k] * Draft[b, k, token] > Target[b, k, token]:
            target = xetile.load_tile(xetile.init_tile(Target[b], [k, 0], (N,)))
            draft = xetile.load_tile(xetile.init_tile(Draft[b], [k, 0], (N,)))
            Out[b, k] = (target - draft).argmax(0)
            break
        Out[b, k] = token
        count += 1
    Counts[b] = count


@xetile.function
def merged(n, mean, squares, n2, mean2, squares2):
    """Welford's sums of two parts, either of which may be empty."""
    total, apart = n + n2, mean2 - mean
    share = xetile.where(total == 0, 0.0, n2 / total)
    squares = squares + squares2 + apart * apart * n * share
    return total, mean + apart * share, squares


@xetile.kernel(grid=lambda a: a.X.shape[0])
def moments(X, Mean, Var, N: constexpr):
    """Mean and variance of long rows, stable: lanes of their own, merged at the end."""
    row = xetile.program_id(0)
    n, mean, squares = xetile.zeros((N,)), xetile.zeros((N,)), xetile.zeros((N,))
    for k in range(0, X.shape[1], N):
        x = xetile.load_tile(xetile.init_tile(X, [row, k], (N,))).to(f32)
        one = xetile.where(k + xetile.arange(N) < X.shape[1], 1.0, 0.0)
        n, mean, squares = merged(n, mean, squares, one, x, xetile.zeros((N,)))
    n, mean, squares = xetile.reduce((n, mean, squares), 0, merged)
    Mean[row] = mean
    Var[row] = squares / n
