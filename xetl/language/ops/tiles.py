"""Tiles: windows onto arrays, and the moves between memory and registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xetl.language.dtypes import DType
from xetl.language.operation import operation

if TYPE_CHECKING:
    from xetl.language.ops.vectors import Map
    from xetl.language.values import Array, Scalar, Tile, Vector

__all__: list[str] = ["atomic_cas", "atomic_rmw_tile", "init_tile", "load_gather"]
__all__ += ["load_tile", "prefetch_tile", "slm", "store_scatter", "store_tile"]
__all__ += ["update_tile_offset"]


@operation
def init_tile(
    base: Array | int,
    offsets: Sequence[int | Vector] | Vector,
    shape: int | Sequence[int] | None = None,
    *,
    order: Sequence[int] | None = None,
    wg_map: Map | None = None,
    inner_blocks: Sequence[int] | None = None,
    base_shape: Sequence[int] | None = None,
    base_strides: Sequence[int] | None = None,
    dtype: DType | None = None,
) -> Tile:
    """Make a tile of ``shape`` at ``offsets`` in ``base``, or a scatter tile.

    Args:
        base: an array or view of rank 1 or 2, an SLM array, or an address (then
            ``dtype``, ``base_shape`` and ``base_strides`` describe the memory).
        offsets: one offset for each dim, in elements. Without ``shape``: vectors of
            integer indices, one for each dim of a base of any rank, which broadcast.
            They make a scatter tile of their shape. A single vector is for a rank-1
            base.
        shape: static extents, any numbers, not only powers of two. Rank 1 is a row.
        order: the dims from fastest to slowest; by default derived from the strides.
        wg_map: which subgroup owns which part; by default xetl chooses.
        inner_blocks: the hardware block [rows, columns] of each load.
        base_shape: extents of the memory behind an address.
        base_strides: strides, in elements, of the memory behind an address.
        dtype: element type of the memory behind an address.

    Raises:
        TileShapeError: ranks do not agree, or an extent is not a positive constant.
        TileTypeError: indices are not integers.
        TileMapError: ``order`` contradicts the strides; the map cannot spread the
            shape.
    Source: XeTile RFC, "init_tile".
    """
    ...


@operation
def update_tile_offset(tile: Tile, offsets: Sequence[int] | Vector) -> Tile:
    """Return ``tile`` moved by ``offsets`` elements (a vector for a scatter tile).

    Raises:
        TileShapeError: not one offset for each dim of the tile.
    Source: XeTile RFC, "update_tile_offset".
    """
    ...


@operation
def load_tile(
    tile: Tile, *, padding: Scalar = 0, cache: str = "", evict: str = ""
) -> Vector:
    """Load a tile: a vector of its shape and dtype, with ``padding`` outside the base.

    Args:
        tile: a plain tile.
        padding: a constant.
        cache: which caches of a GPU keep the data, with Triton's names: ``".ca"`` all,
            ``".cg"`` all but L1, ``".cs"`` all, but L1 evicts it first, ``".cv"``
            none; ``""``: the default of the device.
        evict: ``"evict_first"`` as ``".cs"``, ``"evict_last"`` as ``".ca"``, unless
            ``cache`` excludes it; ``"evict_normal"`` or ``""``.

    Raises:
        TileTypeError: ``tile`` is not a tile, or a scatter tile.
    Source: XeTile RFC, "load_tile".
    """
    ...


@operation
def store_tile(value: Vector, tile: Tile) -> None:
    """Write ``value`` to memory; elements outside the base are dropped.

    Args:
        value: has exactly the tile's shape and dtype.
        tile: where to write.

    Raises:
        TileShapeError: the shapes differ.
        TileTypeError: the dtypes differ; convert by ``.to``.
    Source: XeTile RFC, "store_tile".
    """
    ...


@operation
def prefetch_tile(tile: Tile, locality: int = 3) -> None:
    """Hint that the tile is needed soon; never faults.

    Args:
        tile: may lie outside its base.
        locality: 0 (use once) to 3 (keep in all caches).
    Source: XeTile RFC, "prefetch_tile".
    """
    ...


@operation
def load_gather(
    tile: Tile, mask: Vector | None = None, *, padding: Scalar = 0
) -> Vector:
    """Load the elements that a scatter tile points at.

    Args:
        tile: a scatter tile.
        mask: i1 of the tile's shape; the result is ``padding`` where it is false, and
            outside the base.
        padding: a constant.
    Source: XeTile RFC, "load_gather".
    """
    ...


@operation
def store_scatter(value: Vector, mask: Vector | None, tile: Tile) -> None:
    """Write each element of ``value`` to the place that a scatter tile points at.

    Args:
        value: has the tile's shape and dtype.
        mask: i1 of the tile's shape; ``None`` means all.
        tile: a scatter tile; if indices are equal, one of the values wins.
    Source: XeTile RFC, "store_scatter".
    """
    ...


@operation
def atomic_rmw_tile(
    kind: str,
    value: Vector,
    tile: Tile,
    *,
    mask: Vector | None = None,
    sem: str = "relaxed",
    scope: str = "device",
) -> Vector:
    """Update each element of a tile atomically.

    Args:
        kind: ``add mul max min and or xor xchg``.
        value: has the tile's shape and dtype (i32 u32 i64 u64 f32 f64; f16 and
            bf16 for ``add``).
        tile: plain or scatter.
        mask: i1 of the tile's shape; ``None`` means all.
        sem: the memory order. ``"acquire"`` keeps the program's later accesses after
            this one, ``"release"`` its earlier accesses before it, ``"acq_rel"`` both,
            ``"relaxed"`` none. All subgroups of the program wait for each other unless
            it is ``"relaxed"``.
        scope: who sees the order: the ``"group"`` (the program), the ``"device"`` or
            the ``"system"``.

    Returns:
        the old values, 0 outside the base.
    Source: XeTile RFC, "atomic_rmw_tile".
    """
    ...


@operation
def atomic_cas(
    tile: Tile,
    expected: Vector,
    desired: Vector,
    *,
    sem: str = "acq_rel",
    scope: str = "device",
) -> Vector:
    """Write each element of ``desired`` where memory holds ``expected``, atomically.

    Args:
        tile: plain or scatter, of i32 u32 i64 u64 f32 or f64; floats are compared by
            their bits.
        expected: has the tile's shape and dtype, or is a number.
        desired: as ``expected``.
        sem: as in `atomic_rmw_tile`; the default is that of a lock.
        scope: as in `atomic_rmw_tile`.

    Returns:
        the old values, 0 outside the base: equal to ``expected`` where it was written.
    Source: Triton, ``tl.atomic_cas``.
    """
    ...


@operation
def slm(shape: Sequence[int], dtype: DType) -> Array:
    """Allocate an array in the workgroup's shared local memory, uninitialised.

    Args:
        shape: static, rank 1 or 2.
        dtype: element type.
    """
    ...
