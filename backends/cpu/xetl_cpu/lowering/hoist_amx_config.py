"""hoist-amx-config: tiles are set up once a task, or once a thread.

A task is a trip of `scf.parallel`.  All configurations inside it must be equal to
leave its loops (then one is enough, at its head and end); two products share tiles
only if sizes and types say that their 64 bytes are equal.  With ``own`` they always
are: our micro-kernels use whole tiles, whatever they compute.  With
``level=thread`` the configuration leaves the task, too: `cpu.thread_tiles` stands in
its place and says that each thread sets its tiles up before its first trip and gives
them back after its last.  Configurations outside of parallel loops stay: tiles belong
to a thread.

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
    """A configuration: where it is set, where it is reset, and what both share."""

    state: memref.AllocaOp
    setup: TileConfigOp
    reset: TileConfigOp
    sizes: tuple[int, ...]


def _pairs(task: scf.ParallelOp) -> list[_Pair]:
    """The configurations of a task; nested parallel loops have their own."""
    found: list[_Pair] = []
    for op in operations_in(task, memref.AllocaOp):
        if _task_of(op) is not task:
            continue
        uses = [use.operation for use in op.result.uses]
        ends = [use for use in uses if isinstance(use, TileConfigOp)]
        if len(ends) != 2 or len(uses) != 2:
            continue
        setup, reset = sorted(
            ends, key=lambda end: SETUP not in _dispatch(end).flag_names()
        )
        found.append(_Pair(op, setup, reset, _shape(setup)))
    return found


def _task_of(op: Operation) -> scf.ParallelOp | None:
    return next(around(op, scf.ParallelOp), None)


def _dispatch(op: TileConfigOp) -> TileConfigDispatchOp:
    owner = op.kernel.owner
    assert isinstance(owner, TileConfigDispatchOp)
    return owner


def _shape(op: TileConfigOp) -> tuple[int, ...]:
    """m, n, k of the product: what the 64 bytes depend on, for one type."""
    return _dispatch(op).size_list()[:3]


def _to_task(task: scf.ParallelOp, pairs: Sequence[_Pair]) -> None:
    """The first configuration moves to the ends of the task, the others go."""
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
    """The dispatch, if it stands inside the task and so has to move along."""
    dispatch = _dispatch(op)
    return [dispatch] if _task_of(dispatch) is task else []


def _to_thread(task: scf.ParallelOp, pair: _Pair) -> None:
    tiles = ThreadTilesOp(pair.setup.kernel, pair.reset.kernel)
    own = [*_own_kernel(pair.setup, task), *_own_kernel(pair.reset, task)]
    _drop(pair)
    move_before(own, task)
    first, *_ = task.body.block.ops
    Builder.before(first).add(tiles)
