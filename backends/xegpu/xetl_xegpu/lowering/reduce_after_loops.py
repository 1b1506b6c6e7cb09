"""reduce-after-loops: accumulate per lane in loops, and sum across lanes after them.

*What*: a loop adds the sum of each row of a fragment to a loop-carried value. After the
pass each lane carries a partial sum, and the partial sums are added across lanes after
the loop.
*Why*: 8 sums across lanes take Intel's compiler 33 instructions; adding 8 rows in each
lane takes 8.
*Where*: the carried rows begin with 0, or with the result of such a loop. Each step may
multiply them by factors that all lanes share, and adds the sums. The order of additions
changes.
*Left alone*: rows with other uses in the body; integers; other kinds of reductions;
loops whose partial sums would not fit the registers; kernels whose lanes move all
blocks, because addresses need the registers there.

Before: ``%r = scf.for iter_args(%t = 0 : 8x1) { %s = sum %v : 8x16; %t * %f + %s }``
After:  ``%p = scf.for iter_args(%t = 0 : 8x16) { %t * spread %f + %v }; %r = sum %p``
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import AnyFloat, ModuleOp, VectorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import element_type, is_vector, operations_in, shape_of
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import CombiningKindAttr, identity_of
from xetl.dialects.upstream import arith, gpu, scf, vector
from xetl.ir.builder import Builder, Pass
from xetl_xegpu.dialect.stage import NO_BLOCKS
from xetl_xegpu.lowering.fit_registers.graph import bytes_of


class ReduceAfterLoopsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        # The sums of rows after a loop, each with its partial sums.
        parts_of: dict[SSAValue, SSAValue] = {}
        fast = [
            f for f in operations_in(op, gpu.FuncOp) if NO_BLOCKS not in f.attributes
        ]
        for loop in [loop for f in fast for loop in operations_in(f, scf.ForOp)]:
            vectors = (each for each in loop.results if is_vector(each.type))
            if sum(map(bytes_of, vectors)) > _MOST:
                continue
            for index in range(len(loop.results)):
                step = _step_of(loop, index)
                start = _start_of(loop, index, step, parts_of) if step else None
                if step is not None and start is not None:
                    loop.operands[3 + index] = start
                    _carry_parts(step)
                    rows, parts = _reduce_behind(loop, index, step)
                    parts_of[rows] = parts


_MOST = 96 * 64
"""The most bytes that a loop may carry: 96 registers of 256, because partial sums take
8 registers where sums take 1. [measured] ocloc 26.27: with this pass, attention that
carries 16 rows of 128 spills 320 bytes."""


class _Step(NamedTuple):
    """How a loop updates rows that it carries: ``carried * factor + sum(values)``.

    Attributes:
        carried: the rows; ``hx1``.
        factor: the operation that multiplies them; None if there is none.
        total: the addition.
        values: the value whose rows are summed; ``hx16``.
        dead: the operations of the sum, to be erased; users first.
    """

    carried: SSAValue
    factor: Operation | None
    total: Operation
    values: SSAValue
    dead: tuple[Operation, ...]


def _step_of(loop: scf.ForOp, index: int) -> _Step | None:
    """Return the update of a carried value. None: it does not add sums of rows."""
    body = loop.body.block
    *_, last = body.ops
    carried = body.args[1 + index]
    total = last.operands[index].owner
    is_alone = carried.has_one_use() and last.operands[index].has_one_use()
    if not isinstance(total, arith.AddfOp) or not is_alone:
        return None
    left, right = total.operands
    for kept, added in ((left, right), (right, left)):
        dead = _sum_behind(added)
        factor = kept.owner if isinstance(kept.owner, arith.MulfOp) else None
        is_scaled = factor is not None and carried in factor.operands
        if dead and (kept is carried or (is_scaled and kept.has_one_use())):
            return _Step(carried, factor, total, dead[-1].operands[0], dead)
    return None


def _sum_behind(rows: SSAValue) -> tuple[Operation, ...]:
    """Return the cast and the sum across lanes that compute ``rows``.

    Return () if other operations compute the rows, or if they have several uses.
    """
    cast = rows.owner
    if not isinstance(cast, vector.ShapeCastOp) or not rows.has_one_use():
        return ()
    sums = SSAValue.get(cast.source).owner
    if not isinstance(sums, vector.MultiReductionOp) or not sums.result.has_one_use():
        return ()
    is_sum = sums.kind.kind == "add" and sums.dims == (1,) and _is_zero(sums.acc)
    is_of_floats = isinstance(element_type(rows.type), AnyFloat)
    return (cast, sums) if is_sum and is_of_floats else ()


def _is_zero(value: SSAValue) -> bool:
    constant = value.owner
    return isinstance(constant, arith.ConstantOp) and splat_value(constant.value) == 0


def _start_of(
    loop: scf.ForOp, index: int, step: _Step, parts_of: dict[SSAValue, SSAValue]
) -> SSAValue | None:
    """Return the initial value of the partial sums. None: it is unknown."""
    given = loop.operands[3 + index]
    if _is_zero(given):
        return Builder.before(loop).constant(0, step.values.type)
    return parts_of.get(given)


def _carry_parts(step: _Step) -> None:
    """Let the body of the loop add the values in place of their sums."""
    b = Builder.before(step.total)
    kept = Rewriter.replace_value_with_new_type(step.carried, step.values.type)
    if step.factor is not None:
        (shared,) = (each for each in step.factor.operands if each is not kept)
        spread = b.insert(vector.BroadcastOp(shared, step.values.type))
        kept = b.insert(arith.MulfOp(kept, spread))
    Rewriter.replace_op(step.total, [], [b.insert(arith.AddfOp(kept, step.values))])
    for op in (step.factor, *step.dead):
        if op is not None:
            Rewriter.erase_op(op)


def _reduce_behind(
    loop: scf.ForOp, index: int, step: _Step
) -> tuple[SSAValue, SSAValue]:
    """Add the partial sums after the loop. Return the sums of rows, and the parts."""
    before, old = loop.results[index], loop.results[index].type
    rows, element = shape_of(old)[0], element_type(old)
    b = Builder.after(loop)
    start = b.constant(identity_of("add", element), VectorType(element, [rows]))
    parts = Rewriter.replace_value_with_new_type(before, step.values.type)
    kind = CombiningKindAttr("add")
    sums = b.add(vector.MultiReductionOp(parts, start, kind, [1]))
    cast = b.insert(vector.ShapeCastOp(sums.result, old))
    parts.replace_uses_with_if(cast, lambda use: use.operation is not sums)
    return cast, parts
