"""``cross_entropy`` and ``nll_loss`` of rows and of columns of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from operator import itemgetter
from typing import Any, ParamSpec, cast

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import i64
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import Launch, View, are_views, as_line, chain, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    along_view,
    result,
    result_like,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.facades import Facade, Ranks
from xetl.ops.calling.operands import Numbers, Shape
from xetl.ops.calling.options import plain
from xetl.ops.calling.views import array_of, floats, is_on_gpu, vectors_of, width_of
from xetl.ops.losses import kernels
from xetl.ops.rows.reduction_kernels import Down, down_of
from xetl.ops.rows.softmaxes import log_softmax

P = ParamSpec("P")

_PIECE = 256
"""Columns of a row that are written at once."""

_FEW = 8
"""The most classes for which lanes over rows are faster. [measured]"""

_TOGETHER, _ELEMENTS = 16, 8192
"""The most rows of a program, and elements of them [measured: Zen 5, 32 classes: row by
row 23 ns each, now 7]."""

_BYTES = 4096
"""The most bytes of rows of a program of the derivative [measured]."""

REDUCTIONS = ("none", "mean", "sum")


def _classes_last(x: Numbers) -> Numbers:
    """View (n, classes, ...) as rows of classes."""
    if x.ndim == 1:
        return x.reshape(1, -1)
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def _as_columns(x: Operand, m: int, few: int = _FEW) -> Down | None:
    """Return scores as columns if classes are not last or are few, else None."""
    if x.ndim < 2:
        return None
    is_short = x.shape[1] <= few and are_views([array_of(x)], [_classes_last])
    return down_of(x, (1,), ()) or (_turned(x, m) if is_short else None)


def _turned(x: Operand, m: int) -> Down:
    """Return rows of scores as the columns of one matrix."""
    classes = x.shape[min(x.ndim, 2) - 1]
    source: View = lambda a: _classes_last(a).T[None]
    return Down((1, classes, m), source, itself)


def _laid_out(
    x: Operand, m: int, few: int = _FEW
) -> tuple[Operand, Down | None, list[Step]]:
    """Return x or a copy, its view as columns (None: as rows), and steps that copy."""
    down = _as_columns(x, m, few)
    if down is not None:
        return x, down, []
    if x.ndim > 2:  # columns with gaps between them
        to = temporary(x.shape, x.dtype, order=x.order)
        down = _as_columns(to, m, few)
        if down is not None:
            return to, down, [copied(x, to)]
    x, moves = _as_rows(x)
    return x, None, moves


def _as_rows(x: Operand) -> tuple[Operand, list[Step]]:
    """Return scores with a view as rows: x, or a copy and the steps that write it."""
    return along_view(x, _classes_last, min(x.ndim, 2) - 1)


def _labels(
    target: Operand, x: Operand, down: Down | None
) -> tuple[Operand, View, list[Step]]:
    """Return a target or a copy, its view in kernels, and the steps of the copy."""
    if not target.dtype.is_float:
        return target, as_line if down is None else _lines(down), []
    if down is None:
        seen, moves = _as_rows(target)
        return seen, _classes_last, moves
    if are_views([array_of(target)], [down.source]):
        return target, down.source, []
    to = temporary(target.shape, target.dtype, order=x.order)
    return to, down.source, [copied(target, to)]


def _shape_of_rows(x: Operand) -> Shape:
    """Return the shape of a target of classes."""
    return (*x.shape[: x.ndim > 1], *x.shape[2:])


def _rows_of(x: Operand, reduction: str) -> int:
    """Return the rows of a program of `nll_rows`; on a GPU one, to hide latency."""
    return 1 if is_on_gpu(x) or reduction == "none" else 128


def _rows_at_once(x: Operand, m: int, classes: int, elements: int) -> int:
    """How many rows of at most ``elements`` a program has; on a GPU many wait."""
    if is_on_gpu(x):
        return 1
    most = elements // width_of(classes)
    return max(1, min(_TOGETHER, most, 1 << (m - 1).bit_length()))


_first, _second = itemgetter(0), itemgetter(1)


def check_reduction(name: str, reduction: str, known: Sequence[str]) -> None:
    """Refuse a reduction that a loss does not have."""
    if plain("reduction", "str", reduction) not in known:
        *most, last = (f'"{each}"' for each in known)
        help_ = f"`reduction` is {', '.join(most)} or {last}"
        raise LaunchError(f"`{name}` knows no reduction {reduction!r}", "X0829", help_)


def check_smoothing(smoothing: float) -> None:
    """Refuse a label smoothing outside of 0 to 1."""
    if not 0 <= smoothing <= 1:
        problem = f"`label_smoothing` is {smoothing}"
        raise LaunchError(problem, "X0829", "`label_smoothing` is 0 to 1")


def check_classes(
    name: str,
    x: Operand,
    target: Operand,
    weight: Operand | None,
    reduction: str,
    has_probabilities: bool = False,
) -> int:
    """Return the number of classes.

    Args:
        has_probabilities: whether the target may have a probability for each class.

    Raises:
        LaunchError: operands or ``reduction`` do not fit.
    """
    check_reduction(name, reduction, REDUCTIONS)
    if not x.shape:
        raise wrong_shape(name, "`input` is a number", "pass (..., classes)")
    classes = x.shape[0] if x.ndim == 1 else x.shape[1]
    wanted = rows = _shape_of_rows(x)
    if has_probabilities and target.dtype.is_float:
        wanted = x.shape
        floats(name, x, target)
    elif target.dtype != i64:
        help_ = "pass the number of each row's class as i64"
        if has_probabilities:
            help_ += ", or the probability of each class as a float"
        problem = f"`{name}` was given a target of {target.dtype}"
        raise LaunchError(problem, "X0828", help_)
    if tuple(target.shape) != tuple(wanted) or (classes == 0 and 0 not in rows):
        problem = f"`target` is {target.shape}, but `input` is {x.shape}"
        raise wrong_shape(name, problem, "pass one class for each row")
    if weight is not None and tuple(weight.shape) != (classes,):
        problem = f"`weight` is {weight.shape}, but there are {classes} classes"
        raise wrong_shape(name, problem, "pass one number for each class")
    return classes


def _loss_backward(context: Context, grad: Any, _: Any) -> Mapping[str, Any]:
    x, target, weight, total = context.saved
    ignore, _, smoothing, is_log = context.values[3:7]
    operands = grad, x, target, weight, total
    by_input = class_loss_backward(*operands, ignore, smoothing, is_log)
    if context.needs("target"):
        by_target = _by_probabilities(*operands, smoothing)
        return {"input": by_input, "target": by_target}
    return {"input": by_input}


def _by_probabilities(
    grad: Any, x: Any, target: Any, weight: Any, total: Any, smoothing: float
) -> Any:
    """Return the gradient of a target of probabilities."""
    dim = min(x.ndim, 2) - 1
    by_row = grad * (smoothing - 1) / total.reshape(())
    found = log_softmax(x, dim) * (by_row.unsqueeze(dim) if by_row.ndim else by_row)
    if weight is not None:
        found = found * weight.reshape(-1, *[1] * (x.ndim - dim - 1))
    return found.to(target.dtype)


_KEPT = ["input", "target", "weight", "result1"]


def _finish(kept: Operand, to: Operand, total: Operand, is_mean: bool) -> Step:
    """Return the launch that adds up losses and their weights."""
    constants = (is_mean, kept.dtype, min(1024, width_of(kept.shape[1])))
    views = (_first, _second, itself, itself)
    launch = Launch(kernels.finish_loss, views, (), (1, 1, 1), constants)
    return Step(launch, (kept, kept, to, total))


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
    """The loss, and the divisor of its mean."""
    name = "nll_loss" if is_log else "cross_entropy"
    classes = check_classes(name, input, target, weight, reduction, not is_log)
    check_smoothing(label_smoothing)
    dtype, is_soft = floats(name, input), target.dtype.is_float
    if is_soft and ignore_index >= 0:  # negative numbers are no class
        problem = f"`ignore_index` is {ignore_index}, but `target` has probabilities"
        raise LaunchError(problem, "X0829", "leave out `ignore_index`")
    acc, spreads = SUMS[dtype], is_soft or label_smoothing != 0
    shape: Shape = _shape_of_rows(input) if reduction == "none" else ()

    def steps(made: Sequence[Operand]) -> list[Step]:
        m = prod(_shape_of_rows(input))
        # If one element of a row is read and one is written, lanes go over rows.
        few = classes if is_log and reduction == "none" else _FEW
        x, down, moves = _laid_out(input, m, few)
        labels, seen, copies = _labels(target, input, down)
        some = _rows_of(x, reduction) if is_log and down is None else 1
        kept = temporary((2, cdiv(m, some)), acc)
        first, to_first = (made[0], itself) if reduction == "none" else (kept, _first)
        numbers: tuple[float, ...] = (ignore_index, label_smoothing)
        if down is None:
            views = (_classes_last, seen, itself, chain(to_first, as_line), _second)
            each = some if is_log else _rows_at_once(x, m, classes, _ELEMENTS)
            kernel = kernels.nll_rows if is_log else kernels.cross_entropy_rows
            how = (spreads, acc, width_of(classes), each)
            last = (acc, some) if is_log else how
            numbers = numbers[: 1 if is_log else 2]
            launch = Launch(kernel, views, (), (cdiv(m, each), 1, 1), last)
        else:
            line = _lines(down)
            ends = chain(to_first, line), chain(_second, line)
            width = _width(input, down)
            grid = (cdiv(down.shape[2], width), down.shape[0], 1)
            last = (spreads, is_log, acc, width)
            views = (down.source, seen, itself, *ends)
            launch = Launch(kernels.cross_entropy_columns, views, (), grid, last)
        one = Step(launch, (x, labels, weight, first, kept), numbers)
        # Without a reduction, the last launch only sets the divisor to 1.
        to = temporary((1,), dtype) if reduction == "none" else made[0]
        last = _finish(kept, to, made[1], reduction == "mean")
        return [*moves, *copies, one, last] if m else [last]

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
    """The gradient of the input."""
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    acc, m = SUMS[input.dtype], prod(_shape_of_rows(input))
    spreads = label_smoothing != 0 or target.dtype.is_float

    def steps(made: Sequence[Operand]) -> list[Step]:
        if not m:
            return []
        x, down, moves = _laid_out(input, m)
        numbers = ignore_index, label_smoothing
        labels, seen, copies = _labels(target, input, down)
        if down is None:
            each: View = lambda a: np.broadcast_to(as_line(a), (m,), subok=True)
            views = (each, _classes_last, seen, itself, itself, _classes_last)
            kernel = kernels.cross_entropy_backward_rows
            rows = _rows_at_once(x, m, classes, 8 * _BYTES // acc.bits)
            constants = (acc, width_of(classes), rows)
            if is_log:
                kernel = kernels.nll_backward_rows
                constants = (acc, min(_PIECE, width_of(classes)), rows)
            grid = (cdiv(m, rows), 1, 1)
        else:
            line, kernel = _lines(down), kernels.cross_entropy_backward_columns
            each = lambda a: np.broadcast_to(
                line(a) if a.size == m else a.reshape(1, 1), down.shape[::2], subok=True
            )
            views = (each, down.source, seen, itself, itself, down.source)
            width = _width(input, down)
            grid = (cdiv(down.shape[2], width), down.shape[0], 1)
            constants = (spreads, is_log, acc, width)
        launch = Launch(kernel, views, (), grid, constants)
        is_apart = down is None and moves
        to = temporary(x.shape, x.dtype, order=x.order) if is_apart else made[0]
        one = Step(launch, (grad, x, labels, weight, total, to), numbers)
        return [*moves, *copies, one, *([copied(to, made[0])] if is_apart else [])]

    return Call((result_like(input, input.dtype),), steps)


def _width(x: Operand, down: Down) -> int:
    """Return the columns of a program: their sums fill half of the registers."""
    registers, lanes = vectors_of(x)
    return min(registers // 2 * lanes, width_of(down.shape[2]))


def _lines(what: Down) -> View:
    """Return the view of an array with one number for each column."""
    outer, _, inner = what.shape
    return lambda x: x.reshape(outer, inner)


class _Loss(Facade):
    """A loss, which is the operator `class_loss` for torch and its derivatives."""

    inner_name = "xetl::class_loss"

    def arguments(self, *given: Any) -> Sequence[Any]:
        return cast("Any", self.rule)(*given)

    def out_of(self, ranks: Ranks, out: Any) -> Any:
        return out, None

    def form(self, ranks: Ranks, found: Any) -> Any:
        return found[0]


def _public(rule: Callable[P, Any]) -> Callable[P, Any]:
    """Return the public function of a loss; ``rule`` gives the arguments."""
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

    With smoothing s, all classes have the target ``s / classes``, and the class of the
    row has ``1 - s`` more. The mean is divided by the sum of the weights of the rows
    that count. For a target of probabilities the loss of a row is ``-sum(weight *
    target * log(softmax(input)))``, which is 0 where the probability is; the mean is
    divided by the number of rows.

    Args:
        input: (n, classes, ...) or (classes,), scores; f16, bf16, f32 or f64.
        target: (n, ...) or a number, i64: the class of each row; or probabilities of
            the shape and dtype of ``input``.
        weight: (classes,) or None, without a derivative.
        size_average: None; ``reduction`` replaces it and ``reduce``.
        ignore_index: the class of rows that do not count; negative for probabilities.
        reduce: see ``size_average``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: s, from 0 to 1.
        out: the array that gets the loss.

    Returns:
        ``out``, or a new array of the library and dtype of ``input``: no dimensions,
        or a number for each row for ``"none"``.
        The derivative is 0 where f32 would be subnormal (below 1.2e-38).

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
    """``-input[target]`` for logarithms of probabilities; see `cross_entropy`."""
    return [input, target, weight, ignore_index, reduction, 0.0, True]
