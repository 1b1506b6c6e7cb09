"""Reductions and scans of vectors; most are methods of `Vector` as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xetl.language.dtypes import i1, i8, i16, i32, i64
from xetl.language.operation import composite, operation
from xetl.language.ops.elementwise import where
from xetl.language.ops.moves import flip
from xetl.language.ops.vectors import arange, reshape, tile_reduce, tile_scan

if TYPE_CHECKING:
    from xetl.language.dtypes import DType
    from xetl.language.values import Scalar, Vector

__all__: list[str] = ["all", "any", "argmax", "argmin", "cummax", "cummin", "cumprod"]
__all__ += ["cumsum", "max", "min", "prod", "sum"]


@operation
def sum(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Sum along ``axis`` (all if None); f16/bf16 are added in f32, integers wrap."""
    ...


@operation
def prod(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Product along ``axis`` (all if None); the dtype stays."""
    ...


@operation
def max(
    v: Vector | Scalar,
    axis: int | None = None,
    keepdims: bool = False,
    return_indices: bool = False,
    propagate_nan: bool = True,
) -> Vector:
    """Largest along ``axis`` (all if None), NaN if there is one; or of two scalars.

    With ``return_indices`` return a tuple: the largest, and the result of `argmax`.
    Without ``propagate_nan`` NaN is ignored unless all elements are NaN: a third of the
    work on GPUs. Use this if NaN shows in the final result anyway (softmax).
    """
    ...


@operation
def min(
    v: Vector | Scalar,
    axis: int | None = None,
    keepdims: bool = False,
    return_indices: bool = False,
    propagate_nan: bool = True,
) -> Vector:
    """Smallest along ``axis`` (all if None), NaN if there is one; or of two scalars.

    With ``return_indices`` return a tuple: the smallest, and the result of `argmin`.
    Without ``propagate_nan`` NaN is ignored unless all elements are NaN: a third of the
    work on GPUs. Use this if NaN shows in the final result anyway (softmax).
    """
    ...


@operation
def any(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Whether an element along ``axis`` (of all if None) is true, or not 0; i1."""
    ...


@operation
def all(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Whether all elements along ``axis`` (all if None) are true, or not 0; i1."""
    ...


@operation
def argmax(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Index of the first largest element along ``axis``, i32."""
    ...


@operation
def argmin(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Index of the first smallest element along ``axis``, i32."""
    ...


@composite
def _scan(kind: str, v: Vector, axis: Any, reverse: bool) -> Vector:
    """Combine along an axis from either end; without an axis, row by row."""
    line, dim = v, axis
    if axis is None:
        columns = v.shape[-1]
        line, dim = reshape(v, v.shape[0] * columns if v.ndim == 2 else columns), 0
    if reverse:
        return flip(tile_scan(kind, flip(line, dim), dim), dim)
    return tile_scan(kind, line, dim)


@composite
def cumsum(v: Vector, axis: int | None = None, reverse: bool = False) -> Vector:
    """Return the sum of the elements up to each one along ``axis``, in the same dtype.

    Without an axis all elements count, row by row. ``reverse``: begin at the end. Of a
    mask: how many are set, as i32.
    """
    return _scan("add", v.to(i32) if v.dtype == i1 else v, axis, reverse)


@composite
def cumprod(v: Vector, axis: int | None = None, reverse: bool = False) -> Vector:
    """Return the product of the elements up to each one; arguments as of `cumsum`."""
    return _scan("mul", v, axis, reverse)


@composite
def cummax(v: Vector, axis: int | None = None, reverse: bool = False) -> Vector:
    """Return the maximum of the elements up to each one; arguments as of `cumsum`."""
    return _scan("max", v, axis, reverse)


@composite
def cummin(v: Vector, axis: int | None = None, reverse: bool = False) -> Vector:
    """Return the minimum of the elements up to each one; arguments as of `cumsum`."""
    return _scan("min", v, axis, reverse)


@composite
def element(v: Vector, place: Scalar, dim: int = 0) -> Any:
    """Of rank 1 ``v[place]``, of a matrix the row or column there; 0 outside."""
    inside = place >= 0 and place < v.shape[dim]  # i32, as `arange` is, cannot tell
    numbers, is_matrix = arange(v.shape[dim]), v.ndim == 2
    if is_matrix:
        numbers = numbers[:, None] if dim == 0 else numbers[None, :]
    chosen = numbers == (place if inside else -1)
    if v.dtype.bits == 1:
        return any(v & chosen, dim, keepdims=is_matrix)
    bits = v.to(integers(v.dtype.bits), bitcast=True)  # no float has a least one
    found = tile_reduce("or", where(chosen, bits, 0), dim).to(v.dtype, bitcast=True)
    return found if is_matrix else max(found)


@composite
def integers(bits: int) -> DType:
    """The signed integers of so many bits."""
    return i8 if bits == 8 else i16 if bits == 16 else i32 if bits == 32 else i64
