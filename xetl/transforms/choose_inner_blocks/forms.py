"""Which operations work on values in blocks as they do on plain ones, and how.

An operation relates the axes of its operands and results, and says, once blocks are
chosen, in what blocks it takes each operand and gives each result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from xetl.analysis.axes import (
    Axis,
    is_matrix,
    matrices,
    shape_of,
    transposed,
    with_ones,
)
from xetl.analysis.control_flow import carried_together
from xetl.analysis.slicing import (
    Slice,
    has_whole_blocks,
    is_of_matrices,
    limits_of_slice,
    relations_of_slice,
    whole_and_part,
)
from xetl.devices import Block
from xetl.dialects import traits
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.xetile import TileBroadcastOp, TileReduceOp, TileTransposeOp
from xetl.records import record

Chosen: TypeAlias = Callable[[SSAValue], Block | None]
"""The blocks that the readers of a value share; None: it stays plain."""
Blocks: TypeAlias = tuple[Block | None, ...]


@record(frozen=True)
class Form:
    """In what blocks an operation takes each operand and gives each result.

    None is plain, and whatever is no matrix.
    """

    operands: Blocks
    results: Blocks


CARRYING = scf.ForOp | scf.IfOp | scf.WhileOp
"""Operations that hand values on as they are."""


def is_uniform(op: Operation) -> bool:
    """Whether all elements of the result are one number: blocks do not matter."""
    if not op.results or not is_matrix(op.results[0].type):
        return False
    if isinstance(op, arith.ConstantOp):
        return splat_value(op.value) is not None
    return isinstance(op, vector.BroadcastOp) and not is_vector(op.source.type)


def is_elementwise(op: Operation) -> bool:
    """Whether each element of the result depends on those at its place alone."""
    if not traits.is_elementwise(op):
        return False
    shapes = {shape_of(value) for value in matrices(op)}
    return len(shapes) == 1


def relations(op: Operation) -> Iterator[tuple[Axis, Axis]]:
    """Pairs of axes that this operation wants cut alike."""
    for group in carried_together(op):
        if is_matrix(group[0].type):
            yield from _same(group)
    if isinstance(op, Slice) and is_of_matrices(op):
        yield from relations_of_slice(op)
    if is_elementwise(op):
        yield from _same(tuple(matrices(op)))
    elif not matrices(op):
        return
    elif isinstance(op, TileTransposeOp):
        yield (op.source, 0), (op.result, 1)
        yield (op.source, 1), (op.result, 0)
    elif isinstance(op, TileReduceOp | TileBroadcastOp) and _is_whole(op):
        for dim in (0, 1):
            if dim not in op.dims:
                yield (op.source, dim), (op.result, dim)


def limits_of(op: Operation) -> Iterator[tuple[Axis, int]]:
    """Numbers that the blocks along an axis must divide, where ``op`` may use them."""
    if isinstance(op, Slice) and is_of_matrices(op):
        joined = {axis for pair in relations_of_slice(op) for axis in pair}
        for axis, number in limits_of_slice(op):
            if axis in joined:
                yield axis, number


def _same(values: tuple[SSAValue, ...]) -> Iterator[tuple[Axis, Axis]]:
    for other in values[1:]:
        yield (values[0], 0), (other, 0)
        yield (values[0], 1), (other, 1)


def _is_whole(op: TileReduceOp | TileBroadcastOp) -> bool:
    """Groups of a reduction may be cut by blocks: these stay plain."""
    return isinstance(op, TileBroadcastOp) or op.reduction_size is None


def form_of(op: Operation, chosen: Chosen) -> Form:
    """How ``op`` works on what was chosen; plain if it knows no blocks."""
    if is_uniform(op) or is_elementwise(op) or isinstance(op, CARRYING):
        return Form(_all(op.operands, chosen), _all(op.results, chosen))
    if isinstance(op, scf.YieldOp | scf.ConditionOp):
        inside = isinstance(op.parent_op(), CARRYING)
        return Form(_all(op.operands, chosen), ()) if inside else plain(op)
    if not any(is_matrix(value.type) for value in op.operands):
        return plain(op)
    if isinstance(op, Slice) and is_of_matrices(op):
        return _form_of_slice(op, chosen)
    if isinstance(op, TileTransposeOp):
        source = chosen(op.source)
        return Form((source,), (transposed(source),))
    if isinstance(op, TileReduceOp) and _is_whole(op):
        source = chosen(op.source)
        return Form((source,), (with_ones(source, op.dims),))
    if isinstance(op, TileBroadcastOp):
        result = chosen(op.result)
        return Form((with_ones(result, op.dims),), (result,))
    return plain(op)


def _form_of_slice(op: Slice, chosen: Chosen) -> Form:
    """In blocks if the part is whole ones, of the size the part's readers share."""
    whole, part = map(chosen, whole_and_part(op))
    if whole is None or whole != part or not has_whole_blocks(op, whole):
        return plain(op)
    return Form((whole,) * len(op.operands), (whole,))


def plain(op: Operation) -> Form:
    """Nothing in blocks."""
    return Form((None,) * len(op.operands), (None,) * len(op.results))


def _all(values: Iterable[SSAValue], chosen: Chosen) -> Blocks:
    return tuple(chosen(v) if is_matrix(v.type) else None for v in values)
