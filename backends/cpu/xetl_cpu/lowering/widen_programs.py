"""widen-programs: neighbouring programs become one, which computes whole rows.

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      scf.for %row = 0 to %rows(%x) { A(%x, %y, %row) }
    }
    ->
    %some = max(1, min(%gy, %gx * %gy / (8 * threads)))    one thread: %gy
    scf.parallel (%x, %n) = ... to (%gx, ceil(%gy / %some)) {
      scf.for %row = 0 to %rows(%x) {
        scf.for %y = %n * %some to min((%n + 1) * %some, %gy) { A(%x, %y, %row) }
      }
    }

Programs of a few elements, without vectors and loops, become iterations of a loop too,
which `vectorize-element-loops` then looks at.

Why: the author of a kernel chooses tiles that are handy, not tiles that suit memory. A
tile of 64 x 64 of a large matrix touches 64 pages for 256 bytes of each; rows that are
a power of two apart evict one another from the caches before they are used up (4096 x
4096 in f32, one core of Zen 4: an addition takes half the time).

Before: loops, after ``order-programs``: programs are merged along the fastest number.
Left alone: programs that do more than one loop over rows, or carry values from row to
row; rows whose bounds depend on the fastest number.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from xetl.analysis.memory import is_pure
from xetl.dialects.base import is_number, operations_in
from xetl.dialects.upstream import memref, scf
from xetl.ir.builder import Builder, Pass, move_to_end
from xetl.transforms.diagnostics import remark
from xetl_cpu.dialect import ThreadCountOp
from xetl_cpu.lowering.order_programs import order_of
from xetl_cpu.lowering.trips import dependents

_TASKS = 8
"""Tasks for each of several threads, at least: the last one must not take long."""

IS_PROGRAMS = "xetl.programs"
"""Marks the loop over merged programs: their count is known only at run time."""


_OF_ELEMENTS = (memref.LoadOp, memref.StoreOp, scf.IfOp, scf.YieldOp, scf.ReduceOp)


class WidenProgramsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ParallelOp):
            axis = order_of(loop)[0]
            rows = _loop_over_rows(loop)
            if rows is None:
                if _is_of_elements(loop):
                    _widen(loop, axis, loop.body.block, [])
                continue
            number = loop.body.block.args[axis]
            moved = dependents(loop, {number})
            if rows in moved and _bounds_are_free(rows, number, moved):
                moved.remove(rows)
                remark(rows, "programs", "neighbours run as one, row by row")
                _widen(loop, axis, rows.body.block, moved)


def _loop_over_rows(loop: scf.ParallelOp) -> scf.ForOp | None:
    """Return the loop over rows around other loops, if it is all that programs do."""
    found: scf.ForOp | None = None
    for op in loop.body.block.ops:
        if isinstance(op, scf.ReduceOp):
            continue
        if isinstance(op, scf.ForOp) and found is None and not op.init_args:
            found = op
        elif isinstance(op, memref.AllocaOp) or op.regions or not is_pure(op):
            return None
    if found is None or not operations_in(found.body, scf.ForOp):
        return None
    return found


def _bounds_are_free(rows: scf.ForOp, number: SSAValue, moved: list[Operation]) -> bool:
    """Whether the rows are the same for all programs that are merged."""
    bounds = (rows.lower_bound, rows.upper_bound, rows.step)
    return not any(each is number or each.owner in moved for each in bounds)


def _is_of_elements(loop: scf.ParallelOp) -> bool:
    """Whether programs load, compute and store elements, and do nothing else."""
    ops = [*operations_in(loop.body, Operation)]
    is_known = all(
        isinstance(op, _OF_ELEMENTS) or (is_pure(op) and _are_numbers(op)) for op in ops
    )
    return is_known and any(isinstance(op, memref.StoreOp) for op in ops)


def _are_numbers(op: Operation) -> bool:
    return all(is_number(each.type) for each in op.results)


def _widen(
    loop: scf.ParallelOp, axis: int, block: Block, moved: list[Operation]
) -> None:
    """Put the operations of a block, and ``moved``, into a loop over programs."""
    b = Builder.before(loop)
    extents = list(loop.upper_bounds)
    programs = b.product(extents)
    threads = b.insert(ThreadCountOp())
    alone = b.compare("sle", threads, 1)
    tasks = b.select(alone, 1, b.times(threads, _TASKS))
    some = b.maximum(b.minimum(b.divided(programs, tasks), extents[axis]), 1)
    loop.operands[len(extents) + axis] = b.index(b.ceil_divided(extents[axis], some))

    number = loop.body.block.args[axis]
    inside = [op for op in block.ops if not isinstance(op, scf.YieldOp | scf.ReduceOp)]
    rows = block.parent_op()
    b = Builder.before(inside[0] if rows is loop or rows is None else rows)
    first = b.times(number, some)
    end = b.minimum(b.plus(first, some), extents[axis])
    programs_loop = Builder.before(inside[0]).for_loop(first, end, 1)
    programs_loop.attributes[IS_PROGRAMS] = UnitAttr()
    body = programs_loop.body.block
    move_to_end((*moved, *inside), body)
    for use in list(number.uses):
        if programs_loop.is_ancestor(use.operation):
            use.operation.operands[use.index] = body.args[0]
    body.add_op(scf.YieldOp())
