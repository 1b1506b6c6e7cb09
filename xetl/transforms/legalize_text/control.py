"""Loops in any order, regions that run once and switches as `scf.for` and `scf.if`.

Before: ``scf.parallel (%i, %j) = ... init (%z) { ... scf.reduce(%v) { ... } }``
After:  ``scf.for %i ... iter_args(%s = %z) { scf.for %j ... iter_args ... { ... } }``
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import Index, ints_of
from xetl.dialects.upstream import cf, scf
from xetl.dialects.xetile import AssertOp
from xetl.ir.builder import Builder
from xetl.transforms.rewriting import Rule, Values

Finish = Callable[[Builder, Sequence[SSAValue]], Values]
"""Computes what the innermost loop yields from what it carries."""


def legalize_control_flow(op: Operation) -> None:
    """Replace all operations inside ``op`` that have a rule here."""
    for each in list(op.walk()):
        rule = _RULES.get(type(each))
        values = None if rule is None else rule(Builder.before(each), each)
        if values is not None:
            Rewriter.replace_op(each, [], list(values))


def _nest(
    build: Builder,
    body: Block,
    bounds: Sequence[Sequence[Index]],
    inits: Sequence[SSAValue],
    finish: Finish,
) -> Values:
    """Loops in one another around the operations of ``body``, the first outermost."""
    loops: list[scf.ForOp] = []
    all_bounds = [[build.index(each) for each in bound] for bound in bounds]
    for counter, (lower, upper, step) in zip(list(body.args), all_bounds):
        loop = build.for_loop(lower, upper, step, inits)
        loops.append(loop)
        own_counter, *inits = loop.body.block.args
        counter.replace_all_uses_with(own_counter)
        build = Builder.at_end(loop.body.block, build.location)
    _move(body, build)
    values = finish(build, inits)
    for outer, inner in reversed([*pairwise(loops)]):
        build.add(scf.YieldOp(*values))
        values = inner.results
        build = Builder.at_end(outer.body.block, build.location)
    if not loops:
        return values
    build.add(scf.YieldOp(*values))
    return loops[0].results


def _parallel(build: Builder, op: scf.ParallelOp) -> Values:
    """Reductions are what the loops carry."""
    end = op.body.block.last_op
    assert isinstance(end, scf.ReduceOp)
    end.detach()

    def reduce(inside: Builder, carried: Sequence[SSAValue]) -> Values:
        found: list[SSAValue] = []
        for pair, region in zip(zip(carried, end.arguments), end.reductions):
            for argument, value in zip(list(region.block.args), pair):
                argument.replace_all_uses_with(value)
            found.append(*_move_and_end(region.block, inside))
        end.erase()
        return found

    bounds = list(zip(op.lower_bounds, op.upper_bounds, op.steps))
    return _nest(build, op.body.block, bounds, op.init_vals, reduce)


def _forall(build: Builder, op: scf.ForallOp) -> Values:
    body = op.region.block
    end = body.last_op
    assert end is not None
    end.detach()
    end.erase()
    return _nest(build, body, list(zip(*op.mixed_bounds)), [], lambda b, carried: [])


def _execute_region(build: Builder, op: scf.ExecuteRegionOp) -> Values | None:
    """Its operations stand where it stood; one with branches stays."""
    if len(op.region.blocks) > 1:
        return None
    return _move_and_end(op.region.block, build)


def _index_switch(build: Builder, op: scf.IndexSwitchOp) -> Values:
    """One conditional in the other, the first case outermost."""
    tests = [build.compare("eq", op.arg, number) for number in ints_of(op.cases)]
    regions = [Region(region.detach_block(0)) for region in op.case_regions]
    rest = Region(op.default_region.detach_block(0))
    for test, region in reversed(list(zip(tests, regions))):
        choice = scf.IfOp(test, op.result_types, region, rest, location=op.location)
        end = scf.YieldOp(*choice.results)
        rest = Region(Block([choice, end]))
    return _move_and_end(rest.block, build)


def _assert(build: Builder, op: cf.AssertOp) -> Values:
    text = op.msg.data.replace("{", "{{").replace("}", "}}")
    build.add(AssertOp(op.arg, template=text))
    return []


def _move(source: Block, build: Builder) -> None:
    for each in list(source.ops):
        each.detach()
        build.add(each)


def _move_and_end(source: Block, build: Builder) -> Values:
    """Move all but the terminator; returns the terminator's operands."""
    end = source.last_op
    assert end is not None
    values = list(end.operands)
    end.detach()
    end.erase()
    _move(source, build)
    return values


_RULES: dict[type[Operation], Rule] = {
    scf.ParallelOp: _parallel,
    scf.ForallOp: _forall,
    scf.ExecuteRegionOp: _execute_region,
    scf.IndexSwitchOp: _index_switch,
    cf.AssertOp: _assert,
}
