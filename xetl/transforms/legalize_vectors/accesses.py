"""Rewrite accesses to vectors in memory: to tiles if possible, else to gathers.

Reshaped memrefs become strided views. In MLIR the offset of a view counts from the
origin of the memory, also in a view of a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from xetl.dialects import xetile
from xetl.dialects.base import Index, constant_index, memref_type, shape_of, vector_type
from xetl.dialects.kernel_attributes import SHARED
from xetl.dialects.memref_layout import ENDLESS, memory_space_of, strides_of
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.exchange import spread
from xetl.transforms.legalize_vectors import shapes, transfers
from xetl.transforms.legalize_vectors.transfers import Layout, layout_of
from xetl.transforms.rewriting import Rule, Values


def offset_of(b: Builder, layout: Layout, indices: Sequence[Index]) -> Index:
    """Return the offset of an element from the origin of its memory."""
    offset = layout.offset
    for place, stride in zip(indices, layout.strides):
        offset = b.plus(offset, b.times(place, stride))
    return offset


def _collapse_shape(b: Builder, op: memref.CollapseShapeOp) -> Values:
    """Merge groups of dimensions: sizes multiply, the last stride is kept."""
    layout = layout_of(b, op.operands[0])
    sizes: list[Index] = []
    strides: list[Index] = []
    for group in op.groups:
        size = b.product(layout.sizes[dim] for dim in group)
        sizes.append(size)
        long = [dim for dim in group if layout.sizes[dim] != 1]
        strides.append(layout.strides[(long or list(group))[-1]])
    return _view(b, op, layout, sizes, strides)


def _expand_shape(b: Builder, op: memref.ExpandShapeOp) -> Values:
    """Split dimensions: the last one of a group keeps the stride."""
    layout = layout_of(b, op.operands[0])
    sizes: list[Index] = list(op.sizes)
    strides: list[Index] = [1] * len(sizes)
    for stride, group in zip(layout.strides, op.groups):
        step = stride
        for dim in reversed(group):
            strides[dim] = step
            step = b.times(step, sizes[dim])
    return _view(b, op, layout, sizes, strides)


def _view(
    b: Builder,
    op: Operation,
    layout: Layout,
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> Values:
    """Make a view at the same first element, of the result type of ``op``."""
    type_ = memref_type(op.results[0])
    known = strides_of(type_) or [None] * len(sizes)
    sizes = [n if n >= 0 else size for n, size in zip(type_.get_shape(), sizes)]
    strides = [b.index(v) if n is None else n for n, v in zip(known, strides)]
    offset = layout.offset
    made = MemRefType(
        type_.element_type,
        [n if isinstance(n, int) else DYNAMIC_INDEX for n in sizes],
        StridedLayoutAttr([n if isinstance(n, int) else None for n in strides], None),
        type_.memory_space,
    )
    view = memref.ReinterpretCastOp(layout.memory, [offset], sizes, strides, made)
    return [b.insert(memref.CastOp(b.insert(view), type_))]


def _dim(b: Builder, op: memref.DimOp) -> Values | None:
    """Select the size of a dimension whose number is not constant."""
    if constant_index(op.index) is not None:
        return None
    found, *others = layout_of(b, op.source).sizes
    for number, size in enumerate(others, 1):
        found = b.select(b.compare("eq", op.index, number), size, found)
    return [b.index(found)]


def _alloc(b: Builder, op: memref.AllocOp | memref.AllocaOp) -> Values | None:
    """Move constant sizes of an allocation into its type."""
    sizes = [constant_index(size) for size in op.dynamic_sizes]
    if not sizes or None in sizes:
        return None
    type_ = memref_type(op.result)
    given = iter(sizes)
    shape = [n if n >= 0 else next(given) or 0 for n in type_.get_shape()]
    static = MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
    return [b.insert(memref.CastOp(b.insert(type(op)(static)), type_))]


@record(frozen=True)
class Window:
    """The elements of a vector in memory.

    Attributes:
        memory: a memref without dimensions, which ``offset`` counts from.
        mask: a matrix, true for the elements to access; None: all.
    """

    memory: SSAValue
    offset: Index
    shape: tuple[int, ...]
    strides: tuple[Index, ...]
    mask: SSAValue | None = None

    @property
    def is_matrix(self) -> bool:
        """Whether one tile has exactly these elements."""
        is_flat = len(self.shape) > 0 and all(n == 1 for n in self.shape[:-2])
        return self.mask is None and is_flat


def strided_view(
    b: Builder,
    memory: SSAValue,
    offset: Index,
    sizes: Sequence[Index],
    strides: Sequence[Index],
) -> SSAValue:
    """Return a view at ``offset`` elements from the origin of the memory."""
    type_ = memref_type(memory)
    # The verifier refuses a row-major tile if a static stride says that rows have
    # gaps. Nothing else needs static strides here.
    mixed = [s if isinstance(s, int) and s == 1 else b.index(s) for s in strides]
    is_shared = memory_space_of(type_) == SHARED
    space = type_.memory_space if is_shared else NoneAttr()
    return b.insert(memref.ReinterpretCastOp.of(memory, offset, sizes, mixed, space))


def matrix_tile(
    b: Builder,
    memory: SSAValue,
    offset: Index,
    shape: tuple[int, int],
    strides: Sequence[Index],
) -> SSAValue:
    """Make a tile of some rows and columns of a memref: see `strided_view`."""
    base = strided_view(b, memory, offset, shape, strides)
    type_ = memref_type(base)
    where = xetile.TileAttr(memory_space=memory_space_of(type_) or 0)
    tile = xetile.TileType(shape, type_.element_type, where)
    return b.insert(xetile.InitTileOp(base, [0, 0], tile))


def _tile(b: Builder, window: Window) -> SSAValue:
    """Make a tile of the elements of a window that `is_matrix`."""
    shape, strides = shapes.matrix_shape(window.shape), (0, *window.strides)[-2:]
    return matrix_tile(b, window.memory, window.offset, shape, strides)


def _scattered(
    b: Builder, window: Window, offsets: SSAValue | None
) -> tuple[SSAValue, SSAValue]:
    """Make a tile of elements at offsets from the first of a window, and a mask."""
    if offsets is None:
        offsets = _offsets(b, window)
    mask = shapes.all_of(b, window.mask, shapes.matrix_shape(window.shape))
    base = strided_view(b, window.memory, window.offset, (ENDLESS,), (1,))
    memory, shape = memref_type(base), shape_of(offsets.type)
    where = xetile.TileAttr(scattered=True, memory_space=memory_space_of(memory) or 0)
    type_ = xetile.TileType(shape, memory.element_type, where)
    tile = xetile.InitTileOp(
        base, [], type_, sizes=[ENDLESS], strides=[1], indices=offsets
    )
    return b.insert(tile), mask


def _offsets(b: Builder, window: Window) -> SSAValue:
    """Return the offset of each element from the first one, as a matrix of indices."""
    matrix = shapes.matrix_shape(window.shape)
    total: SSAValue | None = None
    for dim, stride in enumerate(window.strides):
        if window.shape[dim] == 1:
            continue
        places = shapes.places_along(b, window.shape, dim)
        part = spread(b, _times(b, places, stride), matrix)
        total = part if total is None else b.insert(arith.AddiOp(total, part))
    zeros = VectorType(IndexType(), list(matrix))
    return b.constant(0, zeros) if total is None else total


def _times(b: Builder, places: SSAValue, stride: Index) -> SSAValue:
    """Multiply positions by a stride."""
    if isinstance(stride, int) and stride == 1:
        return places
    steps = b.insert(vector.BroadcastOp(b.index(stride), places.type))
    return b.insert(arith.MuliOp(places, steps))


def _read(
    b: Builder, window: Window, offsets: SSAValue | None, other: SSAValue | None
) -> SSAValue:
    """Load a window.

    Args:
        offsets: the offsets of its elements; None: they follow from its strides.
        other: a matrix of the values where the mask is false.
    """
    if offsets is None and window.is_matrix:
        loaded = b.insert(xetile.LoadTileOp(_tile(b, window)))
        return shapes.cast(b, loaded, window.shape)
    tile, mask = _scattered(b, window, offsets)
    found = b.insert(xetile.LoadGatherOp(tile, mask))
    if other is not None and window.mask is not None:
        found = b.insert(arith.SelectOp(mask, found, other))
    return shapes.cast(b, found, window.shape)


def _write(
    b: Builder, window: Window, offsets: SSAValue | None, value: SSAValue
) -> Values:
    """Store a vector to a window; the arguments are those of `_read`."""
    value = shapes.as_matrix(b, value)
    if offsets is None and window.is_matrix:
        b.add(xetile.StoreTileOp(value, _tile(b, window)))
        return []
    tile, mask = _scattered(b, window, offsets)
    b.add(xetile.StoreScatterOp(value, mask, tile))
    return []


# Loads and stores -------------------------------------------------------------------


_Load: TypeAlias = vector.LoadOp | vector.MaskedloadOp | vector.GatherOp
_Store: TypeAlias = vector.StoreOp | vector.MaskedstoreOp | vector.ScatterOp


def _load(b: Builder, op: _Load) -> Values:
    place = _place(b, op, op.result.type)
    is_plain = isinstance(op, vector.LoadOp)
    return [_read(b, *place, None if is_plain else shapes.as_matrix(b, op.pass_thru))]


def _store(b: Builder, op: _Store) -> Values:
    return _write(b, *_place(b, op, op.value.type), op.value)


def _place(
    b: Builder, op: _Load | _Store, type_: Attribute
) -> tuple[Window, SSAValue | None]:
    """Return the window of a vector along the last dimensions, all in bounds.

    A gather or scatter has an offset for each element, too, by its indices along the
    last dimension.
    """
    layout, shape = layout_of(b, op.base), shape_of(type_)
    offset = offset_of(b, layout, op.indices)
    strides = layout.strides[len(layout.strides) - len(shape) :]
    is_plain = isinstance(op, vector.LoadOp | vector.StoreOp)
    mask = None if is_plain else shapes.as_matrix(b, op.mask)
    window = Window(layout.memory, offset, shape, strides, mask)
    if not isinstance(op, vector.GatherOp | vector.ScatterOp):
        return window, None
    offsets = shapes.as_matrix(b, op.index_vec)
    wide = VectorType(IndexType(), shape_of(offsets.type))
    if offsets.type != wide:
        offsets = b.insert(arith.IndexCastOp(offsets, wide))
    return window, _times(b, offsets, layout.strides[-1] if layout.strides else 1)


# Transfers --------------------------------------------------------------------------


def _transfer(b: Builder, op: transfers.Transfer, shape: tuple[int, ...]) -> Window:
    """Return the window of a transfer, whose dimensions may be out of bounds."""
    layout = layout_of(b, op.base)
    dims = [
        each.position if isinstance(each, AffineDimExpr) else None
        for each in op.permutation_map.data.results
    ]
    mask = None if op.mask is None else shapes.as_matrix(b, op.mask)
    matrix = shapes.matrix_shape(shape)
    for axis, (dim, flag) in enumerate(zip(dims, op.in_bounds.data)):
        if dim is None or (isinstance(flag, IntegerAttr) and flag.value.data):
            continue
        places = shapes.places_along(b, shape, axis)
        first = b.insert(vector.BroadcastOp(op.indices[dim], places.type))
        places = b.insert(arith.AddiOp(first, places))
        inside = shapes.compared(b, "ult", places, layout.sizes[dim])
        mask = b.conjunction(mask, spread(b, inside, matrix))
    strides = tuple(0 if dim is None else layout.strides[dim] for dim in dims)
    offset = offset_of(b, layout, op.indices)
    return Window(layout.memory, offset, shape, strides, mask)


def _transfer_read(b: Builder, op: vector.TransferReadOp) -> Values:
    tile = transfers.read(b, op)
    if tile is not None:
        return tile
    type_ = vector_type(op.result)
    window = _transfer(b, op, type_.get_shape())
    matrix = VectorType(type_.element_type, shapes.matrix_shape(type_.get_shape()))
    other = b.insert(vector.BroadcastOp(op.padding, matrix))
    return [_read(b, window, None, other)]


def _transfer_write(b: Builder, op: vector.TransferWriteOp) -> Values:
    tile = transfers.write(b, op)
    if tile is not None:
        return tile
    return _write(b, _transfer(b, op, shape_of(op.value.type)), None, op.value)


RULES: dict[type[Operation], Rule] = {
    memref.MemorySpaceCastOp: lambda b, op: [op.source],
    memref.AssumeAlignmentOp: lambda b, op: [op.memref],
    memref.CollapseShapeOp: _collapse_shape,
    memref.ExpandShapeOp: _expand_shape,
    memref.DimOp: _dim,
    memref.AllocOp: _alloc,
    memref.AllocaOp: _alloc,
    memref.DeallocOp: lambda b, op: [],  # memory lives as long as the kernel
    vector.LoadOp: _load,
    vector.StoreOp: _store,
    vector.MaskedloadOp: _load,
    vector.MaskedstoreOp: _store,
    vector.GatherOp: _load,
    vector.ScatterOp: _store,
    vector.TransferReadOp: _transfer_read,
    vector.TransferWriteOp: _transfer_write,
}
