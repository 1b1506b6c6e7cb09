"""Insert barriers where subgroups, or lanes of one subgroup, would race.

*What*: insert ``gpu.barrier`` between two accesses of different subgroups to the same
memory, one of which writes, unless there is a barrier between them already. A single
subgroup needs the barrier for its lanes, too: a SPIR-V compiler looks at one lane, and
may move its load before a store of another lane.
*Why*: at workgroup level operations happen in program order, but subgroups run at
different speeds. A subgroup accesses its own elements in order, so a GEMM, or a softmax
in place, needs no barrier.
*How*: track the accesses since the last barrier through the kernel, and through loops
until a fixed point. A barrier goes before the access that needs it. For accesses ahead
of a loop it goes before the loop, so it runs only once. All subgroups take the same
branches and loops here, as a workgroup is one program.

before: store_tile %v, %t : rows        after: store_tile %v, %t : rows
        %w = load_tile %u : columns             gpu.barrier
                                                %w = load_tile %u : columns

*Left alone*: kernels at subgroup level.
Source: docs/xetile.md, section 4; docs/design/0003-workgroup-to-subgroups.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import MemoryEffectKind, get_effects

from xetl.analysis.memory import Root, may_alias, roots_of
from xetl.dialects import xetile
from xetl.dialects.base import is_memref, operations_in
from xetl.dialects.upstream import func, gpu, memref, scf
from xetl.ir.builder import Builder, Pass
from xetl.language.distribution import Layout
from xetl.records import record
from xetl.transforms.diagnostics import positions_of, remark
from xetl.transforms.distribute_to_subgroups import is_workgroup
from xetl.transforms.distribute_to_subgroups.context import is_private
from xetl.transforms.distribute_to_subgroups.exchange import slices_for
from xetl.transforms.place_barriers.access_region import AccessRegion, region_of
from xetl.transforms.propagate_wg_maps.map_attributes import tile_map

READ, WRITE, ATOMIC = "reads", "writes", "updates"


@record(frozen=True)
class Owners:
    """Who touches which element; ``first_only``: the first owner of what is shared."""

    shape: tuple[int, ...]
    layout: Layout
    first_only: bool

    def are_those_of(self, other: Owners) -> bool:
        """Whether one subgroup touches each element, the same one in both."""
        if self.shape != other.shape:
            return False
        if self.layout == other.layout and self.first_only and other.first_only:
            return True
        if self._is_shared() or other._is_shared():
            return False
        return slices_for(self.shape, self.layout, other.layout) is not None

    def _is_shared(self) -> bool:
        units = zip(self.layout.sg_layout, self.layout.sg_data)
        return any(n * size > extent for (n, size), extent in zip(units, self.shape))


@record(frozen=True)
class Access:
    """An access of one operation to memory.

    Attributes:
        kind: READ, WRITE or ATOMIC.
        roots: the memories it may touch.
        where: the block it touches; None: any part.
        owners: the subgroups that touch it; None: not known, all or one of them.
    """

    op: Operation
    kind: str
    roots: frozenset[Root]
    where: AccessRegion | None = None
    owners: Owners | None = None

    def needs_order_with(self, other: Access) -> bool:
        """Whether different subgroups may touch one element, and the order counts."""
        if self.kind == other.kind == READ or _commute(self, other):
            return False
        pairs = product(self.roots, other.roots)
        if not any(may_alias(left, right) for left, right in pairs):
            return False
        if self.where is None or other.where is None:
            return True
        if self.where.is_apart_from(other.where):
            return False
        mine, others = self.owners, other.owners
        if mine is None or others is None or not self.where.is_same_as(other.where):
            return True
        return not mine.are_those_of(others)

    def before(self, loop: Operation) -> Access:
        """Return the access as it was in earlier iterations of a loop."""
        where = None if self.where is None else self.where.before(loop)
        return replace(self, where=where)


def _commute(left: Access, right: Access) -> bool:
    """Whether both are atomics of one kind, whose results are not used."""
    ops = left.op, right.op
    return (
        all(isinstance(op, xetile.AtomicRmwTileOp | memref.AtomicRmwOp) for op in ops)
        and not any(op.results[0].uses for op in ops)
        and _kind_of(left.op) == _kind_of(right.op) != "assign"
    )


def _kind_of(op: Operation) -> str:
    if isinstance(op, memref.AtomicRmwOp):
        return op.kind_name
    assert isinstance(op, xetile.AtomicRmwTileOp)
    return op.kind.data


# What operations do -----------------------------------------------------------------

_TILES: dict[type[Operation], str] = {
    xetile.LoadTileOp: READ,
    xetile.LoadGatherOp: READ,
    xetile.StoreTileOp: WRITE,
    xetile.StoreScatterOp: WRITE,
    xetile.AtomicRmwTileOp: ATOMIC,
}


def accesses_of(op: Operation) -> Iterator[Access]:
    """Yield the accesses of an operation without regions to memory that is shared."""
    kind = _TILES.get(type(op))
    if kind is not None:
        access: Any = op
        yield _tile_access(op, access.tile, kind)
    elif isinstance(op, func.CallOp):
        yield Access(op, WRITE, frozenset({None}))
    elif not isinstance(op, xetile.PrefetchTileOp | memref.DeallocOp):
        yield from _plain_accesses(op)


def _tile_access(op: Operation, tile: SSAValue, kind: str) -> Access:
    type_, layout = xetile.tile_type(tile), tile_map(tile)
    owners = None
    if layout is not None and not type_.scattered:
        owners = Owners(type_.shape, layout, kind != READ)
    return Access(op, kind, roots_of(tile), region_of(tile, type_.array_length), owners)


def _plain_accesses(op: Operation) -> Iterator[Access]:
    """Yield accesses to elements and vectors: one subgroup stores, all load."""
    effects = {effect.kind for effect in get_effects(op) or ()}
    effects &= {MemoryEffectKind.READ, MemoryEffectKind.WRITE}
    bases = [v for v in op.operands if is_memref(v.type) and not is_private(v)]
    if not effects or not bases:
        return
    kind = WRITE if MemoryEffectKind.WRITE in effects else READ
    if isinstance(op, memref.AtomicRmwOp):
        kind = ATOMIC
    for base in bases:
        yield Access(op, kind, roots_of(base))


Pending: TypeAlias = frozenset[Access]
"""Accesses since the last barrier, which some subgroup may still be doing."""
_NOTHING: Pending = frozenset()


class PlaceBarriersPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for function in operations_in(op, gpu.FuncOp, func.FuncOp):
            if is_workgroup(function):
                for block in function.regions[0].blocks:
                    _place(block, _NOTHING)


def _place(block: Block, pending: Pending) -> Pending:
    """Add barriers to a block; return the pending accesses at its end."""
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
        # First conflicts between iterations of a loop, then with accesses before it.
        _around(op, _NOTHING)
        clashes, _ = _follow([op], pending)
        if clashes:
            Builder.before(op).add(gpu.BarrierOp())
            pending = _NOTHING
        return _around(op, pending)
    accesses = frozenset(accesses_of(op))
    if _clash(accesses, pending, op):
        Builder.before(op).add(gpu.BarrierOp())
        pending = _NOTHING
    return pending | accesses


def _around(op: Operation, pending: Pending) -> Pending:
    """Iterate until no new access is pending; return the pending ones at the end.

    The regions of a loop run in order: a while tests first, and may end after the test.
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


def _follow(ops: Iterable[Operation], pending: Pending) -> tuple[bool, Pending]:
    """Return whether operations conflict with ``pending``, and those pending after."""
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
