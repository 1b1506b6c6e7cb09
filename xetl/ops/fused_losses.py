"""``xetl.ops.linear_cross_entropy``: scores of few rows stand in memory at a time.

Each piece of rows goes through the loss and, where a gradient is wanted, through the
products of the derivative as well, so that its scores are not needed again.
Source: Hsu et al., "Liger Kernel", arXiv 2410.10989.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xetl.language.dtypes import DType
from xetl.ops.added_products import addmm
from xetl.ops.declarations import ArrayLike, Call, Context, Operand, result
from xetl.ops.declare import function
from xetl.ops.losses import (
    check_classes,
    check_reduction,
    class_loss,
    class_loss_backward,
)
from xetl.ops.matrix_product import matmul
from xetl.ops.operands import Numbers, as_numpy, dtype_of, new_result
from xetl.ops.reductions import sum
from xetl.ops.rules import SUMS, wrong_shape
from xetl.ops.views import floats
from xetl.runtime.tensors import needs_derivative

_NAME = "linear_cross_entropy"

_SCORES = 1 << 22
"""How many stand in memory: 16 MB of f32."""

_LEAST = 64
"""Rows of a piece, so that products are fast."""


def _check(
    input: Operand,
    weight: Operand,
    target: Operand,
    bias: Operand | None,
    reduction: str,
) -> DType:
    """The dtype of the loss.

    Raises:
        LaunchError: operands or ``reduction`` do not fit.
    """
    check_reduction(_NAME, reduction, ("mean", "sum"))
    dtype = floats(_NAME, input, weight, bias)
    fits = input.ndim == weight.ndim == 2 and input.shape[1] == weight.shape[1]
    if not fits or (bias is not None and bias.shape != weight.shape[:1]):
        problem = f"`input` is {input.shape} and `linear_weight` {weight.shape}"
        raise wrong_shape(_NAME, problem, "pass (n, k), (classes, k) and (classes,)")
    scores = result((input.shape[0], weight.shape[0]), dtype, "input")
    check_classes(_NAME, scores, target, None, reduction)
    return dtype


def _operand(name: str, array: Numbers | None) -> Any:
    return array if array is None else Operand(name, array.shape, dtype_of(array, name))


def _compute(values: list[Any]) -> Any:
    """All results: loss, and the gradients by input, weight and bias, or nothing."""
    *given, ignore, reduction, smoothing, gradients, _ = values
    names = ("input", "linear_weight", "target", "linear_bias")
    x, weight, labels, row = (
        None if each is None else as_numpy(each, name)
        for each, name in zip(given, names)
    )
    one, two, three, four = map(_operand, names, (x, weight, labels, row))
    dtype = _check(one, two, three, four, reduction)
    assert x is not None
    assert weight is not None
    assert labels is not None
    shapes = [
        each.shape if gradients and each is not None else (0,)
        for each in (x, weight, row)
    ]
    made = [new_result(given[0], shape, dtype) for shape in ((1,), *shapes)]
    arrays = [as_numpy(each, "out") for each in made]
    counted = int(np.count_nonzero(labels != ignore)) if reduction == "mean" else 1
    how = (ignore, smoothing, gradients)
    loss = _by_pieces(x, weight, labels, row, arrays[1:], counted, how)
    arrays[0][0] = loss / counted if counted else np.nan
    return made[0].reshape(()), *made[1:]


def _by_pieces(
    x: Numbers,
    weight: Numbers,
    labels: Numbers,
    bias: Numbers | None,
    gradients: Sequence[Numbers],
    counted: int,
    how: tuple[int, float, bool],
) -> float:
    """The sum of the losses; fills the gradients by input, weight and bias.

    Args:
        x: (n, k).
        weight: (classes, k).
        labels: (n,).
        bias: (classes,) or None.
        gradients: three arrays, of no elements where they are not wanted.
        counted: what the sum is divided by.
        how: the class that does not count, smoothing, whether gradients are wanted.
    """
    ignore, smoothing, is_wanted = how
    m, classes, acc = len(x), len(weight), SUMS[dtype_of(x, "input")].numpy
    rows = max(_LEAST, _SCORES // classes // _LEAST * _LEAST)
    scores = np.empty((min(rows, m), classes), acc)
    by_x, by_weight, by_bias = gradients
    sums = by_weight if x.dtype == acc else np.empty(by_weight.shape, acc)
    slopes: Any = class_loss_backward
    biases, found = np.zeros(by_bias.shape, acc), 0.0
    one, total = np.ones(1, acc), np.full(1, counted, acc)
    for first in range(0, m, rows):
        part, label = x[first : first + rows], labels[first : first + rows]
        z = matmul(part, weight.T, scores[: len(part)], bias)
        loss: Any = class_loss(z, label, None, ignore, "sum", smoothing, False)
        found += float(loss[0])
        if not is_wanted:
            continue
        d = z if x.dtype == acc else np.empty(z.shape, x.dtype)
        slopes(one, z, label, None, total, ignore, smoothing, False, out=d)
        matmul(d, weight, by_x[first : first + rows])
        if first == 0:
            matmul(d.T, part, sums)
        else:
            addmm(sums, d.T, part, out=sums)
        if bias is not None:
            biases += np.asarray(sum(d, 0, dtype="f32" if acc == np.float32 else "f64"))
    if sums is not by_weight:
        by_weight[...] = sums
    by_bias[...] = biases
    return found


def _backward(context: Context, grad: Any, *_: Any) -> Mapping[str, Any]:
    names = ("input", "weight", "bias")
    return {
        name: found * grad
        for name, found in zip(names, context.saved)
        if context.needs(name)
    }


@function(
    results=4,
    backward=_backward,
    saves=["result1", "result2", "result3"],
    plain=_compute,
)
def fused_class_loss(
    input: ArrayLike,
    weight: ArrayLike,
    target: ArrayLike,
    bias: ArrayLike | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    gradients: bool,
) -> Any:
    """The loss, and the gradients by input, weight and bias if they are wanted."""
    dtype = _check(input, weight, target, bias, reduction)
    shapes = [
        each.shape if gradients and each is not None else (0,)
        for each in (input, weight, bias)
    ]
    found = (result((), dtype), *(result(shape, dtype) for shape in shapes))
    return Call(found, lambda made: [])


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Any:
    """``cross_entropy(input @ linear_weight.T + linear_bias, target)``, piece by piece.

    Only some rows of scores are in memory at a time, and gradients are computed with
    the loss.

    Args:
        input: (n, k); f16, bf16, f32 or f64, from any library as for `softmax`.
        linear_weight: (classes, k), dtype of ``input``.
        target: (n,), i64: the class of each row.
        linear_bias: (classes,), dtype of ``input``, or None.
        reduction: ``"mean"`` or ``"sum"``.
        ignore_index: the class of rows that do not count; None: -100.
        label_smoothing: see `cross_entropy`.

    Returns:
        The loss, of no dimensions and the dtype of ``input``.

    Raises:
        LaunchError: shapes (X0827), dtypes (X0828) or ``reduction`` (X0829) do not fit.
    """
    ignored = -100 if ignore_index is None else ignore_index
    operands = (input, linear_weight, target, linear_bias)
    gradients = any(needs_derivative(x) for x in operands)
    options = (ignored, reduction, float(label_smoothing), gradients)
    return fused_class_loss(*operands, *options)[0]
