"""Which operations may go when nobody uses them, and which may be merged."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects

from xetl.dialects.upstream import gpu, scf
from xetl.dialects.walk import operations_in

_READ = frozenset({MemoryEffectKind.READ})
_REMOVABLE: dict[type[Operation], bool] = {}
_PURE: dict[type[Operation], bool] = {}


def is_pure(op: Operation) -> bool:
    """Whether equal operands give equal results, without regions and at any place."""
    kind = type(op)
    known = _PURE.get(kind)
    if known is None:
        effects = get_effects(op)
        known = effects is not None and not effects and not op.has_trait(IsTerminator)
        _PURE[kind] = known
    return known and not op.regions


def is_dead(op: Operation) -> bool:
    """Whether removing ``op`` changes nothing."""
    return not any(result.uses for result in op.results) and not acts(op)


def acts(op: Operation) -> bool:
    """Whether ``op`` must stay even if nobody uses its results.

    Loads may go, as a load that faults is a mistake of the program; stores,
    prefetches, barriers and what is unknown stay, as do loops that may not end.
    """
    if not op.regions:
        return not op.results or not _is_removable(op)
    if op.has_trait(IsTerminator):  # `scf.reduce` has regions
        return True
    return _may_not_end(op) or not _has_reads_only(op)


def is_second_barrier(op: Operation) -> bool:
    """Whether ``op`` is a barrier, and all subgroups have just met at another one."""
    if not isinstance(op, gpu.BarrierOp):
        return False
    before = op.prev_op
    while before is not None and is_pure(before):
        before = before.prev_op
    return isinstance(before, gpu.BarrierOp)


def _is_removable(op: Operation) -> bool:
    kind = type(op)
    known = _REMOVABLE.get(kind)
    if known is None:
        known = _has_reads_only(op) and not op.has_trait(IsTerminator)
        _REMOVABLE[kind] = known
    return known


def _has_reads_only(op: Operation) -> bool:
    effects = get_effects(op)
    return effects is not None and {effect.kind for effect in effects} <= _READ


def _may_not_end(op: Operation) -> bool:
    return bool(operations_in(op, scf.WhileOp))
