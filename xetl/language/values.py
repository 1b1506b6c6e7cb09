"""The classes of values in a kernel, for type checkers and editors.

These classes are never instantiated: in a kernel their names stand for values of the
front end, and on the host an operation raises before it could return one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

from xetl.language.dtypes import DType
from xetl.language.ops import reductions

Scalar: TypeAlias = int | float
"""A number: 64-bit integer, f64 or condition."""

Index: TypeAlias = "int | slice | Vector"
"""An index along a dim of an array."""


class Array:
    """An array argument of a kernel, or a view of one: any shape, any strides."""

    shape: tuple[int, ...]
    dtype: DType
    ndim: int
    T: Array

    def stride(self, dim: int) -> int:
        """Return the stride along ``dim``, in elements."""
        ...

    def reshape(self, *shape: int | Sequence[int]) -> Array:
        """A view with other extents, of which one may be -1; they need no constants.

        The elements must lie row by row, which is checked when the kernel runs as
        `xetile.device_assert` does: the view is empty where they do not.
        """
        ...

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Any:
        """The view at an index; outside, an empty one.  All dims: a scalar.

        With vectors of integers among the indices, one for each dim: a vector of the
        elements there, 0 outside.
        """
        ...

    def __setitem__(self, index: Any, value: Operand) -> None:
        """Store a number at an index for each dim, or a vector at vectors of them."""
        ...


class Tile:
    """The position of a tile in its base array; it holds no data."""

    shape: tuple[int, ...]
    dtype: DType
    ndim: int


class Vector:
    """The values of a tile, in registers: rank 1 or 2, static shape."""

    shape: tuple[int, ...]
    dtype: DType
    ndim: int
    T: Vector

    def to(self, dtype: DType, *, bitcast: bool = False) -> Vector:
        """Convert each element.

        Args:
            dtype: integers wrap, floats round to nearest, float to integer truncates
                (NaN and out of range are unspecified), to i1 is ``!= 0``.
            bitcast: keep the bits of each element; the widths must be equal.
        """
        ...

    def reshape(self, *shape: int | Sequence[int]) -> Vector:
        """The same elements, row by row, in another shape; one extent may be -1."""
        ...

    sum = reductions.sum
    prod = reductions.prod
    max = reductions.max
    min = reductions.min
    any = reductions.any
    all = reductions.all
    argmax = reductions.argmax
    argmin = reductions.argmin
    cumsum = reductions.cumsum
    cumprod = reductions.cumprod

    @overload
    def __getitem__(self, index: slice | tuple[slice | None, ...] | None) -> Vector: ...
    @overload
    def __getitem__(self, index: int | tuple[int | slice | None, ...]) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        """``v[:, None]`` and ``v[None, :]`` of a rank-1 vector: a column, a row.

        ``v[a:b]`` with constants is a part. Of an index, also one of the run, along
        each dim: a number, 0 outside.
        """
        ...

    def __add__(self, other: Operand) -> Vector: ...
    def __radd__(self, other: Operand) -> Vector: ...
    def __sub__(self, other: Operand) -> Vector: ...
    def __rsub__(self, other: Operand) -> Vector: ...
    def __mul__(self, other: Operand) -> Vector: ...
    def __rmul__(self, other: Operand) -> Vector: ...
    def __truediv__(self, other: Operand) -> Vector: ...
    def __rtruediv__(self, other: Operand) -> Vector: ...
    def __floordiv__(self, other: Operand) -> Vector: ...
    def __rfloordiv__(self, other: Operand) -> Vector: ...
    def __mod__(self, other: Operand) -> Vector: ...
    def __rmod__(self, other: Operand) -> Vector: ...
    def __pow__(self, other: Operand) -> Vector: ...
    def __rpow__(self, other: Operand) -> Vector: ...
    def __and__(self, other: Operand) -> Vector: ...
    def __rand__(self, other: Operand) -> Vector: ...
    def __or__(self, other: Operand) -> Vector: ...
    def __ror__(self, other: Operand) -> Vector: ...
    def __xor__(self, other: Operand) -> Vector: ...
    def __rxor__(self, other: Operand) -> Vector: ...
    def __lshift__(self, other: Operand) -> Vector: ...
    def __rlshift__(self, other: Operand) -> Vector: ...
    def __rshift__(self, other: Operand) -> Vector: ...
    def __rrshift__(self, other: Operand) -> Vector: ...
    def __matmul__(self, other: Vector) -> Vector: ...
    def __lt__(self, other: Operand) -> Vector: ...
    def __le__(self, other: Operand) -> Vector: ...
    def __gt__(self, other: Operand) -> Vector: ...
    def __ge__(self, other: Operand) -> Vector: ...
    def __eq__(self, other: object) -> Vector: ...  # type: ignore[override]  # elementwise, as NumPy
    def __ne__(self, other: object) -> Vector: ...  # type: ignore[override]  # elementwise, as NumPy
    def __neg__(self) -> Vector: ...
    def __pos__(self) -> Vector: ...
    def __invert__(self) -> Vector: ...
    def __abs__(self) -> Vector: ...


Operand: TypeAlias = Vector | Scalar
"""An operand of an operator."""
