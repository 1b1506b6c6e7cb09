"""The kernel behind `xetl.ops.matmul`: a product of matrices with a fused epilogue.

A program computes a tile of one matrix of ``out``. Arrays of rank 3 and 4 are batches
of matrices; all of the batch share an array of rank 2.
"""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, Vector, constexpr

_SQRT_HALF = 0.7071067811865476


@xetile.function
def relu(v: Vector) -> Vector:
    """Return 0 for numbers below 0; NaN stays."""
    return xetile.where(v <= 0, 0, v)


@xetile.function
def gelu(v: Vector) -> Vector:
    """Return the exact gelu, with the error function."""
    return 0.5 * v * (1.0 + xetile.erf(_SQRT_HALF * v))


@xetile.function
def silu(v: Vector) -> Vector:
    """``v * sigmoid(v)``."""
    return v * xetile.sigmoid(v)


@xetile.function
def sigmoid(v: Vector) -> Vector:
    """``1 / (1 + exp(-v))``."""
    return xetile.sigmoid(v)


@xetile.function
def tanh(v: Vector) -> Vector:
    """The hyperbolic tangent."""
    return xetile.tanh(v)


ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "silu": silu,
    "sigmoid": sigmoid,
    "tanh": tanh,
}
"""The functions that ``activation=`` can name."""


@xetile.function
def accumulated(
    a: Array,
    b: Array,
    m: int,
    n: int,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> Vector:
    """Return the tile of ``a @ b`` that begins at row m and column n; see `product`."""
    ta = xetile.init_tile(a, [m, 0], (BM, BK))
    tb = xetile.init_tile(b, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), ACC)
    for _ in range(0, a.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(ta), xetile.load_tile(tb), acc)
        ta = xetile.update_tile_offset(ta, [0, BK])
        tb = xetile.update_tile_offset(tb, [BK, 0])
    return acc


@xetile.function
def finished(
    acc: Vector,
    added: Vector | None,
    alpha: float | None,
    beta: float | None,
    ACTIVATION: constexpr,
) -> Vector:
    """Return ``ACTIVATION(alpha * acc + beta * added)``; see `product`."""
    if alpha is not None:
        acc = acc * alpha
    if added is not None:
        acc = acc + (added if beta is None else added * beta)
    return acc if ACTIVATION is None else ACTIVATION(acc)


@xetile.function
def finish(
    acc: Vector,
    to: Array,
    bias: Array | None,
    alpha: float | None,
    beta: float | None,
    number: int,
    m: int,
    n: int,
    ACTIVATION: constexpr,
    BIAS_DIM: constexpr,
) -> None:
    """Store a tile, `finished`, at row m and column n of a matrix of the batch."""
    added = None
    if bias is not None:
        if bias.ndim > 1:
            added = take(matrix(bias, number), [m, n], acc.shape, acc.dtype)
        elif BIAS_DIM == 1:
            added = take(bias, [n], (acc.shape[1],), acc.dtype)
        else:
            added = take(bias, [m], (acc.shape[0],), acc.dtype)[:, None]
    put(finished(acc, added, alpha, beta, ACTIVATION), to, [m, n])


@xetile.kernel
def product(
    a: Array,
    b: Array,
    out: Array,
    bias: Array | None,
    alpha: float | None,
    beta: float | None,
    ACTIVATION: constexpr,
    BIAS_DIM: constexpr,
    B_IS_TURNED: constexpr,
    ACC: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``out = ACTIVATION(alpha * a @ b + beta * bias)``.

    Args:
        a: (..., m, k).
        b: (..., k, n), or (..., n, k) if ``B_IS_TURNED``; dtype of ``a``.
        out: (..., m, n).
        bias: a vector that is added along dimension ``BIAS_DIM`` of each matrix, (n,)
            for 1 and (m,) for 0; or (..., m, n); or None.
        alpha: None for 1.
        beta: None for 1.
        ACTIVATION: a function of the accumulator, or None.
        BIAS_DIM: see ``bias``.
        B_IS_TURNED: whether the matrices of ``b`` are transposed before the product.
        ACC: the dtype of the sums.
        BM: rows of a program's tile.
        BN: columns of the tile.
        BK: steps of k between two loads.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    number = xetile.program_id(2)
    left, right, to = matrix(a, number), matrix(b, number), matrix(out, number)
    if B_IS_TURNED:
        right = right.T
    acc = accumulated(left, right, m, n, ACC, BM, BN, BK)
    finish(acc, to, bias, alpha, beta, number, m, n, ACTIVATION, BIAS_DIM)


@xetile.kernel
def small_products(
    a: Array,
    b: Array,
    out: Array,
    bias: Array | None,
    alpha: float | None,
    beta: float | None,
    ACTIVATION: constexpr,
    ACC: constexpr,
    M: constexpr,
    K: constexpr,
    N: constexpr,
    LANES: constexpr,
) -> None:
    """The same as `product`, for LANES small matrices, one in each lane of vectors.

    Arguments not named here are as for `product`.

    Args:
        a: (M, K, matrices), or (M, K) if all share it.
        b: (K, N, matrices) or (K, N).
        out: (M, N, matrices).
        bias: (N,) or (M, N, matrices), or None.
    """
    at = xetile.program_id(0) * LANES

    def element(x: Array, i: int, j: int) -> Vector:
        if x.ndim == 2:
            return xetile.full((1, LANES), x[i, j].to(ACC), ACC)
        return take(x[i], [j, at], (1, LANES), ACC)

    for i in xetile.static_range(M):
        for j in xetile.static_range(N):
            acc = xetile.zeros((1, LANES), ACC)
            for k in xetile.static_range(K):
                acc = acc + element(a, i, k) * element(b, k, j)
            added = None
            if bias is not None:
                added = element(bias, i, j) if bias.ndim > 1 else bias[j].to(ACC)
            put(finished(acc, added, alpha, beta, ACTIVATION), out[i], [j, at])


@xetile.kernel
def part_of_product(
    a: Array,
    b: Array,
    parts: Array,
    B_IS_TURNED: constexpr,
    ACC: constexpr,
    PART: constexpr,
    BM: constexpr,
    BN: constexpr,
    BK: constexpr,
) -> None:
    """``parts[i] = a[:, part of k] @ b[part of k, :]``; one matrix after the other.

    Arguments not named here are as for `product`.

    Args:
        parts: (matrices * parts of k, m, n), of ``ACC``.
        PART: steps of k of a part. It is a constant, so that the compiler knows that
            the offsets are aligned for block messages.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    place = xetile.program_id(2)
    count = xetile.cdiv(a.shape[-1], PART)
    left, right = matrix(a, place // count), matrix(b, place // count)
    if B_IS_TURNED:
        right = right.T
    begin = place % count * PART
    acc = xetile.zeros((BM, BN), ACC)
    for k in range(begin, min(begin + PART, left.shape[1]), BK):
        rows = xetile.load_tile(xetile.init_tile(left, [m, k], (BM, BK)))
        columns = xetile.load_tile(xetile.init_tile(right, [k, n], (BK, BN)))
        acc = xetile.tile_mma(rows, columns, acc)
    put(acc, parts[place], [m, n])


@xetile.kernel
def sum_of_parts(
    parts: Array,
    out: Array,
    bias: Array | None,
    alpha: float | None,
    beta: float | None,
    ACTIVATION: constexpr,
    BIAS_DIM: constexpr,
    BM: constexpr,
    BN: constexpr,
) -> None:
    """Add the parts of the sums in order, then apply the epilogue of `product`.

    ``parts`` is (matrices * parts, m, n); the other arguments are as for `product`.
    """
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    number = xetile.program_id(2)
    count = parts.shape[0] // xetile.num_programs(2)
    acc = xetile.zeros((BM, BN), parts.dtype)
    for part in range(number * count, (number + 1) * count):
        acc += xetile.load_tile(xetile.init_tile(parts[part], [m, n], (BM, BN)))
    to = matrix(out, number)
    finish(acc, to, bias, alpha, beta, number, m, n, ACTIVATION, BIAS_DIM)
