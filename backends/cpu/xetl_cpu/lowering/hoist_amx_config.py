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
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import operations_in
from xetl.dialects.upstream import memref, scf
from xetl.dialects.xsmm import TileConfigDispatchOp, TileConfigOp
from xetl.ir.builder import Pass, move_before
from xetl.records import record
from xetl_cpu.dialect import ThreadTilesOp
from xetl_cpu.lowering.insert_amx_config import SETUP


@dataclass(frozen=True)
class HoistAmxConfigPass(Pass):
    level: Literal["task", "thread"] = "task"
    own: bool = False

    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ParallelOp):
            pairs = _pairs(loop.body.block)
            are_equal = self.own or len({pair.sizes for pair in pairs}) <= 1
            if not pairs or not are_equal:
                continue
            _to_task(loop.body.block, pairs)
            if self.level == "thread":
                _to_thread(loop.body.block, pairs[0])


@record()
class _Pair:
    """A configuration: where it is set, where it is reset, and what both share."""

    state: memref.AllocaOp
    setup: TileConfigOp
    reset: TileConfigOp
    sizes: tuple[int, ...]


def _pairs(body: Block) -> list[_Pair]:
    """The configurations of a task; nested parallel loops have their own."""
    found: list[_Pair] = []
    for op in body.walk():
        if not isinstance(op, memref.AllocaOp) or _task_of(op) is not body:
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


def _task_of(op: Operation) -> Block | None:
    block = op.parent_block()
    while block is not None:
        parent = block.parent_op()
        if isinstance(parent, scf.ParallelOp):
            return block
        block = parent.parent_block() if parent is not None else None
    return None


def _dispatch(op: TileConfigOp) -> TileConfigDispatchOp:
    owner = op.kernel.owner
    assert isinstance(owner, TileConfigDispatchOp)
    return owner


def _shape(op: TileConfigOp) -> tuple[int, ...]:
    """m, n, k of the product: what the 64 bytes depend on, for one type."""
    return _dispatch(op).size_list()[:3]


def _to_task(body: Block, pairs: Sequence[_Pair]) -> None:
    """The first configuration moves to the ends of the task, the others go."""
    kept, *others = pairs
    for pair in others:
        _drop(pair)
    at_head = [kept.state, *_own_kernel(kept.setup, body), kept.setup]
    at_end = [*_own_kernel(kept.reset, body), kept.reset]
    for op in (*at_head, *at_end):
        op.detach()
    first, last = body.first_op, body.last_op
    assert first is not None
    assert last is not None
    body.insert_ops_before(at_head, first)
    body.insert_ops_before(at_end, last)


def _drop(pair: _Pair) -> None:
    for op in (pair.setup, pair.reset, pair.state):
        Rewriter.erase_op(op)


def _own_kernel(op: TileConfigOp, body: Block) -> list[Operation]:
    """The dispatch, if it stands inside the task and so has to move along."""
    dispatch = _dispatch(op)
    return [dispatch] if _task_of(dispatch) is body else []


def _to_thread(body: Block, pair: _Pair) -> None:
    kernels: list[SSAValue] = [pair.setup.kernel, pair.reset.kernel]
    loop = body.parent_op()
    assert loop is not None
    _drop(pair)
    for kernel in kernels:
        dispatch = kernel.owner
        if isinstance(dispatch, Operation) and _task_of(dispatch) is body:
            move_before([dispatch], loop)
    first = body.first_op
    assert first is not None
    tiles = ThreadTilesOp(*kernels)
    tiles.location = first.location
    body.insert_op_before(tiles, first)
