"""Steps of optimisers, in place: one pass over all that a step reads and writes.

Source: torch.optim; Loshchilov and Hutter, "Decoupled Weight Decay Regularization",
arXiv 1711.05101; Sutskever et al., ICML 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xetl import xetile
from xetl.ops.calling.declarations import ArrayLike, Call, Number
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import elements, floats, same_shapes, sums_of
from xetl.ops.matrices import matrix, put, take
from xetl.xetile import Array, constexpr

_LANES = 128


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
    LANES: constexpr,
    TILE: constexpr,
) -> None:
    """One step of AdamW; see `adamw` for the formula.

    Args:
        param: (..., n); so are gradient and means.
        correction1: ``1 - beta1 ** step``.
        correction2: ``sqrt(1 - beta2 ** step)``.
        LANES: columns of a tile, few enough for registers.
        TILE: one row, and columns of a program.
    """
    number, row = xetile.program_id(2), xetile.program_id(1)
    params, grads = matrix(param, number), matrix(grad, number)
    means, squares = matrix(exp_avg, number), matrix(exp_avg_sq, number)
    size, scale = lr / correction1, 1.0 / correction2
    first = xetile.program_id(0) * TILE[1]
    for column in range(first, min(first + TILE[1], params.shape[1]), LANES):
        place, shape = [row, column], (1, LANES)
        p, g = take(params, place, shape, ACC), take(grads, place, shape, ACC)
        m = beta1 * take(means, place, shape, ACC) + (1.0 - beta1) * g
        v = beta2 * take(squares, place, shape, ACC) + (1.0 - beta2) * g * g
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
    LANES: constexpr,
    TILE: constexpr,
) -> None:
    """One step of gradient descent; see `sgd` for the formula."""
    number, row = xetile.program_id(2), xetile.program_id(1)
    params, grads = matrix(param, number), matrix(grad, number)
    first = xetile.program_id(0) * TILE[1]
    for column in range(first, min(first + TILE[1], params.shape[1]), LANES):
        place, shape = [row, column], (1, LANES)
        p = take(params, place, shape, ACC)
        g = take(grads, place, shape, ACC) + weight_decay * p
        if buffer is not None:
            kept = matrix(buffer, number)
            b = momentum * take(kept, place, shape, ACC) + (1.0 - dampening) * g
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
        return [elements(kernel, arrays, (*constants, acc, _LANES))]

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
        grads: for each its gradient, of its shape; None: it is left alone.
        exp_avgs: for each m, zeros before the first step, of any float dtype. They are
            changed.
        exp_avg_sqs: the same of v.
        step: t, which is 1 at first.
        lr: the learning rate; it and the next ones are those of the formula.
        maximize: whether steps go up.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    corrections = 1 - beta1**step, (1 - beta2**step) ** 0.5
    signed = (-lr, -weight_decay) if maximize else (lr, weight_decay)
    numbers = (signed[0], beta1, beta2, signed[1], eps, *corrections)
    for param, grad, m, v in zip(params, grads, exp_avgs, exp_avg_sqs, strict=True):
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
    * b)``, without buffers ``p - lr * g``. What is not named here is as of `adamw`.

    Args:
        momentum_buffers: for each b, of any float dtype, zeros before the first step
            (which torch makes with a dampening of 0). They are changed.
    """
    buffers = [None] * len(params) if momentum_buffers is None else momentum_buffers
    signed = (-lr, -weight_decay) if maximize else (lr, weight_decay)
    for param, grad, buffer in zip(params, grads, buffers, strict=True):
        if grad is not None:
            numbers = (signed[0], momentum, dampening, signed[1])
            sgd_step(param, grad, buffer, *numbers, nesterov)
