"""Steps of optimisers, in place: each array is read and written once.

Source: torch.optim; Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
arXiv 1711.05101; Sutskever et al., ICML 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError, a_kind
from xetl.ops.calling.declarations import ArrayLike, Call, Number, wrong_shape
from xetl.ops.calling.declare import function
from xetl.ops.calling.options import plain
from xetl.ops.calling.views import elements, floats, same_shapes, sums_of
from xetl.ops.matrices import matrix, place_of, put, take
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.xetile import Array, constexpr


@xetile.kernel
def adamw_elements(
    param: Array,
    grad: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    eps: float,
    correction1: float,
    correction2: float,
    ACC: constexpr,
    TILE: constexpr,
    STEP: constexpr,
) -> None:
    """One step of AdamW; see `adamw` for the formula.

    Args:
        param: (..., n); the gradient and the means have the same shape.
        correction1: ``1 - beta1 ** step``.
        correction2: ``sqrt(1 - beta2 ** step)``.
        TILE: rows and columns of a program.
        STEP: see `place_of`.
    """
    number, place = xetile.program_id(2), place_of(TILE, STEP)
    params, grads = matrix(param, number), matrix(grad, number)
    means, squares = matrix(exp_avg, number), matrix(exp_avg_sq, number)
    size, scale = lr / correction1, 1.0 / correction2
    p, g = take(params, place, TILE, ACC), take(grads, place, TILE, ACC)
    m = beta1 * take(means, place, TILE, ACC) + (1.0 - beta1) * g
    v = beta2 * take(squares, place, TILE, ACC) + (1.0 - beta2) * g * g
    put(m, means, place)
    put(v, squares, place)
    p = p * (1.0 - lr * weight_decay) - size * m / (xetile.sqrt(v) * scale + eps)
    put(p, params, place)


@xetile.kernel
def sgd_elements(
    param: Array,
    grad: Array,
    buffer: Array | None,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    NESTEROV: constexpr,
    ACC: constexpr,
    TILE: constexpr,
    STEP: constexpr,
) -> None:
    """One step of gradient descent; see `sgd` for the formula."""
    number, place = xetile.program_id(2), place_of(TILE, STEP)
    params, grads = matrix(param, number), matrix(grad, number)
    p = take(params, place, TILE, ACC)
    g = take(grads, place, TILE, ACC) + weight_decay * p
    if buffer is not None:
        kept = matrix(buffer, number)
        b = momentum * take(kept, place, TILE, ACC) + (1.0 - dampening) * g
        put(b, kept, place)
        g = g + momentum * b if NESTEROV else b
    put(p - lr * g, params, place)


def _in_place(name: str, kernel: Any, constants: tuple[Any, ...], *arrays: Any) -> Call:
    there = [each for each in arrays if each is not None]
    same_shapes(name, *there)
    for each in there:
        floats(name, each)
    acc = sums_of(*(each.dtype for each in there))

    def steps(made: Any) -> Any:
        return [elements(kernel, arrays, (*constants, acc))]

    return Call((), steps)


@function(results=0, writes=["param", "exp_avg", "exp_avg_sq"])
def adamw_step(
    param: ArrayLike,
    grad: ArrayLike,
    exp_avg: ArrayLike,
    exp_avg_sq: ArrayLike,
    lr: Number,
    beta1: Number,
    beta2: Number,
    weight_decay: Number,
    eps: Number,
    correction1: Number,
    correction2: Number,
) -> Any:
    """A step for one parameter; see `adamw` and `adamw_elements`."""
    return _in_place("adamw", adamw_elements, (), param, grad, exp_avg, exp_avg_sq)


@function(results=0, writes=["param", "momentum_buffer"])
def sgd_step(
    param: ArrayLike,
    grad: ArrayLike,
    momentum_buffer: ArrayLike | None,
    lr: Number,
    momentum: Number,
    dampening: Number,
    weight_decay: Number,
    nesterov: bool,
) -> Any:
    """A step for one parameter; see `sgd`."""
    arrays = (param, grad, momentum_buffer)
    return _in_place("sgd", sgd_elements, (nesterov,), *arrays)


def _each(name: str, lists: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the arrays of each parameter; check the lists before any step."""
    try:
        return list(zip(*lists.values(), strict=True))
    except (TypeError, ValueError):
        for which, given in lists.items():
            _check_list(name, which, given, lists["params"])
        raise


@errors_at_caller
def _check_list(name: str, which: str, given: Any, params: Any) -> None:
    if not hasattr(given, "__len__"):
        problem = f"`{which}` is no list but {a_kind(given)}"
        raise wrong_shape(name, problem, "pass a list of arrays")
    if len(given) != len(params):
        problem = f"{len(params)} `params`, but {len(given)} `{which}`"
        raise wrong_shape(name, problem, "pass one for each parameter")


def adamw(
    params: Sequence[Any],
    grads: Sequence[Any],
    exp_avgs: Sequence[Any],
    exp_avg_sqs: Sequence[Any],
    step: int,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    weight_decay: float = 1e-2,
    eps: float = 1e-8,
    maximize: bool = False,
) -> None:
    """A step of AdamW, in place: what `torch.optim.AdamW` does.

    With gradient g, means m and v and step t it is ``m = beta1 * m + (1 - beta1) * g``,
    ``v = beta2 * v + (1 - beta2) * g * g``, ``p = p * (1 - lr * weight_decay)`` and
    ``p = p - lr * m / (1 - beta1**t) / (sqrt(v / (1 - beta2**t)) + eps)``. Computed in
    f32 (f64 for f64); with tensors call it inside of `torch.no_grad()`.

    Args:
        params: arrays of any shapes; f16, bf16, f32 or f64, from any library as for
            `softmax`. They are changed.
        grads: the gradient of each parameter, of its shape. None: that parameter is
            not changed.
        exp_avgs: m of each parameter, zeros before the first step, of any float dtype.
            They are changed.
        exp_avg_sqs: v of each parameter, as m.
        step: t, counted from 1.
        lr: the learning rate; it and the next ones are those of the formula.
        maximize: whether a step maximises, along the gradient.

    Raises:
        LaunchError: numbers of arrays or shapes (X0827), dtypes (X0828) or the step
            (X0829) do not fit.
    """
    lists = {"params": params, "grads": grads, "exp_avgs": exp_avgs}
    found = _each("adamw", {**lists, "exp_avg_sqs": exp_avg_sqs})
    step = plain("step", "int", step)
    if step < 1:
        problem = f"`adamw` was given step {step}"
        raise at_caller(LaunchError(problem, "X0829", "count steps from 1"))
    corrections = 1 - beta1**step, (1 - beta2**step) ** 0.5
    signed = (-lr, -weight_decay) if maximize else (lr, weight_decay)
    numbers = (signed[0], beta1, beta2, signed[1], eps, *corrections)
    for param, grad, m, v in found:
        if grad is not None:
            adamw_step(param, grad, m, v, *numbers)


def sgd(
    params: Sequence[Any],
    grads: Sequence[Any],
    momentum_buffers: Sequence[Any] | None = None,
    *,
    lr: float = 1e-3,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
) -> None:
    """A step of gradient descent, in place: what `torch.optim.SGD` does.

    With gradient g and buffer b it is ``g = g + weight_decay * p``, ``b = momentum * b
    + (1 - dampening) * g`` and ``p = p - lr * b``, by Nesterov ``p - lr * (g + momentum
    * b)``, without buffers ``p - lr * g``. Arguments not named here are as for `adamw`.

    Args:
        momentum_buffers: b of each parameter, of any float dtype, zeros before the
            first step (which torch makes with a dampening of 0). They are changed.
    """
    lists = {"params": params, "grads": grads}
    if momentum_buffers is not None:
        lists["momentum_buffers"] = momentum_buffers
    found = _each("sgd", lists)
    signed = (-lr, -weight_decay) if maximize else (lr, weight_decay)
    numbers = (signed[0], momentum, dampening, signed[1])
    for param, grad, *buffer in found:
        if grad is not None:
            state = buffer[0] if buffer else None
            sgd_step(param, grad, state, *numbers, nesterov)
