"""Who runs a kernel, where it waits and what it prints; the `index` dialect."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, ints_of
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, gpu
from xetl.dialects.upstream import xegpu as hints
from xetl.dialects.xetile import AssertOp, PrintOp
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.lowering.convert_xetile_to_xegpu.conversion import Converter, Rule
from xetl_xegpu.lowering.convert_xetile_to_xegpu.fragments import LANES


def _number(value: int) -> Rule:
    return lambda c, op: c.bind(op.results[0], c.index(value))


# Subgroups --------------------------------------------------------------------------


def _along(c: Converter, axis: int) -> Index:
    """The number of this subgroup along an axis: x is the fastest."""
    counts, number = c.along_axes, c.subgroup_id()
    if counts[axis] == 1:
        return 0
    for before in range(axis):
        number = _with(c, arith.DivuiOp, number, counts[before])
    if axis == 2:
        return number
    return _with(c, arith.RemuiOp, number, counts[axis])


def _with(c: Converter, make: Any, number: Index, by: int) -> Index:
    if by == 1:
        return 0 if make is arith.RemuiOp else number
    pair = c.index(number), c.index(by)
    return c.emit.shared(make, pair, lambda: make(*pair))


def _axis(op: Any) -> int:
    return "xyz".index(op.dimension.letter.data)


def _thread_id(c: Converter, op: gpu.ThreadIdOp) -> None:
    """At subgroup level a thread is a subgroup."""
    c.bind(op.results[0], c.index(_along(c, _axis(op))))


def _block_dim(c: Converter, op: gpu.BlockDimOp) -> None:
    c.bind(op.results[0], c.index(c.along_axes[_axis(op)]))


def _global_id(c: Converter, op: gpu.GlobalIdOp) -> None:
    axis = _axis(op)
    block = c.emit.shared(("block", axis), (), lambda: gpu.BlockIdOp(op.dimension))
    first = c.emit.times(block, c.along_axes[axis])
    c.bind(op.results[0], c.index(c.emit.plus(first, _along(c, axis))))


def _subgroup_id(c: Converter, op: gpu.SubgroupIdOp) -> None:
    c.bind(op.results[0], c.index(c.subgroup_id()))


def _num_subgroups(c: Converter, op: gpu.NumSubgroupsOp) -> None:
    c.bind(op.results[0], c.index(c.subgroups))


def _barrier(c: Converter, op: gpu.BarrierOp) -> None:
    """One subgroup waits for nobody, but its lanes read what others of them wrote.

    To a compiler that looks at one lane, no store before such a load concerns it.
    """
    c.keep(op)


# Debugging --------------------------------------------------------------------------


def _arguments(
    c: Converter, op: PrintOp | AssertOp
) -> tuple[list[SSAValue], list[tuple[int, ...] | None]]:
    """Scalars and fragments, and the shape of each value."""
    values: list[SSAValue] = []
    shapes: list[tuple[int, ...] | None] = []
    for argument in op.arguments:
        if not is_vector(argument.type):
            values.append(argument)
            shapes.append(None)
            continue
        pieces = c.fragments(argument)
        values += pieces.parts
        grid = pieces.grid
        flat = len(pieces.shape) == 1
        shapes.append(pieces.shape if flat else (grid.rows, grid.columns))
    return values, shapes


def _print(c: Converter, op: PrintOp) -> None:
    values, shapes = _arguments(c, op)
    unsigned = ints_of(op.unsigned)
    c.emit.add(
        xegpu.PrintOp(values, template=op.template, shapes=shapes, unsigned=unsigned)
    )


def _assert(c: Converter, op: AssertOp) -> None:
    values, shapes = _arguments(c, op)
    unsigned = ints_of(op.unsigned)
    c.emit.add(
        xegpu.AssertOp(
            op.condition, values, template=op.template, shapes=shapes, unsigned=unsigned
        )
    )


def _fence(c: Converter, op: xegpu.FenceOp) -> None:
    """As it is."""
    c.keep(op)


def _nothing(c: Converter, op: Operation) -> None:
    """A hint for another compiler."""


RULES: dict[type[Operation], Rule] = {
    gpu.ThreadIdOp: _thread_id,
    gpu.BlockDimOp: _block_dim,
    gpu.GlobalIdOp: _global_id,
    gpu.SubgroupIdOp: _subgroup_id,
    gpu.NumSubgroupsOp: _num_subgroups,
    gpu.SubgroupSizeOp: _number(LANES),
    gpu.LaneIdOp: _number(0),
    gpu.BarrierOp: _barrier,
    PrintOp: _print,
    AssertOp: _assert,
    hints.CompileHintOp: _nothing,
    xegpu.FenceOp: _fence,
}
