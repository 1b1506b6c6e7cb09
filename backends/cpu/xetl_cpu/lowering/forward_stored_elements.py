"""forward-stored-elements: an iteration takes what the one before it stored as a value.

    scf.for %j = 1 to %n {
      %a = memref.load %A[%j - 1]
      memref.store f(%a), %A[%j]
    }
    ->
    %first = memref.load %A[0]               # if the loop runs
    scf.for %j = 1 to %n iter_args(%a = %first) {
      %b = f(%a)
      memref.store %b, %A[%j]
      yield %b
    }

Why: such iterations wait for each other, and each would also wait until what was stored
can be loaded (Zen 4, time warping of 256 by 256 f64: 334 us, then 181). A running sum
in memory, `Y[i] += ...` of an inner loop, is the case where the place stays.

Before: scalar loops whose tests of bounds are in front of them (version-element-loops).
Left alone: loops that store anything else that may be the same memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.analysis.affine import constant_distance, is_defined_outside
from xetl.analysis.control_flow import yielded
from xetl.analysis.memory import acts, roots_of
from xetl.dialects.base import constant_index, memref_type, operations_in
from xetl.dialects.upstream import memref, scf
from xetl.ir.builder import Builder, Pass, move_to_end
from xetl_cpu.lowering.element_loops.bounds import step_of_sum
from xetl_cpu.lowering.tiles import may_alias


class ForwardStoredElementsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for loop in operations_in(op, scf.ForOp):
            pairs = [*_forwarded(loop)]
            if pairs:
                _carry(loop, pairs)


def _forwarded(
    loop: scf.ForOp,
) -> Iterator[tuple[memref.LoadOp, memref.StoreOp]]:
    """Yield loads of what the iteration before has stored, and the stores."""
    ops = [op for op in loop.body.walk() if not op.regions]
    acting = [op for op in ops if acts(op) and not isinstance(op, scf.YieldOp)]
    stores = [op for op in acting if isinstance(op, memref.StoreOp)]
    if len(acting) > len(stores):
        return
    for store in stores:
        others = [each for each in stores if each is not store]
        if store.parent is not loop.body.block or any(
            may_alias(*roots)
            for each in others
            for roots in product(roots_of(store.memref), roots_of(each.memref))
        ):
            continue
        for load in [use.operation for use in store.memref.uses]:
            if isinstance(load, memref.LoadOp) and _is_behind(load, store, loop):
                yield load, store


def _is_behind(load: memref.LoadOp, store: memref.StoreOp, loop: scf.ForOp) -> bool:
    """Whether an element is loaded that the iteration before has stored."""
    if load.parent is not store.parent or not load.is_before_in_block(store):
        return False
    return all(
        constant_distance(*pair) == _growth(pair[1], loop)
        for pair in zip(load.indices, store.indices)
    )


def _growth(value: SSAValue, loop: scf.ForOp) -> int | None:
    """Return how much larger a sum is in each iteration; None if this is unknown."""
    if value is loop.body.block.args[0]:
        return constant_index(loop.step)
    if constant_index(value) is not None or is_defined_outside(value, loop):
        return 0
    op = value.owner
    if not isinstance(op, Operation):
        return None
    steps = [step for each in op.operands if (step := _growth(each, loop)) is not None]
    return step_of_sum(op, steps) if len(steps) == len(op.operands) else None


def _carry(loop: scf.ForOp, pairs: list[tuple[memref.LoadOp, memref.StoreOp]]) -> None:
    """Make a loop that carries the stored values to the loads."""
    build, old = Builder.before(loop), loop.body.block
    runs = build.compare("slt", loop.lower_bound, loop.upper_bound)
    firsts = [_first(build, load, loop, runs) for load, _ in pairs]
    inits = [*loop.init_args, *firsts]
    body = Block(arg_types=[old.args[0].type, *(each.type for each in inits)])
    for each, new in zip(old.args, body.args):
        each.replace_all_uses_with(new)
    last = old.last_op
    assert last is not None
    ends = [*yielded(old), *(store.value for _, store in pairs)]
    last.detach()
    last.erase()
    move_to_end([*old.ops], body)
    body.add_op(scf.YieldOp(*ends))
    for (load, _), value in zip(pairs, body.args[len(old.args) :]):
        load.result.replace_all_uses_with(value)
        load.detach()
        load.erase()
    bounds = loop.lower_bound, loop.upper_bound, loop.step
    new = scf.ForOp(*bounds, inits, Region(body), location=loop.location)
    new.attributes |= loop.attributes
    build.add(new)
    for each, value in zip(loop.results, new.results):
        each.replace_all_uses_with(value)
    loop.detach()
    loop.erase()


def _first(
    build: Builder, load: memref.LoadOp, loop: scf.ForOp, runs: SSAValue
) -> SSAValue:
    """Load the element of the first iteration, if there is one."""
    there, nowhere = Block(), Block()
    inside = Builder.at_end(there, load.location)
    new: dict[SSAValue, SSAValue] = {loop.body.block.args[0]: loop.lower_bound}

    def at_first(value: SSAValue) -> SSAValue:
        if not is_defined_outside(value, loop) and value not in new:
            assert isinstance(value.owner, Operation)
            for each in value.owner.operands:
                new[each] = at_first(each)
            new[value] = inside.insert(value.owner.clone(new))
        return new.get(value, value)

    indices = [at_first(each) for each in load.indices]
    inside.add(scf.YieldOp(inside.insert(memref.LoadOp(load.memref, indices))))
    other = Builder.at_end(nowhere, load.location)
    other.add(scf.YieldOp(other.constant(0, load.result.type)))
    type_ = memref_type(load.memref).element_type
    return build.insert(scf.IfOp(runs, [type_], Region(there), Region(nowhere)))
