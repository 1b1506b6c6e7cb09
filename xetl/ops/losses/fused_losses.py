"""``xetl.ops.linear_cross_entropy``: memory holds the scores of few rows at a time.

For each piece of rows, the loss and the wanted gradients are computed at once, so that
its scores are not needed again.
Source: Hsu et al., "Liger Kernel", arXiv 2410.10989.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from xetl import xetile
from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.activations import copied
from xetl.ops.calling.calls import Launch, View, itself
from xetl.ops.calling.declarations import (
    SUMS,
    ArrayLike,
    Call,
    Context,
    Operand,
    Operands,
    Step,
    result,
    temporary,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.options import refuse_other
from xetl.ops.calling.views import floats, width_of
from xetl.ops.losses.class_losses import (
    check_classes,
    check_reduction,
    check_smoothing,
    cross_entropy,
)
from xetl.ops.losses.kernels import (
    counted,
    cross_entropy_backward_rows,
    cross_entropy_rows,
    finish_loss,
)
from xetl.ops.matrices import put
from xetl.ops.products.matrix_product import linear
from xetl.ops.products.product_steps import Seen, multiply
from xetl.ops.rows.reduction_kernels import Down
from xetl.ops.rows.reductions import add_all, reduce_down
from xetl.records import record
from xetl.runtime.kernel import Kernel
from xetl.runtime.tensors import needs_derivative
from xetl.xetile import Array, constexpr

_NAME = "linear_cross_entropy"

_SCORES = 1 << 22
"""Scores in memory at a time: 16 MB of f32."""

_LEAST = 64
"""The least rows of a piece, so that products are fast."""

_WIDTH = 1024
"""Losses that are added at a time."""


def _check(
    input: Operand,
    weight: Operand,
    target: Operand,
    bias: Operand | None,
    of_classes: Operand | None,
    reduction: str,
) -> DType:
    """Return the dtype of the loss; raise a LaunchError if an argument does not fit."""
    check_reduction(_NAME, reduction, ("mean", "sum"))
    dtype = floats(_NAME, input, weight, bias, of_classes)
    fits = input.ndim == weight.ndim == 2 and input.shape[1] == weight.shape[1]
    if not fits or (bias is not None and bias.shape != weight.shape[:1]):
        problem = f"`input` is {input.shape} and `linear_weight` {weight.shape}"
        raise wrong_shape(_NAME, problem, "pass (n, k), (classes, k) and (classes,)")
    scores = result((input.shape[0], weight.shape[0]), dtype, "input")
    check_classes(_NAME, scores, target, of_classes, reduction)
    return dtype


@xetile.kernel
def count_rows(
    labels: Array,
    weight: Array | None,
    out: Array,
    ignore: int,
    classes: int,
    MEAN: constexpr,
    ACC: constexpr,
    WIDTH: constexpr,
) -> None:
    """``out = [1, divisor of the sum of losses]``: sum of the rows' weights, or 1."""
    count = xetile.zeros((1, WIDTH), ACC)
    for first in range(0, labels.shape[0], WIDTH):
        label = xetile.load_tile(xetile.init_tile(labels, [first], (WIDTH,)))
        outside = first + xetile.arange(WIDTH) >= labels.shape[0]
        label = xetile.where(outside, ignore, label)
        count = count + counted(label, weight, classes, ignore, ACC)
    found = count.sum(1)
    one = found * 0 + 1
    put(one, out, [0])
    put(found if MEAN else one, out, [1])


@record(frozen=True)
class _Loss:
    """The operands and options of a loss and its gradients.

    Attributes:
        x: (n, k).
        weight: (classes, k).
        labels: (n,).
        bias: (classes,) or None.
        of_classes: (classes,), their weights, or None.
        ignore: the class of rows that do not count.
        is_mean: whether the sum is divided by the sum of the rows' weights.
        smoothing: see `xetl.ops.cross_entropy`.
        wanted: whether the gradients of input, weight and bias are wanted.
    """

    x: Operand
    weight: Operand
    labels: Operand
    bias: Operand | None
    of_classes: Operand | None
    ignore: int
    is_mean: bool
    smoothing: float
    wanted: Sequence[bool]

    def steps(self, made: Sequence[Operand]) -> list[Step]:
        """Return the launches; ``made``: loss, gradients of input, weight and bias."""
        m, classes, acc = self.x.shape[0], self.weight.shape[0], SUMS[self.x.dtype]
        rows = max(_LEAST, _SCORES // max(classes, 1) // _LEAST * _LEAST)
        kept, ends = temporary((2, m), acc), temporary((2,), acc)
        scores = temporary((min(rows, m), classes), acc)
        slopes, by_weight = (
            x if x.dtype == dtype else temporary(x.shape, dtype)
            for x, dtype in zip((scores, made[2]), (self.x.dtype, acc))
        )
        by_bias = temporary((cdiv(max(m, 1), rows), classes), acc)
        ways = self.is_mean, acc, min(_WIDTH, width_of(m))
        count = Launch(count_rows, (itself,) * 3, (), (1, 1, 1), ways)
        counted = self.labels, self.of_classes, ends
        steps: list[Step] = [Step(count, counted, (self.ignore, classes))]
        for first in range(0, max(m, 1), rows):
            part = slice(first, min(first + rows, m))
            steps += self._scores(part, scores, kept)
            if any(self.wanted):
                steps.append(self._slopes(part, scores, slopes, ends))
                to = made[1], by_weight, by_bias
                steps += self._gradients(part, slopes, to, first // rows)
        if by_weight is not made[2]:
            steps.append(copied(by_weight, made[2]))
        if self.wanted[2]:
            steps += add_all(by_bias, made[3], 1.0, 0)
        views = (itemgetter(0), itemgetter(1), itself, itself)
        last = Launch(finish_loss, views, (), (1, 1, 1), ways)
        return [*steps, Step(last, (kept, kept, made[0], ends))]

    def _scores(self, part: slice, scores: Operand, kept: Operand) -> list[Step]:
        """Return the launches for the scores of a piece, and the losses of its rows."""
        x, z = Seen(self.x, itemgetter(part)), Seen(scores, _first(part))
        bias = None if self.bias is None else Seen(self.bias)
        product = multiply(x, Seen(self.weight).turned(), z, bias)
        ends = itemgetter((0, part)), itemgetter((1, part))
        views = (z.view, itemgetter(part), itself, *ends)
        operands = (scores, self.labels, self.of_classes, kept, kept)
        how = operands, views, part, self.smoothing != 0
        return [product, self._of_rows(cross_entropy_rows, *how)]

    def _slopes(
        self, part: slice, scores: Operand, slopes: Operand, ends: Operand
    ) -> Step:
        """Return the launch for the gradient of the scores of a piece."""
        z = _first(part)
        all_rows: View = lambda a: np.broadcast_to(
            a[:1], part.stop - part.start, subok=True
        )
        views = (all_rows, z, itemgetter(part), itself, itemgetter(slice(1, 2)), z)
        operands = (ends, scores, self.labels, self.of_classes, ends, slopes)
        return self._of_rows(cross_entropy_backward_rows, operands, views, part)

    def _of_rows(
        self,
        kernel: Kernel,
        operands: Operands,
        views: Sequence[View],
        part: slice,
        *how: bool,
    ) -> Step:
        count = part.stop - part.start
        last = *how, SUMS[self.x.dtype], width_of(self.weight.shape[0])
        launch = Launch(kernel, views, (), (count, 1, 1), last)
        return Step(launch, operands, (self.ignore, self.smoothing))

    def _gradients(
        self, part: slice, slopes: Operand, to: Sequence[Operand], number: int
    ) -> list[Step]:
        """Return the launches that add a piece to the gradients ``to``.

        The gradient of the bias has a row for each piece; ``number`` is that of this.
        """
        by_x, by_weight, by_bias = to
        x, d = Seen(self.x, itemgetter(part)), Seen(slopes, _first(part))
        steps: list[Step] = []
        if self.wanted[0]:
            steps.append(multiply(d, Seen(self.weight), Seen(by_x, itemgetter(part))))
        if self.wanted[1]:
            before, scales = (
                (Seen(by_weight), (1.0, 1.0)) if part.start else (None, None)
            )
            steps.append(multiply(d.turned(), x, Seen(by_weight), before, scales))
        if self.wanted[2] and self.bias is not None:
            count = part.stop - part.start
            ends = (0, count), (number, number + 1)
            views = (itemgetter((None, slice(*each))) for each in ends)
            rows = Down((1, count, self.weight.shape[0]), *views)
            steps += reduce_down(slopes, by_bias, rows, ("add", 0, by_bias.dtype), 1.0)
        return steps


def _first(part: slice) -> View:
    """Return the view of the first rows, as many as a piece has."""
    return itemgetter(slice(part.stop - part.start))


def _backward(context: Context, grad: Any, *_: Any) -> Mapping[str, Any]:
    names = ("input", "linear_weight", "linear_bias")
    return {
        name: found * grad
        for name, found in zip(names, context.saved)
        if context.needs(name)
    }


@function(results=4, backward=_backward, saves=["result1", "result2", "result3"])
def fused_class_loss(
    input: ArrayLike,
    linear_weight: ArrayLike,
    target: ArrayLike,
    linear_bias: ArrayLike | None,
    weight: ArrayLike | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    by_input: bool,
    by_weight: bool,
    by_bias: bool,
) -> Any:
    """The loss, and the wanted gradients of input, weight and bias."""
    dtype = _check(input, linear_weight, target, linear_bias, weight, reduction)
    check_smoothing(label_smoothing)
    wanted = by_input, by_weight, by_bias
    shapes = [
        each.shape if is_wanted and each is not None else (0,)
        for each, is_wanted in zip((input, linear_weight, linear_bias), wanted)
    ]
    found = (result((), dtype), *(result(shape, dtype) for shape in shapes))
    options = ignore_index, reduction == "mean", label_smoothing, wanted
    loss = _Loss(input, linear_weight, target, linear_bias, weight, *options)
    return Call(found, loss.steps)


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: None = None,
) -> Any:
    """``cross_entropy(input @ linear_weight.T + linear_bias, target)``, piece by piece.

    Memory holds only some rows of scores at a time, and gradients are computed together
    with the loss. Without a reduction, the gradients need that of each row's loss: then
    it is the product and the loss, one after the other.

    Args:
        input: (n, k); f16, bf16, f32 or f64, from any library as for `softmax`.
        linear_weight: (classes, k), dtype of ``input``.
        target: (n,), i64: the class of each row.
        linear_bias: (classes,), dtype of ``input``, or None.
        weight: (classes,), dtype of ``input``, or None; without a derivative.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        ignore_index: the class of rows that do not count; None: -100.
        label_smoothing: see `cross_entropy`.
        options: None; torch's say how many scores are in memory.

    Returns:
        The loss, of the dtype of ``input``: no dimensions, or (n,) for ``"none"``.

    Raises:
        LaunchError: shapes (X0827), dtypes (X0828) or ``reduction`` (X0829) do not fit.
    """
    refuse_other(_NAME, "options", options, None)
    ignored = -100 if ignore_index is None else ignore_index
    if reduction == "none":
        scores = linear(input, linear_weight, linear_bias)
        return cross_entropy(
            scores,
            target,
            weight,
            ignore_index=ignored,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
    wanted = [needs_derivative(x) for x in (input, linear_weight, linear_bias)]
    operands = (input, linear_weight, target, linear_bias, weight)
    how = (ignored, reduction, label_smoothing, *wanted)
    return fused_class_loss(*operands, *how)[0]
