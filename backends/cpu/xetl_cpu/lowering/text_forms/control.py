"""Control flow of texts as loops and conditionals; assertions of `cf`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from xetl.dialects.base import ints_of
from xetl.dialects.upstream import cf, scf
from xetl.dialects.xetile import AssertOp
from xetl_cpu.lowering.loops.build import for_loop
from xetl_cpu.lowering.text_forms.writing import Writer, in_place_of, replace_by


def _parallel(op: scf.ParallelOp) -> None:
    """A nest of loops, of which the first counter runs fastest."""
    carried = list(op.init_vals)
    writer = in_place_of(op)
    loops: list[scf.ForOp] = []
    bounds = list(zip(op.lower_bounds, op.upper_bounds, op.steps))
    for bound in reversed(bounds):
        loop = for_loop(writer, bound, carried)
        loops.append(loop)
        block = loop.body.block
        carried = list(block.args[1:])
        writer = Writer(InsertPoint.at_end(block), op.location)
    body = op.body.block
    for counter, loop in zip(body.args, reversed(loops)):
        counter.replace_all_uses_with(loop.body.block.args[0])
    last = body.last_op
    _move(body, loops[-1].body.block)
    assert isinstance(last, scf.ReduceOp)
    ends = [
        _combine(writer, have, value, region)
        for have, value, region in zip(carried, last.arguments, last.reductions)
    ]
    last.detach()
    last.erase()
    writer.emit(scf.YieldOp(*ends))
    for outer, inner in reversed(list(pairwise(loops))):
        end = Writer(InsertPoint.at_end(outer.body.block), op.location)
        end.emit(scf.YieldOp(*inner.results))
    replace_by(op, *loops[0].results)


def _move(source: Block, target: Block) -> None:
    for each in list(source.ops):
        each.detach()
        target.add_op(each)


def _combine(w: Writer, have: SSAValue, value: SSAValue, region: Region) -> SSAValue:
    """What a reduction makes of the value so far and a new one."""
    block = region.block
    for argument, new in zip(list(block.args), (have, value)):
        argument.replace_all_uses_with(new)
    end = block.last_op
    assert isinstance(end, scf.ReduceReturnOp)
    result = end.result
    end.detach()
    for each in list(block.ops):
        each.detach()
        w.point.block.add_op(each)
    return result


def _execute_region(op: scf.ExecuteRegionOp) -> None:
    """Its code stands where it stood."""
    _inline(op.region, op)


def _index_switch(op: scf.IndexSwitchOp) -> None:
    """One conditional in the other, the first case outermost."""
    w, types = in_place_of(op), op.result_types
    numbers = ints_of(op.cases)
    tests = [w.compare("eq", op.arg, number) for number in numbers]
    rest = _without(op.default_region)
    for test, region in reversed(list(zip(tests, list(op.case_regions)))):
        inner = scf.IfOp(test, types, _without(region), rest, location=op.location)
        block = Block([inner])
        end = scf.YieldOp(*inner.results)
        block.add_op(end)
        rest = Region(block)
    if not tests:
        _inline(rest, op)
        return
    (whole, _) = rest.block.ops
    whole.detach()
    w.emit(whole)
    replace_by(op, *whole.results)


def _without(region: Region) -> Region:
    """A region taken out of its operation."""
    block = region.block
    region.detach_block(block)
    return Region(block)


def _inline(region: Region, op: Operation) -> None:
    """Put the code of a region before ``op``, and what it yields in its place."""
    block, target = region.block, op.parent
    last = block.last_op
    assert last is not None
    assert target is not None
    for each in list(block.ops):
        each.detach()
        if each is not last:
            target.insert_op_before(each, op)
    replace_by(op, *last.operands)


def _assert(op: cf.AssertOp) -> None:
    w = in_place_of(op)
    text = op.msg.data.replace("{", "{{").replace("}", "}}")
    w.emit(AssertOp(op.arg, StringAttr(text).data))
    replace_by(op)


RULES: dict[type[Operation], Callable[[Any], None]] = {
    scf.ParallelOp: _parallel,
    scf.ExecuteRegionOp: _execute_region,
    scf.IndexSwitchOp: _index_switch,
    cf.AssertOp: _assert,
}
