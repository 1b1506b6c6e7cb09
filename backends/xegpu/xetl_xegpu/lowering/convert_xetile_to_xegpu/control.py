"""Rules of loops and conditionals: a carried value becomes one or several values.

A vector becomes its fragments. A tile becomes a row and a column if its matrix is
known, or else also address, sizes and strides. `legalize-text` has replaced other
control flow of texts by these operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.dialects.builtin import IndexType, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from xetl.analysis.ranges import Range
from xetl.dialects.base import (
    Index,
    Vector,
    is_memref,
    is_vector,
    memref_type,
    shape_of,
    vector_type,
)
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.ir.conversion import Carried, convert_for, convert_if, convert_while

from . import conversion, views
from .fragments import (
    Fragments,
    Lowered,
    Matrix,
    MmaOperand,
    Scattered,
    Start,
    Tile,
    View,
    fragment_types,
    grid_for,
    vector_of,
)
from .plan import stays, tile_origins
from .rearranging import joined, parted
from .tiles import described

_INDEX = IndexType()


def _carried(
    c: conversion.Converter,
    types: Sequence[Attribute],
    flatten: Callable[[SSAValue], Sequence[SSAValue]],
    made: Callable[[Sequence[SSAValue]], Lowered],
) -> Carried:
    """Return how several values carry one; ``made`` joins them again."""
    return Carried(types, flatten, lambda old, parts: c.set(old, made(parts)))


def carried(c: conversion.Converter, value: SSAValue, op: Operation) -> Carried:
    """Return how control flow carries a value.

    Args:
        value: a block argument or a result that has no replacement yet.
    """
    type_ = value.type
    if isinstance(op, scf.ForOp) and value is op.body.block.args[0]:
        return Carried([type_], lambda new: [new], partial(_bind_counter, c, op))
    if not conversion.is_replaced(value):
        return Carried([type_], lambda new: [new], lambda old, new: c.bind(old, new[0]))
    if value in c.plan.parted:
        return _parted(c, vector_type(value))
    if is_vector(type_):
        shape, element = type_.get_shape(), type_.element_type
        return _carried(
            c,
            fragment_types(type_),
            lambda new: list(c.fragments(new).parts),
            lambda parts: Fragments(shape, element, list(parts)),
        )
    if is_memref(type_):
        return _memref(c, value, op)
    assert isinstance(type_, TileType)
    if type_.scattered:
        return _scattered(c, value, op)
    matrix = _only_matrix(c, value)
    if matrix is None:
        return _any_tile(c, value, op)
    return _moving_tile(c, value, matrix)


def _parted(c: conversion.Converter, type_: Vector) -> Carried:
    """Return how sums are carried in `Form.PARTED`; after the loop they are sorted."""
    shape, element = type_.get_shape(), type_.element_type

    def flat(value: SSAValue) -> Sequence[SSAValue]:
        found = c.operand(value)
        return (parted(c, found) if isinstance(found, Fragments) else found).parts

    def bind(old: SSAValue, parts: Sequence[SSAValue]) -> None:
        if isinstance(old, BlockArgument):
            c.set(old, MmaOperand(parts, grid_for(type_).groups))
        else:
            c.set_fragments(old, joined(c, Fragments(shape, element, parts)))

    return Carried(fragment_types(type_), flat, bind)


def _bind_counter(
    c: conversion.Converter, op: scf.ForOp, old: SSAValue, new: Sequence[SSAValue]
) -> None:
    """Replace a counter, and set its range from the bounds of the loop."""
    low, high = c.ranges.of(op.lower_bound), c.ranges.of(op.upper_bound)
    if low is not None and high is not None and isinstance(old.type, IndexType):
        c.ranges.say(new[0], Range(low.low, max(high.high - 1, low.low)))
    c.bind(old, new[0])


# Tiles ------------------------------------------------------------------------------


def _only_matrix(c: conversion.Converter, value: SSAValue) -> Matrix | None:
    """Return the matrix of a tile. None: there are several, or it is unknown here."""
    origins = list(tile_origins(value))
    if not origins or any(_key(each) != _key(origins[0]) for each in origins[1:]):
        return None
    if not _is_known(c, origins[0]):
        return None
    found = described(c, origins[0])
    return found.matrix if isinstance(found, Tile) else None


def _key(op: InitTileOp) -> tuple[object, ...]:
    """Return a key of a tile's matrix: all but the last two offsets."""
    return (op.source, *op.mixed_offsets[:-2], op.mixed_sizes, op.mixed_strides)


def _is_known(c: conversion.Converter, op: InitTileOp) -> bool:
    """Whether the operands of a tile's description are visible here."""
    if is_memref(op.source.type):
        if not c.has(op.source):
            return False
        view = c.view(op.source)
        parts: list[Index] = [view.start.root, view.start.offset]
        parts += [*view.sizes, *view.strides]
    else:
        parts = [op.source]
    parts += [*op.mixed_offsets[:-2], *op.mixed_sizes, *op.mixed_strides]
    return all(isinstance(each, int) or c.emit.is_outside(each) for each in parts)


def _moving_tile(c: conversion.Converter, value: SSAValue, matrix: Matrix) -> Carried:
    """Return how a tile of a known matrix is carried: row, column, if they change."""
    fixed: dict[int, Index] = {}
    loop = value.block.parent_op() if isinstance(value, BlockArgument) else None
    if isinstance(value, BlockArgument) and isinstance(loop, scf.ForOp):
        first = loop.init_args[value.index - 1]
        start = c.tile(first) if c.has(first) else None
        for dim, at in enumerate((start.row, start.column) if start else ()):
            if stays(value, dim):
                fixed[dim] = at
    moving = [dim for dim in (0, 1) if dim not in fixed]

    def flat(found: SSAValue) -> list[SSAValue]:
        tile = c.tile(found)
        return [c.index((tile.row, tile.column)[dim]) for dim in moving]

    def whole(parts: Sequence[SSAValue]) -> Tile:
        at: dict[int, Index] = {**fixed, **dict(zip(moving, parts))}
        return Tile(matrix, at[0], at[1])

    return _carried(c, [_INDEX] * len(moving), flat, whole)


def _any_tile(c: conversion.Converter, value: SSAValue, op: Operation) -> Carried:
    """Return how a tile of an unknown matrix is carried: its whole description."""
    type_ = value.type
    assert isinstance(type_, TileType)
    element = type_.element_type
    root = _shared_root(c, value, op) if type_.memory_space == views.SHARED else None

    def flat(found: SSAValue) -> list[SSAValue]:
        tile = c.tile(found)
        matrix = tile.matrix
        some = (*matrix.sizes, *matrix.strides, tile.row, tile.column)
        return [_base(c, matrix.start, element, root), *map(c.index, some)]

    def whole(parts: Sequence[SSAValue]) -> Tile:
        base, rows, columns, down, right, row, column = parts
        start = _start(base, root)
        return Tile(Matrix(start, element, (rows, columns), (down, right)), row, column)

    return _carried(c, [i64 if root is None else _INDEX, *[_INDEX] * 6], flat, whole)


def _shared_root(c: conversion.Converter, value: SSAValue, op: Operation) -> SSAValue:
    """Return the only shared memory that a tile can be in; refuse several."""
    roots = {
        c.view(each.source).start.root if c.has(each.source) else None
        for each in tile_origins(value)
    }
    (root,) = roots if len(roots) == 1 else (None,)
    if root is None:
        raise c.refusal(op, "it carries tiles of several shared memories")
    return root


def _base(
    c: conversion.Converter, start: Start, element: Attribute, root: SSAValue | None
) -> SSAValue:
    if root is None:
        return views.address(c, start, views.stored_bytes(element))
    return c.index(start.offset)


def _start(base: SSAValue, root: SSAValue | None) -> Start:
    return Start(base) if root is None else Start(root, base, views.SHARED)


def _scattered(c: conversion.Converter, value: SSAValue, op: Operation) -> Carried:
    """Return how a scatter tile is carried: indices, and the base if it may differ."""
    type_ = value.type
    assert isinstance(type_, TileType)
    shape, element = type_.shape, type_.element_type
    indices = fragment_types(vector_of(_INDEX, *shape))
    origins = list(tile_origins(value))
    root = _shared_root(c, value, op) if type_.memory_space == views.SHARED else None
    bounded = all(each.mixed_sizes or shape_of(each.source.type) for each in origins)

    def flat(found: SSAValue) -> list[SSAValue]:
        tile = c.scattered(found)
        base = _base(c, tile.start, element, root)
        size = tile.size if bounded and tile.size is not None else 0
        return [base, c.index(size), c.index(tile.stride), *tile.indices.parts]

    def whole(parts: Sequence[SSAValue]) -> Scattered:
        base, size, stride, *rest = parts
        found = Fragments(shape, _INDEX, rest)
        start = _start(base, root)
        return Scattered(start, element, size if bounded else None, stride, found)

    head = [i64 if root is None else _INDEX, _INDEX, _INDEX]
    return _carried(c, [*head, *indices], flat, whole)


def _memref(c: conversion.Converter, value: SSAValue, op: Operation) -> Carried:
    """Return how a memref is carried: address, sizes and strides."""
    type_ = memref_type(value)
    if memory_space_of(type_) == views.SHARED:
        raise c.refusal(op, "it carries a view of shared memory")
    rank, element = len(type_.get_shape()), type_.element_type

    def flat(found: SSAValue) -> list[SSAValue]:
        view = c.view(found)
        base = _base(c, view.start, element, None)
        return [base, *map(c.index, (*view.sizes, *view.strides))]

    def whole(parts: Sequence[SSAValue]) -> View:
        start, sizes = Start(parts[0]), tuple(parts[1 : 1 + rank])
        return View(start, element, sizes, tuple(parts[1 + rank :]), start)

    return _carried(c, [i64, *[_INDEX] * (2 * rank)], flat, whole)


RULES: dict[type[Operation], conversion.Rule] = {
    scf.ForOp: convert_for,
    scf.WhileOp: convert_while,
    scf.IfOp: convert_if,
    scf.YieldOp: conversion.nothing,  # `xetl.ir.conversion` adds terminators
    scf.ConditionOp: conversion.nothing,
}
