"""Emission of ``scf.parallel``: a task function, and the fork that runs it.

All values that the body needs are put into a context on the launching thread's stack:

    context = [trips, threads, scratch, log, done, captured values ...]  (8 bytes each)

The iterations (trips) are split into ranges, one for each thread, so that a thread gets
the same data in the next launch (it is in its cache: a copy of 16 MB runs 2 to 3 times
as fast as with trips handed out one by one). A range is taken in parts; a thread that
is done continues with parts of the others' ranges, so a slow thread delays no other. A
single thread takes its whole range at once, because each atomic step waits for the
stores of the last part. The next trip of a range is in the first line of its thread's
scratch.

A fork ends when all threads have joined. If another process, or spinning threads of a
library, occupy the processors, threads join late: such a launch takes up to ten times
as long as on one thread. So the pool records how much time the last join lost (since
the end of the last trip, by the processor's time counter), and a launch that cannot
gain as much runs on its own thread. Each such launch subtracts a sixteenth of its
possible gain from that number, so that some later launch tries the others again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from xetl.analysis.liveness import used_from_outside
from xetl.codegen.division import or_one
from xetl.codegen.emitter import EmitTable, Emitter, constant
from xetl.codegen.scf import TABLE as CONTROL
from xetl.codegen.scf import flatten, rebuild
from xetl.codegen.types import Function, Value, append_blocks, ll
from xetl.dialects.base import is_vector, operations_in
from xetl.dialects.upstream import memref, scf
from xetl.dialects.xsmm import DATA_TYPES
from xetl.imports import late
from xetl_cpu.dialect import (
    BlockOp,
    FibersOp,
    IsNewOp,
    ThreadCountOp,
    ThreadNumberOp,
    ThreadTilesOp,
)
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.emit.work import emit_nanoseconds, nanoseconds
from xetl_cpu.launch import FORK, LOST, POOL, THREADS, WORKSPACE, WORKSPACE_BYTES
from xetl_cpu.llvm import I8, I64, PTR, VOID, Builder, declare, define, leave_as_it_is
from xetl_cpu.lowering.order_programs import order_of
from xetl_cpu.machine import PAGE

_TRIPS, _THREADS, _SCRATCH, _LOG, _DONE, _CAPTURED = range(6)
_HEADER = 64
_LAUNCH = "xetl_launch"
_TASK = ll.FunctionType(VOID, [PTR, PTR, PTR, PTR])
_FORK = ll.FunctionType(VOID, [PTR, PTR, PTR, PTR, PTR, I64, I64, I64])


def emit_parallel(em: KernelEmitter, op: scf.ParallelOp) -> None:
    """Run the body once for each trip, on all threads of the launch."""
    if not em.is_checked:
        _check_workspace(em)
    b = em.builder
    extents = em.all(op.upper_bounds)
    trips = extents[0]
    for extent in extents[1:]:
        trips = b.mul(trips, extent)
    outside, parts = captured_parts(em, op)
    scratch = b.gep(em.slot(WORKSPACE, PTR), [em.used], source_etype=I8)
    work = b.mul(trips, emit_nanoseconds(em, op))
    log, later = em.slot(WORKSPACE, PTR), constant(0)
    context = store_context(em, [trips, later, scratch, log, later, *parts])
    b.call(_launcher(em), [em.slots, _emit_task(em, op, outside), context, work])


def _launcher(em: KernelEmitter) -> Function:
    """Get or create the function that runs a task on the threads of the launch."""
    known = em.module.globals.get(_LAUNCH)
    if known is not None:
        return known
    params = [("slots", PTR), ("task", _TASK.as_pointer()), ("context", PTR)]
    function = define(em.module, _LAUNCH, VOID, [*params, ("work", I64)])
    leave_as_it_is(function)
    slots, task, context, work = function.args
    inner = replace(em.inside(function), slots=slots)
    b = inner.builder
    trips = b.load(b.word_at(context, _TRIPS), typ=I64, align=8)
    scratch = b.load(b.word_at(context, _SCRATCH), typ=PTR, align=8)
    threads = _threads(inner, trips, work)
    b.store(threads, b.word_at(context, _THREADS), align=8)
    _deal(inner, scratch, trips, threads)
    _fork(inner, task, context, threads, work)
    b.ret_void()
    return function


def emit_groups(em: KernelEmitter, op: scf.ForOp) -> None:
    """Emit a loop; if it launches tasks, check the workspace before it."""
    if not em.is_checked and operations_in(op, scf.ParallelOp):
        _check_workspace(em)
    CONTROL[scf.ForOp](em, op)


def _check_workspace(em: KernelEmitter) -> None:
    """Return the needed bytes if the workspace is too small, before any write."""
    b = em.builder
    scratch = b.mul(em.slot(THREADS), _stride(em))
    needed = b.add(em.used, scratch)
    is_small = b.icmp_signed(">", needed, em.slot(WORKSPACE_BYTES))
    small, enough = append_blocks(b, "workspace", "small", "ok")
    b.cbranch(is_small, small, enough)
    b.position_at_end(small)
    b.ret(needed)
    b.position_at_end(enough)
    if em.log_ids:
        # The log is empty, except for the word that counts its words.
        b.store(constant(1), em.slot(WORKSPACE, PTR), align=8)
    em.is_checked = True


def _stride(em: KernelEmitter) -> int:
    """Return the bytes from one thread's scratch to the next.

    These are whole pages, so that each starts in the middle of one
    (`launch/workspace.py`).
    """
    return -(-(_HEADER + em.scratch_bytes) // PAGE) * PAGE


def captured_parts(
    em: KernelEmitter, op: Operation
) -> tuple[list[SSAValue], list[Value]]:
    """Return values that regions use from outside, and their parts except constants."""
    outside = list(dict.fromkeys([*op.operands, *used_from_outside(op)]))
    parts = [part for value in outside for part in flatten(em.get(value))]
    # Views of one array share parts.
    parts = dict.fromkeys(each for each in parts if not isinstance(each, ll.Constant))
    return outside, list(parts)


def store_context(em: KernelEmitter, parts: list[Value]) -> Value:
    """Store values on the stack, for the function of a region."""
    b = em.builder
    context = b.stack_words(len(parts))
    for index, part in enumerate(parts):
        b.store(part, b.word_at(context, index), align=8)
    return context


def _threads(em: KernelEmitter, trips: Value, work: Value) -> Value:
    """Return the number of threads: 1 if there is no pool or little work."""
    b = em.builder
    none = b.icmp_signed("==", em.slot(POOL), 0)
    little = b.icmp_signed("<", work, SMALL)
    threads = b.minimum(em.slot(THREADS), trips)
    one = b.or_(b.or_(none, little), b.icmp_signed("<", threads, 1))
    return b.select(one, 1, threads)


def _deal(em: KernelEmitter, scratch: Value, trips: Value, threads: Value) -> None:
    """Store the start of each thread's range."""
    b, some = em.builder, or_one(em.builder, threads)
    with b.counted_loop(threads, name="deal") as thread:
        first = b.udiv(b.mul(trips, thread.index), some)
        b.store(first, _own(em, b, scratch, thread.index), align=8)


def _own(em: KernelEmitter, b: Builder, scratch: Value, thread: Value) -> Value:
    """Return the scratch of a thread; its first word is the next trip of its range."""
    return b.gep(scratch, [b.mul(thread, _stride(em))], source_etype=I8)


def _fork(
    em: KernelEmitter, task: Value, context: Value, threads: Value, work: Value
) -> None:
    """Call the task here, with all ranges, or let the pool call it on its threads."""
    b = em.builder
    args, dims, steps = (b.stack_words(1) for _ in range(3))
    b.store(constant(0), args)
    b.store(threads, dims)
    b.store(constant(1), steps)
    names = "here", "ask", "alone", "fork", "end"
    here, ask, alone, fork, after = append_blocks(b, "tasks", *names)
    b.cbranch(b.icmp_signed("==", threads, 1), here, ask)
    b.position_at_end(ask)
    pool = em.slot(POOL, PTR)
    lost_at = b.word_at(pool, LOST)
    lost = b.load(lost_at, typ=I64, align=8)
    b.cbranch(b.icmp_signed("<", b.lshr(work, 1), lost), alone, fork)
    b.position_at_end(alone)
    b.store(b.sub(lost, b.lshr(work, _FORGETS)), lost_at, align=8)
    b.branch(here)
    b.position_at_end(here)
    b.call(task, [args, dims, steps, context])
    b.branch(after)
    b.position_at_end(fork)
    # llvmlite calls only values of function type; in the text it is a `ptr`.
    run = b.load(b.word_at(pool, FORK), typ=_FORK.as_pointer(), align=8)
    # The pool's own arguments: no inner dimensions, one array, this many threads.
    tail = [constant(0), constant(1), threads]
    begun = _time(b)
    b.call(run, [task, args, dims, steps, context, *tail])
    done = b.load(b.word_at(context, _DONE), typ=I64, align=8)
    b.store(_lost(b, begun, done, work), lost_at, align=8)
    b.branch(after)
    b.position_at_end(after)


def _lost(b: Builder, begun: Value, done: Value, work: Value) -> Value:
    """Return about how many nanoseconds a fork lost at its join, which ends now.

    Return 0 if the work took more than twice as long: then a fork still pays.
    """
    waited = b.sub(_time(b), done)
    is_little = b.icmp_signed("<", b.shl(waited, 1), b.sub(done, begun))
    # These counters run at 2 to 4 GHz; those of two processors may differ.
    most = b.minimum(b.add(work, _MORE_THAN_ITS_WORK), _MOST_LOST)
    return b.select(is_little, 0, b.minimum(b.maximum(b.ashr(waited, 1), 0), most))


def _time(b: Builder) -> Value:
    """Read the processor's time counter, which takes 10 ns."""
    return b.intrinsic("llvm.readcyclecounter", I64, [])


def _emit_task(em: KernelEmitter, op: scf.ParallelOp, outside: list[SSAValue]) -> Value:
    """Emit ``void task(args, dims, steps, context)``, as numba's pool calls it."""
    name: str = em.module.get_unique_name("xetl_task")
    params = [(n, PTR) for n in ("args", "dims", "steps", "context")]
    task = define(em.module, name, VOID, params)
    if _only_calls(op):
        leave_as_it_is(task)
    args, dims, _, context = task.args
    inner = em.inside(task)
    b = inner.builder
    words = [b.load(b.word_at(context, n), typ=I64) for n in (_TRIPS, _THREADS)]
    scratch = b.load(b.word_at(context, _SCRATCH), typ=PTR)
    inner.log = b.load(b.word_at(context, _LOG), typ=PTR)
    load_captured(em, inner, context, outside, _CAPTURED)
    first, count = b.load(args, typ=I64), b.load(dims, typ=I64)
    tiles = [one for one in op.body.block.ops if isinstance(one, ThreadTilesOp)]
    held = [set_up_tiles(inner, one) for one in tiles]
    inner.last = {one: b.stack_words(1) for one in operations_in(op, IsNewOp)}
    has_run = b.stack_words(1)
    b.store(constant(0), has_run)
    end = b.add(first, count)
    # Hidden: strength reduction would derive every address from this loop's counter.
    with b.counted_loop(end, start=first, name="thread", is_hidden=True) as thread:
        own = _own(em, b, scratch, thread.index)
        inner.scratch = b.gep(own, [_HEADER], source_etype=I8)
        inner.thread = thread.index
        for last in inner.last.values():
            b.store(constant(-1), last)
        _take_ranges(inner, op, scratch, thread.index, words, has_run)
    # A single thread needs no time of its end; reading the counter takes 10 ns.
    is_joined = b.icmp_signed(">", words[1], 1)
    ran = b.icmp_signed("!=", b.load(has_run, typ=I64), 0)
    with b.if_then(b.and_(is_joined, ran)):
        b.store(_time(b), b.word_at(context, _DONE), align=8)
    for one, state in zip(tiles, held):
        give_back_tiles(inner, one, state)
    b.ret_void()
    return task


def _only_calls(op: scf.ParallelOp) -> bool:
    """Whether micro-kernels do all the work of a program: packing, or a product."""
    works = (FibersOp, memref.LoadOp, memref.StoreOp, memref.AtomicRmwOp, scf.WhileOp)
    inside = operations_in(op.body.block, Operation)
    is_work = any(
        isinstance(each, works) or any(is_vector(value.type) for value in each.operands)
        for each in inside
    )
    return not is_work and any(isinstance(each, BlockOp) for each in inside)


def load_captured(
    em: KernelEmitter,
    inner: KernelEmitter,
    context: Value,
    outside: list[SSAValue],
    first: int,
) -> None:
    """Load `captured_parts` from a context, from word ``first`` on."""
    b, loaded = inner.builder, dict[Value, Value]()
    for value in outside:
        like = em.get(value)
        parts: list[Value] = []
        for part in flatten(like):
            if not isinstance(part, ll.Constant) and part not in loaded:
                field = b.word_at(context, first + len(loaded))
                loaded[part] = b.load(field, typ=part.type, align=8)
            parts.append(loaded.get(part, part))
        inner.set(value, rebuild(like, parts))


def _take_ranges(
    inner: KernelEmitter,
    op: scf.ParallelOp,
    scratch: Value,
    own: Value,
    words: Sequence[Value],
    has_run: Value,
) -> None:
    """Run the thread's own range, then the rest of the others' ranges."""
    b, (trips, threads) = inner.builder, words
    some = or_one(b, threads)
    most = max(1, int(_TAKE / max(1, nanoseconds(op.body.block))))
    part = b.udiv(b.udiv(trips, some), _TAKES)
    is_alone = b.icmp_signed("==", threads, 1)
    step = b.select(is_alone, trips, or_one(b, b.minimum(part, most)))
    with b.counted_loop(threads, name="range") as turn:
        turned = b.add(own, turn.index)
        whose = b.urem(turned, some)
        end = b.udiv(b.mul(trips, b.add(whose, 1)), some)
        counter = _own(inner, b, scratch, whose), step, is_alone
        _take_trips(inner, op, counter, end, has_run)


def _take_trips(
    inner: KernelEmitter,
    op: scf.ParallelOp,
    counter: tuple[Value, Value, Value],
    end: Value,
    has_run: Value,
) -> None:
    """Emit ``while (first = counter += step) < end``: run ``step`` trips.

    An atomic step waits for all stores before it, so one for each trip would keep short
    trips from overlapping.  ``counter``: its address, the step, and whether no other
    thread takes trips.
    """
    b = inner.builder
    names = "take", "first", "run", "next", "end"
    take, begin, run, following, after = append_blocks(b, "trip", *names)
    step = counter[1]
    trip, *places = (b.stack_words(1) for _ in range(1 + len(op.body.block.args)))
    b.branch(take)
    b.position_at_end(take)
    first = _count_up(b, *counter)
    b.cbranch(b.icmp_signed("<", first, end), begin, after)
    b.position_at_end(begin)
    b.store(constant(1), has_run)
    stop = b.minimum(b.add(first, step), end)
    b.store(first, trip)
    order = order_of(op)
    extents = [inner.get(op.upper_bounds[axis]) for axis in order[:-1]]
    for place, extent in zip(places, extents):
        some = or_one(b, extent)
        b.store(b.urem(first, some), place)
        first = b.udiv(first, some)
    b.store(first, places[-1])
    b.branch(run)
    b.position_at_end(run)
    for axis, place in zip(order, places):
        inner.set(op.body.block.args[axis], b.load(place, typ=I64))
    inner.program = inner.all(op.body.block.args)
    inner.next_trip = following
    inner.emit_block(op.body.block)
    b.branch(following)
    b.position_at_end(following)
    _advance(b, places, extents)
    next_ = b.add(b.load(trip, typ=I64), 1)
    b.store(next_, trip)
    b.cbranch(b.icmp_signed("<", next_, stop), run, take)
    b.position_at_end(after)


def _count_up(b: Builder, counter: Value, step: Value, is_alone: Value) -> Value:
    """Add to the counter and return its old value; one thread needs no atomic step."""
    found = b.stack_words(1)
    with b.if_else(is_alone) as (alone, together):
        with alone:
            old = b.load(counter, typ=I64, align=8)
            b.store(b.add(old, step), counter, align=8)
            b.store(old, found)
        with together:
            b.store(b.atomic_rmw("add", counter, step, "monotonic"), found)
    return b.load(found, typ=I64)


def _advance(b: Builder, places: Sequence[Value], extents: Sequence[Value]) -> None:
    """Compute the indices of the next trip; the last one has no extent."""
    carry: Value = constant(1)
    for place, extent in zip(places, extents):
        index = b.add(b.load(place, typ=I64), carry)
        wraps = b.icmp_signed(">=", index, extent)
        b.store(b.select(wraps, 0, index), place)
        carry = b.zext(wraps, I64)
    b.store(b.add(b.load(places[-1], typ=I64), carry), places[-1])


def _is_new(em: KernelEmitter, op: IsNewOp) -> None:
    b, value, last = em.builder, em.get(op.value), em.last[op]
    em.set(op.result, b.icmp_signed("!=", value, b.load(last, typ=I64)))
    b.store(value, last)


TABLE: EmitTable = {
    scf.ParallelOp: emit_parallel,
    scf.ForOp: emit_groups,
    ThreadCountOp: lambda em, _: em.slot(THREADS),
    ThreadNumberOp: lambda em, _: em.thread,
    IsNewOp: _is_new,
}


_CONFIGURE, _RELEASE = (
    late("xetl_cpu.microkernels.amx_tiles", name)
    for name in ("emit_configure", "emit_release")
)
_INVOKE = "xsmm_intel_amx_tile_config_invoke"
_STATE_BYTES = 64


def set_up_tiles(em: KernelEmitter, op: ThreadTilesOp) -> Value | None:
    """Configure tiles before a thread's first trip; return the state to restore."""
    if op.library is None:
        _CONFIGURE(em.builder)
        return None
    state = em.builder.stack_array(I8, _STATE_BYTES)
    state.align = _STATE_BYTES
    _invoke(em, em.get(op.setup), state)
    return state


def give_back_tiles(em: KernelEmitter, op: ThreadTilesOp, state: Value | None) -> None:
    """Release tiles after a thread's last trip."""
    if op.library is None:
        _RELEASE(em.builder)
    else:
        assert state is not None
        _invoke(em, em.get(op.reset), state)


def _invoke(em: Emitter, kernel: Value, state: Value) -> None:
    """Call a kernel of the library, which saves to the state or restores from it."""
    function = declare(em.module, _INVOKE, VOID, [I64, I64, PTR, I64])
    data_type = constant(DATA_TYPES["bf16"])
    em.builder.call(function, [data_type, kernel, state, constant(0)])


_TAKES = 32
"""Parts of a thread's range, at least: so other threads can take some."""

_TAKE = 5_000
"""Nanoseconds of work in a part, at most: enough to hide the atomic step."""

SMALL = 10_000
"""Nanoseconds of work up to which a launch uses one thread."""

_FORGETS = 5
"""A launch on one thread subtracts its work, divided by 2 to this power, from the
loss."""

_MORE_THAN_ITS_WORK = 50_000
"""Nanoseconds by which the loss of a join may exceed the launch's work.

Sometimes a thread is late by milliseconds: only a few launches run on one thread after
that.
"""

_MOST_LOST = 1_000_000
"""Nanoseconds of loss, at most: launches that gain a millisecond always use all
threads."""
