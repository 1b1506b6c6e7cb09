"""reduce-after-loops: sums across lanes that a loop adds up are taken once, after it.

*What*: where a loop adds the sum of each row of a fragment to what it carries for that
row, each lane carries a part of the sum; the parts are added across lanes behind the
loop.
*Why*: 8 sums across lanes take Intel's compiler 33 instructions, and to add 8 rows in
each lane takes 8.
*Where*: the carried rows begin with 0, or with the result of such a loop; each step
multiplies them by numbers that all lanes share, or does not, and adds the sums. The
additions change their order.
*Left alone*: rows that the body uses for anything else; integers; other kinds; loops
that carry so much that parts would not fit the registers; kernels whose lanes move all
blocks, where addresses need these.

Before: ``%r = scf.for iter_args(%t = 0 : 8x1) { %s = sum %v : 8x16; %t * %f + %s }``
After:  ``%p = scf.for iter_args(%t = 0 : 8x16) { %t * spread %f + %v }; %r = sum %p``
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import AnyFloat, ModuleOp, VectorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import element_type, is_vector, operations_in, shape_of
from xetl.dialects.literals import splat_value
from xetl.dialects.reduction_kinds import CombiningKindAttr, identity_of
from xetl.dialects.upstream import arith, gpu, scf, vector
from xetl.dialects.upstream.elementwise import bit_width
from xetl.ir.builder import Builder, Pass
from xetl_xegpu.dialect.stage import NO_BLOCKS


class ReduceAfterLoopsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        # Sums of rows that stand behind a loop, and the parts they are made of.
        parts_of: dict[SSAValue, SSAValue] = {}
        fast = [
            f for f in operations_in(op, gpu.FuncOp) if NO_BLOCKS not in f.attributes
        ]
        for loop in [loop for f in fast for loop in operations_in(f, scf.ForOp)]:
            if sum(_bytes_of(each.type) for each in loop.results) > _MOST:
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
"""Bytes that a loop may carry: 96 registers of 256, for parts take 8 where sums take 1.
[measured] ocloc 26.27: attention that carries 16 rows of 128 spills 320 bytes by it."""


def _bytes_of(type_: Attribute) -> int:
    """Of the elements of a vector."""
    if not is_vector(type_):
        return 0
    return prod(shape_of(type_)) * bit_width(element_type(type_)) // 8


class _Step(NamedTuple):
    """What a loop does to rows that it carries: ``carried * factor + sum(values)``.

    Attributes:
        carried: the rows; ``hx1``.
        factor: the operation that multiplies them; None: nothing does.
        total: the addition.
        values: whose rows are summed; ``hx16``.
        dead: the sum, which is needed no longer, users first.
    """

    carried: SSAValue
    factor: Operation | None
    total: Operation
    values: SSAValue
    dead: tuple[Operation, ...]


def _step_of(loop: scf.ForOp, index: int) -> _Step | None:
    """What a loop does to a value that it carries, if it adds sums of rows to it."""
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
    """The cast and the sum across lanes that make rows used once; else nothing."""
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
    """What the parts begin with; None if it is not known."""
    given = loop.operands[3 + index]
    if _is_zero(given):
        return Builder.before(loop).constant(0, step.values.type)
    return parts_of.get(given)


def _carry_parts(step: _Step) -> None:
    """Let the body of the loop add the values themselves."""
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
    """Add the parts behind the loop; returns the sums of rows, and the parts."""
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
