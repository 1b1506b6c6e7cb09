"""Parts of values that a subgroup can compute by itself from the origin of the part.

Such values are constants, index ranges, masks by bounds and all arithmetic on them: a
part of ``step + 1`` is ``step + (origin + 1)``. No subgroup holds more than it owns,
and no data moves between subgroups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, VectorType
from xdsl.ir import Attribute, Operation, SSAValue

from xetl.dialects import base
from xetl.dialects.literals import splat_bytes
from xetl.dialects.traits import is_elementwise
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import TileBroadcastOp, TileTransposeOp
from xetl.language.distribution import Layout
from xetl.transforms.distribute_to_subgroups import context
from xetl.transforms.propagate_wg_maps.rules import is_line
from xetl.worklist import Worklist

Origin: TypeAlias = Sequence[base.Index]
Slicer: TypeAlias = Callable[[context.Subgroups, Any, Origin, base.Vector], SSAValue]
"""Makes a part of an operation's result, given its origin and its type."""

_LONGEST_CHAIN = 16
"""The most operations that a subgroup repeats to avoid an exchange of their result."""


def derived_parts(
    team: context.Subgroups, value: SSAValue, layout: Layout
) -> list[SSAValue] | None:
    """Compute the parts of ``value`` in a layout. Return None if that is impossible."""
    type_ = base.vector_type(value)
    shape = type_.get_shape()
    part = VectorType(type_.element_type, layout.sg_data)
    numbers = range(context.count_parts(shape, layout))
    starts = [team.origin(shape, layout, number) for number in numbers]
    if not all(_is_derivable(value, origin) for origin in starts):
        return None
    return [slice_of(team, value, origin, part) for origin in starts]


def _is_derivable(value: SSAValue, origin: Origin) -> bool:
    """Whether all operations that a value depends on can be sliced at ``origin``."""
    waiting = Worklist([value])
    for current in waiting:
        owner = current.owner
        if not isinstance(owner, Operation) or len(waiting.seen) > _LONGEST_CHAIN:
            return False
        if _slicer_of(owner) is None or not _fits(owner, origin):
            return False
        waiting += [each for each in owner.operands if base.is_vector(each.type)]
    return True


def _fits(op: Operation, origin: Origin) -> bool:
    """Whether this operation, whose kind has a slicer, can be sliced at ``origin``."""
    if isinstance(op, arith.ConstantOp):
        if not base.is_dense(op.value):
            return False
        fixed = all(isinstance(start, int) for start in origin)
        return fixed or splat_bytes(op.value) is not None
    if isinstance(op, vector.ShapeCastOp):
        return is_line(op.source) and is_line(op.result)
    if isinstance(op, TileTransposeOp | vector.TransposeOp):
        return base.ints_of(op.permutation) == (1, 0)
    return True


def slice_of(
    team: context.Subgroups, value: SSAValue, origin: Origin, type_: base.Vector
) -> SSAValue:
    """Return the part of a derivable vector at ``origin``; a scalar unchanged."""
    if not base.is_vector(value.type):
        return value
    owner = value.owner
    assert isinstance(owner, Operation)
    slicer = _slicer_of(owner)
    assert slicer is not None
    return slicer(team, owner, origin, type_)


def _slicer_of(op: Operation) -> Slicer | None:
    found = _SLICERS.get(type(op))
    return _slice_operands if found is None and is_elementwise(op) else found


def resized(type_: Attribute, shape: Sequence[int]) -> Any:
    """Return a vector type with another shape; return any other type unchanged."""
    return VectorType(type_.element_type, shape) if base.is_vector(type_) else type_


def cut(dense: base.Dense, origin: Origin, type_: base.Vector) -> Attribute:
    """Return the part of a constant at ``origin``, which is ints or all are equal."""
    size = dense.type.element_type.compile_time_size
    one = splat_bytes(dense)
    if one is not None:
        data = one * type_.element_count()
    else:
        data = _cut(dense.data.data, dense.get_shape(), origin, type_.get_shape(), size)
    return DenseIntOrFPElementsAttr(type_, BytesAttr(data))  # pyright: ignore[reportArgumentType] (elements may be anything here)


def _cut(
    data: bytes, shape: Sequence[int], origin: Origin, extents: Sequence[int], size: int
) -> bytes:
    """Some rows of bytes, and of each some elements; any number of dimensions."""
    if not shape:
        return data
    stride = len(data) // shape[0]
    first = origin[0]
    assert isinstance(first, int)
    rows = [
        data[row * stride : (row + 1) * stride]
        for row in range(first, first + extents[0])
    ]
    return b"".join(_cut(r, shape[1:], origin[1:], extents[1:], size) for r in rows)


def _slice_operands(
    team: context.Subgroups, op: Operation, origin: Origin, type_: base.Vector
) -> SSAValue:
    """Compute a part of a result from parts of the operands; see `_PLACES`."""
    place_in = _PLACES.get(type(op), lambda _, start, size: (start, size))
    operands = list[SSAValue]()
    for each in op.operands:
        starts, sizes = place_in(base.shape_of(each.type), origin, type_.get_shape())
        operands.append(slice_of(team, each, starts, resized(each.type, sizes)))
    return team.insert(context.rebuilt(op, operands, [type_]))


def _place_before_broadcast(shape: _Shape, origin: Origin, extents: _Shape) -> _Place:
    places = list(zip(shape, origin[-len(shape) :], extents[-len(shape) :]))
    starts = [0 if extent == 1 else start for extent, start, _ in places]
    return starts, [1 if extent == 1 else size for extent, _, size in places]


def _place_in_line(shape: _Shape, origin: Origin, extents: _Shape) -> _Place:
    """Return the place in one line of elements: in a row, a column or rank 1."""
    start: base.Index = 0
    for each in origin:
        start = start if each == 0 else each
    starts = [start if extent > 1 else 0 for extent in shape]
    return starts, [prod(extents) if extent > 1 else 1 for extent in shape]


_Shape: TypeAlias = Sequence[int]
_Place: TypeAlias = tuple[Origin, _Shape]
_PLACES: dict[type[Operation], Callable[[_Shape, Origin, _Shape], _Place]] = {
    **dict.fromkeys((vector.BroadcastOp, TileBroadcastOp), _place_before_broadcast),
    **dict.fromkeys(
        (vector.TransposeOp, TileTransposeOp),
        lambda _, origin, extents: (origin[::-1], extents[::-1]),
    ),
    vector.ShapeCastOp: _place_in_line,
}
"""Where in an operand of this shape a part of the result comes from, and its extents;
from the same place, if nothing is said."""


def _slice_step(
    team: context.Subgroups, op: vector.StepOp, origin: Origin, type_: base.Vector
) -> SSAValue:
    step = team.insert(vector.StepOp(type_))
    if origin[0] == 0:
        return step
    start = team.index(origin[0])
    starts = team.insert(vector.BroadcastOp(start, type_))
    return team.insert(arith.AddiOp(step, starts))


def _slice_mask(
    team: context.Subgroups,
    op: vector.CreateMaskOp | vector.ConstantMaskOp,
    origin: Origin,
    type_: base.Vector,
) -> SSAValue:
    # Bounds may be out of range, also below 0.
    bounds = [
        team.index(team.minus(bound, start)) for bound, start in zip(op.bounds, origin)
    ]
    return team.insert(vector.CreateMaskOp(bounds, type_))


_SLICERS: dict[type[Operation], Slicer] = {
    **dict.fromkeys(_PLACES, _slice_operands),
    arith.ConstantOp: lambda team, op, origin, type_: team.insert(
        arith.ConstantOp(cut(op.value, origin, type_), type_)
    ),
    vector.StepOp: _slice_step,
    vector.CreateMaskOp: _slice_mask,
    vector.ConstantMaskOp: _slice_mask,
}
