"""What functions of `xetl.ops` other than products check, and how they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from xetl.errors import LaunchError, XetlError
from xetl.language.dtypes import DType, bf16, f16, f32, f64
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


def common_dtype_of(function: str, dtypes: Mapping[str, DType]) -> DType:
    """The dtype that all operands of a function, named by ``dtypes``, have.

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
