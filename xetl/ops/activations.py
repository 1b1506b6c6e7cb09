"""Activations and gated products, element by element.

Source: torch.nn.functional; Shazeer, "GLU Variants Improve Transformer",
arXiv 2002.05202.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xetl import xetile
from xetl.errors import LaunchError
from xetl.language.dtypes import DType
from xetl.language.ops import cdiv
from xetl.ops.calling.calls import Launch, View, flat_view
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    Operand,
    Step,
    result_like,
    temporary,
)
from xetl.ops.calling.declare import function
from xetl.ops.calling.views import array_of, elements, floats, same_shapes, sums_of
from xetl.ops.matrices import matrix, place_of, put, take
from xetl.ops.products.product import ACTIVATIONS
from xetl.ops.products.product import gelu as exact_gelu
from xetl.ops.products.product import silu as silu_of
from xetl.xetile import Array, Vector, constexpr

_SQRT_2_PI = 0.7978845608028654
_SQRT_HALF = 0.7071067811865476
_DENSITY = 0.3989422804014327

BLOCK = 64
"""[measured] Rows and columns of a tile if the arrays differ in the order of dimensions
in memory: 16 KB of f32 each, so all stay in L1. With 16 x 64, relu takes 1.5 times as
long."""
_ZEROS = 4096
"""Elements of a program that stores zeros."""


@xetile.kernel
def each_element(
    x: Array,
    y: Array | None,
    z: Array | None,
    out: Array,
    other: Array | None,
    F: constexpr,
    ACC: constexpr,
    REPEATED: constexpr,
    TILE: constexpr,
    STEP: constexpr,
) -> None:
    """``out = F(x)``, ``out = F(x, y)``, or ``out, other = F(x, y, z)``.

    Of an array that is `REPEATED`, all columns are the same, and one is computed.
    """
    place, number = place_of(TILE, STEP), xetile.program_id(2)

    def load(array: Array, IS_ONE: constexpr) -> Vector:
        shape = (TILE[0], 1) if IS_ONE else TILE
        return take(matrix(array, number), place, shape, ACC)

    def store(value: Vector, array: Array) -> None:
        if value.shape != TILE:
            value = xetile.tile_broadcast(value.to(array.dtype), [1], TILE)
        put(value, matrix(array, number), place)

    if y is None:
        store(F(load(x, REPEATED[0])), out)
    elif z is None:
        store(F(load(x, REPEATED[0]), load(y, REPEATED[1])), out)
    else:
        a, b, c = load(x, REPEATED[0]), load(y, REPEATED[1]), load(z, REPEATED[2])
        one, two = F(a, b, c)
        store(one, out)
        if other is not None:
            store(two, other)


@xetile.function
def tanh_gelu(v: Vector) -> Vector:
    """The approximation of gelu with tanh."""
    return 0.5 * v * (1.0 + xetile.tanh(_SQRT_2_PI * (v + 0.044715 * v * v * v)))


@xetile.function
def swish_product(a: Vector, b: Vector) -> Vector:
    """``silu(a) * b``."""
    return silu_of(a) * b


@xetile.function
def gelu_product(a: Vector, b: Vector) -> Vector:
    """``gelu(a) * b``."""
    return exact_gelu(a) * b


@xetile.function
def relu_slope(grad: Vector, v: Vector) -> Vector:
    """The slope is 0 for v <= 0, and 1 otherwise, also for NaN."""
    return xetile.where(v <= 0, 0.0, grad)


@xetile.function
def sigmoid_slope(grad: Vector, y: Vector) -> Vector:
    """The slope is ``y * (1 - y)``, where y is the result."""
    return grad * y * (1.0 - y)


@xetile.function
def tanh_slope(grad: Vector, y: Vector) -> Vector:
    """The slope is ``1 - y * y``, where y is the result."""
    return grad * (1.0 - y * y)


@xetile.function
def silu_slope(grad: Vector, v: Vector) -> Vector:
    """The slope is ``s + v * s * (1 - s)`` with ``s = sigmoid(v)``."""
    s = xetile.sigmoid(v)
    return grad * (s + v * s * (1.0 - s))


@xetile.function
def gelu_slope(grad: Vector, v: Vector) -> Vector:
    """The slope is ``cdf(v) + v * density(v)`` of the normal distribution."""
    below = 0.5 * (1.0 + xetile.erf(_SQRT_HALF * v))
    return grad * (below + v * _DENSITY * xetile.exp(-0.5 * v * v))


@xetile.function
def tanh_gelu_slope(grad: Vector, v: Vector) -> Vector:
    """The slope of `tanh_gelu`."""
    t = xetile.tanh(_SQRT_2_PI * (v + 0.044715 * v * v * v))
    inner = _SQRT_2_PI * (1.0 + 0.134145 * v * v)
    return grad * (0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * inner)


@xetile.function
def swish_product_slopes(grad: Vector, a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The gradients of a and of b."""
    return silu_slope(grad * b, a), grad * silu_of(a)


@xetile.function
def gelu_product_slopes(grad: Vector, a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """The gradients of a and of b."""
    return gelu_slope(grad * b, a), grad * exact_gelu(a)


_SLOPES = {
    "relu": relu_slope,
    "gelu": gelu_slope,
    "gelu_tanh": tanh_gelu_slope,
    "silu": silu_slope,
    "sigmoid": sigmoid_slope,
    "tanh": tanh_slope,
    "swiglu": swish_product_slopes,
    "geglu": gelu_product_slopes,
}
"""Derivatives, multiplied by the gradient of the result."""


@xetile.function
def as_it_is(v: Vector) -> Vector:
    """The identity."""
    return v


@xetile.kernel
def clear(out: Array, WIDTH: constexpr) -> None:
    """``out = 0``; out is one row."""
    to = xetile.init_tile(out, [0, xetile.program_id(0) * WIDTH], (1, WIDTH))
    xetile.store_tile(xetile.zeros((1, WIDTH), out.dtype), to)


def cleared(to: Operand) -> Step:
    """Return the launch that stores zeros."""
    grid = (cdiv(prod(to.shape), _ZEROS), 1, 1)
    order = to.order or range(array_of(to).ndim)
    flat: View = lambda a: flat_view(a.transpose(order))
    return Step(Launch(clear, (flat,), (), grid, (_ZEROS,)), (to,))


def copied(source: Operand, to: Operand, acc: DType | None = None) -> Step:
    """Return the launch that copies elements, converted to ``acc`` in between."""
    if acc is None:
        acc = sums_of(to.dtype) if to.dtype.is_float else to.dtype
    return each((source, None, None, to, None), as_it_is, acc)


def row_major(x: Operand) -> tuple[list[Step], Operand]:
    """Return x, or the copy if its elements do not lie one after the other."""
    if array_of(x).flags.c_contiguous:
        return [], x
    found = temporary(x.shape, x.dtype)
    return [copied(x, found)], found


def each(operands: Sequence[Operand | None], f: object, acc: DType) -> Step:
    """Return the launch of `each_element` with these operands."""
    return elements(each_element, operands, (f, acc), BLOCK, repeats=True)


def _each(name: str, f: object, *operands: Operand) -> Call:
    same_shapes(name, *operands)
    dtype = floats(name, *operands)
    inputs = (*operands, None, None)[:3]
    acc = sums_of(dtype)
    return Call(
        (result_like(operands[0], dtype),),
        lambda made: [each((*inputs, *made, None), f, acc)],
    )


@function()
def activation_backward(grad: ArrayLike, input: ArrayLike, which: str) -> Any:
    """The gradient of the input; ``input`` is the result for sigmoid and tanh."""
    return _each(which, _SLOPES[which], grad, input)


@function(results=2)
def gated_backward(
    grad: ArrayLike, input: ArrayLike, other: ArrayLike, which: str
) -> Any:
    """The gradients of both factors."""
    same_shapes(which, grad, input, other)
    dtype = floats(which, grad, input, other)
    f, acc = _SLOPES[which], sums_of(dtype)
    operands = (grad, input, other)
    return Call(
        (result_like(input, dtype), result_like(input, dtype)),
        lambda made: [each((*operands, *made), f, acc)],
    )


def _slope(which: str) -> Any:
    def backward(context: Context, grad: Any) -> Mapping[str, Any]:
        return {"input": activation_backward(grad, context.saved[0], which)}

    return backward


@function(backward=_slope("relu"), saves=["result"], only={"inplace": bool})
def relu(input: ArrayLike, *, out: ArrayLike = None) -> Any:
    """``max(input, 0)``, element by element; NaN stays.

    Args:
        input: any shape; f16, bf16, f32 or f64. NumPy (bf16 by ml_dtypes), torch,
            memory of a device (USM), anything with ``__dlpack__``.
        out: the array that gets the result: shape of ``input``, any float dtype. It
            may be ``input`` itself (as with ``inplace=True``), but must not overlap it
            in any other way.

    Returns:
        ``out``, or a new array of the library and the dtype of ``input``.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit.
    """
    return _each("relu", ACTIVATIONS["relu"], input)


def _gelu_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    which = "gelu" if context["approximate"] == "none" else "gelu_tanh"
    return {"input": activation_backward(grad, context.saved[0], which)}


@function(backward=_gelu_backward, saves=["input"])
def gelu(input: ArrayLike, approximate: str = "none", *, out: ArrayLike = None) -> Any:
    """``0.5 * x * (1 + erf(x / sqrt(2)))``; shapes, dtypes and errors as `relu`.

    Args:
        input: any shape.
        approximate: ``"none"``, or ``"tanh"`` for
            ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.
        out: see `relu`.
    """
    if approximate not in ("none", "tanh"):
        problem = f"`gelu` knows no approximation {approximate!r}"
        raise LaunchError(problem, "X0829", '`approximate` is "none" or "tanh"')
    return _each("gelu", exact_gelu if approximate == "none" else tanh_gelu, input)


@function(backward=_slope("silu"), saves=["input"], only={"inplace": bool})
def silu(input: ArrayLike, *, out: ArrayLike = None) -> Any:
    """``x * sigmoid(x)``; shapes, dtypes and errors as `relu`."""
    return _each("silu", ACTIVATIONS["silu"], input)


@function(backward=_slope("sigmoid"), saves=["result"])
def sigmoid(input: ArrayLike, *, out: ArrayLike = None) -> Any:
    """``1 / (1 + exp(-x))``; shapes, dtypes and errors as `relu`."""
    return _each("sigmoid", ACTIVATIONS["sigmoid"], input)


@function(backward=_slope("tanh"), saves=["result"])
def tanh(input: ArrayLike, *, out: ArrayLike = None) -> Any:
    """The hyperbolic tangent; shapes, dtypes and errors as `relu`."""
    return _each("tanh", ACTIVATIONS["tanh"], input)


def _gated(which: str) -> Any:
    def backward(context: Context, grad: Any) -> Mapping[str, Any]:
        a, b = context.saved
        by_input, by_other = gated_backward(grad, a, b, which)
        return {"input": by_input, "other": by_other}

    return backward


@function(backward=_gated("swiglu"), saves=["input", "other"])
def swiglu(input: ArrayLike, other: ArrayLike, *, out: ArrayLike = None) -> Any:
    """``silu(input) * other``; shapes, dtypes and errors as `relu`.

    Args:
        input: the gate, of any shape.
        other: an array with the shape and dtype of ``input``. If one array ``x`` holds
            both halves, pass ``*x.chunk(2, -1)``.
        out: see `relu`.
    """
    return _each("swiglu", swish_product, input, other)


@function(backward=_gated("geglu"), saves=["input", "other"])
def geglu(input: ArrayLike, other: ArrayLike, *, out: ArrayLike = None) -> Any:
    """``gelu(input) * other`` with the exact gelu; arguments as for `swiglu`."""
    return _each("geglu", gelu_product, input, other)
