"""Operations on each element alone, and values that are known everywhere."""

from __future__ import annotations

from xdsl.ir import Operation

from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.parts import rebuilt
from xetl.transforms.subgroups.replicated import compute_by_all
from xetl.transforms.subgroups.slicing import derived_parts


def distribute_elementwise(d: Distributor, op: Operation) -> None:
    """The same operation on each part; scalars serve all parts."""
    layout = d.layout(op.results[0])
    types = [d.part_type(result) for result in op.results]
    count = d.count(op.results[0])
    operands = [d.parts_for(operand, layout, count) for operand in op.operands]
    new = [
        d.team.add(rebuilt(op, list(of_part), types)).results
        for of_part in zip(*operands)
    ]
    for number, result in enumerate(op.results):
        d.give(result, [results[number] for results in new], layout)


def derive_or_compute_by_all(d: Distributor, op: Operation) -> None:
    """Parts from where they begin, if they depend on nothing that is distributed."""
    (result,) = op.results
    parts = derived_parts(d.team, result, d.layout(result))
    if parts is None:
        compute_by_all(d, op)
    else:
        d.give_parts(result, parts, d.layout(result))
