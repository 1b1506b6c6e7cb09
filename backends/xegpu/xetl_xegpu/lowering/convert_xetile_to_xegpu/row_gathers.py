"""Gathers of rows: ``X[rows[:, None], first + arange(n)]``, a tile of one row each.

The front end adds the offsets of the rows, a column, to the columns, a row. It replaces
the sum where a row or a column is outside. A message finds a row by its number, and
what lies outside is zero, so messages need neither the sum nor the mask.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from xdsl.ir import Operation, SSAValue

from xetl.analysis.affine import divisor
from xetl.dialects import xetile
from xetl.dialects.base import shape_of
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, memref, vector

OpT = TypeVar("OpT", bound=Operation)


class RowGather(NamedTuple):
    """Rows of a matrix. The operands of operations follow the conversion.

    Attributes:
        cast: its source is the matrix.
        rows: the number of each row, as a column.
        start: its operand is the first column.
        divisor: a divisor of the first column.
    """

    cast: memref.ReinterpretCastOp
    rows: SSAValue
    start: vector.BroadcastOp
    divisor: int


def row_gather(op: xetile.LoadGatherOp) -> RowGather | None:
    """Return the rows that a gather loads. Return None if it may not load rows."""
    tile, mask = _made_by(op.tile, xetile.InitTileOp), op.mask.owner
    is_plain = isinstance(mask, arith.ConstantOp) and splat_value(mask.value)
    if tile is None or not is_plain or (op.padding and splat_value(op.padding)):
        return None
    cast = _made_by(tile.source, memref.ReinterpretCastOp)
    select = _made_by(tile.indices, arith.SelectOp)
    both = select and _made_by(select.condition, arith.AndiOp)
    whole = select and _made_by(select.true_value, arith.AddiOp)
    if cast is None or both is None or whole is None:
        return None
    row, column = _bound(both.lhs), _bound(both.rhs)
    shapes = [each and shape_of(each.lhs.type) for each in (row, column)]
    if not shapes[0] or not shapes[1] or (shapes[0][-1], shapes[1][0]) != (1, 1):
        return None  # for example, the rows are the columns of the result
    below = _made_by(whole.lhs, arith.AddiOp)
    if row is None or column is None or below is None:
        return None
    pitches = _made_by(_spread(below.rhs), arith.MuliOp)
    start = _start(column.lhs)
    if pitches is None or start is None or _spread(whole.rhs) is not column.lhs:
        return None
    if pitches.lhs is not row.lhs:
        return None
    return RowGather(cast, row.lhs, start, divisor(start.operands[0]))


def _made_by(value: SSAValue | None, kind: type[OpT]) -> OpT | None:
    owner = None if value is None else value.owner
    return owner if isinstance(owner, kind) else None


def _spread(value: SSAValue) -> SSAValue | None:
    """Return the row or the column that is repeated to a matrix."""
    op = _made_by(value, xetile.TileBroadcastOp)
    return None if op is None else op.operands[0]


def _bound(mask: SSAValue) -> arith.CmpiOp | None:
    """Return the comparison of an index with the size of its array."""
    op = _made_by(_spread(mask), arith.CmpiOp)
    return op if op is not None and "xetile.bounds" in op.attributes else None


def _start(columns: SSAValue) -> vector.BroadcastOp | None:
    """Return what is added to 0, 1, 2, ... in a row of columns."""
    op = _made_by(columns, arith.AddiOp)
    steps = op and _made_by(op.rhs, vector.ShapeCastOp)
    if (
        op is None
        or steps is None
        or _made_by(steps.operands[0], vector.StepOp) is None
    ):
        return None
    return _made_by(op.lhs, vector.BroadcastOp)
