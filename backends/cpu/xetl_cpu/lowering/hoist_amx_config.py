"""hoist-amx-config: AMX tiles are configured once per task, or once per thread.

A task is an iteration of `scf.parallel`. Configurations leave the loops inside a task
only if all of them are equal; then one is enough, at the head and the end of the task.
Two products share tiles only if their sizes and types show that the 64 bytes are equal.
With ``own`` the bytes are always equal: our micro-kernels use whole tiles for every
product. With ``level=thread`` the configuration leaves the task, too:
`cpu.thread_tiles` takes its place. This operation states that each thread configures
its tiles before its first iteration and releases them after its last. Configurations
outside of parallel loops stay: tiles belong to a thread.

Before: behind `insert-amx-config`.  Source: seed 003, "intel-amx-tile-config-hoisting";
the check for equal configurations is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xetl.dialects.base import around, operations_in
from xetl.dialects.upstream import memref, scf
from xetl.dialects.xsmm import TileConfigDispatchOp, TileConfigOp
from xetl.ir.builder import Builder, Pass, move_before
from xetl.records import record
from xetl_cpu.dialect import ThreadTilesOp
from xetl_cpu.lowering.insert_amx_config import SETUP


@dataclass(frozen=True)
class HoistAmxConfigPass(Pass):
    level: Literal["task", "thread"] = "task"
    own: bool = False

    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ParallelOp):
            pairs = _pairs(loop)
            are_equal = self.own or len({pair.sizes for pair in pairs}) <= 1
            if not pairs or not are_equal:
                continue
            _to_task(loop, pairs)
            if self.level == "thread":
                _to_thread(loop, pairs[0])


@record()
class _Pair:
    """A configuration: where it is set and reset, the memory for it, and its sizes."""

    state: memref.AllocaOp
    setup: TileConfigOp
    reset: TileConfigOp
    sizes: tuple[int, ...]


def _pairs(task: scf.ParallelOp) -> list[_Pair]:
    """Return the configurations of a task; nested parallel loops have their own."""
    found: list[_Pair] = []
    for op in operations_in(task, memref.AllocaOp):
        if next(around(op, scf.ParallelOp), None) is not task:
            continue
        uses = [use.operation for use in op.result.uses]
        ends = [use for use in uses if isinstance(use, TileConfigOp)]
        if len(ends) != 2 or len(uses) != 2:
            continue
        setup, reset = sorted(
            ends, key=lambda end: SETUP not in _dispatch(end).flag_names()
        )
        # The sizes m, n, k of the product: for one type, the 64 bytes depend on these.
        shape = _dispatch(setup).size_list()[:3]
        found.append(_Pair(op, setup, reset, shape))
    return found


def _dispatch(op: TileConfigOp) -> TileConfigDispatchOp:
    owner = op.kernel.owner
    assert isinstance(owner, TileConfigDispatchOp)
    return owner


def _to_task(task: scf.ParallelOp, pairs: Sequence[_Pair]) -> None:
    """Move the first configuration to the ends of the task; drop the others."""
    kept, *others = pairs
    for pair in others:
        _drop(pair)
    at_head = [kept.state, *_own_kernel(kept.setup, task), kept.setup]
    ops = [op for op in task.body.block.ops if op not in at_head]
    move_before(at_head, ops[0])
    move_before([*_own_kernel(kept.reset, task), kept.reset], ops[-1])


def _drop(pair: _Pair) -> None:
    for op in (pair.setup, pair.reset, pair.state):
        Rewriter.erase_op(op)


def _own_kernel(op: TileConfigOp, task: scf.ParallelOp) -> list[Operation]:
    """Return the dispatch if it is inside the task and has to move along."""
    dispatch = _dispatch(op)
    return [dispatch] if next(around(dispatch, scf.ParallelOp), None) is task else []


def _to_thread(task: scf.ParallelOp, pair: _Pair) -> None:
    tiles = ThreadTilesOp(pair.setup.kernel, pair.reset.kernel)
    own = [*_own_kernel(pair.setup, task), *_own_kernel(pair.reset, task)]
    _drop(pair)
    move_before(own, task)
    first, *_ = task.body.block.ops
    Builder.before(first).add(tiles)
