"""Index values of a program as code before all programs: bounds and copies of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.dialects.base import Index
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, memref, scf
from xetl.ir.builder import Builder
from xetl_cpu.lowering.tiles import is_non_negative

_GROWING: dict[type[Operation], tuple[int, ...]] = {
    # With each: which operands the result grows with; the others must be outside.
    arith.AddiOp: (0, 1),
    arith.SubiOp: (0,),
    arith.MuliOp: (0, 1),
    arith.CeildivsiOp: (0,),
    arith.MaxsiOp: (0, 1),
    arith.MinsiOp: (0, 1),
}


def has_bound(value: Index, loop: scf.ParallelOp) -> bool:
    """Whether `bound` can say how large a value is at most in any program."""
    if is_defined_outside(value, loop):
        return True
    assert isinstance(value, SSAValue)
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return has_bound(_not_zero(op), loop) if _is_zero_or_one(op) else False
    growing = _GROWING.get(type(op)) if isinstance(op, Operation) else None
    if growing is None:
        return False
    assert isinstance(op, Operation)
    if isinstance(op, arith.MuliOp) and not all(map(is_non_negative, op.operands)):
        return False
    return all(
        has_bound(v, loop) if i in growing else is_defined_outside(v, loop)
        for i, v in enumerate(op.operands)
    )


def bound(value: Index, loop: scf.ParallelOp, build: Builder) -> Index:
    """What a value, for which `has_bound` holds, never exceeds; made by ``build``."""
    if is_defined_outside(value, loop):
        return value
    assert isinstance(value, SSAValue)
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return build.maximum(bound(_not_zero(op), loop, build), 0)
    assert isinstance(op, Operation)
    operands = [build.index(bound(v, loop, build)) for v in op.operands]
    return build.insert(type(op)(*operands))


def _is_zero_or_one(op: arith.SelectOp) -> bool:
    """Whether it selects between 0 and something else."""
    return 0 in (constant_index(op.true_value), constant_index(op.false_value))


def _not_zero(op: arith.SelectOp) -> SSAValue:
    is_first = constant_index(op.true_value) != 0
    return op.true_value if is_first else op.false_value


_COPIED = (memref.ReinterpretCastOp, memref.ExtractStridedMetadataOp, memref.DimOp)


def sources_of(
    values: Iterable[Index],
    loop: scf.ParallelOp,
    is_source: Callable[[BlockArgument], bool],
    may_be_copied: Callable[[Operation], bool],
) -> set[BlockArgument] | None:
    """The block arguments of the loop's body that values depend on.

    None where they depend on what cannot be computed again elsewhere: an argument that
    ``is_source`` refuses, or an operation that ``may_be_copied`` refuses.
    """
    found, seen = set[BlockArgument](), set[SSAValue]()
    pending = [value for value in values if isinstance(value, SSAValue)]
    while pending:
        value = pending.pop()
        if value in seen or is_defined_outside(value, loop):
            continue
        seen.add(value)
        if isinstance(value, BlockArgument):
            if not is_source(value):
                return None
            found.add(value)
            continue
        op = value.owner
        assert isinstance(op, Operation)
        if not may_be_copied(op):
            return None
        pending += op.operands
    return found


def counters_of(
    values: Iterable[Index], loop: scf.ParallelOp
) -> set[BlockArgument] | None:
    """Programs' numbers and counters that index values and views depend on.

    None where they depend on what cannot be computed again elsewhere.
    """
    return sources_of(values, loop, lambda each: is_counter(each, loop), _is_copied)


def is_counter(value: BlockArgument, loop: scf.ParallelOp) -> bool:
    """True for a program's number, and for the counter of a loop in the program."""
    owner = value.block.parent_op()
    return owner is loop or (isinstance(owner, scf.ForOp) and value.index == 0)


def _is_copied(op: Operation) -> bool:
    return op.name.startswith("arith.") or isinstance(op, _COPIED)


def copier(
    loop: scf.ParallelOp, build: Builder, known: dict[SSAValue, SSAValue]
) -> Callable[[SSAValue], SSAValue]:
    """A function that computes values of a program again, by ``build``.

    ``known``: what stands for programs' numbers and counters.
    """

    def is_there(value: SSAValue) -> bool:
        return value in known or is_defined_outside(value, loop)

    def copy(value: SSAValue) -> SSAValue:
        waiting = [value]
        while waiting:
            op = waiting[-1].owner
            if is_there(waiting[-1]):
                waiting.pop()
                continue
            assert isinstance(op, Operation)
            missing = next((each for each in op.operands if not is_there(each)), None)
            if missing is not None:
                waiting.append(missing)
                continue
            new = build.add(op.clone({v: known.get(v, v) for v in op.operands}))
            new.location = op.location
            known.update(zip(op.results, new.results))
        return known.get(value, value)

    return copy


def copied(
    values: Sequence[Index], copy: Callable[[SSAValue], SSAValue]
) -> list[Index]:
    """Indices, those that are values copied."""
    return [v if isinstance(v, int) else copy(v) for v in values]
