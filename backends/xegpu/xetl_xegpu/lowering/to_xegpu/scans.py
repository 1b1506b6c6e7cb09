"""Sums up to each element: row after row, or across lanes by wider and wider shuffles.

Source: Hillis and Steele, "Data parallel algorithms", 1986.  Sums of f16 and bf16 run
in f32; each result is rounded once.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.reduction_kinds import identity_of, operation_of, sums_run_in
from xetl.dialects.upstream import vector
from xetl.dialects.xetile import TileScanOp
from xetl_xegpu.lowering.fragments import LANES
from xetl_xegpu.lowering.to_xegpu.elementwise import narrowed, widened
from xetl_xegpu.lowering.to_xegpu.lines import assembled, element_line
from xetl_xegpu.lowering.to_xegpu.values import Pieces, vector_of
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule


def _scan(c: Converter, op: TileScanOp) -> None:
    source, kind = c.pieces(op.source), op.kind.data
    sums = sums_run_in(kind, source.element)
    wide = [widened(c, part, sums) for part in source.parts]
    pieces = Pieces(source.shape, sums, wide)
    scan = _down if op.dim == 0 else _right
    lines = scan(c, kind, pieces)
    grid, element = source.grid, vector_type(op.result).element_type
    parts = assembled(c, grid, sums, lambda row, group: lines[row, group])
    c.give_parts(op.result, [narrowed(c, part, element) for part in parts])


def _down(c: Converter, kind: str, source: Pieces) -> dict[tuple[int, int], SSAValue]:
    """Each row with all above it."""
    grid, combine = source.grid, operation_of(kind, source.element)
    found: dict[tuple[int, int], SSAValue] = {}
    for group in range(grid.groups):
        for row in range(grid.rows):
            line = element_line(c, source, row, group)
            if row:
                line = c.emit.value(combine(found[row - 1, group], line))
            found[row, group] = line
    return found


def _right(c: Converter, kind: str, source: Pieces) -> dict[tuple[int, int], SSAValue]:
    """Each column with all to its left: in groups of 16, then these one by one."""
    grid, combine = source.grid, operation_of(kind, source.element)
    found: dict[tuple[int, int], SSAValue] = {}
    for row in range(grid.rows):
        before: SSAValue | None = None
        for group in range(grid.groups):
            line = element_line(c, source, row, group)
            if grid.spread:
                line = _across(c, kind, source, line)
            if before is not None:
                line = c.emit.value(combine(c.spread(before, LANES), line))
            found[row, group] = line
            if group + 1 < grid.groups:
                before = c.emit.value(vector.ExtractOp(line, [LANES - 1]))
    return found


def _across(c: Converter, kind: str, source: Pieces, line: SSAValue) -> SSAValue:
    element = source.element
    combine = operation_of(kind, element)
    neutral = c.emit.constant(identity_of(kind, element), vector_of(element, LANES))
    reach = 1
    while reach < LANES:
        # The lanes without a partner at this distance take what changes nothing.
        order = [
            lane if lane < reach else LANES + lane - reach for lane in range(LANES)
        ]
        shifted = c.emit.value(vector.ShuffleOp(neutral, line, order))
        line = c.emit.value(combine(shifted, line))
        reach *= 2
    return line


RULES: dict[type[Operation], Rule] = {TileScanOp: _scan}
