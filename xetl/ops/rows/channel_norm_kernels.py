"""The kernels behind ``group_norm`` and its derivative."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import put, take
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def piece(x: Array, row: int, column: int, ACC: constexpr, WIDTH: constexpr) -> Vector:
    """Load WIDTH columns of a row, as (1, WIDTH)."""
    return take(x, [row, column], (1, WIDTH), ACC)


@xetile.function
def mean_of(x: Array, row: int, ACC: constexpr, WIDTH: constexpr) -> Vector:
    """Return the mean of a row, (1, 1)."""
    total = xetile.zeros((1, WIDTH), ACC)
    for column in range(0, x.shape[1], WIDTH):
        total = total + piece(x, row, column, ACC, WIDTH)
    return total.sum(1, keepdims=True) / x.shape[1]


@xetile.function
def moments(
    x: Array, row: int, eps: float, ACC: constexpr, WIDTH: constexpr
) -> tuple[Vector, Vector]:
    """Return the mean of a row, and 1 / sqrt(variance + eps), both (1, 1)."""
    n, mean = x.shape[1], mean_of(x, row, ACC, WIDTH)
    total = xetile.zeros((1, WIDTH), ACC)
    whole = n // WIDTH * WIDTH
    for column in range(0, whole, WIDTH):
        d = piece(x, row, column, ACC, WIDTH) - mean
        total = total + d * d
    if whole < n:
        d = piece(x, row, whole, ACC, WIDTH) - mean
        # Columns beyond the row are loaded as 0, which differs from the mean.
        d = xetile.where(xetile.arange(WIDTH)[None, :] < n - whole, d, 0.0)
        total = total + d * d
    variance = total.sum(1, keepdims=True) / n
    return mean, xetile.rsqrt(variance + eps)


@xetile.function
def of_rows(x: Array, first: int, ACC: constexpr, ROWS: constexpr) -> Vector:
    """Load the numbers of some channels, as (ROWS, 1)."""
    if ROWS == 1:
        return xetile.full((1, 1), x[first].to(ACC), ACC)
    return take(x, [first], (ROWS,), ACC)[:, None]


@xetile.kernel
def group_norm_rows(
    x: Array,
    groups: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    CHANNELS: constexpr,
    GROUPS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr,
) -> None:
    """``out = (x - mean) / sqrt(variance + eps) * weight + bias`` of each group.

    Args:
        x: (groups of all samples * CHANNELS, n).
        groups: the same elements, (groups of all samples, CHANNELS * n).
        weight: (GROUPS * CHANNELS,) or None.
        bias: the same.
        out: as ``x``.
        CHANNELS: rows of a group.
        GROUPS: groups of a sample.
        ACC: the dtype of the computation.
        WIDTH: columns of a piece.
        ROWS: channels at once; they divide CHANNELS.
    """
    group = xetile.program_id(0)
    first, channel = group * CHANNELS, group % GROUPS * CHANNELS
    mean, r = moments(groups, group, eps, ACC, WIDTH)
    for i in range(0, CHANNELS, ROWS):
        factor = r
        if weight is not None:
            factor = r * of_rows(weight, channel + i, ACC, ROWS)
        shift = -mean * factor
        if bias is not None:
            shift = shift + of_rows(bias, channel + i, ACC, ROWS)
        for column in range(0, x.shape[1], WIDTH):
            y = take(x, [first + i, column], (ROWS, WIDTH), ACC) * factor + shift
            put(y, out, [first + i, column])


@xetile.kernel
def group_norm_backward_rows(
    grad: Array,
    x: Array,
    groups: Array,
    weight: Array | None,
    out: Array,
    by_weight: Array,
    by_bias: Array,
    eps: float,
    CHANNELS: constexpr,
    GROUPS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    WIDE: constexpr,
    ROWS: constexpr,
) -> None:
    """The gradient of x in each group, and each row's part of those of weight and bias.

    With h = (x - mean) / sqrt(variance + eps) and g = grad * weight, the gradient of x
    is ``(g - mean(g) - h * mean(g * h)) / sqrt(variance + eps)``. ``by_weight`` and
    ``by_bias`` are (rows of x, 1); for the other arguments see `group_norm_rows`.
    """
    group = xetile.program_id(0)
    first, channel, n = group * CHANNELS, group % GROUPS * CHANNELS, x.shape[1]
    mean, r = moments(groups, group, eps, ACC, WIDTH)
    both, alone = xetile.zeros((1, 1), ACC), xetile.zeros((1, 1), ACC)
    for i in range(0, CHANNELS, ROWS):
        row, shape = first + i, (ROWS, WIDTH)
        weights, biases = xetile.zeros(shape, ACC), xetile.zeros(shape, ACC)
        for column in range(0, n, WIDTH):
            g = take(grad, [row, column], shape, ACC)
            h = take(x, [row, column], shape, ACC) - mean
            weights, biases = weights + g * h, biases + g
        dw, db = r * weights.sum(1, keepdims=True), biases.sum(1, keepdims=True)
        put(dw, by_weight, [row, 0])
        put(db, by_bias, [row, 0])
        if weight is not None:
            dw = dw * of_rows(weight, channel + i, ACC, ROWS)
            db = db * of_rows(weight, channel + i, ACC, ROWS)
        both, alone = both + dw.sum(0, keepdims=True), alone + db.sum(0, keepdims=True)
    slope, shift = both * r * r / (CHANNELS * n), alone * r / (CHANNELS * n)
    for i in range(0, CHANNELS, ROWS):
        factor = r
        if weight is not None:
            factor = r * of_rows(weight, channel + i, ACC, ROWS)
        for column in range(0, n, WIDE):
            v = take(x, [first + i, column], (ROWS, WIDE), ACC) - mean
            g = take(grad, [first + i, column], (ROWS, WIDE), ACC)
            put(g * factor - (v * slope + shift), out, [first + i, column])


@xetile.function
def over_groups(v: Vector, EACH: constexpr) -> Vector:
    """Replace the numbers of channels, (rows, 1), by the sums of their EACH groups."""
    channels = v.shape[0] // EACH
    total = v.reshape(EACH, channels).sum(1, keepdims=True)
    return (total + xetile.zeros((EACH, channels), v.dtype)).reshape(v.shape[0], 1)


@xetile.function
def centered_groups(
    x: Array,
    first: int,
    n: int,
    eps: float,
    ACC: constexpr,
    SHAPE: constexpr,
    EACH: constexpr,
) -> tuple[Vector, Vector]:
    """Load EACH groups; return ``x - mean``, and 1 / sqrt(variance + eps) of each row.

    ``n`` is the columns of x, at most those of SHAPE.
    """
    v, count = take(x, [first, 0], SHAPE, ACC), n * (SHAPE[0] // EACH)
    v = v - over_groups(v.sum(1, keepdims=True), EACH) / count
    # Columns beyond the row are loaded as 0, which differs from the mean.
    v = xetile.where(xetile.arange(SHAPE[1])[None, :] < n, v, 0.0)
    variance = over_groups((v * v).sum(1, keepdims=True), EACH) / count
    return v, xetile.rsqrt(variance + eps)


@xetile.kernel
def group_norm_groups(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    ACC: constexpr,
    CHANNELS: constexpr,
    ALL: constexpr,
    WIDTH: constexpr,
    EACH: constexpr,
    IS_FULL: constexpr,
) -> None:
    """`group_norm_rows` of EACH small groups, which are one tile.

    So rows are loaded once, and the ends of all their sums are computed together.

    Args:
        ALL: channels of a sample; EACH divides the number of its groups.
        WIDTH: columns of a tile, n or more.
        IS_FULL: whether it is n.
    """
    shape: constexpr = (CHANNELS * EACH, WIDTH)
    first, n = xetile.program_id(0) * shape[0], WIDTH if IS_FULL else x.shape[1]
    v, factor = centered_groups(x, first, n, eps, ACC, shape, EACH)
    if weight is not None:
        factor = factor * of_rows(weight, first % ALL, ACC, shape[0])
    y = v * factor
    if bias is not None:
        y = y + of_rows(bias, first % ALL, ACC, shape[0])
    put(y, out, [first, 0])


@xetile.kernel
def group_norm_backward_groups(
    grad: Array,
    x: Array,
    weight: Array | None,
    out: Array,
    by_weight: Array,
    by_bias: Array,
    eps: float,
    ACC: constexpr,
    CHANNELS: constexpr,
    ALL: constexpr,
    WIDTH: constexpr,
    EACH: constexpr,
    IS_FULL: constexpr,
) -> None:
    """`group_norm_backward_rows` of EACH groups; constants are of `group_norm_groups`.

    ``by_weight`` and ``by_bias`` are (rows of x,).
    """
    shape: constexpr = (CHANNELS * EACH, WIDTH)
    first, n = xetile.program_id(0) * shape[0], WIDTH if IS_FULL else x.shape[1]
    v, r = centered_groups(x, first, n, eps, ACC, shape, EACH)
    g, count, factor = take(grad, [first, 0], shape, ACC), n * CHANNELS, r
    dw, db = r * (g * v).sum(1, keepdims=True), g.sum(1, keepdims=True)
    put(dw.reshape(shape[0]), by_weight, [first])
    put(db.reshape(shape[0]), by_bias, [first])
    if weight is not None:
        own = of_rows(weight, first % ALL, ACC, shape[0])
        dw, db, factor = dw * own, db * own, r * own
    slope, shift = over_groups(dw, EACH) * r * r / count, over_groups(db, EACH) * r
    put(g * factor - (v * slope + shift / count), out, [first, 0])
