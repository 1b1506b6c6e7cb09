"""``xetl.ops.matmul``, and ``linear`` and ``bmm``, which are products as well.

The first call with some shapes, strides and dtypes makes a plan (`plans`). The next
call like it finds the plan, takes the same views of its arrays and launches.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ParamSpec, cast

import numpy as np

from xetl.errors import LaunchError, XetlError
from xetl.ops import activations
from xetl.ops.calling.calls import Plans, kind
from xetl.ops.calling.declarations import (
    ArrayLike,
    Call,
    Context,
    dtypes_of,
    result,
    result_shape,
    wrong_shape,
)
from xetl.ops.calling.declare import FUNCTIONS, Function, Outer, is_traced, traced
from xetl.ops.calling.operands import Numbers, as_numpy, new_result
from xetl.ops.calling.recorded import Completing, again_of
from xetl.ops.calling.repeated import Arguments, NativeFunction, Recording, remember
from xetl.ops.products.plans import ProductPlan, find_activation, make_plan
from xetl.ops.rows import reductions
from xetl.prepacked import Prepacked
from xetl.records import record
from xetl.runtime.arrays import locate
from xetl.runtime.call_site import at_caller, errors_at_caller
from xetl.runtime.overlap import overlap
from xetl.runtime.shortcuts import Shortcuts
from xetl.runtime.tensors import hide_from_dynamo, needs_derivative, note_written
from xetl.settings import config


@record()
class _Known:
    """An operand of an earlier call, and the packed copies that backends keep of it.

    It does not keep the array alive. The copies are freed with the array.
    """

    array: weakref.ref[Any]
    packed: Prepacked = field(default_factory=lambda: Prepacked(None))


_known: dict[int, _Known] = {}


def reused(operand: Any) -> Prepacked | None:
    """Return the prepacked form of a constant operand that was seen before, or None."""
    if type(operand) is not np.ndarray or operand.flags.writeable:
        return None
    if not config.reuse_constants:
        return None
    place = id(operand)
    known = _known.get(place)
    if known is not None and known.array() is operand:
        return known.packed.over(operand)
    _known[place] = _Known(weakref.ref(operand, lambda _: _known.pop(place, None)))
    return None


@errors_at_caller
def prepack(b: Any) -> Prepacked:
    """Prepare an operand of products that does not change: backends pack it once.

    Pass the result in place of ``b`` to `matmul`, `linear` and your own kernels.
    `prepack` itself packs nothing. The first launch of a kernel that packs ``b`` keeps
    the packed copy, and later launches read it; kernels with the same layout share it.
    Where nothing is packed (another backend, products of up to four rows, batches of b)
    the result acts as the array. Several threads may use it at once.

    Do not change the elements of ``b`` afterwards: some kernels would read the old
    ones, others the new ones. A copy lives as long as the kernel that reads it and the
    returned object.

    Args:
        b: an array that kernels take, of any shape and dtype.

    Returns:
        An object that stands for ``b``, with its ``shape``, ``ndim`` and ``dtype``.

    Raises:
        LaunchError: it is no array, or one that kernels cannot read (X0805).
    """
    if isinstance(b, Prepacked):
        return b
    locate(b, "b")
    return Prepacked(b)


hide_from_dynamo(prepack)


P = ParamSpec("P")

_plans = Plans[ProductPlan]()


def _rule(
    a: ArrayLike,
    b: ArrayLike,
    bias: ArrayLike | None = None,
    activation: str | None = None,
) -> Call:
    """Return the shape and dtype of a product, for torch."""
    shape = result_shape(a.shape, b.shape)
    return Call((result(shape, dtypes_of(a.dtype, b.dtype).result),), lambda made: [])


def _backward(context: Context, grad: Any) -> Mapping[str, Any]:
    """Return ``grad @ b.T`` and ``a.T @ grad``, summed over broadcast dimensions."""
    a, b = context.saved
    needs = context.needs
    rows = a[None] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    grad = grad.unsqueeze(-1) if b.ndim == 1 else grad
    grad = grad.unsqueeze(-2) if a.ndim == 1 else grad
    found: dict[str, Any] = {}
    if needs("a"):
        by_a = matmul(grad, columns.mT)
        is_whole = by_a.shape == a.shape
        found["a"] = by_a if is_whole else by_a.sum_to_size(rows.shape).reshape(a.shape)
    if needs("b") and columns.ndim == 2:
        left, right = rows.flatten(0, -2), grad.flatten(0, -2)
        found["b"] = matmul(left.mT, right).reshape(b.shape)
    elif needs("b"):
        by_b = matmul(rows.mT, grad)
        found["b"] = by_b.sum_to_size(columns.shape).reshape(b.shape)
    if needs("bias"):
        found["bias"] = grad.flatten(0, -2).sum(0).to(context.dtype_of("bias"))
    return found


class _Product(Function):
    """The product as an operator of torch; `compute_product` plans and launches it."""

    def _compute(
        self, values: list[Any], call: Arguments, outer: Outer | None = None
    ) -> Any:
        return compute_product(values, call, self.natives)


_product = _Product("matmul", _rule, 1, _backward, ("a", "b"))
FUNCTIONS["xetl::matmul"] = _product


def _in_order(product: Callable[..., Any]) -> Callable[..., Any]:
    """Return a product that takes the arguments of `_rule`, and ``out``."""

    def run(
        a: Any, b: Any, bias: Any = None, activation: Any = None, out: Any = None
    ) -> Any:
        return product(a, b, out, bias, activation)

    return run


def _public(arguments: Callable[P, Any]) -> Callable[P, Any]:
    """Return the public function; ``arguments`` gives those of `_rule`, and ``out``."""

    def complete(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        return cast("Any", arguments)(*args, **kwargs)

    def recorded_like(call: Arguments) -> Any:
        if complete(*call)[3] is not None:
            return None  # torch records the activation as a separate operator
        return again_of(_product, below, Completing(complete, complete), call)

    def called(*args: P.args, **kwargs: P.kwargs) -> Any:
        values = arguments(*args, **kwargs)
        a, b, bias, activation, out = values
        if activation is not None and any(map(needs_derivative, (a, b, bias))):
            find_activation(activation)
            function = getattr(activations, activation)
            return function(matmul(a, b, bias=bias), out=out)
        if is_traced():
            return traced(_product, values)
        try:
            return _product.call_values(values, (args, kwargs))
        except XetlError as error:
            raise at_caller(error) from None

    def computed(*args: P.args, **kwargs: P.kwargs) -> Any:
        values = arguments(*args, **kwargs)
        return compute_product(values, (args, kwargs), _product.natives)

    known = Shortcuts()
    below = NativeFunction(computed, known)
    public = NativeFunction(called, known, arguments, recorded_like)
    _product.public, _product.compute = _in_order(public), _in_order(below)
    _product.natives = [public, below]
    return cast("Callable[P, Any]", public)


@_public
def matmul(
    a: Any = None,
    b: Any = None,
    out: Any = None,
    bias: Any = None,
    activation: str | None = None,
    *,
    input: Any = None,
    other: Any = None,
) -> Any:
    """``activation(a @ b + bias)``, with the shapes of torch's matmul.

    The operands are read in place: transposed and strided ones are not copied. Leading
    dimensions are batches and broadcast. Sums are computed in f32 (f64 for f64, i32 for
    8-bit integers) and rounded once, at the end.

    Args:
        a: (..., m, k), or (k,); f16, bf16, f32, f64, i8 or u8. NumPy (bf16 by
            ml_dtypes), torch, memory of a device (USM), anything with ``__dlpack__``.
        b: (..., k, n), or (k,); dtype of ``a``, but i8 and u8 may be mixed. It may be
            the result of `prepack`.
        out: the array that gets the result, (..., m, n): any float dtype for float
            operands, any dtype of numbers for integers. It must not share memory with
            another argument.
        bias: (n,), or one element if ``b`` is a vector; it is added to each row. Its
            dtype has no more bits than the sums.
        activation: ``"relu"``, ``"gelu"`` (the exact one), ``"silu"``, ``"sigmoid"``,
            ``"tanh"`` or None.
        input: torch's name of ``a``.
        other: torch's name of ``b``.

    Returns:
        ``out``, or a new array of the library of ``a``: (..., m, n), without m if ``a``
        is a vector and without n if ``b`` is a vector. Its dtype is that of ``a``, or
        i32 for 8-bit integers.

    Raises:
        LaunchError: shapes (X0827) or dtypes (X0828) do not fit, the activation does
            not exist (X0829), ``out`` shares memory (X0807) or is read-only (X0806).

    >>> matmul(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))[0, 0].item()
    3.0
    """
    a, b = a if input is None else input, b if other is None else other
    return [a, b, bias, activation, out]


def compute_product(
    values: Sequence[Any],
    call: Arguments,
    natives: Sequence[NativeFunction],
    *,
    is_turned: bool = False,
) -> Any:
    """Return ``activation(a @ b + bias)``; torch does not record it.

    Args:
        values: a, b, bias, activation and out.
        call: the arguments of the function that was called.
        natives: the native functions that do the next calls like this one.
        is_turned: whether ``b`` is transposed first.

    Raises:
        LaunchError: as for `matmul`.
    """
    a, b, bias, activation, out = values
    packed = b if isinstance(b, Prepacked) else reused(b)
    left = as_numpy(a, "a")
    right = as_numpy(b if packed is None else packed.array, "b")
    if is_turned and right.ndim > 1:
        right = right.swapaxes(-1, -2)
    row = None if bias is None else as_numpy(bias, "bias")
    is_number = getattr(out, "ndim", None) == 0
    # Kernels need an array with at least one dimension.
    to = None if out is None else as_numpy(out.reshape(1) if is_number else out, "out")
    function = find_activation(activation)
    is_packed = packed is not None
    kinds = kind(left), kind(right), kind(to), kind(row)
    plan = _plans.find(
        (*kinds, function, is_number, is_packed),
        lambda: make_plan(left, right, to, row, activation, is_number, is_packed),
    )
    made = out
    if to is not None:
        _refuse_overlap(to, {"a": left, "b": right, "bias": row})
    else:
        made = new_result(a, plan.shape, plan.dtype)
        to = as_numpy(made if plan.shape else made.reshape(1), "out")
    # The path of repeated calls does not look for constant operands.
    launched = None if config.reuse_constants else plan.recorder.begin(call)
    between = plan.method.run(left, right, to, row, packed, a, launched)
    objects, arrays = [a, b, bias, made], [left, right, row, to]
    done = Recording(call, launched, objects, arrays, 1, between)
    remember(plan.recorder, done, natives)
    if out is not None:
        note_written((out,))
    return made


def _refuse_overlap(out: Numbers, others: Mapping[str, Numbers | None]) -> None:
    """Refuse an ``out`` that shares memory; a kernel would accept two equal views.

    Raises:
        LaunchError: ``out`` shares memory with another argument.
    """
    for name, other in others.items():
        if other is None or not np.may_share_memory(out, other):
            continue
        if overlap(locate(out), locate(other)):
            problem = f"`out` of `matmul` shares memory with `{name}`"
            help_ = "leave out `out=`, or pass an array of its own"
            raise LaunchError(problem, "X0807", help_)


class _Linear(Function):
    """`linear`, which is the operator of a product for torch."""

    def _compute(
        self, values: list[Any], call: Arguments, outer: Outer | None = None
    ) -> Any:
        x, weight, bias, out = values
        try:
            operands = [x, weight, bias, None, out]
            return compute_product(operands, call, self.natives, is_turned=True)
        except XetlError as error:
            raise _named(error, x, weight) from None

    def as_operator(self, values: list[Any]) -> tuple[Function, list[Any]]:
        x, weight, bias, out = values
        return _product, [x, _turned(weight), bias, None, out]


def _linear_backward(context: Context, grad: Any) -> Mapping[str, Any]:
    """Return ``grad @ weight``, ``grad.T @ input`` and the sum of all rows of grad."""
    x, weight = context.saved
    if weight.ndim == 1:
        grad = grad.unsqueeze(-1)
    found: dict[str, Any] = {}
    if context.needs("input"):
        found["input"] = matmul(grad, weight if weight.ndim == 2 else weight[None])
    if grad.ndim != 2:
        pair = (each[None] if each.ndim == 1 else each for each in (x, grad))
        x, grad = (each.flatten(0, -2) for each in pair)
    if context.needs("weight"):
        by_weight = matmul(grad.mT, x)
        found["weight"] = by_weight if weight.ndim == 2 else by_weight[0]
    if context.needs("bias"):
        found["bias"] = reductions.sum(grad, 0, dtype=context.dtype_of("bias"))
    return found


def _linear(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    out: ArrayLike = None,
) -> Any:
    """``input @ weight.T + bias``.

    Args:
        input: (..., k); dtypes and libraries as for `matmul`.
        weight: (n, k), or (k,).
        bias: (n,) or None.
        out: the array that gets the result: (..., n).

    Returns:
        ``out``, or a new array: (..., n), without n if ``weight`` is (k,).

    Raises:
        LaunchError: as for `matmul`.
    """


_linear.__name__ = _linear.__qualname__ = "linear"
linear = _Linear("linear", _linear, 1, _linear_backward, ("input", "weight")).public


def _named(error: XetlError, input: Any, weight: Any) -> XetlError:
    """Return an error of `matmul` with the names of `linear` and its arguments."""
    shapes = [tuple(getattr(x, "shape", ())) for x in (input, weight)]
    if error.code == "X0827" and shapes[0][-1:] != shapes[1][-1:]:
        problem = f"`input` is {shapes[0]}, but `weight` is {shapes[1]}"
        return wrong_shape("linear", problem, "pass (..., k), (n, k)")
    text = error.message.replace("`matmul`", "`linear`")
    for old, new in (
        ("a of dtype", "input of dtype"),
        ("b of dtype", "weight of dtype"),
    ):
        text = text.replace(old, new)
    return LaunchError(text, code=error.code, notes=error.notes, help=error.help)


class _Batches(Function):
    """`bmm`, which is the operator of a product for torch."""

    def _compute(
        self, values: list[Any], call: Arguments, outer: Outer | None = None
    ) -> Any:
        return compute_product(self.as_operator(values)[1], call, self.natives)

    def as_operator(self, values: list[Any]) -> tuple[Function, list[Any]]:
        x, y, out = values
        are_arrays = hasattr(x, "shape") and hasattr(y, "shape")  # else matmul refuses
        fits = are_arrays and len(x.shape) == len(y.shape) == 3
        if are_arrays and not (fits and x.shape[0] == y.shape[0]):
            problem = f"cannot multiply {tuple(x.shape)} by {tuple(y.shape)}"
            raise wrong_shape("bmm", problem, "pass (b, m, k) and (b, k, n)")
        return _product, [x, y, None, None, out]


def backward_of_factors(left: str, right: str) -> Callable[..., dict[str, Any]]:
    """Return the derivative of a product by its saved factors of these names."""

    def backward(context: Context, grad: Any) -> dict[str, Any]:
        a, b = context.saved
        found: dict[str, Any] = {}
        if context.needs(left):
            found[left] = matmul(grad, b.mT)
        if context.needs(right):
            found[right] = matmul(a.mT, grad)
        return found

    return backward


def _bmm(input: ArrayLike, mat2: ArrayLike, *, out: ArrayLike = None) -> Any:
    """The products of two batches: (b, m, k) by (b, k, n).

    Raises:
        LaunchError: they are no batches (X0827), or as for `matmul`.
    """


_bmm.__name__ = _bmm.__qualname__ = "bmm"
_bmm_backward = backward_of_factors("input", "mat2")
bmm = _Batches("bmm", _bmm, 1, _bmm_backward, ("input", "mat2")).public


def _turned(weight: Any) -> Any:
    """Return the transpose, by ``mT`` of the array's library if it has this."""
    if len(weight.shape) == 1:
        return weight
    if hasattr(weight, "mT"):
        return weight.mT
    return errors_at_caller(as_numpy)(weight, "weight").T
