"""Rewrite transfers of matrices as loads and stores of tiles.

A subview of a matrix becomes a tile of the matrix (XeTile RFC, appendix 1: "subview
maps to init_tile"), but only if the transfer cannot leave the view: elements beyond the
view's edge are padding, not the rest of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr

from xetl.dialects import xetile
from xetl.dialects.base import Index, is_array, known, memref_type, vector_type
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import has_static_layout, memory_space_of, strides_of
from xetl.dialects.upstream import arith, memref, vector
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.rewriting import Values

Transfer = vector.TransferReadOp | vector.TransferWriteOp


@record(frozen=True)
class Layout:
    """The memory layout of a memref.

    Attributes:
        memory: a memref without dimensions, which ``offset`` counts from.
        offset: the offset of the first element, in elements.
    """

    memory: SSAValue
    offset: Index
    sizes: tuple[Index, ...]
    strides: tuple[Index, ...]


def layout_of(b: Builder, value: SSAValue) -> Layout:
    """Return the layout of a memref; numbers that its type states are constants."""
    type_ = memref_type(value)
    shape = type_.get_shape()
    rank = len(shape)
    memory, offset, *others = b.add(memref.ExtractStridedMetadataOp(value)).results
    known = strides_of(type_) or [None] * rank
    sizes = tuple(n if n >= 0 else v for n, v in zip(shape, others))
    strides = tuple(v if n is None else n for n, v in zip(known, others[rank:]))
    return Layout(memory, offset, sizes, strides)


@record(frozen=True)
class Window:
    """The region of a transfer: from ``offsets`` on in a matrix of ``base``.

    ``is_turned``: whether rows of the vector are columns of the matrix.
    """

    base: SSAValue
    offsets: tuple[Index, ...]
    type: xetile.TileType
    is_turned: bool


def read(build: Builder, op: vector.TransferReadOp) -> Values | None:
    """Rewrite a read as a load, and a transpose if the map swaps rows and columns."""
    padding = _padding(op)
    if padding is None:
        return None
    window = _window(op, vector_type(op.result).get_shape())
    if window is None:
        return None
    value = build.insert(xetile.LoadTileOp(_tile(window, build), *padding))
    if window.is_turned:
        value = build.insert(xetile.TileTransposeOp(value))
    return [value]


def write(build: Builder, op: vector.TransferWriteOp) -> Values | None:
    """Rewrite a write as a store, after a transpose if the map swaps dimensions."""
    window = _window(op, vector_type(op.value).get_shape())
    if window is None:
        return None
    value = op.value
    if window.is_turned:
        value = build.insert(xetile.TileTransposeOp(value))
    build.add(xetile.StoreTileOp(value, _tile(window, build)))
    return []


# Padding ----------------------------------------------------------------------------


def _padding(op: vector.TransferReadOp) -> list[Attribute] | None:
    """Return the constant padding, or [] for that of loads; None: it is no constant."""
    if all(_flags(op)):
        return []
    constant = op.padding.owner
    if not isinstance(constant, arith.ConstantOp):
        return None
    number = splat_value(constant.value)
    # A load pads with positive zero by default, but not with negative zero.
    return [] if str(number) in ("0", "0.0") else [constant.value]


def _flags(op: Transfer) -> list[bool]:
    """Return for each dimension of the vector whether it is known to be in bounds."""
    flags = op.in_bounds
    assert is_array(flags)
    return [isinstance(f, IntegerAttr) and bool(f.value.data) for f in flags]


# Windows ----------------------------------------------------------------------------


def _window(op: Transfer, shape: Sequence[int]) -> Window | None:
    """Return the window of a transfer of a matrix. Return None if no tile can do it."""
    turned = _is_turned(op)
    if op.mask is not None or turned is None:
        return None
    rows, columns = shape[::-1] if turned else shape
    order = _order(op.base)
    space = memory_space_of(memref_type(op.base))
    if order is None or space not in (0, 3):
        return None
    element = memref_type(op.base).element_type
    type_ = xetile.TileType(
        (rows, columns), element, xetile.TileAttr(order=order, memory_space=space)
    )
    # The outermost base that the views allow, and the offsets in it.
    base: SSAValue = op.base
    offsets = tuple(known(index) for index in op.indices)
    build = Builder.before(op)
    stays_inside = all(_flags(op)) or _fits(base, offsets, (rows, columns))
    while stays_inside:
        view = base.owner
        if not isinstance(view, memref.SubviewOp) or not _is_plain(view):
            break
        pairs = zip(offsets, view.mixed_offsets)
        offsets = tuple(build.plus(one, known(other)) for one, other in pairs)
        base = view.source
    return Window(base, offsets, type_, turned)


def _is_turned(op: Transfer) -> bool | None:
    """Return whether the map swaps rows and columns. Return None for other maps."""
    results = op.permutation_map.data.results
    dims = [e.position for e in results if isinstance(e, AffineDimExpr)]
    rank = memref_type(op.base).get_num_dims()
    if len(dims) != len(results) or len(dims) != 2 or rank < 2:
        return None
    turned = {(rank - 2, rank - 1): False, (rank - 1, rank - 2): True}
    return turned.get((dims[0], dims[1]))


def _order(base: SSAValue) -> tuple[int, int] | None:
    """Return the order by the contiguous dimension. Return None if none is known."""
    strides = strides_of(memref_type(base))
    if strides is None:
        return None
    if strides[-1] == 1:
        return (1, 0)
    return (0, 1) if strides[-2] == 1 else None


def _fits(base: SSAValue, offsets: Sequence[Index], shape: Sequence[int]) -> bool:
    """Whether the whole window is known to be in bounds."""
    sizes = memref_type(base).get_shape()[-2:]
    return all(
        isinstance(offset, int) and offset >= 0 and offset + extent <= size
        for offset, extent, size in zip(offsets[-2:], shape, sizes)
    )


def _is_plain(view: memref.SubviewOp) -> bool:
    """Whether a view keeps all dimensions, with unit strides."""
    ranks = {memref_type(v).get_num_dims() for v in (view.source, view.result)}
    return len(ranks) == 1 and set(view.mixed_strides) == {1}


def _tile(window: Window, build: Builder) -> SSAValue:
    sizes: Sequence[Index] = ()
    strides: Sequence[Index] = ()
    if not has_static_layout(memref_type(window.base)):
        layout = layout_of(build, window.base)
        sizes, strides = layout.sizes, layout.strides
    op = xetile.InitTileOp(window.base, window.offsets, window.type, sizes, strides)
    return build.insert(op)
