"""The kernels behind losses of classes: a program has one row, or some columns.

Source: torch.nn.functional; label smoothing: Szegedy et al., arXiv 1512.00567.
"""

from __future__ import annotations

from xetl import xetile
from xetl.language.dtypes import f32, i32
from xetl.ops.matrices import matrix, put, take
from xetl.ops.rows.softmaxes import LOG2_E, largest_of_columns
from xetl.xetile import Array, Vector, constexpr

_AHEAD = 64
"""The distance of prefetches, in rows."""

_LEAST_NORMAL = 2.0**-126
"""The least normal number of f32."""


@xetile.kernel
def cross_entropy_rows(
    x: Array,
    labels: Array,
    weight: Array | None,
    losses: Array,
    weights: Array,
    ignore: int,
    smoothing: float,
    SPREADS: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 1,
) -> None:
    """The loss of each row, and its weight in a mean.

    A program has several rows, whose logarithms are one vector.

    Args:
        x: (m, n), scores.
        labels: (m,), the class of each row, or (m, n) of a float dtype, the
            probability of each class.
        weight: (n,) of the classes, or None.
        losses: (m,).
        weights: (m,), 0 for ignored rows.
        ignore: the class of rows that do not count.
        smoothing: the part of the target that is spread over all classes.
        SPREADS: whether smoothing is not 0, or labels are probabilities.
        ACC: the dtype of the computation.
        WIDTH: columns of a tile, n or more.
    """
    row, n = xetile.program_id(0) * ROWS, x.shape[1]
    v = take(x, [row, 0], (ROWS, WIDTH), ACC, -xetile.inf)
    # As in `softmax_rows`.
    largest = v.max(1, keepdims=True, propagate_nan=False)
    v = v - largest
    total = exponential(v).sum(1, keepdims=True)
    total = xetile.log(total.reshape((1, ROWS)))
    label = labels_of(labels, [row], (ROWS,))
    count = xetile.zeros((1, ROWS), ACC) + 1.0
    if not labels.dtype.is_float:
        count = counted(label, weight, n, ignore, ACC)
    put(count.reshape((ROWS,)), weights, [row])
    if not SPREADS:
        at = xetile.init_tile(x, [row + xetile.arange(ROWS), label])
        v = xetile.load_gather(at).to(ACC)[None, :] - largest.reshape((1, ROWS))
        loss = count * (total - v)
        # With a weight of 0, an infinite score must not become NaN.
        loss = xetile.where(count == 0, 0.0, loss)
        put(loss.reshape((ROWS,)), losses, [row])
        return
    v = v - total.reshape((ROWS, 1))
    shape = ROWS, WIDTH
    share = shares_of_rows(labels, label, weight, row, n, ignore, smoothing, ACC, shape)
    # With a share of 0, minus infinity must not become NaN.
    put(-xetile.where(share == 0, 0.0, share * v).sum(1), losses, [row])


@xetile.function
def shares_of_rows(
    labels: Array,
    label: Vector,
    weight: Array | None,
    row: int,
    n: int,
    ignore: int,
    smoothing: float,
    ACC: constexpr,
    SHAPE: constexpr,
) -> Vector:
    """Return the share of each class in the target of some rows, times its weight.

    ``label`` is the result of `labels_of` for the same rows.
    """
    column, zeros = xetile.arange(SHAPE[1])[None, :], xetile.zeros(SHAPE, ACC)
    is_shared = column < n
    if labels.dtype.is_float:
        share = take(labels, [row, 0], SHAPE, ACC)
    else:
        share = xetile.where(column == label[:, None], zeros + 1.0, zeros)
        is_shared = is_shared & (label[:, None] != ignore)
    share = share * (1.0 - smoothing) + smoothing / n
    share = xetile.where(is_shared, share, zeros)
    if weight is not None:
        share = share * take(weight, [0], SHAPE[1:], ACC)[None, :]
    return share


@xetile.function
def exponential(v: Vector) -> Vector:
    """Return ``exp(v)`` for v of 0 or less, but 0 where f32 would be subnormal.

    An Intel core takes some 150 cycles for each vector that multiplies a subnormal,
    and saturated rows have little else. The absolute error is below 1.2e-38.
    """
    power = v * LOG2_E
    if power.dtype == f32:
        power = xetile.where(power < -126, -xetile.inf, power)
    return xetile.exp2(power, nonpositive=True)


@xetile.function
def normal(x: Vector) -> Vector:
    """Return x, but 0 in place of a subnormal f32; see `exponential`."""
    if x.dtype == f32:
        x = xetile.where(abs(x) < _LEAST_NORMAL, 0.0, x)
    return x


@xetile.function
def labels_of(labels: Array, place: list[int], SHAPE: constexpr) -> Vector:
    """Return the classes of some rows or columns; 0 if they have probabilities."""
    if labels.dtype.is_float:
        return xetile.zeros(SHAPE, i32)
    return xetile.load_tile(xetile.init_tile(labels, place, SHAPE))


@xetile.function
def shares(
    labels: Array,
    label: Vector,
    weight: Array | None,
    place: list[int],
    c: int,
    smoothing: float,
    n: int,
    ACC: constexpr,
) -> Vector:
    """Return class c's share of the target of each column, times its weight.

    ``label`` is the result of `labels_of` for the same columns.
    """
    if labels.dtype.is_float:
        share = take(matrix(labels, place[0]), [c, place[1]], label.shape, ACC)
    else:
        share = xetile.where(label == c, 1.0, 0.0).to(ACC)
    share = share * (1.0 - smoothing) + smoothing / n
    if weight is not None:
        share = share * weight[c].to(ACC)
    return share


@xetile.function
def counted(
    label: Vector, weight: Array | None, n: int, ignore: int, ACC: constexpr
) -> Vector:
    """Return the weight of the label of each row, as one row; 0 where it is ignored."""
    counts = (label != ignore) & (label >= 0) & (label < n)
    count = xetile.where(counts, 1.0, 0.0).to(ACC)
    if weight is not None:
        count = count * xetile.load_gather(xetile.init_tile(weight, [label])).to(ACC)
    return count[None, :]


@xetile.kernel
def cross_entropy_columns(
    x: Array,
    labels: Array,
    weight: Array | None,
    losses: Array,
    weights: Array,
    ignore: int,
    smoothing: float,
    SPREADS: constexpr,
    IS_LOG: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """`cross_entropy_rows` of columns: x is (..., n, m), all others are (..., m).

    Probabilities are (..., n, m), as x is.
    ``IS_LOG``: whether x has logarithms of probabilities, as in `nll_rows`.
    """
    number, first = xetile.program_id(1), xetile.program_id(0) * WIDTH
    source, place = matrix(x, number), [number, first]
    n = source.shape[0]
    label = labels_of(labels, place, (1, WIDTH))
    largest = total = loss = spread = xetile.zeros((1, WIDTH), ACC)
    if not IS_LOG:
        largest = largest_of_columns(source, first, ACC, WIDTH)
        for c in range(0, n):
            v = take(source, [c, first], (1, WIDTH), ACC) - largest
            total = total + exponential(v)
            if SPREADS:
                share = shares(labels, label, weight, place, c, smoothing, n, ACC)
                # As in `cross_entropy_rows`.
                loss = loss - xetile.where(share == 0, 0.0, share * v)
                spread = spread + share
    count = xetile.zeros((1, WIDTH), ACC) + 1.0
    if not labels.dtype.is_float:
        count = counted(label.reshape((WIDTH,)), weight, n, ignore, ACC)
    if SPREADS:
        loss = loss + spread * xetile.log(total)
        loss = xetile.where(label == ignore, 0.0, loss)
    else:
        label = label.reshape((WIDTH,))
        at = xetile.init_tile(source, [label, first + xetile.arange(WIDTH)])
        v = xetile.load_gather(at).to(ACC)[None, :]
        loss = -v * count if IS_LOG else count * (xetile.log(total) - (v - largest))
        loss = xetile.where(count == 0, 0.0, loss)
    put(loss, losses, place)
    put(count, weights, place)


@xetile.kernel
def nll_rows(
    x: Array,
    labels: Array,
    weight: Array | None,
    losses: Array,
    weights: Array,
    ignore: int,
    ACC: constexpr,
    ROWS: constexpr,
) -> None:
    """The sums of ``-x[label] * weight[label]`` and of the weights, of ROWS rows each.

    A program reads one row after the other. Each row may lie in another page, and a
    vector of elements would wait for the last of them.

    Args:
        x: (m, n), logarithms of probabilities.
        labels: (m,), the class of each row.
        weight: (n,) of the classes, or None.
        losses: (m / ROWS,).
        weights: (m / ROWS,).
        ignore: the class of rows that do not count. Labels outside of the classes do
            not count either.
        ACC: the dtype of the computation.
    """
    program = xetile.program_id(0)
    first = program * ROWS
    total = counted = ACC(0)
    for row in range(first, min(first + ROWS, x.shape[0])):
        label = labels[row]
        later = row + _AHEAD
        xetile.prefetch_tile(xetile.init_tile(x, [later, labels[later]], (1, 1)))
        if label != ignore and label >= 0 and label < x.shape[1]:
            loss = x[row, label].to(ACC)
            if weight is None:
                total, counted = total - loss, counted + 1.0
            else:
                count = weight[label].to(ACC)
                counted = counted + count
                if count != 0:
                    total = total - loss * count
    losses[program] = total.to(losses.dtype)
    weights[program] = counted


@xetile.kernel
def finish_loss(
    losses: Array,
    weights: Array,
    out: Array,
    total: Array,
    MEAN: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = sum(losses) / total``; total is ``sum(weights)`` for a mean, else 1."""
    loss, count = xetile.zeros((WIDTH,), ACC), xetile.zeros((WIDTH,), ACC)
    for first in range(0, losses.shape[0], WIDTH):
        loss = loss + xetile.load_tile(xetile.init_tile(losses, [first], (WIDTH,)))
        count = count + xetile.load_tile(xetile.init_tile(weights, [first], (WIDTH,)))
    found = loss.reshape((1, WIDTH)).sum(1)
    counted = count.reshape((1, WIDTH)).sum(1)
    if MEAN:
        found = found / counted
    else:
        counted = counted * 0 + 1
    put(found, out, [0])
    put(counted, total, [0])


@xetile.kernel
def cross_entropy_backward_rows(
    grad: Array,
    x: Array,
    labels: Array,
    weight: Array | None,
    total: Array,
    out: Array,
    ignore: int,
    smoothing: float,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr = 1,
) -> None:
    """``(softmax(x) * sum(share) - share) * grad / total``; see `cross_entropy_rows`.

    ``grad`` is (m,), and ``total`` is (1,).
    """
    row, n = xetile.program_id(0) * ROWS, x.shape[1]
    v = take(x, [row, 0], (ROWS, WIDTH), ACC, -xetile.inf)
    label, shape = labels_of(labels, [row], (ROWS,)), (ROWS, WIDTH)
    share = shares_of_rows(labels, label, weight, row, n, ignore, smoothing, ACC, shape)
    largest = v.max(1, keepdims=True, propagate_nan=False)
    e = exponential(v - largest)
    d = e * (share.sum(1, keepdims=True) / e.sum(1, keepdims=True)) - share
    d = d * (take(grad, [row], (ROWS,), ACC) / total[0])[:, None]
    if not labels.dtype.is_float:
        # A row that does not count may have NaN.
        d = xetile.where(label[:, None] == ignore, 0.0, d)
    put(normal(d), out, [row, 0])


@xetile.kernel
def nll_backward_rows(
    grad: Array,
    x: Array,
    labels: Array,
    weight: Array | None,
    total: Array,
    out: Array,
    ignore: int,
    smoothing: float,
    ACC: constexpr,
    WIDTH: constexpr,
    ROWS: constexpr,
) -> None:
    """``-weight[label] * grad / total`` at the label of each row, else 0.

    Arguments are those of `cross_entropy_backward_rows`. The elements of x and
    ``smoothing`` are not read, and WIDTH is the width of a piece of ROWS rows.
    """
    row = xetile.program_id(0) * ROWS
    label = take(labels, [row], (ROWS,), labels.dtype, -1)
    d = take(grad, [row], (ROWS,), ACC) / -total[0]
    if weight is not None:
        d = d * xetile.load_gather(xetile.init_tile(weight, [label])).to(ACC)
    is_class = (label != ignore) & (label >= 0) & (label < out.shape[1])
    place = xetile.where(is_class, label, -1).to(i32)[:, None]
    at_label = d.to(out.dtype)[:, None]
    zeros = xetile.zeros((ROWS, WIDTH), out.dtype)
    column = xetile.arange(WIDTH).to(i32)[None, :]
    for first in range(0, out.shape[1], WIDTH):
        put(xetile.where(column == place - first, at_label, zeros), out, [row, first])


@xetile.kernel
def cross_entropy_backward_columns(
    grad: Array,
    x: Array,
    labels: Array,
    weight: Array | None,
    total: Array,
    out: Array,
    ignore: int,
    smoothing: float,
    SPREADS: constexpr,
    IS_LOG: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """`cross_entropy_backward_rows` of columns: x and out are (..., n, m)."""
    number, first = xetile.program_id(1), xetile.program_id(0) * WIDTH
    source, to, place = matrix(x, number), matrix(out, number), [number, first]
    n = source.shape[0]
    label = labels_of(labels, place, (1, WIDTH))
    g = take(grad, place, (1, WIDTH), ACC) / total[0]
    if SPREADS:
        count = xetile.where(label == ignore, 0.0, 1.0).to(ACC)
    else:
        count = counted(label.reshape((WIDTH,)), weight, n, ignore, ACC)
        g = g * count
    largest = sums = spread = xetile.zeros((1, WIDTH), ACC)
    if not IS_LOG:
        largest = largest_of_columns(source, first, ACC, WIDTH)
        for c in range(0, n):
            v = take(source, [c, first], (1, WIDTH), ACC) - largest
            sums = sums + exponential(v)
            if SPREADS:
                share = shares(labels, label, weight, place, c, smoothing, n, ACC)
                spread = spread + share
        spread = (spread * g if SPREADS else g) / sums
    # i32 labels take fewer vectors than i64. -1 stands for all outside of the classes.
    short = xetile.where((label >= 0) & (label < n), label, -1).to(i32)
    for c in range(0, n):
        if SPREADS:
            share = shares(labels, label, weight, place, c, smoothing, n, ACC)
            d = -share * g
        else:
            d = -xetile.where(short == c, g, 0.0)
        if not IS_LOG:
            v = take(source, [c, first], (1, WIDTH), ACC) - largest
            d = d + exponential(v) * spread
        put(normal(xetile.where(count == 0, 0.0, d)), to, [c, first])
