"""Loops over rows and chunks of columns: whole vectors first, masks for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from xetl.dialects.upstream import arith, vector
from xetl_cpu.lowering.loops.build import Index, before
from xetl_cpu.lowering.loops.evaluate import COLUMNS, At, Evaluator
from xetl_cpu.lowering.loops.nest import Nest, open_nest
from xetl_cpu.lowering.loops.state import Buffer, State

Body = Callable[[Evaluator, Sequence[SSAValue]], list[SSAValue]]
"""Writes the code of one chunk; takes and returns what the inner loop carries."""


def over_chunks(
    state: State,
    op: Operation,
    extents: tuple[Index, Index],
    body: Body,
    limit: Index | None = None,
    inits: Sequence[SSAValue] = (),
    step: int = 0,
) -> Nest:
    """Run ``body`` for all rows and chunks of columns, in front of ``op``.

    Where every access is inside its matrix the inner loop runs without masks; a
    second loop with masks does the rest of the row. ``limit``: how far the body
    itself may go without masks. ``inits``: what the inner loop carries.
    Returns the nest of the last inner loop, with both loops ended.
    """
    step = step or state.lanes
    outer, inner = extents
    nest = open_nest(op, outer, inner, step, inits)
    ev = Evaluator(state, nest, whole=True)
    if limit is not None:
        ev.limits["body"] = limit
    nest.end_inner(body(ev, nest.carried))
    if ev.limits:
        nest = _mask_the_rest(state, nest, ev, inner, step, body)
    nest.end_outer()
    return nest


def _mask_the_rest(
    state: State, nest: Nest, ev: Evaluator, inner: Index, step: int, body: Body
) -> Nest:
    """Cut the first loop where a limit ends it; go on with masks from there."""
    build = before(nest.loop)
    full = inner
    for limit in ev.limits.values():
        full = build.minimum(full, limit)
    full = build.maximum(full, 0)
    steps = build.insert(arith.DivuiOp(build.value(full), build.value(step)))
    cut = build.value(build.mul(steps, step))
    nest.loop.operands[1] = cut
    rest = nest.rest(cut, inner, step)
    rest.end_inner(body(Evaluator(state, rest), rest.carried))
    return rest


def chunk_at(ev: Evaluator) -> At:
    """The chunk of the current trip."""
    return At(ev.nest.outer, ev.nest.inner, COLUMNS, ev.state.lanes)


def put(ev: Evaluator, value: SSAValue, to: Buffer, at: At) -> None:
    """Store a whole vector to a buffer, whose rows are padded for that."""
    build = ev.nest.places[2]
    indices = [at.row] if to.is_column else [at.row, at.col]
    build.emit(vector.StoreOp(value, to.memref, [build.value(i) for i in indices]))
