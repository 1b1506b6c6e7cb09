"""Emission of ``scf.parallel``: a task function, and the fork that runs it.

All values the body needs are put into a context in the launching thread's stack:

    context = [counter, trips, scratch, captured values ...]   (8 bytes each)

Every thread takes the next trip from the counter until none is left, so a slow thread
holds up nobody. The thread's number selects its scratch.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from xetl.codegen.emitter import constant
from xetl.codegen.llvm import ll
from xetl.codegen.scf import captured, flatten, rebuild
from xetl.codegen.types import I8, I64, PTR
from xetl.dialects.upstream import scf
from xetl_cpu.emit import (
    PARALLEL_FOR,
    THREADS,
    WORKSPACE,
    WORKSPACE_BYTES,
    KernelEmitter,
)
from xetl_cpu.llvm import VOID, counted_loop, define, minimum
from xetl_cpu.work import SMALL, nanoseconds

_COUNTER, _TRIPS, _SCRATCH, _CAPTURED = range(4)
_POOL = ll.FunctionType(VOID, [PTR, PTR, PTR, PTR, PTR, I64, I64, I64])


def emit_parallel(em: KernelEmitter, op: scf.ParallelOp) -> None:
    """Run the body once for each trip, on all threads of the launch."""
    if not em.is_checked:
        _check_workspace(em)
    b = em.builder
    extents = em.all(op.upper_bounds)
    trips = extents[0]
    for extent in extents[1:]:
        trips = b.mul(trips, extent)
    outside = [v for v in captured(op) if not _is_constant(em.get(v))]
    parts = [part for value in outside for part in flatten(em.get(value))]
    parts = [part for part in parts if not isinstance(part, ll.Constant)]
    scratch = b.gep(em.slot(WORKSPACE, PTR), [em.used], source_etype=I8)
    context = _store_context(em, [constant(0), trips, scratch, *parts])
    task = _emit_task(em, op, outside)
    work = b.mul(trips, constant(nanoseconds(op.body.block)))
    _fork(em, task, context, trips, work)


def _is_constant(value: Any) -> bool:
    return isinstance(value, ll.Constant)


def _check_workspace(em: KernelEmitter) -> None:
    """Return the bytes needed if the workspace is too small: nothing is written yet."""
    b = em.builder
    scratch = b.mul(em.slot(THREADS), constant(em.scratch_bytes))
    needed = b.add(em.used, scratch)
    is_small = b.icmp_signed(">", needed, em.slot(WORKSPACE_BYTES))
    small, enough = (b.append_basic_block(f"workspace.{n}") for n in ("small", "ok"))
    b.cbranch(is_small, small, enough)
    b.position_at_end(small)
    b.ret(needed)
    b.position_at_end(enough)
    em.is_checked = True


def _store_context(em: KernelEmitter, parts: list[Any]) -> Any:
    b = em.builder
    context = _stack(b, len(parts))
    for index, part in enumerate(parts):
        b.store(part, _field(b, context, index), align=8)
    return context


def _stack(b: Any, count: int) -> Any:
    """Room for some i64 in the frame of the function."""
    with b.goto_entry_block():
        room = b.alloca(ll.ArrayType(I64, count))
    # llvmlite types it by its content; all other pointers here are opaque.
    room.type = PTR
    return room


def _field(b: Any, context: Any, index: int) -> Any:
    return b.gep(context, [constant(index)], source_etype=I64)


def _fork(em: KernelEmitter, task: Any, context: Any, trips: Any, work: Any) -> None:
    """One trip, one thread or little work: do it here; else hand it to the pool."""
    b = em.builder
    args, dims, steps = (_stack(b, 1) for _ in range(3))
    threads = minimum(b, em.slot(THREADS), trips)
    b.store(constant(0), args)
    b.store(threads, dims)
    b.store(constant(1), steps)
    # llvmlite calls only what has a function's type; in the text it is a `ptr`.
    pool = em.slot(PARALLEL_FOR, _POOL.as_pointer())
    none = b.icmp_unsigned("==", b.ptrtoint(pool, I64), constant(0))
    alone = b.icmp_signed("<=", threads, constant(1))
    little = b.icmp_signed("<", work, constant(SMALL))
    serial = b.or_(none, b.or_(alone, little))
    here, fork, after = (
        b.append_basic_block(f"tasks.{n}") for n in ("here", "fork", "end")
    )
    b.cbranch(serial, here, fork)
    b.position_at_end(here)
    b.store(constant(1), dims)
    b.call(task, [args, dims, steps, context])
    b.branch(after)
    b.position_at_end(fork)
    # The pool's own arguments: no inner dimensions, one array, this many threads.
    tail = [constant(0), constant(1), threads]
    b.call(pool, [task, args, dims, steps, context, *tail])
    b.branch(after)
    b.position_at_end(after)


def _emit_task(em: KernelEmitter, op: scf.ParallelOp, outside: list[SSAValue]) -> Any:
    """``void task(args, dims, steps, context)``: as numba's pool calls it."""
    name: str = em.module.get_unique_name("xetl_task")
    params = [(n, PTR) for n in ("args", "dims", "steps", "context")]
    task = define(em.module, name, VOID, params)
    args, dims, _, context = task.args
    inner = em.inside(task, _constants(em, op))
    b = inner.builder
    trips = b.load(_field(b, context, _TRIPS), typ=I64)
    scratch = b.load(_field(b, context, _SCRATCH), typ=PTR)
    _load_captured(em, inner, context, outside)
    first, count = b.load(args, typ=I64), b.load(dims, typ=I64)
    with counted_loop(b, b.add(first, count), start=first, name="thread") as thread:
        own = b.mul(thread.index, constant(em.scratch_bytes))
        inner.scratch = b.gep(scratch, [own], source_etype=I8)
        _take_trips(inner, op, context, trips)
    b.ret_void()
    return task


def _constants(em: KernelEmitter, op: scf.ParallelOp) -> dict[SSAValue, Any]:
    return {v: em.get(v) for v in captured(op) if _is_constant(em.get(v))}


def _load_captured(
    em: KernelEmitter, inner: KernelEmitter, context: Any, outside: list[SSAValue]
) -> None:
    index = _CAPTURED
    for value in outside:
        like = em.get(value)
        parts: list[Any] = []
        for part in flatten(like):
            if isinstance(part, ll.Constant):
                parts.append(part)
                continue
            field = _field(inner.builder, context, index)
            parts.append(inner.builder.load(field, typ=part.type, align=8))
            index += 1
        inner.set(value, rebuild(like, parts))


def _take_trips(
    inner: KernelEmitter, op: scf.ParallelOp, context: Any, trips: Any
) -> None:
    """``while (trip = counter++) < trips: body``; the first extent runs fastest."""
    b = inner.builder
    head, body, after = (
        b.append_basic_block(f"trip.{n}") for n in ("next", "run", "end")
    )
    b.branch(head)
    b.position_at_end(head)
    counter = _field(b, context, _COUNTER)
    trip = b.atomic_rmw("add", counter, constant(1), "monotonic")
    b.cbranch(b.icmp_signed("<", trip, trips), body, after)
    b.position_at_end(body)
    *fast, slowest = list(op.body.block.args)
    for index, extent in zip(fast, inner.all(op.upper_bounds)):
        inner.set(index, b.urem(trip, extent))
        trip = b.udiv(trip, extent)
    inner.set(slowest, trip)
    inner.emit_block(op.body.block)
    b.branch(head)
    b.position_at_end(after)


TABLE: dict[Any, Any] = {scf.ParallelOp: emit_parallel}
