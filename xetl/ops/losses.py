"""``cross_entropy`` and ``nll_loss``: one row to a program.

Source: torch.nn.functional; label smoothing: Szegedy et al., arXiv 1512.00567.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, cast

import numpy as np

from xetl import xetile
from xetl.errors import LaunchError, XetlError
from xetl.language.dtypes import i64
from xetl.language.ops import cdiv
from xetl.ops.activations import as_it_is, each_element
from xetl.ops.batches import itself
from xetl.ops.calls import Launch
from xetl.ops.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result,
    temporary,
)
from xetl.ops.declare import FUNCTIONS, Function, function, is_traced
from xetl.ops.operands import Numbers
from xetl.ops.product import put
from xetl.ops.rules import SUMS, Shape, out_and_gradient, with_out, wrong_shape
from xetl.ops.views import floats, size_of, width_of
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import needs_derivative
from xetl.xetile import Array, constexpr

P = ParamSpec("P")

_PICKED = 256
"""Rows of a program that picks an element of each."""

REDUCTIONS = ("none", "mean", "sum")


@xetile.kernel
def cross_entropy_rows(
    x: Array,
    labels: Array,
    weight: Array | None,
    losses: Array,
    weights: Array,
    ignore: int,
    smoothing: float,
    IS_LOG: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """The loss of each row and what it counts in a mean.

    Args:
        x: (m, n), scores, or their logarithms of probabilities.
        labels: (m,), the class of each row.
        weight: (n,) of the classes, or None.
        losses: (m,).
        weights: (m,), 0 where the row is ignored.
        ignore: the class of rows that do not count.
        smoothing: the part of the target that is spread over all classes.
        IS_LOG: whether x holds logarithms already.
        ACC: the dtype that is computed in.
        WIDTH: columns of a tile, n or more.
    """
    row = xetile.program_id(0)
    n = x.shape[1]
    tile = xetile.init_tile(x, [row, 0], (1, WIDTH))
    column = xetile.arange(WIDTH)[None, :]
    v = xetile.load_tile(tile, padding=-xetile.inf).to(ACC)
    if not IS_LOG:
        v = v - v.max(1, keepdims=True)
        v = v - xetile.log(xetile.exp(v).sum(1, keepdims=True))
    label = labels[row]
    zeros = xetile.zeros((1, WIDTH), ACC)
    share = xetile.where(column == label, zeros + (1.0 - smoothing), zeros)
    share = xetile.where(column < n, share + smoothing / n, zeros)
    mine = xetile.where(column == label, 1.0, 0.0).to(ACC)
    if weight is not None:
        w = xetile.load_tile(xetile.init_tile(weight, [0], (WIDTH,))).to(ACC)[None, :]
        share, mine = share * w, mine * w
    # Where nothing is shared, minus infinity must not become NaN.
    loss = -xetile.where(share == 0, 0.0, share * v).sum(1)
    count = mine.sum(1)
    if label == ignore:
        loss, count = loss * 0, count * 0
        loss = xetile.where(loss == 0, loss, 0.0)
    put(loss, losses, [row])
    put(count, weights, [row])


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
    """``losses = -x[row, label] * weight[label]``, 0 where rows are ignored."""
    first = xetile.program_id(0) * ROWS
    row = first + xetile.arange(ROWS)
    label = xetile.load_tile(xetile.init_tile(labels, [first], (ROWS,)))
    # Outside of the classes nothing is read: 0. Behind the rows nothing is stored.
    count = xetile.where(label == ignore, 0.0, 1.0).to(ACC)
    if weight is not None:
        picked = xetile.load_gather(xetile.init_tile(weight, [label]))
        count = count * picked.to(ACC)
    picked = xetile.load_gather(xetile.init_tile(x, [row, label])).to(ACC)
    loss = xetile.where(count == 0, 0.0, -picked * count)
    put(loss, losses, [first])
    put(count, weights, [first])


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
    """``out = sum(losses)``, divided by ``total = sum(weights)`` for a mean."""
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
    IS_LOG: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``(softmax(x) * sum(share) - share) * grad / total``; see `cross_entropy_rows`.

    ``grad`` is (m,), or (1,) for all rows; ``total`` is (1,).
    """
    row = xetile.program_id(0)
    n = x.shape[1]
    tile = xetile.init_tile(x, [row, 0], (1, WIDTH))
    column = xetile.arange(WIDTH)[None, :]
    v = xetile.load_tile(tile, padding=-xetile.inf).to(ACC)
    label = labels[row]
    zeros = xetile.zeros((1, WIDTH), ACC)
    share = xetile.where(column == label, zeros + (1.0 - smoothing), zeros)
    share = xetile.where(column < n, share + smoothing / n, zeros)
    if weight is not None:
        share = (
            share
            * xetile.load_tile(xetile.init_tile(weight, [0], (WIDTH,))).to(ACC)[None, :]
        )
    d = -share
    if not IS_LOG:
        e = xetile.exp(v - v.max(1, keepdims=True))
        d = d + e * (share.sum(1, keepdims=True) / e.sum(1, keepdims=True))
    d = d * (grad[min(row, grad.shape[0] - 1)] / total[0])
    if label == ignore:
        d = xetile.zeros((1, WIDTH), ACC)
    put(d, out, [row, 0])


def _classes_last(x: Numbers) -> Numbers:
    """(n, classes, ...) as rows of classes."""
    if x.ndim == 1:
        return x.reshape(1, -1)
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _line(x: Numbers) -> Numbers:
    return x.reshape(-1)


def _first(x: Numbers) -> Numbers:
    return x[0]


def _second(x: Numbers) -> Numbers:
    return x[1]


def check_reduction(name: str, reduction: str, known: Sequence[str]) -> None:
    """Refuse a reduction that a loss does not know.

    Raises:
        LaunchError: it knows none of that name.
    """
    if reduction not in known:
        *most, last = (f'"{each}"' for each in known)
        raise LaunchError(
            f"`{name}` knows no reduction {reduction!r}",
            code="X0829",
            help=f"`reduction` is {', '.join(most)} or {last}",
        )


def check_smoothing(smoothing: float) -> None:
    """Refuse what is no part of a target.

    Raises:
        LaunchError: it is not 0 to 1.
    """
    if not 0 <= smoothing <= 1:
        raise LaunchError(
            f"`label_smoothing` is {smoothing}",
            code="X0829",
            help="`label_smoothing` is 0 to 1",
        )


def check_classes(
    name: str, x: Operand, target: Operand, weight: Operand | None, reduction: str
) -> int:
    """How many classes there are.

    Raises:
        LaunchError: operands or ``reduction`` do not fit.
    """
    check_reduction(name, reduction, REDUCTIONS)
    if not x.shape:
        raise wrong_shape(name, "`input` is a number", "pass (..., classes)")
    classes = x.shape[0] if x.ndim == 1 else x.shape[1]
    wanted = () if x.ndim == 1 else (x.shape[0], *x.shape[2:])
    if target.dtype != i64:
        raise LaunchError(
            f"`{name}` was given a target of {target.dtype}",
            code="X0828",
            help="pass the number of each row's class as i64; probabilities are "
            "not supported",
        )
    if tuple(target.shape) != tuple(wanted) or (classes == 0 and 0 not in wanted):
        problem = f"`target` is {target.shape}, but `input` is {x.shape}"
        raise wrong_shape(name, problem, "pass one class for each row")
    if weight is not None and tuple(weight.shape) != (classes,):
        problem = f"`weight` is {weight.shape}, but there are {classes} classes"
        raise wrong_shape(name, problem, "pass one number for each class")
    return classes


def _loss_backward(context: Context, grad: Any, _: Any) -> Mapping[str, Any]:
    x, target, weight, total = context.saved
    _, _, _, ignore, _, smoothing, is_log = context.options.values()
    found = class_loss_backward(
        grad, x, target, weight, total, ignore, smoothing, is_log
    )
    return {"input": found}


_KEPT = ["input", "target", "weight", "result1"]


@function(results=2, backward=_loss_backward, saves=_KEPT)
def class_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    is_log: bool,
) -> Any:
    """The loss, and what its mean was divided by."""
    name = "nll_loss" if is_log else "cross_entropy"
    classes = check_classes(name, input, target, weight, reduction)
    check_smoothing(label_smoothing)
    dtype = floats(name, input)
    acc = SUMS[dtype]
    shape: Shape = target.shape if reduction == "none" else ()

    def steps(made: Sequence[Operand]) -> list[Step | None]:
        m = size_of(target.shape)
        kept = temporary((2, m), acc)
        constants = (is_log, acc, width_of(classes))
        is_each = reduction == "none"
        first, to_first = (made[0], _line) if is_each else (kept, _first)
        views = (_classes_last, _line, itself, to_first, _second)
        rows = Launch(cross_entropy_rows, views, (), (m, 1, 1), constants)
        numbers: tuple[float, ...] = (ignore_index, label_smoothing)
        if is_log:
            grid = (cdiv(m, _PICKED), 1, 1)
            rows = Launch(nll_rows, views, (), grid, (acc, _PICKED))
            numbers = (ignore_index,)
        one = Step(rows, (input, target, weight, first, kept), numbers)
        width = min(1024, width_of(max(1, m)))
        ends = (reduction == "mean", acc, width)
        views = (_first, _second, itself, itself)
        last = Launch(finish_loss, views, (), (1, 1, 1), ends)
        # Without a reduction it only says that nothing is divided.
        to = temporary((1,), dtype) if reduction == "none" else made[0]
        return [one if m else None, Step(last, (kept, kept, to, made[1]))]

    return Call((result(shape, dtype), result((1,), acc)), steps)


@function()
def class_loss_backward(
    grad: ArrayLike,
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None,
    total: ArrayLike,
    ignore_index: int,
    label_smoothing: float,
    is_log: bool,
) -> Any:
    """The gradient by the input."""
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    acc = SUMS[input.dtype]
    # Rows are written as they lie where classes come last.
    rest = input.shape[2:]
    m = size_of(target.shape)

    def steps(made: Sequence[Operand]) -> list[Step | None]:
        constants = (is_log, acc, width_of(classes))
        views = (_line, _classes_last, _line, itself, itself, _classes_last)
        numbers = (ignore_index, label_smoothing)
        launch = Launch(cross_entropy_backward_rows, views, (), (m, 1, 1), constants)
        operands = (grad, input, target, weight, total)
        if size_of(rest) == 1:
            return [Step(launch, (*operands, made[0]), numbers) if m else None]
        between = temporary((m, classes), input.dtype)
        views = (*views[:-1], itself)
        launch = Launch(cross_entropy_backward_rows, views, (), (m, 1, 1), constants)
        outer, inner = input.shape[0], size_of(rest)
        turn = Launch(
            each_element,
            (
                lambda a: a.reshape(outer, inner, classes).swapaxes(1, 2),
                None,
                None,
                lambda a: a.reshape(outer, classes, inner),
                None,
            ),
            (),
            (-(-inner // width_of(inner)), classes, outer),
            (as_it_is, acc, width_of(inner)),
        )
        moved = Step(turn, (between, None, None, made[0], None))
        return [Step(launch, (*operands, between), numbers), moved]

    return Call((result(input.shape, input.dtype),), steps)


class _Loss(Function):
    """A loss of which torch's operators, and derivatives, know as `class_loss`."""

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        values = self.complete(args, kwargs)
        try:
            needed = needs_derivative(values[0])  # then all else need not be asked
            if not needed and not is_traced() and self.way_of(values) is None:
                return self._compute(values, (args, kwargs))
            *given, out = values
            if needed and out is not None:
                raise out_and_gradient(self.name)
            found = class_loss(*cast("Any", self.rule).__wrapped__(*given))
            return with_out(self.name, found[0], out)
        except XetlError as error:
            raise at_caller(error) from None


def _public(arguments: Callable[P, Any]) -> Callable[P, Any]:
    """The first result of `class_loss`, whose arguments another function gives."""

    @wraps(arguments)
    def rule(*values: Any) -> Call:
        made = cast("Any", arguments)(*values)
        call = FUNCTIONS["xetl::class_loss"].rule(*made)
        kept = call.results[1]

        def steps(made: Sequence[Operand]) -> Sequence[Step | None]:
            return call.steps([*made, temporary(kept.shape, kept.dtype)])

        return Call(call.results[:1], steps)

    return cast("Callable[P, Any]", _Loss(rule.__name__, rule).public)


@_public
def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    out: ArrayLike = None,
) -> Any:
    """``-log(softmax(input)[target])``, averaged over rows.

    With smoothing s the target is ``(1 - s)`` in its class and ``s / classes`` in all.
    A mean is divided by the sum of the weights of the targets that count.

    Args:
        input: (n, classes, ...) or (classes,), scores; f16, bf16, f32 or f64.
        target: (n, ...) or a number, i64: the class of each row.
        weight: (classes,) or None, without a derivative.
        size_average: None; ``reduction`` has replaced it and ``reduce``.
        ignore_index: the class of rows that do not count.
        reduce: see ``size_average``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: s, from 0 to 1.
        out: where the loss goes.

    Returns:
        ``out``, or a new array of the library and dtype of ``input``: no dimensions,
        or the shape of ``target`` for ``"none"``.

    Raises:
        LaunchError: shapes (X0827), dtypes (X0828) or options (X0829) do not fit.
    """
    return [input, target, weight, ignore_index, reduction, label_smoothing, False]


@_public
def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    *,
    out: ArrayLike = None,
) -> Any:
    """``-input[target]`` of logarithms of probabilities; see `cross_entropy`."""
    return [input, target, weight, ignore_index, reduction, 0.0, True]
