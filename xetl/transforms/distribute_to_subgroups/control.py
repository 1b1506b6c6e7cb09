"""Loops and conditionals: what they carry becomes as many values as there are parts.

Conditions and bounds are scalars, so all subgroups go the same way.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from xetl.dialects.upstream import scf
from xetl.ir.conversion import convert_for, convert_if, convert_while
from xetl.transforms.diagnostics import refusal
from xetl.transforms.distribute_to_subgroups.distributor import Distributor
from xetl.transforms.distribute_to_subgroups.parts import is_distributed, without_maps


def distribute_control(d: Distributor, op: Operation) -> None:
    """A loop, a conditional or other regions that may carry parts."""
    arguments = [a for region in op.regions for b in region.blocks for a in b.args]
    convert: Any = _LOOPS.get(type(op), convert_if)
    if not any(is_distributed(value) for value in (*op.results, *arguments)):
        _distribute_inside(d, op)
        return
    if arguments and convert is convert_if:
        raise refusal(
            op, "it carries values of a workgroup", "use `scf.for` or `scf.while`"
        )
    new: Operation = convert(d, op)
    new.attributes |= without_maps(op.attributes)


def _distribute_inside(d: Distributor, op: Operation) -> None:
    """What carries nothing that is distributed stays, around new operations."""
    d.keep(op)
    for region in op.regions:
        for block in region.blocks:
            d.run(list(block.ops))


_LOOPS: dict[type[Operation], Any] = {
    scf.ForOp: convert_for,
    scf.WhileOp: convert_while,
}
