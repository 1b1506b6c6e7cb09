"""The kernels behind ``batch_norm`` and its derivatives."""

from __future__ import annotations

from xetl import xetile
from xetl.ops.matrices import place_of, put, take
from xetl.ops.rows.channel_norm_kernels import of_rows, piece
from xetl.ops.rows.variances import exact
from xetl.xetile import Array, Vector, constexpr


@xetile.kernel
def batch_norm_rows(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = (x - mean) / sqrt(variance + eps) * weight + bias`` of each channel.

    ``x`` and ``out`` are (samples, channels, n), the other arrays are (channels,). A
    program has ROWS channels.
    """
    row, sample = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, to = x[sample], out[sample]
    factor = xetile.rsqrt(of_rows(variance, row, ACC, ROWS) + eps)
    if weight is not None:
        factor = factor * of_rows(weight, row, ACC, ROWS)
    shift = -of_rows(mean, row, ACC, ROWS) * factor
    if bias is not None:
        shift = shift + of_rows(bias, row, ACC, ROWS)
    for column in range(0, source.shape[1], WIDTH):
        y = take(source, [row, column], (ROWS, WIDTH), ACC) * factor + shift
        put(y, to, [row, column])


@xetile.kernel
def batch_norm_columns(
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    bias: Array | None,
    out: Array,
    eps: float,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
    CHANNELS: constexpr = None,
) -> None:
    """`batch_norm_rows` with channels as columns: x and out are (samples, channels).

    If CHANNELS is given, a row of x holds several samples, each of CHANNELS columns,
    and the columns of a program begin with a whole sample.
    """
    column, first = xetile.program_id(0) * WIDTH, xetile.program_id(1) * ROWS

    def of_channels(numbers: Array) -> Vector:
        if CHANNELS is None:
            return piece(numbers, 0, column, ACC, WIDTH)
        at = xetile.init_tile(numbers, [xetile.arange(WIDTH) % CHANNELS])
        return xetile.load_gather(at).to(ACC)[None, :]

    factor = xetile.rsqrt(of_channels(variance) + eps)
    if weight is not None:
        factor = factor * of_channels(weight)
    shift = -of_channels(mean) * factor
    if bias is not None:
        shift = shift + of_channels(bias)
    for row in range(first, min(first + ROWS, x.shape[0])):
        y = piece(x, row, column, ACC, WIDTH) * factor + shift
        put(y, out, [row, column])


@xetile.kernel
def batch_norm_backward_rows(
    grad: Array,
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    out: Array,
    by_weight: Array,
    by_bias: Array,
    eps: float,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The gradient of x, and each sample's part of those of weight and bias.

    See `batch_norm_rows`; ``by_weight`` and ``by_bias`` are (samples, channels).
    """
    channel, sample = xetile.program_id(0), xetile.program_id(1)
    source, given, to = x[sample], grad[sample], out[sample]
    middle = mean[channel].to(ACC)
    r = xetile.rsqrt(variance[channel].to(ACC) + eps)
    factor = r if weight is None else r * weight[channel].to(ACC)
    weights, biases = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    for column in range(0, source.shape[1], WIDTH):
        g = piece(given, channel, column, ACC, WIDTH)
        d = piece(source, channel, column, ACC, WIDTH) - middle
        weights, biases = weights + g * d, biases + g
        put(g * factor, to, [channel, column])
    put(r * weights.sum(1, keepdims=True), by_weight, [sample, channel])
    put(biases.sum(1, keepdims=True), by_bias, [sample, channel])


@xetile.kernel
def batch_norm_backward_columns(
    grad: Array,
    x: Array,
    mean: Array,
    variance: Array,
    weight: Array | None,
    out: Array,
    by_weight: Array,
    by_bias: Array,
    eps: float,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """`batch_norm_backward_rows` with channels as columns; a part has ROWS samples."""
    column, block = xetile.program_id(0) * WIDTH, xetile.program_id(1)
    middle = piece(mean, 0, column, ACC, WIDTH)
    r = xetile.rsqrt(piece(variance, 0, column, ACC, WIDTH) + eps)
    factor = r if weight is None else r * piece(weight, 0, column, ACC, WIDTH)
    weights, biases = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    for row in range(block * ROWS, min(block * ROWS + ROWS, x.shape[0])):
        g = piece(grad, row, column, ACC, WIDTH)
        d = piece(x, row, column, ACC, WIDTH) - middle
        weights, biases = weights + g * d, biases + g
        put(g * factor, out, [row, column])
    put(r * weights, by_weight, [block, column])
    put(biases, by_bias, [block, column])


@xetile.kernel
def sum_rows(
    x: Array,
    grad: Array | None,
    mean: Array,
    squares: Array,
    slopes: Array,
    products: Array,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
    IS_WHOLE: constexpr,
) -> None:
    """`xetl.ops.rows.grouped_columns.sum_channels` of channels that are rows.

    ``x`` and ``grad`` are (samples, channels, n), the others (samples, channels, 1). A
    program has ROWS channels. IS_WHOLE: whether n is WIDTH at most.
    """
    row, sample = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, n, shape = x[sample], x.shape[2], (ROWS, WIDTH)
    total, given = xetile.zeros(shape, ACC), xetile.zeros(shape, ACC)
    rest, both = xetile.zeros(shape, ACC), xetile.zeros(shape, ACC)
    if IS_WHOLE:  # without a loop, whose sums would be in scratch
        total = take(source, [row, 0], shape, ACC)
        if grad is not None:
            given = take(grad[sample], [row, 0], shape, ACC)
    else:
        for column in range(0, n, WIDTH):
            total = total + take(source, [row, column], shape, ACC)
            if grad is not None:
                given = given + take(grad[sample], [row, column], shape, ACC)
    middle = total.sum(1, keepdims=True) / n
    if IS_WHOLE:
        rest = xetile.where(xetile.arange(WIDTH)[None, :] < n, total - middle, 0.0)
        total, both = rest * rest, rest * given
    else:
        total = xetile.zeros(shape, ACC)
        for column in range(0, n, WIDTH):
            d = take(source, [row, column], shape, ACC) - middle
            # Columns beyond the row are loaded as 0, which differs from the mean.
            d = xetile.where(xetile.arange(WIDTH)[None, :] < n - column, d, 0.0)
            total, rest = total + d * d, rest + d
            if grad is not None:
                both = both + d * take(grad[sample], [row, column], shape, ACC)
    squared, left = total.sum(1, keepdims=True), rest.sum(1, keepdims=True)
    put(middle + left / n, mean[sample], [row, 0])
    put(exact(squared, left, n), squares[sample], [row, 0])
    if grad is not None:
        slope, product = given.sum(1, keepdims=True), both.sum(1, keepdims=True)
        put(slope, slopes[sample], [row, 0])
        put(product - slope * left / n, products[sample], [row, 0])


@xetile.kernel
def factors_of_batch(
    mean: Array,
    squares: Array,
    slopes: Array | None,
    products: Array,
    weight: Array | None,
    bias: Array | None,
    slope: Array,
    shift: Array,
    factor: Array,
    one: Array,
    two: Array,
    eps: float,
    count: float,
    part: float,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``x * slope + shift`` is the result; plus ``grad * factor``, the gradient by x.

    See `sum_rows`, and `group_norm_backward_rows` for how that is derived.

    Args:
        mean: (parts, channels), and so the next three, sums of each part of the batch.
        weight: (1, channels), and so all that follow.
        factor: None without ``slopes``.
        one: the gradient by the weight; without ``slopes`` the mean.
        two: the gradient by the bias; without ``slopes`` the variance, without bias.
        count: elements of a channel.
        part: those of a part; the last part may have fewer.
        WIDTH: channels of a program.
    """
    column, parts = xetile.program_id(0) * WIDTH, mean.shape[0]
    middle = xetile.zeros((1, WIDTH), ACC)
    for i in range(0, parts):
        share = xetile.minimum(part, count - i * part) / count
        middle = middle + piece(mean, i, column, ACC, WIDTH) * share
    total, both = xetile.zeros((1, WIDTH), ACC), xetile.zeros((1, WIDTH), ACC)
    given = xetile.zeros((1, WIDTH), ACC)
    for i in range(0, parts):
        d = piece(mean, i, column, ACC, WIDTH) - middle
        own = d * d * xetile.minimum(part, count - i * part)
        total = total + (piece(squares, i, column, ACC, WIDTH) + own)
        if slopes is not None:
            g = piece(slopes, i, column, ACC, WIDTH)
            given = given + g
            both = both + (g * d + piece(products, i, column, ACC, WIDTH))
    r = xetile.rsqrt(total / count + eps)
    scale = r
    if weight is not None:
        scale = r * piece(weight, 0, column, ACC, WIDTH)
    if slopes is None:
        added = -middle * scale
        if bias is not None:
            added = added + piece(bias, 0, column, ACC, WIDTH)
        put(scale, slope, [0, column])
        put(added, shift, [0, column])
        put(middle, one, [0, column])
        put(total / (count - 1.0), two, [0, column])
    else:
        s = -both * r * r * scale / count
        put(scale, factor, [0, column])
        put(s, slope, [0, column])
        put(-middle * s - given * scale / count, shift, [0, column])
        put(both * r, one, [0, column])
        put(given, two, [0, column])


@xetile.kernel
def scale_rows(
    x: Array,
    grad: Array | None,
    slope: Array,
    shift: Array,
    factor: Array,
    out: Array,
    ACC: constexpr,
    ROWS: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = x * slope + shift``, and ``+ grad * factor`` if there is one.

    ``x``, ``grad`` and ``out`` are (samples, channels, n), the others (channels,). A
    program has ROWS channels.
    """
    row, sample = xetile.program_id(0) * ROWS, xetile.program_id(1)
    source, to, shape = x[sample], out[sample], (ROWS, WIDTH)
    scale, added = of_rows(slope, row, ACC, ROWS), of_rows(shift, row, ACC, ROWS)
    for column in range(0, source.shape[1], WIDTH):
        y = take(source, [row, column], shape, ACC) * scale + added
        if grad is not None:
            g = take(grad[sample], [row, column], shape, ACC)
            y = y + g * of_rows(factor, row, ACC, ROWS)
        put(y, to, [row, column])


@xetile.kernel
def move_averages(
    running_mean: Array,
    running_var: Array,
    mean: Array,
    variance: Array,
    momentum: float,
    ACC: constexpr,
    TILE: constexpr,
    STEP: constexpr,
) -> None:
    """``running += momentum * (new - running)`` of both."""
    place = place_of(TILE, STEP)
    old = take(running_mean, place, TILE, ACC)
    new = take(mean, place, TILE, ACC)
    put(old * (1.0 - momentum) + new * momentum, running_mean, place)
    old = take(running_var, place, TILE, ACC)
    new = take(variance, place, TILE, ACC)
    put(old * (1.0 - momentum) + new * momentum, running_var, place)
