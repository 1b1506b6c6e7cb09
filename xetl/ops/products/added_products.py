"""``xetl.ops.addmm`` and ``baddbmm``: products plus an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from xetl.ops.calling.calls import View
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    result,
    wrong_shape,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import floats, sums_of
from xetl.ops.products.matrix_product import backward_of_factors
from xetl.ops.products.product_steps import Seen, multiply


def _added(
    name: str, rank: int, x: Operand, a: Operand, b: Operand, beta: float, alpha: float
) -> Call:
    help_ = "pass (n, k), (k, m)" if rank == 2 else "pass (b, n, k), (b, k, m)"
    fits = a.ndim == b.ndim == rank and a.shape[-1] == b.shape[-2]
    if not fits or a.shape[:-2] != b.shape[:-2]:
        problem = f"cannot multiply {tuple(a.shape)} by {tuple(b.shape)}"
        raise wrong_shape(name, problem, help_)
    shape = (*a.shape[:-1], b.shape[-1])
    pairs = zip(reversed(x.shape), reversed(shape))
    if x.ndim > rank or not all(n in (1, m) for n, m in pairs):
        problem = f"`input` is {tuple(x.shape)}, but the product is {shape}"
        raise wrong_shape(name, problem, "pass what broadcasts to that shape")
    dtype = floats(name, a, b)
    if not x.dtype.is_float or x.dtype.bits > sums_of(a.dtype).bits:
        floats(name, x, a)

    spread: View = lambda a: np.broadcast_to(a, shape, subok=True)

    def steps(made: Any) -> Any:
        seen, scales = Seen(x, spread), (float(alpha), float(beta))
        # As in torch: with a beta of 0, a NaN in x has no effect.
        to = Seen(made[0])
        return [multiply(Seen(a), Seen(b), to, seen if beta else None, scales)]

    return Call((result(shape, dtype),), steps)


def _backward(*names: str) -> Any:
    by_factors = backward_of_factors(*names)

    def backward(context: Context, grad: Any) -> Mapping[str, Any]:
        beta, alpha = context["beta"], context["alpha"]
        found = by_factors(context, grad if alpha == 1 else grad * alpha)
        if context.needs("input"):
            by_input = grad.sum_to_size(context.shape_of("input"))
            by_input = by_input.to(context.dtype_of("input"))
            found["input"] = by_input if beta == 1 else by_input * beta
        return found

    return backward


@function(backward=_backward("mat1", "mat2"), saves=["mat1", "mat2"])
def addmm(
    input: ArrayLike,
    mat1: ArrayLike,
    mat2: ArrayLike,
    beta: float = 1.0,
    alpha: float = 1.0,
    *,
    out: ArrayLike = None,
) -> Any:
    """``beta * input + alpha * mat1 @ mat2``, rounded once.

    Args:
        input: (n, m), or a shape that broadcasts to it; any float dtype with no more
            bits than the sums. With a ``beta`` of 0 it is not read.
        mat1: (n, k); f16, bf16, f32 or f64, from any library as for `matmul`.
        mat2: (k, m), dtype of ``mat1``.
        beta: the factor of ``input``.
        alpha: the factor of the product.
        out: the array that gets the result: (n, m), of any float dtype.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return _added("addmm", 2, input, mat1, mat2, beta, alpha)


@function(backward=_backward("batch1", "batch2"), saves=["batch1", "batch2"])
def baddbmm(
    input: ArrayLike,
    batch1: ArrayLike,
    batch2: ArrayLike,
    beta: float = 1.0,
    alpha: float = 1.0,
    *,
    out: ArrayLike = None,
) -> Any:
    """``beta * input + alpha * batch1 @ batch2``: `addmm` of each matrix of a batch.

    Arguments not named here are as for `addmm`.

    Args:
        input: (b, n, m), or a shape that broadcasts to it.
        batch1: (b, n, k).
        batch2: (b, k, m).
        out: (b, n, m).
    """
    return _added("baddbmm", 3, input, batch1, batch2, beta, alpha)
