"""Rules for elementwise operations and for what every subgroup, or one, does alone."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import arith, gpu, vector
from xetl.transforms.distribute_to_subgroups.context import guarded, is_leader
from xetl.transforms.distribute_to_subgroups.distributor import Distributor, Rule
from xetl.transforms.distribute_to_subgroups.exchange import share
from xetl.transforms.distribute_to_subgroups.parts import is_distributed, rebuilt
from xetl.transforms.distribute_to_subgroups.slicing import derived_parts
from xetl.transforms.remarks import remark


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


def compute_by_all(d: Distributor, op: Operation) -> None:
    """Every subgroup computes the whole result from whole operands."""
    if d.team.subgroups > 1 and any(is_distributed(each) for each in op.operands):
        remark(op, "subgroups", "every subgroup computes this from the whole value")
    operands = [d.whole(each) for each in op.operands]
    new = d.team.add(rebuilt(op, operands, [result.type for result in op.results]))
    for old, result in zip(op.results, new.results):
        d.give_whole(old, result)


def do_by_one(d: Distributor, op: Operation) -> None:
    """One subgroup does what must be done once; all get its results."""
    operands = [d.whole(each) for each in op.operands]
    types = [result.type for result in op.results]
    used = [each for each in op.results if each.uses]

    def build() -> list[SSAValue]:
        new = d.team.add(rebuilt(op, operands, types))
        return [new.results[each.index] for each in used]

    leader = is_leader(d.team)
    found = guarded(d.team, leader, [each.type for each in used], build)
    for old, new in zip(used, found):
        d.give_whole(old, new if leader is None else from_leader(d, new))


def from_leader(d: Distributor, value: SSAValue) -> SSAValue:
    """A value that one subgroup has, in all of them; of any rank."""
    add = d.team.add
    if not is_vector(value.type):
        single = VectorType(value.type, [1, 1])
        shared = _share(d, add(vector.BroadcastOp(value, single)).result)
        return add(vector.ExtractOp(shared, [0, 0])).result
    type_ = vector_type(value)
    row = VectorType(type_.element_type, [1, type_.element_count()])
    shared = _share(d, add(vector.ShapeCastOp(value, row)).result)
    return add(vector.ShapeCastOp(shared, type_)).result


def _share(d: Distributor, value: SSAValue) -> SSAValue:
    shape = vector_type(value).get_shape()
    (shared,) = share(d.team, [value], shape, d.everything(shape))
    return shared


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
