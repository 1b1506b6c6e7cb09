"""Put a barrier where subgroups, or lanes of one, would otherwise race.

*What*: ``gpu.barrier`` between two operations that different subgroups do to the same
memory, one of which writes, unless a barrier stands between them already. The lanes of
one subgroup take it too: what compiles SPIR-V looks at one lane, and may move its load
before a store of another.
*Why*: at workgroup level operations happen one after the other, whoever owns which
part; subgroups run each at its own pace.  What a subgroup does to its own elements is
in order anyway, so a GEMM, or a softmax in place, needs no barrier.
*How*: the accesses since the last barrier are followed through the kernel, around loops
until nothing new comes.  A barrier goes before the access that needs it; for what was
done ahead of a loop, before the loop, so it is waited for once.  All subgroups take the
same branches and loops here, as a workgroup is one program.

before: store_tile %v, %t : rows        after: store_tile %v, %t : rows
        %w = load_tile %u : columns             gpu.barrier
                                                %w = load_tile %u : columns

*Left alone*: kernels at subgroup level.
Source: docs/xetile.md, section 4; docs/design/0003-workgroup-to-subgroups.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from xetl.dialects.upstream import func, gpu, scf
from xetl.transforms.distribute_to_subgroups import is_workgroup
from xetl.transforms.place_barriers.accesses import Access, accesses_of
from xetl.transforms.remarks import positions_of, remark

Pending: TypeAlias = frozenset[Access]
"""What some subgroup may still be doing, as no barrier has come since."""
_NOTHING: Pending = frozenset()


class PlaceBarriersPass(ModulePass):
    """See the module docstring."""

    name = "place-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add barriers to ``op``, in place."""
        for function in op.walk():
            if _is_at_workgroup_level(function):
                for block in function.regions[0].blocks:
                    _place(block, _NOTHING)


def _is_at_workgroup_level(op: Operation) -> bool:
    return isinstance(op, gpu.FuncOp | func.FuncOp) and is_workgroup(op)


def _place(block: Block, pending: Pending) -> Pending:
    """Add barriers to a block; gives what is pending at its end."""
    for op in list(block.ops):
        pending = _place_at(op, pending)
    return pending


def _place_at(op: Operation, pending: Pending) -> Pending:
    if isinstance(op, gpu.BarrierOp):
        return _NOTHING
    if isinstance(op, scf.IfOp):
        ends = [_place(r.block, pending) for r in op.regions if r.blocks]
        skipped = _NOTHING if len(ends) == 2 else pending
        return skipped.union(*ends)
    if op.regions:
        return _place_in_loop(op, pending)
    accesses = frozenset(accesses_of(op))
    if _clash(accesses, pending, op):
        _insert_before(op)
        pending = _NOTHING
    return pending | accesses


def _place_in_loop(op: Operation, pending: Pending) -> Pending:
    """First what the turns of a loop do to one another, then what came before it."""
    _around(op, _NOTHING)
    if _meets(op, pending):
        _insert_before(op)
        pending = _NOTHING
    return _around(op, pending)


def _around(op: Operation, pending: Pending) -> Pending:
    """Turn by turn until nothing new is pending; gives what is at the end.

    The regions of a loop follow one another: a while tests, and may end after that.
    """
    entry = pending
    while True:
        now, left = entry, entry
        for region in op.regions:
            for block in region.blocks:
                now = _place(block, now)
                left |= now
        again = entry | {each.before(op) for each in now}
        if again == entry:
            return left
        entry = again


def _meets(op: Operation, pending: Pending) -> bool:
    """Whether something in ``op`` clashes with ``pending``, barriers aside."""
    met, _ = _follow([op], pending)
    return met


def _follow(ops: Iterable[Operation], pending: Pending) -> tuple[bool, Pending]:
    """Whether operations clash with ``pending``, and what of it is left after them."""
    for op in ops:
        if isinstance(op, gpu.BarrierOp):
            return False, _NOTHING
        ends: list[Pending] = []
        for region in op.regions:
            for block in region.blocks:
                met, left = _follow(block.ops, pending)
                if met:
                    return True, left
                ends.append(left)
        # A loop may run no times; a branch is taken if there are two.
        if len(ends) == 2 and isinstance(op, scf.IfOp):
            pending = _NOTHING.union(*ends)
        elif not op.regions and _clash(accesses_of(op), pending):
            return True, pending
    return False, pending


def _clash(
    accesses: Iterable[Access], pending: Pending, explain: Operation | None = None
) -> bool:
    for access in accesses:
        for other in pending:
            if access.needs_order_with(other):
                if explain is not None:
                    _remark(explain, other)
                return True
    return False


def _remark(op: Operation, other: Access) -> None:
    line = next(
        (f" at line {p.line.data}" for p in positions_of(other.op.location)), ""
    )
    name = other.op.name.removeprefix("xetile.")
    text = f"`{name}`{line} {other.kind} the same memory in other subgroups"
    remark(op, "barriers", f"all subgroups wait before this: {text}")


def _insert_before(op: Operation) -> None:
    block = op.parent
    assert block is not None
    block.insert_op_before(gpu.BarrierOp(location=op.location), op)
