"""A memref copied to another one: rows in loops, 16 elements at a time."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import Index
from xetl.dialects.upstream import memref, scf
from xetl_xegpu.lowering.fragments import LANES
from xetl_xegpu.lowering.to_xegpu.lines import Line
from xetl_xegpu.lowering.to_xegpu.rows import line_access, load_line, store_line
from xetl_xegpu.lowering.to_xegpu.scalars import element_start
from xetl_xegpu.lowering.to_xegpu.values import Matrix, Tile, View
from xetl_xegpu.lowering.to_xegpu.walker import Converter, Rule

_LINE = Line(0, 0, LANES, 1)


def _copy(c: Converter, op: memref.CopyOp) -> None:
    source, target = c.view(op.source), c.view(op.target)
    _nest(c, source, target, [], 0)


def _nest(
    c: Converter, source: View, target: View, at: Sequence[SSAValue], dim: int
) -> None:
    """A loop for each dimension; the last one goes in steps of a line."""
    sizes = source.sizes or (1,)
    last = dim == len(sizes) - 1
    body = Block(arg_types=[IndexType()])
    low, high, step = map(c.index, (0, sizes[dim], LANES if last else 1))
    with c.emit.inside(body):
        here = [*at, body.args[0]]
        if last:
            _copy_line(c, source, target, here, sizes[dim])
        else:
            _nest(c, source, target, here, dim + 1)
        c.emit.add(scf.YieldOp())
    c.emit.add(scf.ForOp(low, high, step, [], Region(body)))


def _copy_line(
    c: Converter, source: View, target: View, at: Sequence[SSAValue], size: Index
) -> None:
    tiles: list[Tile] = []
    for view in (source, target):
        start = element_start(c, view, at[:-1])
        stride = view.strides[-1] if view.strides else 1
        matrix = Matrix(start, view.element, (1, size), (0, stride))
        tiles.append(Tile(matrix, 0, at[-1]))
    value = load_line(c, line_access(c, tiles[0], _LINE, exact=True))
    store_line(c, line_access(c, tiles[1], _LINE, exact=True), value)


RULES: dict[type[Operation], Rule] = {memref.CopyOp: _copy}
