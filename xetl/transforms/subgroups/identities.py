"""What a kernel at workgroup level finds when it asks who runs it.

It is one for its workgroup, however many subgroups will share its work.
"""

from __future__ import annotations

from xdsl.ir import Operation

from xetl.dialects.upstream import arith, gpu
from xetl.transforms.subgroups.distributor import Distributor, Rule


def _number(value: int) -> Rule:
    def replace(d: Distributor, op: Operation) -> None:
        new = d.team.insert(arith.ConstantOp.index(value))
        op.results[0].replace_all_uses_with(new)

    return replace


def _block_id(d: Distributor, op: gpu.GlobalIdOp) -> None:
    """Of items that there is one of in each block."""
    new = d.team.insert(gpu.BlockIdOp(op.dimension))
    op.result.replace_all_uses_with(new)


IDENTITY_RULES: dict[type[Operation], Rule] = {
    gpu.ThreadIdOp: _number(0),
    gpu.SubgroupIdOp: _number(0),
    gpu.BlockDimOp: _number(1),
    gpu.NumSubgroupsOp: _number(1),
    gpu.GlobalIdOp: _block_id,
}
