"""The checks of tiles and of operations on values, for their verifiers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from ..base import (
    Index,
    Vector,
    check,
    constant_index,
    integer_width,
    ints_of,
    is_memref,
    is_vector,
    reshaped,
    shape_of,
)
from ..memref_layout import has_static_layout, memory_space_of, strides_of
from ..reduction_kinds import kind_fits, normalize_kind
from ..upstream.elementwise import is_float
from .attributes import WorkgroupMap
from .types import TileType


def map_fits(name: str, wg_map: WorkgroupMap | None, type_: Attribute) -> None:
    """Check that a map can distribute a vector of this type."""
    if wg_map is not None and is_vector(type_):
        problem = wg_map.problem_with(type_.get_shape())
        check(problem is None, "`{}`: {}", name, problem)


def mma_result(a: Vector, b: Vector) -> Vector:
    """Return the type of ``a @ b`` with the element type of ``a``; rank 2 or 4."""
    left, right = a.get_shape(), b.get_shape()
    text = (
        "tile_mma takes vectors of rank 2, or blocked ones of rank 4, found {} and {}"
    )
    check(len(left) == len(right) and len(left) in (2, 4), text, a, b)
    pairs = zip(left[1::2], right[0::2])
    if not all(columns == rows for columns, rows in pairs):
        columns, rows = (" x ".join(map(str, k)) for k in (left[1::2], right[0::2]))
        problem = f"the left side has {columns} columns, the right side {rows} rows"
        raise VerifyException(problem)
    shape = [extent for pair in zip(left[0::2], right[1::2]) for extent in pair]
    return reshaped(a, shape)


def mma(
    a: Vector, b: Vector, c: Vector | None, result: Vector, *, of_codes: bool = False
) -> None:
    """Check shapes and dtypes of ``a @ b + c``; ``of_codes``: i8 holds 8-bit floats."""
    shape = mma_result(a, b).get_shape()
    problem = "the product has shape {}, the result {}"
    check(result.get_shape() == shape, problem, shape, result.get_shape())
    small = (builtin.Float8E4M3FNType, builtin.Float8E5M2Type)
    types = a.element_type, b.element_type
    fits = types[0] == types[1] or all(isinstance(each, small) for each in types)
    check(fits, "both sides need one element type, found {} and {}", *types)
    check(c in (None, result), "the addend is {}, but the result is {}", c, result)
    text = "{} cannot be accumulated in {}"
    is_narrow = is_float(a) == (is_float(result) and not of_codes)
    check(is_narrow, text, a.element_type, result.element_type)


def transposed_axes(rank: int) -> tuple[int, ...]:
    """Return the permutation of a transpose, of blocks and of their elements."""
    return (1, 0, 3, 2)[:rank]


def transposed(type_: Attribute) -> Attribute:
    """Return the type of a transposed vector."""
    shape = shape_of(type_)
    return reshaped(type_, [shape[axis] for axis in transposed_axes(len(shape))])


def transpose(source: Vector, result: Vector, permutation: Sequence[int]) -> None:
    """Check a transpose of rank 2, or of rank 4 in blocks."""
    shape = source.get_shape()
    text = (
        "tile_transpose takes a vector of rank 2, or a blocked one of rank 4, found {}"
    )
    check(len(shape) in (2, 4), text, source)
    axes = transposed_axes(len(shape))
    text = "the permutation must be {}, found {}"
    check(tuple(permutation) == axes, text, list(axes), list(permutation))
    expected = transposed(source)
    check(result == expected, "{} transposes to {}, found {}", source, expected, result)


def _check_dims(dims: Sequence[int], rank: int) -> None:
    fits = 0 < len(set(dims)) == len(dims) and all(0 <= dim < rank for dim in dims)
    text = "dimensions must be different and below {}, found {}"
    check(fits, text, rank, list(dims))


def reduced_shape(
    shape: Sequence[int], dims: Sequence[int], size: int | None
) -> list[int]:
    """Return ``shape`` with ``dims`` reduced to 1, or divided by ``size``."""
    left = [extent // size if size else 1 for extent in shape]
    return [left[i] if i in dims else extent for i, extent in enumerate(shape)]


def reduced(type_: Attribute, dims: Attribute, size: Attribute | None) -> Attribute:
    """Return the type of a reduced vector; see `reduced_shape`."""
    extent = size.value.data if isinstance(size, builtin.IntegerAttr) else None
    return reshaped(type_, reduced_shape(shape_of(type_), ints_of(dims), extent))


def reduce(
    kind: str, source: Vector, result: Vector, dims: Sequence[int], size: int | None
) -> None:
    """Check a reduction."""
    shape = source.get_shape()
    text = "tile_reduce takes a vector of rank 2 or 4, found {}"
    check(len(shape) in (2, 4), text, source)
    _check_dims(dims, len(shape))
    fits = kind_fits(normalize_kind(kind), source.element_type) and kind != "assign"
    check(fits, "`{}` does not reduce elements of type {}", kind, source.element_type)
    fits = size is None or (size > 0 and all(shape[dim] % size == 0 for dim in dims))
    text = "reduction_size {} does not divide the reduced extent of {}"
    check(fits, text, size, source)
    expected = reshaped(source, reduced_shape(shape, dims, size))
    text = "reducing dimensions {} of {} gives {}: a reduced dimension keeps size {}, "
    kept = "n / reduction_size" if size else 1
    facts = list(dims), source, expected, kept, result
    check(result == expected, text + "found {}", *facts)


def broadcast(source: Vector, result: Vector, dims: Sequence[int]) -> None:
    """Check a broadcast."""
    before, after = source.get_shape(), result.get_shape()
    text = "tile_broadcast keeps the rank, which is 2 or 4, found {} and {}"
    check(len(before) in (2, 4) and len(before) == len(after), text, source, result)
    _check_dims(dims, len(before))
    text = "tile_broadcast keeps the element type, found {} and {}"
    check(source.element_type == result.element_type, text, source, result)
    for dim, (old, new) in enumerate(zip(before, after)):
        if dim in dims:
            text = "the source must have size 1 in dimension {}, found {}"
            check(old == 1, text, dim, source)
        else:
            problem = "dimension {} is not in {} and must stay {}, found {}"
            check(old == new, problem, dim, list(dims), old, new)


def packed_shape(shape: Sequence[int], blocks: Sequence[int]) -> list[int]:
    """Return the shape of rank 4 of a matrix in blocks."""
    return [shape[0] // blocks[0], shape[1] // blocks[1], *blocks]


def packed(type_: Attribute, blocks: Attribute) -> Attribute:
    """Return the type of a matrix in blocks."""
    return reshaped(type_, packed_shape(shape_of(type_), ints_of(blocks)))


def unpacked(type_: Attribute, blocks: Attribute) -> Attribute:
    """Return the type of a matrix that was in blocks."""
    return reshaped(type_, [n * b for n, b in zip(shape_of(type_), ints_of(blocks))])


def pack(flat: Vector, blocked: Vector, blocks: Sequence[int]) -> None:
    """Check that ``blocked`` is the type of ``flat`` in blocks."""
    shape = flat.get_shape()
    text = "a vector of rank 2 is packed in blocks of two extents, found {} and {}"
    check(len(shape) == 2 and len(blocks) == 2, text, flat, list(blocks))
    fits = all(b > 0 and extent % b == 0 for extent, b in zip(shape, blocks))
    check(fits, "inner_blocks {} do not divide {}", list(blocks), list(shape))
    expected = reshaped(flat, packed_shape(shape, blocks))
    check(blocked == expected, "{} in blocks is {}, found {}", flat, expected, blocked)


def verify_scattered(base: Attribute, indices: Attribute, tile: TileType) -> None:
    """Check an init_tile with an index vector."""
    text = "an index vector describes a scattered tile: its type needs"
    check(tile.scattered, text + " #xetile.tile_attr<scattered = true>")
    expected = builtin.VectorType(builtin.IndexType(), tile.shape)
    check(indices == expected, "the indices are {}, expected {}", indices, expected)
    if is_memref(base):
        _verify_memref(base, tile)
        rank = base.get_num_dims()
        text = "the base of a scattered tile has rank 0 or 1, found rank {}"
        check(rank <= 1, text, rank)
    else:
        _verify_address(base)


def verify_block(
    base: Attribute,
    tile: TileType,
    offsets: Sequence[Index],
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> None:
    """Check an init_tile with offsets."""
    check(not tile.scattered, "a scattered tile needs an index vector")
    check(len(tile.shape) == 2, "a tile at an offset has rank 2")
    if is_memref(base):
        _verify_memref(base, tile)
        rank = base.get_num_dims()
        check(rank >= 2, "the base of a tile has rank 2 or more, found rank {}", rank)
        static = has_static_layout(base)
        text = "sizes and strides are given, but {} states them itself"
        check(not (static and (sizes or strides)), text, base)
        needed = static is False and any(extent < 0 for extent in base.get_shape())
    else:
        _verify_address(base)
        rank, needed = 2, True
    check(len(offsets) == rank, "expected {} offsets, found {}", rank, len(offsets))
    text = "a base of unknown shape needs {} {}, found {}"
    for name, found in (("sizes", sizes), ("strides", strides)):
        fits = len(found) == rank or not (found or needed)
        check(fits, text, rank, name, len(found))
    _verify_order(base, tile, sizes, strides)


def _verify_memref(base: builtin.MemRefType[Attribute], tile: TileType) -> None:
    fits = base.element_type == tile.element_type
    check(fits, "the base holds {}, the tile {}", base.element_type, tile.element_type)
    space = memory_space_of(base)
    text = "the base is in memory space {}, the tile in {}"
    check(space == tile.memory_space, text, space, tile.memory_space)


def _verify_address(base: Attribute) -> None:
    fits = integer_width(base) == 64 or isinstance(base, builtin.IndexType)
    check(fits, "the base of a tile is a memref or a 64-bit address, found {}", base)


def _verify_order(
    base: Attribute, tile: TileType, sizes: Sequence[Index], strides: Sequence[Index]
) -> None:
    """Check that the fastest dimension of the order has stride 1, if this is known."""
    fastest = tile.order[0] - 2
    stride, extent = None, None
    if is_memref(base):
        known = strides_of(base)
        stride = known[fastest] if known else None
        extent = base.get_shape()[fastest]
    if strides and (given := constant_index(strides[fastest])) is not None:
        stride = given
    if sizes and (given := constant_index(sizes[fastest])) is not None:
        extent = given
    # The stride of a dimension of one element is never used.
    fits = stride in (None, 1) or extent == 1
    text = "order {} needs stride 1 in dimension {}, but the base has stride {} there"
    check(fits, text, list(tile.order), tile.order[0], stride)
