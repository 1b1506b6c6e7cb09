"""Products of a few rows: B is read where it is, where that is possible."""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.dialects.upstream import arith
from xetl_cpu.dialect import BrgemmTileOp, SkinnyGemmOp
from xetl_cpu.lowering.loops.build import Build, Index
from xetl_cpu.lowering.loops.state import Buffer, Factor
from xetl_cpu.microkernels import Blocking
from xetl_cpu.microkernels.low_blocks import is_low
from xetl_cpu.microkernels.skinny import is_skinny


def may_stream(blocking: Blocking, a: Factor, b: Factor) -> bool:
    """Whether strides and types allow to leave both operands where they are."""
    if not a.matrix.is_contiguous():
        return False
    along_n = b.matrix.is_contiguous()
    if is_skinny(blocking):
        return along_n or b.matrix.transposed().is_contiguous()
    return along_n and is_low(blocking)


def exist(build: Build, a: Factor, b: Factor, extents: tuple[Index, ...]) -> SSAValue:
    """Whether all of both operands is there: nothing of (rows, k, cols) is padding."""
    rows, k, cols = extents
    pairs = ((a.rows, rows), (a.cols, k), (b.rows, k), (b.cols, cols))
    tests = [build.compare("sge", have, wanted) for have, wanted in pairs]
    found, *others = tests
    for other in others:
        found = build.insert(arith.AndiOp(found, other))
    return found


def multiply(
    build: Build,
    op: BrgemmTileOp,
    a: Factor,
    b: Factor,
    extents: tuple[Index, ...],
    result: Buffer,
) -> None:
    """The whole product in one call."""
    rows, k, cols = extents
    left = [a.matrix.memref, *map(build.value, (a.row, a.col, rows, k))]
    right = [b.matrix.memref, *map(build.value, (b.row, b.col, cols))]
    build.emit(SkinnyGemmOp(op.user_tile(), [*left, *right, result.memref]))
