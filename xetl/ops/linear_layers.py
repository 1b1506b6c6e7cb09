"""``linear`` and ``bmm``: products by torch's other names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, cast

from xetl.errors import LaunchError, XetlError
from xetl.ops.functions import wrong_shape
from xetl.ops.matrix_product import compute_product, is_product_recorded, matmul
from xetl.ops.native_function import NativeFunction
from xetl.ops.operands import as_numpy
from xetl.prepacked import Prepacked
from xetl.runtime.call_site import at_caller
from xetl.runtime.shortcuts import Shortcuts

P = ParamSpec("P")


def _public(arguments: Callable[P, Any]) -> Callable[P, Any]:
    """`linear`, whose arguments another function gives, in the order of a product's."""

    def called(*args: P.args, **kwargs: P.kwargs) -> Any:
        values = arguments(*args, **kwargs)
        x, weight, bias, _, out = values
        try:
            if isinstance(weight, Prepacked) or is_product_recorded(values):
                return matmul(x, _turned(weight), out, bias)
            return compute_product(values, (args, kwargs), [public], is_turned=True)
        except XetlError as error:
            raise at_caller(_named(error, x, weight)) from None

    public = NativeFunction(called, Shortcuts(), arguments)
    return cast("Callable[P, Any]", public)


@_public
def linear(input: Any, weight: Any, bias: Any = None, *, out: Any = None) -> Any:
    """``input @ weight.T + bias``.

    Args:
        input: (..., k); dtypes and libraries as of `matmul`.
        weight: (n, k), or (k,).
        bias: (n,) or None.
        out: (..., n), where the result goes.

    Returns:
        ``out``, or a new array: (..., n), without n where ``weight`` is (k,).

    Raises:
        LaunchError: as of `matmul`.
    """
    return [input, weight, bias, None, out]


def _named(error: XetlError, input: Any, weight: Any) -> XetlError:
    """The error of `matmul` with the names of these arguments."""
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


def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """The products of two batches: (b, m, k) by (b, k, n).

    Raises:
        LaunchError: they are no batches (X0827); else as of `matmul`.
    """
    if _rank(input) != 3 or _rank(mat2) != 3 or input.shape[0] != mat2.shape[0]:
        problem = f"cannot multiply {tuple(input.shape)} by {tuple(mat2.shape)}"
        raise at_caller(wrong_shape("bmm", problem, "pass (b, m, k) and (b, k, n)"))
    return matmul(input, mat2, out)


def _rank(x: Any) -> int:
    return len(x.shape)


def _turned(weight: Any) -> Any:
    """The transpose, of a library's own array where it has one."""
    if _rank(weight) == 1:
        return weight
    if hasattr(weight, "mT"):
        return weight.mT
    try:
        return as_numpy(weight, "weight").T
    except XetlError as error:
        raise at_caller(error) from None
