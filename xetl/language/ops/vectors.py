"""Vectors: making them, multiplying, reducing and reshaping them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xetl.language.dtypes import DType, f32
from xetl.language.maps import SgMap, WgMap, XeMap
from xetl.language.operation import operation

if TYPE_CHECKING:
    from xetl.language.values import Scalar, Vector

__all__: list[str] = ["arange", "full", "reshape", "tile_broadcast", "tile_conv_layout"]
__all__ += ["tile_mma", "tile_pack", "tile_reduce", "tile_scan", "tile_transpose"]
__all__ += ["tile_unpack", "zeros"]

Map = WgMap | SgMap | XeMap


@operation
def zeros(
    shape: int | Sequence[int], dtype: DType = f32, *, wg_map: Map | None = None
) -> Vector:
    """Return a vector of zeros; ``shape`` is static, of rank 1 or 2."""
    ...


@operation
def full(
    shape: int | Sequence[int],
    value: Scalar,
    dtype: DType = f32,
    *,
    wg_map: Map | None = None,
) -> Vector:
    """Return a vector whose elements are all ``value``, converted to ``dtype``."""
    ...


@operation
def arange(start: int, stop: int | None = None, *, wg_map: Map | None = None) -> Vector:
    """Return the i32 numbers 0 .. start-1, or start .. stop-1, as a rank-1 vector.

    Args:
        start: known when compiling, like ``stop``.
        stop: the end, which is not included.
        wg_map: the map of the result.
    """
    ...


@operation
def reshape(
    v: Vector, shape: int | Sequence[int], *, wg_map: Map | None = None
) -> Vector:
    """Return the elements of ``v``, row-major, in another shape of rank 1 or 2.

    Raises:
        TileShapeError: the numbers of elements differ.
    """
    ...


@operation
def tile_mma(
    a: Vector,
    b: Vector,
    c: Vector | None = None,
    *,
    wg_map: Map | None = None,
    precision: str | None = None,
) -> Vector:
    """Multiply two matrices and add: ``a @ b + c``.

    Args:
        a: (m, k); f8e4m3, f8e5m2, f16, bf16, f32, f64, i8 or u8.
        b: (k, n), dtype as ``a`` (i8 and u8 may mix, and so may f8e4m3 and f8e5m2).
        c: (m, n) of the accumulator's dtype: f32, i32 for 8-bit, f64 for f64;
            zero when absent.  It is not modified.
        wg_map: the map of the result; those of ``a`` and ``b`` are derived from it.
        precision: for f32 operands ``"tf32"`` or ``"bf16x3"``; IEEE when absent.

    Returns:
        (m, n) of the accumulator's dtype.  The order of the sums is not specified.

    Raises:
        TileShapeError: the shapes above do not agree.
        TileTypeError: the dtypes above do not agree.
    Source: XeTile RFC, "tile_mma".
    """
    ...


@operation
def tile_transpose(
    v: Vector, permutation: Sequence[int] = (1, 0), *, wg_map: Map | None = None
) -> Vector:
    """Swap the axes of ``v`` (m, n): (n, m); ``permutation`` is [1, 0]."""
    ...


@operation
def tile_reduce(
    kind: str, v: Vector, dims: int | Sequence[int], *, wg_map: Map | None = None
) -> Vector:
    """Reduce along ``dims``, which stay as extent 1.

    Args:
        kind: ``add mul max min and or xor``.
        v: rank 1 or 2.
        dims: known when compiling; negative ones count from the end.
        wg_map: the map of the result.
    Source: XeTile RFC, "tile_reduce".
    """
    ...


@operation
def tile_scan(kind: str, v: Vector, axis: int) -> Vector:
    """Combine the elements up to and including each one along ``axis``; same dtype.

    Args:
        kind: as in `tile_reduce`; f16 and bf16 combine in f32.
        v: rank 1 or 2.
        axis: known when compiling.
    Source: MLIR vector dialect, "vector.scan".
    """
    ...


@operation
def tile_broadcast(
    v: Vector,
    dims: int | Sequence[int],
    shape: Sequence[int],
    *,
    wg_map: Map | None = None,
) -> Vector:
    """Repeat ``v`` to ``shape`` along ``dims``, where its extent is 1.

    Source: XeTile RFC, "tile_broadcast".
    """
    ...


@operation
def tile_conv_layout(v: Vector, wg_map: Map, src_map: Map | None = None) -> Vector:
    """Return the same values with another map: other subgroups own the elements.

    Source: XeTile RFC, "tile_conv_layout".
    """
    ...


@operation
def tile_pack(
    v: Vector, inner_blocks: Sequence[int], *, wg_map: Map | None = None
) -> Vector:
    """Rearrange (h, w) in blocks: (h/b0, w/b1, b0, b1).

    Source: XeTile RFC, "tile_pack".
    """
    ...


@operation
def tile_unpack(v: Vector, *, wg_map: Map | None = None) -> Vector:
    """Do the inverse of :func:`tile_pack`.

    Source: XeTile RFC, "tile_unpack".
    """
    ...
