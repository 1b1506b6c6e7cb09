"""Ranges of integers in a kernel at stage ``lanes``, from what launches check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from xetl.analysis.ranges import Range, Ranges
from xetl.dialects.base import ints_of
from xetl_xegpu import simt
from xetl_xegpu.limits import LIMIT, MOST_PROGRAMS
from xetl_xegpu.lowering.record_arguments import (
    ARGUMENTS,
    BLOCK_ARGUMENTS,
    Described,
    recorded_arguments,
)

_EXTENT = Range(1, LIMIT - 1)
"""The rows or columns of a matrix that block messages move."""
_PROGRAM = Range(0, MOST_PROGRAMS - 1)


def kernel_ranges(module: ModuleOp, kernel: simt.FuncOp) -> Ranges:
    """Return ranges in ``kernel``. Launches check the matrices of block messages."""
    subgroups = prod(kernel.lanes) // simt.SUBGROUP_SIZE
    ranges = Ranges(subgroups)
    moved = ints_of(kernel.attributes.get(BLOCK_ARGUMENTS))
    for op in kernel.walk():
        if isinstance(op, simt.SubgroupIdOp):
            ranges.say(op.result, Range(0, subgroups - 1))
        elif moved and isinstance(op, simt.GroupIdOp):
            ranges.say(op.result, _PROGRAM)
    # A text that begins at this stage has no recorded arguments.
    if moved and ARGUMENTS in module.attributes:
        for size in _block_sizes(kernel, moved, recorded_arguments(module)):
            ranges.say(size, _EXTENT)
    return ranges


def _block_sizes(
    kernel: simt.FuncOp, moved: Sequence[int], arguments: list[Described]
) -> Iterator[SSAValue]:
    """Yield the numbers of rows and columns of the arrays ``moved`` by blocks."""
    given = iter(kernel.body.block.args)
    for number, (kind, sizes, strides, matrix) in enumerate(arguments):
        next(given)  # a number, or the address of an array
        if kind != "array":
            continue
        extents = {dim: next(given) for dim in sizes}
        for _ in strides:
            next(given)
        if number in moved:
            yield from (extents[dim] for dim in matrix if dim in extents)
