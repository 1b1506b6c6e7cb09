"""Operations that move elements within vectors.

Most are composed of other operations and use shared memory and two barriers: all
subgroups must reach them, and the kernel must not be written at subgroup level.
Exceptions are `interleave`, `split` and slices, and `cat` and `flip` on a GPU if there
is only one subgroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.dtypes import i8
from xetl.language.operation import composite, operation
from xetl.language.ops.program import barrier, static_assert
from xetl.language.ops.tiles import init_tile, load_gather, load_tile, slm, store_tile
from xetl.language.ops.vectors import arange, reshape

if TYPE_CHECKING:
    from xetl.language.values import Array, Vector

__all__ = ["cat", "flip", "gather", "interleave", "join", "split"]


@composite
def as_matrix(v: Vector) -> Vector:
    """A vector as a matrix: one of rank 1 is a row."""
    return v if v.ndim == 2 else v[None, :]


@composite
def dim_of(v: Vector, axis: int, what: str) -> int:
    """The dim of a matrix that is ``axis`` of a vector; ``what`` begins the error."""
    static_assert(-v.ndim <= axis < v.ndim, f"{what} {v.ndim}: axis {axis}")
    return axis % v.ndim + 2 - v.ndim


@composite
def storable(v: Vector) -> Vector:
    """Masks as bytes: memory has no single bits."""
    return v.to(i8) if v.dtype.bits == 1 else v


@composite
def memory_for(v: Vector) -> Array:
    """Shared memory for the elements of a matrix."""
    return slm(v.shape, v.dtype if v.dtype.bits > 1 else i8)


@composite
def exchange(memory: Array, v: Vector, place: Vector, dim: int) -> Vector:
    """The elements of a matrix at ``place`` along ``dim``, by way of ``memory``."""
    return exchanged(memory, v, (place,), dim)[0]


@composite
def exchanged(
    memory: Array, v: Vector, places: tuple[Vector, ...], dim: int
) -> tuple[Vector, ...]:
    """The elements of a matrix at each of ``places`` along ``dim``.

    ``memory`` is as large as the matrix, or larger; what is outside of it gives 0.
    """
    store_tile(storable(v), init_tile(memory, [0, 0], v.shape))
    barrier()
    other = along(v.shape[1 - dim], 1 - dim)
    found: tuple[Vector, ...] = ()
    for place in places:
        indices = [place, other] if dim == 0 else [other, place]
        found = (*found, load_gather(init_tile(memory, indices)).to(v.dtype))
    barrier()
    return found


@operation
def slice_matrix(v: Vector, start: int, stop: int, step: int, dim: int) -> Vector:
    """Return elements ``start``, ``start + step``, ... below ``stop`` along a dim."""
    ...


@composite
def gather(v: Vector, index: Vector, axis: int) -> Vector:
    """The elements of ``v`` at ``index`` along ``axis``, as NumPy's take_along_axis.

    Args:
        v: rank 1 or 2.
        index: integers, of ``v``'s rank and of its extents in the other dim; what is
            outside 0 .. n-1 gives 0.
        axis: known when compiling.
    """
    dim = dim_of(v, axis, "`gather` of rank")
    static_assert(v.ndim == index.ndim, "`gather`: value and index differ in rank")
    integers = f"`gather`: indices are integers, not {index.dtype}"
    static_assert(index.dtype.is_integer, integers)
    wide = as_matrix(v)
    place = as_matrix(index) | 0  # a value, which wraps as offsets do not
    static_assert(
        wide.shape[1 - dim] == place.shape[1 - dim],
        f"`gather` along {axis}: the other extents of value and index differ",
    )
    return reshape(exchange(memory_for(wide), wide, place, dim), index.shape)


@composite
def flip(v: Vector, axis: int = 0) -> Vector:
    """``v`` with its elements along ``axis`` in reverse order."""
    dim = dim_of(v, axis, "`flip` of rank")
    wide = as_matrix(v)
    backwards = wide.shape[dim] - 1 - along(wide.shape[dim], dim)
    return reshape(exchange(memory_for(wide), wide, backwards, dim), v.shape)


@composite
def along(extent: int, dim: int) -> Vector:
    """The numbers of a matrix's elements along ``dim``: a column or a row."""
    line = arange(extent)
    return line[:, None] if dim == 0 else line[None, :]


@composite
def cat(a: Vector, b: Vector, axis: int = 0) -> Vector:
    """``b`` behind ``a`` along ``axis``; the other extents and the dtypes are equal."""
    static_assert(a.ndim == b.ndim, "`cat`: the ranks differ")
    static_assert(a.dtype == b.dtype, f"`cat` of {a.dtype} and {b.dtype}")
    dim = dim_of(a, axis, "`cat` of rank")
    one, other = storable(as_matrix(a)), storable(as_matrix(b))
    static_assert(
        one.shape[1 - dim] == other.shape[1 - dim],
        f"`cat` along {axis}: the other extents differ",
    )
    rows, columns = one.shape
    if dim == 0:
        shape, place = (rows + other.shape[0], columns), (rows, 0)
    else:
        shape, place = (rows, columns + other.shape[1]), (0, columns)
    memory = slm(shape, one.dtype)
    store_tile(one, init_tile(memory, [0, 0], one.shape))
    store_tile(other, init_tile(memory, [place[0], place[1]], other.shape))
    barrier()
    both = load_tile(init_tile(memory, [0, 0], shape)).to(a.dtype)
    barrier()
    return both if a.ndim == 2 else reshape(both, shape[1])


@operation
def interleave_rows(a: Vector, b: Vector) -> Vector:
    """`interleave` of two matrices of one shape and dtype."""
    ...


@composite
def interleave(a: Vector, b: Vector) -> Vector:
    """The elements of ``a`` and ``b`` in turn along the last axis: a0 b0 a1 b1 ..."""
    static_assert(a.shape == b.shape, "`interleave`: the shapes differ")
    static_assert(a.dtype == b.dtype, f"`interleave` of {a.dtype} and {b.dtype}")
    both = interleave_rows(as_matrix(a), as_matrix(b))
    return both if a.ndim == 2 else reshape(both, 2 * a.shape[0])


@composite
def join(a: Vector, b: Vector) -> Vector:
    """Two vectors of rank 1 as the columns of a matrix of shape (n, 2)."""
    static_assert(
        a.ndim == 1, "`join` takes vectors of rank 1: a rank 3 does not exist"
    )
    static_assert(a.shape == b.shape, "`join`: the shapes differ")
    return reshape(interleave(a, b), (a.shape[0], 2))


@composite
def split(v: Vector) -> tuple[Vector, Vector]:
    """The two columns of a matrix of shape (n, 2), each of rank 1."""
    static_assert(
        v.ndim == 2 and v.shape[1] == 2,
        f"`split` takes a shape (n, 2), not {v.shape}: `reshape(v, (n, 2))` before it",
    )
    n = v.shape[0]
    row = reshape(v, (1, 2 * n))
    one, other = slice_matrix(row, 0, 2 * n, 2, 1), slice_matrix(row, 1, 2 * n, 2, 1)
    return reshape(one, n), reshape(other, n)
