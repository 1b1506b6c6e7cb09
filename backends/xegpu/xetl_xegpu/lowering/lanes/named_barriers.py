"""Named barriers: for all subgroups of a workgroup, or for some.

One for all is a barrier in two halves.  One for some is a barrier of the device where
the subgroups wait.  Where some arrive only, they meet where they arrive; `meetings`
says why, and when not.  Source of the limits: what ocloc 26.27 takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from xetl.analysis.uniformity import find_divergence
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import gpu, scf
from xetl.dialects.upstream.xegpu import (
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
)
from xetl_xegpu import simt
from xetl_xegpu.dialect import AtomicRmwOp
from xetl_xegpu.lowering.lanes.meetings import (
    Turn,
    arrival_of,
    find_meetings,
    first_apart,
    first_out_of_order,
)
from xetl_xegpu.lowering.lanes.state import Lanes, NamedBarrier

_MOST = 31
"""Barriers of some subgroups in a kernel: the compiler fails with more."""


def init(lanes: Lanes, op: InitNbarrierOp) -> None:
    """Who meets, known before the kernel runs."""
    number = constant_index(op.nbarrier_id)
    count = constant_index(op.participant_thread_num)
    if number is None or count is None:
        raise lanes.refuse(
            op,
            "which subgroups meet at this named barrier is not known",
            "give constants for its number and for how many subgroups meet",
        )
    if not 0 < count <= lanes.subgroups:
        raise lanes.refuse(
            op,
            f"{count} subgroups meet at this named barrier, of {lanes.subgroups}",
            f"let 1 to {lanes.subgroups} subgroups meet",
        )
    for use in op.result.uses:
        if not isinstance(use.operation, NbarrierArriveOp | NbarrierWaitOp):
            raise _refuse_carried(lanes, use.operation)
    made = NamedBarrier(number, count, not _is_paired(lanes, number))
    if _is_of_device(lanes, made) and not lanes.device.emulated:
        _check_some(lanes, op, made)
    lanes.barriers[op.result] = made
    if len(lanes.barriers) == len(_inits(lanes)):
        _check_meetings(lanes)


def _inits(lanes: Lanes) -> list[InitNbarrierOp]:
    return [op for op in lanes.source.walk() if isinstance(op, InitNbarrierOp)]


def _is_paired(lanes: Lanes, number: int) -> bool:
    """Whether all who arrive at a number wait in the same block."""
    return all(
        _is_met_by_all(use.operation, init.result)
        for init in _inits(lanes)
        if constant_index(init.nbarrier_id) == number
        for use in init.result.uses
    )


def _check_meetings(lanes: Lanes) -> None:
    """Refuse what would wait for ever, or would not meet where a GPU is emulated."""
    known, partings = lanes.barriers, _partings(lanes)
    turns = [op for op in lanes.source.walk() if isinstance(op, Turn)]
    met = [op for op in turns if _is_meeting(op, known[op.nbarrier])]
    numbers = {value: each.number for value, each in known.items()}
    found = find_meetings(met, numbers, partings)
    for op in turns:
        if isinstance(op, NbarrierWaitOp) and op not in met and not arrival_of(op):
            raise lanes.refuse(
                op,
                "who waits at this named barrier may not have arrived there",
                "arrive before it in the same loop, in its block or around its branch",
            )
    late = first_out_of_order(found)
    if late is not None and any(each.on_arrival for each in known.values()):
        raise lanes.refuse(
            late.op,
            "some subgroups come to this named barrier before another, others after "
            "it, and some of them never wait",
            "let all come to their barriers in one order, or let all of them wait",
        )
    apart = first_apart(found) if lanes.device.emulated else None
    if apart is not None and lanes.subgroups > 1:
        raise lanes.refuse(
            apart.op,
            "subgroups come to this named barrier in different branches: emulation "
            "runs them one after the other, up to a barrier that all come to",
            "write both sides as one `scf.if` with an else, or use a GPU (target pvc "
            "or bmg)",
        )


def _is_meeting(op: Turn, barrier: NamedBarrier) -> bool:
    """Whether subgroups meet at it: where they wait, or where they arrive."""
    return isinstance(op, NbarrierArriveOp) == barrier.on_arrival


def _partings(lanes: Lanes) -> Mapping[Operation, Operation]:
    """The branches and loops that subgroups take differently."""
    (module,) = [op for op in _around(lanes.source) if isinstance(op, ModuleOp)]
    sources = [each for each in lanes.source.walk() if isinstance(each, _DIFFERENT)]
    return find_divergence(module, sources).partings


def _check_some(lanes: Lanes, op: Operation, made: NamedBarrier) -> None:
    some = [each for each in lanes.barriers.values() if _is_of_device(lanes, each)]
    if any(each.number == made.number and each != made for each in some):
        raise lanes.refuse(
            op,
            f"named barrier {made.number} is for another number of subgroups before",
            "give each barrier a number of its own",
        )
    if len({each.number for each in (*some, made)}) > _MOST:
        raise lanes.refuse(
            op,
            f"a workgroup has no more than {_MOST} named barriers",
            "use a barrier again once all of its subgroups have met",
        )


def _is_of_device(lanes: Lanes, barrier: NamedBarrier) -> bool:
    """Whether it has a number there; else it is a barrier of the workgroup."""
    return barrier.subgroups < lanes.subgroups or barrier.on_arrival


def _is_met_by_all(op: Operation, barrier: SSAValue) -> bool:
    """Whether those who arrive wait in the same block, one after the other."""
    block = op.parent
    assert block is not None
    turns = [
        each
        for each in block.ops
        if isinstance(each, NbarrierArriveOp | NbarrierWaitOp)
        and each.nbarrier is barrier
    ]
    arrivals, waits = turns[::2], turns[1::2]
    return len(arrivals) == len(waits) and (
        all(isinstance(each, NbarrierArriveOp) for each in arrivals)
        and all(isinstance(each, NbarrierWaitOp) for each in waits)
    )


def _check_place(lanes: Lanes, op: Operation) -> None:
    """Where a GPU is emulated, `gather-barriers` takes barriers out of branches."""
    if not lanes.device.emulated or lanes.subgroups == 1:
        return
    partings = _partings(lanes)
    is_in_loop = False
    for each in _around(op):
        is_in_loop |= isinstance(each, scf.ForOp | scf.WhileOp)
        if is_in_loop and each in partings:
            raise lanes.refuse(
                op,
                "subgroups come to this named barrier in loops of their own: emulation "
                "runs them one after the other, up to a barrier that all come to",
                "let all subgroups run the loop, or use a GPU (target pvc or bmg)",
            )


_DIFFERENT = (gpu.SubgroupIdOp, AtomicRmwOp)
"""What gives each subgroup something of its own."""


def _around(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        yield parent
        parent = parent.parent_op()


def arrive(lanes: Lanes, op: NbarrierArriveOp) -> None:
    """The first half, if all subgroups meet; all of it, if some arrive only."""
    barrier = _barrier(lanes, op)
    if barrier.on_arrival:
        _meet(lanes, op, barrier)
    elif not _is_of_device(lanes, barrier):
        lanes.add(simt.BarrierArriveOp())


def wait(lanes: Lanes, op: NbarrierWaitOp) -> None:
    """The second half, or all of it."""
    barrier = _barrier(lanes, op)
    if barrier.on_arrival:
        return
    if _is_of_device(lanes, barrier):
        _meet(lanes, op, barrier)
        return
    _check_place(lanes, op)
    lanes.add(simt.BarrierWaitOp())


def _meet(lanes: Lanes, op: Operation, barrier: NamedBarrier) -> None:
    _check_place(lanes, op)
    lanes.add(simt.NamedBarrierOp(barrier.number, barrier.subgroups))


def _barrier(lanes: Lanes, op: Turn) -> NamedBarrier:
    known = lanes.barriers.get(op.nbarrier)
    if known is None:
        raise _refuse_carried(lanes, op)
    return known


def _refuse_carried(lanes: Lanes, op: Operation) -> Exception:
    return lanes.refuse(
        op,
        "a loop or a branch cannot carry a named barrier",
        "use what `init_nbarrier` gives, in the loop and the branch itself",
    )
