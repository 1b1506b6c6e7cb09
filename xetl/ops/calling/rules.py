"""What functions of `xetl.ops` accept: shapes as torch's, dtypes that go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xetl.errors import LaunchError
from xetl.language.dtypes import DType, bf16, f16, f32, f64, i8, i32, u8

SUMS = {f16: f32, bf16: f32, f32: f32, f64: f64}
"""Which dtype computes for which."""


def common_dtype_of(function: str, dtypes: Mapping[str, DType]) -> DType:
    """The dtype that all operands of a function, named by ``dtypes``, have.

    Raises:
        LaunchError: they differ, or are no floats.
    """
    first = next(iter(dtypes.values()))
    if first not in SUMS or any(dtype != first for dtype in dtypes.values()):
        given = ", ".join(f"{name} of {dtype}" for name, dtype in dtypes.items())
        help_ = f"convert to one of {', '.join(map(str, SUMS))}, the same for all"
        raise LaunchError(f"`{function}` was given {given}", "X0828", help_)
    return first


def wrong_shape(function: str, problem: str, help_: str) -> LaunchError:
    """The error for a shape that does not fit."""
    return LaunchError(f"`{function}`: {problem}", code="X0827", help=help_)


def out_and_gradient(function: str) -> LaunchError:
    """The error for a place to write to where torch is to differentiate."""
    problem = f"`{function}` was given `out=`, and an argument requires a gradient"
    help_ = "leave out `out=`, or call it inside of `with torch.no_grad():`"
    return LaunchError(problem, "X0838", help_)


def with_out(function: str, found: Any, out: Any) -> Any:
    """A result that torch's operator has computed, in ``out`` if there is one.

    Raises:
        LaunchError: it is no tensor of that shape, or of a dtype that loses fractions.
    """
    if out is None:
        return found
    if not hasattr(out, "copy_"):
        problem = f"`out` is a {type(out).__name__}, beside tensors"
        raise LaunchError(problem, code="X0805", help="pass a tensor")
    if out.shape != found.shape:
        shapes = f"{tuple(out.shape)}, but the result is {tuple(found.shape)}"
        raise wrong_shape(function, f"`out` is {shapes}", "pass a tensor of that shape")
    if found.dtype.is_floating_point != out.dtype.is_floating_point:
        problem = f"`{function}` cannot give its result as {out.dtype}"
        raise LaunchError(problem, "X0828", f"pass an `out=` of {found.dtype}")
    return out.copy_(found)


Shape: TypeAlias = tuple[int, ...]

_SUMS = {f16: f32, bf16: f32, f32: f32, f64: f64, i8: i32, u8: i32}
_BYTES = (i8, u8)


class Dtypes(NamedTuple):
    """The dtype sums are made in, and that of a new result."""

    sums: DType
    result: DType


def result_shape(a: Shape, b: Shape) -> Shape:
    """The shape of ``a @ b``; a LaunchError if they cannot be multiplied."""
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    depth = b[max(len(b) - 2, 0)]
    if a[-1] != depth:
        raise _wrong_shapes(a, b, f"a has {a[-1]} columns, but b has {depth} rows")
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        reason = f"the batches {a[:-2]} and {b[:-2]} do not broadcast"
        raise _wrong_shapes(a, b, reason) from None
    return (*batch, *rows, *columns)


def _wrong_shapes(a: Shape, b: Shape, reason: str) -> LaunchError:
    problem = f"`matmul` cannot multiply {a} by {b}"
    help_ = "a is (..., m, k) or (k,), b is (..., k, n) or (k,)"
    return LaunchError(problem, code="X0827", notes=[reason], help=help_)


def dtypes_of(a: DType, b: DType) -> Dtypes:
    """How to multiply them; a LaunchError if they cannot be multiplied."""
    sums = _SUMS.get(a)
    if sums is None or b not in _SUMS:
        help_ = f"the dtypes it multiplies are {', '.join(map(str, _SUMS))}"
        raise LaunchError(f"`matmul` cannot multiply {a} by {b}", "X0828", help_)
    if a != b and not (a in _BYTES and b in _BYTES):
        problem = f"`matmul` was given a of dtype {a} and b of dtype {b}"
        help_ = "convert one of them: both need the same dtype"
        raise LaunchError(problem, "X0828", help_)
    return Dtypes(sums, i32 if a in _BYTES else a)


def check_out(
    shape: Shape, dtype: DType, wanted: Shape, sums: DType, activation: str | None
) -> None:
    """Refuse a place of another shape, or of a dtype that loses the fraction."""
    if shape != wanted:
        raise LaunchError(
            f"`out` of `matmul` is {shape}, but the result is {wanted}", code="X0827"
        )
    fractions = sums.is_float or activation not in (None, "relu")
    if dtype.is_bool or (fractions and not dtype.is_float):
        what = f"with activation={activation!r}" if not sums.is_float else f"in {sums}"
        problem = f"`matmul` computes {what}, but the result would be {dtype}"
        raise LaunchError(problem, "X0828", "pass an `out=` of a floating-point dtype")


def check_bias(shape: Shape, dtype: DType, columns: int, sums: DType) -> None:
    """Refuse a row of another length, or of a dtype that the sums cannot hold."""
    if shape != (columns,):
        raise LaunchError(
            f"`bias` of `matmul` is {shape}, but a row of the result is ({columns},)",
            code="X0827",
            help="for a bias of another shape, add it to the result",
        )
    is_held = dtype.bits < sums.bits or dtype == sums
    if dtype.is_bool or dtype.is_float != sums.is_float or not is_held:
        problem = f"`bias` of `matmul` is {dtype}, which is added in {sums}"
        raise LaunchError(problem, "X0828", f"convert it to {sums}")
