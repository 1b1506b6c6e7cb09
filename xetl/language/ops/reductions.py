"""Reductions and scans of vectors; most are methods of `Vector` as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.operation import operation

if TYPE_CHECKING:
    from xetl.language.values import Scalar, Vector

__all__ = [
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "max",
    "min",
    "prod",
    "sum",
]


@operation
def sum(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Sum along ``axis`` (all if None); f16/bf16 add in f32, integers wrap."""
    ...


@operation
def prod(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Product along ``axis`` (all if None); the dtype stays."""
    ...


@operation
def max(v: Vector | Scalar, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Largest along ``axis`` (all if None), NaN if there is one; or of two scalars."""
    ...


@operation
def min(v: Vector | Scalar, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Smallest along ``axis`` (all if None), NaN if there is one; or of two scalars."""
    ...


@operation
def argmax(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Index of the first largest element along ``axis``, i32."""
    ...


@operation
def argmin(v: Vector, axis: int | None = None, keepdims: bool = False) -> Vector:
    """Index of the first smallest element along ``axis``, i32."""
    ...


@operation
def cumsum(v: Vector, axis: int | None = None) -> Vector:
    """Sums up to and with each element along ``axis``; the dtype stays."""
    ...


@operation
def cumprod(v: Vector, axis: int | None = None) -> Vector:
    """Products up to and with each element along ``axis``; the dtype stays."""
    ...
