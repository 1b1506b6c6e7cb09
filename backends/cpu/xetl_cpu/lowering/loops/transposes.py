"""Blocks that are transposed in registers: as many vectors as a vector has lanes.

A loop across contiguous memory would gather its elements one by one. Instead, a block
of ``lanes`` x ``lanes`` is loaded in vectors along memory, and log2(lanes) steps of
shuffles exchange lanes and vectors.

Before: ``for row { for column chunk { gather } }``
After:  ``for row block { for column chunk { lanes loads; shuffles; lanes uses } }``
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from xetl.codegen.memref import static_strides
from xetl.codegen.types import byte_width
from xetl.dialects.base import is_vector, memref_type, vector_type
from xetl.dialects.upstream import arith, vector
from xetl.dialects.xetile import LoadTileOp, TileConvLayoutOp, TileTransposeOp
from xetl.ir.builder import Builder
from xetl.worklist import Worklist
from xetl_cpu.lowering.loops.state import (
    MOST_APART,
    Matrix,
    State,
    TileAt,
    has_functions,
    is_narrow,
    shape_of,
)
from xetl_cpu.microkernels.transposing import transposed

_ELEMENTWISE = ("arith.", "math.")


def transposed_rows(build: Builder, vectors: Sequence[SSAValue]) -> list[SSAValue]:
    """Return vectors of which vector i has lane i of each; as many as lanes, 2^n."""
    width = byte_width(vector_type(vectors[0]).element_type)

    def shuffle(a: SSAValue, b: SSAValue, mask: list[int]) -> SSAValue:
        return build.insert(vector.ShuffleOp(a, b, mask=mask))

    return transposed(vectors, width, shuffle)


def lies_across(matrix: Matrix, flipped: bool = False) -> bool:
    """True if columns, but not rows, are known to be contiguous.

    ``flipped``: rows and columns are swapped.
    """
    down, right = static_strides(memref_type(matrix.memref))[:: -1 if flipped else 1]
    return down == 1 and right != 1


def steps_of(tile: TileAt, else_: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of a row that are worth a way of their own, or ``else_``.

    If columns are contiguous, the stride is the distance of rows. It is small if the
    tile is all of a narrow matrix.
    """
    if not lies_across(tile.matrix):
        return else_
    across = tile.shape[0]
    return (across,) if 1 < across <= MOST_APART else ()


def goes_down(state: State, value: SSAValue, tile: TileAt) -> bool:
    """Whether stores follow columns: these, but not rows, are contiguous in memory.

    Functions of narrow rows go down as well: along rows, lanes would stay empty.
    """
    rows, cols = tile.shape
    if cols == 1 or (rows > 1 and lies_across(tile.matrix)):
        return True
    if not (state.target.has_masks and is_narrow(tile.shape, state.lanes)):
        return False
    return has_functions(state, value)


def reads_across(state: State, value: SSAValue, flipped: bool = False) -> bool:
    """Whether a row of the value is computed from elements of a column in memory.

    ``flipped``: whether a column is, from elements of a row.
    """
    waiting = Worklist([(value, flipped)])
    for each, flipped in waiting:
        op, buffer = each.owner, state.buffers.get(each)
        if not isinstance(op, Operation):
            continue
        if buffer is not None:
            if flipped and not buffer.is_column and shape_of(each)[0] > 1:
                return True
        elif isinstance(op, LoadTileOp):
            tile = state.tiles[op.tile]
            if isinstance(tile, TileAt) and lies_across(tile.matrix, flipped):
                return True
        elif isinstance(op, TileTransposeOp | TileConvLayoutOp):
            turned = isinstance(op, TileTransposeOp)
            waiting += [(op.operands[0], flipped != turned)]
        elif op.name.startswith(_ELEMENTWISE) and not isinstance(op, arith.ConstantOp):
            waiting += [(v, flipped) for v in op.operands if is_vector(v.type)]
    return False
