"""rotate-loops: loops that run at least once test at the end; counters get 32 bits.

*What*: a loop that is known to run at least once becomes a loop that tests its
condition after the body. Counters whose range fits 32 bits become i32.
*Why*: a loop that may run zero times has two paths to its end, and Intel's compiler
copies the loop-carried values on both: 128 instructions more for sums of 32x64. GPUs
need three instructions to compare 64 bits, and offsets of messages have 32 bits.
[measured] ocloc 26.27: a GEMM that moves 32x32 by 32x64 a step has 490 instructions,
rotated 354; with a counter of 32 bits a step has 4 to 6 fewer.
*How it is known*: the launch takes a kernel that moves blocks of an array only if the
array is not empty (`xetl_xegpu.limits`) and has less than 2^24 rows and columns. So
``range(0, A.shape[1], 32)`` runs at least once.
*Left alone*: loops with other bounds, such as a number that the user passes; loops of
constant length, which the compiler rotates itself.

Before: ``%r = scf.for %i = %c0 to %k step %c32 iter_args(%x = %a) { ... yield %y }``
After:  ``%n, %r = scf.while (%j = %c0, %x = %a) { %i = index_cast %j; ...
        %n = %j + %c32; condition(%n < %k) %n, %y } do { yield }``
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, ModuleOp, i32
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import constant_index, operations_in
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder, Pass
from xetl_xegpu import simt
from xetl_xegpu.lowering.record_arguments import kernel_ranges

_FITS = (1 << 31) - 1
"""The largest i32."""


class RotateLoopsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, simt.FuncOp):
            ranges = kernel_ranges(op, kernel)
            for loop in operations_in(kernel, scf.ForOp):
                lower, upper = map(ranges.of, (loop.lower_bound, loop.upper_bound))
                step = constant_index(loop.step)
                if lower is None or upper is None or step is None or step < 1:
                    continue
                if upper.low == upper.high:
                    continue
                if lower.low >= -_FITS and upper.high + step <= _FITS:
                    _narrow(loop)
                if lower.high < upper.low:
                    new = _rotated(loop)
                    Rewriter.replace_op(loop, [], new.results[1:])


def _narrow(op: scf.ForOp) -> None:
    """Make the counter and the bounds of a loop i32."""
    b, block = Builder.before(op), op.body.block
    for number in range(3):
        bound = op.operands[number]
        known = constant_index(bound)
        op.operands[number] = (
            b.insert(arith.IndexCastOp(bound, i32))
            if known is None
            else b.constant(known, i32)
        )
    index, counter = block.args[0], block.insert_arg(i32, 0)
    seen = Builder(InsertPoint.at_start(block), op.location)
    index.replace_all_uses_with(seen.insert(arith.IndexCastOp(counter, IndexType())))
    block.erase_arg(index)


def _rotated(op: scf.ForOp) -> scf.WhileOp:
    body = Rewriter.move_region_contents_to_new_regions(op.body)
    last = body.block.last_op
    assert isinstance(last, scf.YieldOp)
    b = Builder.before(last)
    following = b.insert(arith.AddiOp(body.block.args[0], op.step))
    carried = [following, *last.operands]
    b.add(scf.ConditionOp(b.compare("slt", following, op.upper_bound), *carried))
    Rewriter.erase_op(last)
    types = [value.type for value in carried]
    after = Block(arg_types=types)
    after.add_op(scf.YieldOp(*after.args))
    first = [op.lower_bound, *op.init_args]
    return Builder.before(op).add(scf.WhileOp(first, types, body, Region(after)))
