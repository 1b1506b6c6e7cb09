"""What functions of `xetl.ops` other than products check, and how they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from xetl.errors import LaunchError, XetlError
from xetl.language.dtypes import DType, bf16, f16, f32, f64
from xetl.ops.operands import Numbers, dtype_of
from xetl.ops.rules import Shape
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import hide_from_dynamo, settle_dynamo

P = ParamSpec("P")
R = TypeVar("R")

SUMS = {f16: f32, bf16: f32, f32: f32, f64: f64}
"""Which dtype computes for which."""


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Let errors of a function point at the line that calls it."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        settle_dynamo()
        try:
            return function(*args, **kwargs)
        except XetlError as error:
            raise at_caller(error) from None

    hide_from_dynamo(called, function)
    return called


def common_dtype(function: str, operands: Mapping[str, Numbers]) -> DType:
    """The dtype that all operands of a function have.

    Raises:
        LaunchError: they differ, or are no floats.
    """
    return common_dtype_of(
        function, {name: dtype_of(x, name) for name, x in operands.items()}
    )


def common_dtype_of(function: str, dtypes: Mapping[str, DType]) -> DType:
    """The same for dtypes.

    Raises:
        LaunchError: they differ, or are no floats.
    """
    first = next(iter(dtypes.values()))
    if first not in SUMS or any(dtype != first for dtype in dtypes.values()):
        given = ", ".join(f"{name} of {dtype}" for name, dtype in dtypes.items())
        raise LaunchError(
            f"`{function}` was given {given}",
            code="X0828",
            help=f"convert to one of {', '.join(map(str, SUMS))}, the same for all",
        )
    return first


def wrong_shape(function: str, problem: str, help_: str) -> LaunchError:
    """The error for a shape that does not fit."""
    return LaunchError(f"`{function}`: {problem}", code="X0827", help=help_)


def checked_place(
    function: str, to: Numbers | None, shape: Shape, dtype: DType
) -> Numbers:
    """The place for the result, or an array as the new one will be.

    Args:
        function: what an error calls it.
        to: the place; None: a new array will be.
        shape: of the result.
        dtype: of a new array.

    Raises:
        LaunchError: the place has another shape, or no float dtype.
    """
    if to is None:
        return np.empty(shape, dtype.numpy)
    if to.shape != shape:
        problem = f"`out` is {to.shape}, but the result is {shape}"
        raise wrong_shape(function, problem, "pass an array of that shape")
    if dtype_of(to, "out") not in SUMS:
        raise LaunchError(
            f"`{function}` cannot give its result as {dtype_of(to, 'out')}",
            code="X0828",
            help=f"the dtypes of `out` are {', '.join(map(str, SUMS))}",
        )
    return to
