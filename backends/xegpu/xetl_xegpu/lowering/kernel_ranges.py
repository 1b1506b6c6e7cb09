"""Ranges of integers in a kernel at stage ``lanes``, from what launches check."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import ModuleOp

from xetl.analysis.ranges import Range, Ranges
from xetl.dialects.base import ints_of
from xetl_xegpu import simt
from xetl_xegpu.limits import LEAST_WIDTH, LIMIT, MOST_PROGRAMS
from xetl_xegpu.lowering.record_arguments import (
    ARGUMENTS,
    BLOCK_ARGUMENTS,
    FOLDED,
    passed_arguments,
)

_EXTENT = Range(1, LIMIT - 1)
"""The rows or columns of a matrix that block messages move."""
_FOLDED_EXTENT = Range(1, LIMIT * LEAST_WIDTH - 1)
"""The elements of an array that they move as rows of 64 bytes."""


def kernel_ranges(module: ModuleOp, kernel: simt.FuncOp) -> Ranges:
    """Return ranges in ``kernel``. Launches check the matrices of block messages."""
    subgroups = prod(kernel.lanes) // simt.SUBGROUP_SIZE
    ranges = Ranges(subgroups)
    moved = ints_of(kernel.attributes.get(BLOCK_ARGUMENTS))
    for op in kernel.walk():
        if isinstance(op, simt.SubgroupIdOp):
            ranges.say(op.result, Range(0, subgroups - 1))
        elif moved and isinstance(op, simt.GroupIdOp):
            ranges.say(op.result, Range(0, MOST_PROGRAMS - 1))
    extent = _FOLDED_EXTENT if FOLDED in kernel.attributes else _EXTENT
    # A text that begins at this stage has no recorded arguments.
    if moved and ARGUMENTS in module.attributes:
        passed = passed_arguments(module, kernel.body.block.args)
        for number, (*_, extents, matrix) in enumerate(passed):
            for dim in extents.keys() & matrix if number in moved else ():
                ranges.say(extents[dim], extent)
    return ranges
