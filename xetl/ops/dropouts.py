"""``xetl.ops.dropout``: the derivative draws the mask again from the seed.

Source: Srivastava et al., JMLR 15 (2014); the numbers are Philox4x32's.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.ops import cdiv
from xetl.ops.activations import row_major
from xetl.ops.calling.calls import Launch, flat_view, itself
from xetl.ops.calling.declarations import SUMS, ArrayLike, Call, Context, Step, result
from xetl.ops.calling.declare import function, is_traced
from xetl.ops.calling.options import plain
from xetl.ops.calling.views import floats
from xetl.ops.matrices import put, take
from xetl.runtime.call_site import at_caller
from xetl.xetile import Array, constexpr

_LANES, _BLOCKS = 256, 4
"""The number of counters of one draw (each gives four numbers), and the number of draws
of a program."""

_SEEDS = 1 << 62


@xetile.kernel
def dropout_elements(
    x: Array,
    seed: Array,
    out: Array,
    p: float,
    ACC: constexpr,
    LANES: constexpr,
    BLOCKS: constexpr,
) -> None:
    """``out = x / (1 - p)``, or 0 with probability p; arrays are (1, n), seed is (1,).

    The seed and the index of an element alone decide whether it is kept: the element
    ``4 * LANES * i + LANES * j + k`` gets word j of the counter ``LANES * i + k``.
    """
    factor = 1.0 / (1.0 - p)
    for piece in range(0, BLOCKS):
        block = xetile.program_id(0) * BLOCKS + piece
        places = xetile.arange(LANES) + block * LANES
        words = xetile.randint4x(seed[0], places)
        for j in xetile.static_range(4):
            first = (4 * block + j) * LANES
            v = take(x, [0, first], (1, LANES), ACC)
            # The upper 31 bits, as a number in [0, 1).
            number = (words[j] >> 1).to(xetile.i32).to(xetile.f32) * 2.0**-31
            kept = xetile.where(number[None, :] >= p, v * factor, 0.0)
            put(kept, out, [0, first])


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    (seed,) = context.saved
    return {"input": seeded_dropout(grad, seed, context["p"])}


@function(backward=_backward, saves=["seed"])
def seeded_dropout(
    input: ArrayLike, seed: ArrayLike, p: float, *, out: ArrayLike = None
) -> Any:
    """`dropout` with the seed as an array of one i64. It is its own derivative."""
    dtype = floats("dropout", input)
    acc = SUMS[dtype]

    def steps(made: Any) -> Any:
        # Elements are counted in row-major order: no mask depends on strides.
        moves, source = row_major(input)
        grid = (cdiv(prod(input.shape), 4 * _LANES * _BLOCKS), 1, 1)
        views = (flat_view, itself, flat_view)
        launch = Launch(dropout_elements, views, (), grid, (acc, _LANES, _BLOCKS))
        return [*moves, Step(launch, (source, seed, *made), (p,))]

    return Call((result(input.shape, dtype),), steps)


def dropout(
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    *,
    seed: Any = None,
    out: Any = None,
) -> Any:
    """``input / (1 - p)``, but each element is 0 with probability p.

    The derivative draws the same numbers again, so no mask is kept in memory.

    Args:
        input: any shape; f16, bf16, f32 or f64. NumPy (bf16 by ml_dtypes), torch,
            memory of a device (USM), anything with ``__dlpack__``.
        p: the probability, from 0 to 1.
        training: if False, the input is returned unchanged.
        inplace: whether the result is written to ``input``.
        seed: an array of one i64: equal seeds keep the same elements. None: the library
            of ``input`` draws one (`torch.manual_seed`, `np.random.seed`).
        out: the array that gets the result: shape of ``input``, any float dtype.

    Returns:
        ``out``, or a new array of the library and the dtype of ``input``.

    Raises:
        LaunchError: ``p`` is no probability (X0829), or dtypes (X0828) or shapes
            (X0827) do not fit.
    """
    p, training = plain("p", "float", p), plain("training", "bool", training)
    if not 0 <= p <= 1:
        problem = f"`dropout` was given a probability of {p}"
        raise at_caller(LaunchError(problem, "X0829", "`p` is 0 to 1"))
    out = input if inplace else out
    if not training or p == 0:
        return input if out is None else _copied(input, out)
    if p == 1:
        found = input * 0
        return found if out is None else _copied(found, out)
    seed = new_seed(input) if seed is None else seed
    return seeded_dropout(input, seed, p, out=out)


def new_seed(like: Any) -> Any:
    """Return an array of one i64, drawn by the library of ``like``."""
    if is_traced() or type(like).__module__.partition(".")[0] == "torch":
        from xetl.ops.calling import torch_calls  # noqa: PLC0415 - only with torch

        return torch_calls.new_seed(like, _SEEDS)
    return np.random.randint(_SEEDS, size=1)


def _copied(found: Any, out: Any) -> Any:
    if out is not found:
        out[...] = found
    return out
