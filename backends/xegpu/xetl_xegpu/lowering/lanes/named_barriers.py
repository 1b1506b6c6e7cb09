"""Named barriers: for all subgroups of a workgroup, or for some.

One for all is a barrier in two halves.  One for some is a barrier of the device where
the subgroups wait: whoever arrives also waits, so nobody is late.  Source of the
limits: what ocloc 26.27 takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import gpu, scf
from xetl.dialects.upstream.xegpu_hints import (
    InitNbarrierOp,
    NbarrierArriveOp,
    NbarrierWaitOp,
)
from xetl.transforms.uniformity import find_divergence
from xetl_xegpu import simt
from xetl_xegpu.dialect import AtomicRmwOp
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
    made = NamedBarrier(number, count)
    if count < lanes.subgroups and not lanes.device.emulated:
        _check_some(lanes, op, made)
    lanes.barriers[op.result] = made
    for use in op.result.uses:
        if not isinstance(use.operation, NbarrierArriveOp | NbarrierWaitOp):
            raise _refuse_carried(lanes, use.operation)
        if not _is_met_by_all(use.operation, op.result):
            raise lanes.refuse(
                use.operation,
                "this named barrier is no barrier: who arrives must also wait",
                "let all its subgroups arrive and then wait, in one block",
            )


def _check_some(lanes: Lanes, op: Operation, made: NamedBarrier) -> None:
    some = [each for each in lanes.barriers.values() if _is_for_some(lanes, each)]
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


def _is_for_some(lanes: Lanes, barrier: NamedBarrier) -> bool:
    return barrier.subgroups < lanes.subgroups


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
    around = list(_around(op))
    (module,) = [each for each in around if isinstance(each, ModuleOp)]
    sources = [each for each in lanes.source.walk() if isinstance(each, _DIFFERENT)]
    partings = find_divergence(module, sources).partings
    is_in_loop = False
    for each in around:
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
    """The first half, if all subgroups meet."""
    if not _is_for_some(lanes, _barrier(lanes, op)):
        lanes.add(simt.BarrierArriveOp())


def wait(lanes: Lanes, op: NbarrierWaitOp) -> None:
    """The second half, or all of it."""
    barrier = _barrier(lanes, op)
    _check_place(lanes, op)
    if _is_for_some(lanes, barrier):
        lanes.add(simt.NamedBarrierOp(barrier.number, barrier.subgroups))
        return
    lanes.add(simt.BarrierWaitOp())


def _barrier(lanes: Lanes, op: NbarrierArriveOp | NbarrierWaitOp) -> NamedBarrier:
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
