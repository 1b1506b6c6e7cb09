"""``mse_loss`` and ``kl_div``: a function of each pair of elements, then its mean.

Source: torch.nn.functional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan, prod
from typing import Any, cast

from xetl import xetile
from xetl.ops.activations import BLOCK, each
from xetl.ops.calling.calls import itself
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Number,
    Operand,
    Step,
    result,
    result_like,
    temporary,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.options import plain, refuse_other
from xetl.ops.calling.views import elements, floats, same_shapes, sums_of
from xetl.ops.losses.class_losses import REDUCTIONS, check_reduction
from xetl.ops.matrices import matrix, place_of, put, take
from xetl.ops.rows.reductions import add_all
from xetl.runtime.call_site import errors_at_caller
from xetl.xetile import Array, Vector, constexpr


@xetile.function
def squared(a: Vector, b: Vector) -> Vector:
    """``(a - b) ** 2``."""
    return (a - b) * (a - b)


@xetile.function
def squared_slopes(grad: Vector, a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The gradients of a and of b."""
    d = 2.0 * grad * (a - b)
    return d, -d


@xetile.function
def divergence(a: Vector, b: Vector) -> Vector:
    """``b * (log(b) - a)``, and 0 where b is 0."""
    return xetile.where(b == 0, 0.0, b * (xetile.log(b) - a))


@xetile.function
def divergence_slopes(grad: Vector, a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The gradients of a and of b."""
    by_b = grad * (xetile.log(b) + 1.0 - a)
    return -grad * b, xetile.where(b == 0, 0.0, by_b)


@xetile.function
def log_divergence(a: Vector, b: Vector) -> Vector:
    """`divergence`, where b is the logarithm."""
    return xetile.exp(b) * (b - a)


@xetile.function
def log_divergence_slopes(grad: Vector, a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The gradients of a and of b."""
    e = grad * xetile.exp(b)
    return -e, e * (b + 1.0 - a)


_LOSSES = {
    "mse_loss": (squared, squared_slopes),
    "kl_div": (divergence, divergence_slopes),
    "kl_div of logarithms": (log_divergence, log_divergence_slopes),
}
"""Functions of two elements, and their derivatives, multiplied by the gradient."""


@xetile.kernel
def slopes_of_pairs(
    grad: Array,
    x: Array,
    y: Array,
    by_x: Array | None,
    by_y: Array | None,
    factor: float,
    F: constexpr,
    ACC: constexpr,
    TILE: constexpr,
    STEP: constexpr,
) -> None:
    """``by_x, by_y = F(grad * factor, x, y)``."""
    place, number = place_of(TILE, STEP), xetile.program_id(2)
    g = take(matrix(grad, number), place, TILE, ACC) * factor
    a = take(matrix(x, number), place, TILE, ACC)
    b = take(matrix(y, number), place, TILE, ACC)
    one, two = F(g, a, b)
    if by_x is not None:
        put(one, matrix(by_x, number), place)
    if by_y is not None:
        put(two, matrix(by_y, number), place)


@function(results=2)
def pointwise_loss_backward(
    grad: ArrayLike,
    input: ArrayLike,
    target: ArrayLike,
    which: str,
    by_target: bool,
    factor: Number,
) -> Any:
    """The gradient of the input and, if it is wanted, that of the target.

    ``grad`` is one number for the sum of all losses times ``factor``, or one for each.
    """
    f, acc = _LOSSES[which][1], sums_of(input.dtype)
    none = result((0,), target.dtype)
    other = result_like(target, target.dtype) if by_target else none

    def steps(made: Any) -> Any:
        results = [(made[0], made[1] if by_target else None)]
        if by_target and made[0].order != made[1].order:
            # One kernel would keep a tile in memory to store it the other way around.
            results = [(made[0], None), (None, made[1])]
        given = [(grad, input, target, *pair) for pair in results]
        return [elements(slopes_of_pairs, some, (f, acc), BLOCK) for some in given]

    return Call((result_like(input, input.dtype), other), steps)


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (x, target), which = context.saved, context["which"]
    by_target = context.needs("target")
    factor = _factor(context["reduction"], x.shape)
    factor = 1.0 if factor is None else factor
    found: Any = pointwise_loss_backward(grad, x, target, which, by_target, factor)
    return {"input": found[0], "target": found[1] if by_target else None}


def _factor(reduction: str, shape: Sequence[int]) -> float | None:
    """Return the factor of the sum of all losses. Return None if there is no sum."""
    if reduction == "none":
        return None
    counts = {"mean": prod(shape), "batchmean": prod(shape[:1]), "sum": 1}
    return 1.0 / counts[reduction] if counts[reduction] else nan


@xetile.kernel
def sums_of_pairs(
    x: Array,
    y: Array,
    out: Array,
    F: constexpr,
    ACC: constexpr,
    TILE: constexpr,
    STEP: constexpr,
) -> None:
    """``out = sum of F(x, y)`` over each tile; F(0, 0) must be 0."""
    i, j, number = xetile.program_id(1), xetile.program_id(0), xetile.program_id(2)
    place = place_of(TILE, STEP)
    a, b = matrix(x, number), matrix(y, number)
    out[number, i, j] = F(take(a, place, TILE, ACC), take(b, place, TILE, ACC)).sum()


@function(backward=_backward, saves=["input", "target"])
def pointwise_loss(
    input: ArrayLike, target: ArrayLike, which: str, reduction: str
) -> Any:
    """The loss of each pair of elements, or their sum or mean."""
    name = which.partition(" ")[0]
    same_shapes(name, input, target)
    dtype = floats(name, input, target)
    f, acc = _LOSSES[which][0], sums_of(dtype)
    factor = _factor(reduction, input.shape)
    if factor is None:
        operands = (input, target, None)
        return Call(
            (result_like(input, dtype),),
            lambda made: [each((*operands, *made, None), f, acc)],
        )

    def steps(made: Sequence[Operand]) -> Sequence[Step]:
        one = elements(sums_of_pairs, (input, target), (f, acc), BLOCK)
        launch = one.launch
        sums = temporary((*launch.loops, *launch.grid[::-1]), acc)
        launch = replace(launch, views=[*launch.views, itself])
        return [Step(launch, (input, target, sums)), *add_all(sums, made[0], factor)]

    return Call((result((), dtype),), steps)


def mse_loss(
    input: Any,
    target: Any,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    weight: None = None,
    *,
    out: Any = None,
) -> Any:
    """``(input - target) ** 2``, averaged over all elements.

    Args:
        input: any shape; f16, bf16, f32 or f64.
        target: shape and dtype of ``input``.
        size_average: None; ``reduction`` replaces it and ``reduce``.
        reduce: see ``size_average``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: None.
        out: the array that gets the result.

    Raises:
        LaunchError: shapes (X0827), dtypes (X0828) or options (X0829) do not fit.
    """
    _check("mse_loss", reduction, REDUCTIONS, size_average, reduce)
    refuse_other("mse_loss", "weight", weight, None)
    return cast("Any", pointwise_loss)(input, target, "mse_loss", reduction, out=out)


def kl_div(
    input: Any,
    target: Any,
    size_average: None = None,
    reduce: None = None,
    reduction: str = "mean",
    log_target: bool = False,
    *,
    out: Any = None,
) -> Any:
    """``target * (log(target) - input)``, averaged over all elements.

    Args:
        input: any shape, logarithms of probabilities; f16, bf16, f32 or f64.
        target: probabilities, shape and dtype of ``input``.
        size_average: None; ``reduction`` replaces it and ``reduce``.
        reduce: see ``size_average``.
        reduction: ``"mean"``, ``"batchmean"`` (the sum divided by the first extent),
            ``"sum"`` or ``"none"``.
        log_target: whether ``target`` has logarithms too.
        out: the array that gets the result.

    Raises:
        LaunchError: shapes (X0827), dtypes (X0828) or options (X0829) do not fit.
    """
    _check("kl_div", reduction, (*REDUCTIONS, "batchmean"), size_average, reduce)
    is_log = plain("log_target", "bool", log_target)
    which = "kl_div of logarithms" if is_log else "kl_div"
    return cast("Any", pointwise_loss)(input, target, which, reduction, out=out)


@errors_at_caller
def _check(
    name: str, reduction: str, known: Sequence[str], size_average: Any, reduce: Any
) -> None:
    check_reduction(name, reduction, known)
    plain("size_average", "None", size_average)
    plain("reduce", "None", reduce)
