"""What has no distributed form: every subgroup, or one of them, works on all of it."""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import vector_type
from xetl.dialects.kinds_of_types import is_vector
from xetl.dialects.upstream import vector
from xetl.transforms.remarks import remark
from xetl.transforms.subgroups.distributor import Distributor
from xetl.transforms.subgroups.exchange import share
from xetl.transforms.subgroups.guarding import guarded, is_leader
from xetl.transforms.subgroups.parts import is_distributed, rebuilt


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
