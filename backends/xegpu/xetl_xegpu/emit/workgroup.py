"""Emission of ids, shuffles and reductions, barriers, fences, and the kernel's end.

Values are shuffled as integers of 32 or 64 bits, which every driver supports; vectors
are shuffled element by element.

A fence names the memory that it orders. LLVM's own fence does not, and Intel's compiler
drops it (ocloc 26.27). Source of the numbers: SPIR-V 1.6, "Scope" and "Memory
Semantics".

How a workgroup ends if an assertion of one subgroup fails: other subgroups may wait for
it at a barrier, so it cannot return. GPUs would wait for ever; opencl:cpu, which runs
one subgroup after the other, would go on with wrong numbers. The subgroup sets a flag
in shared memory and goes on to the next barrier as a dead one: its loads read memory
that always exists, it stores nothing and prints nothing. After the barrier all
subgroups read the flag, and all return.

There are two flags, used in turn: a slow subgroup may still read the flag of the last
barrier when a fast one sets that of the next.

A dead subgroup may take another branch, and reach another barrier or the end. A barrier
of a GPU is over when all subgroups have reached some barrier, so all meet once more at
the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from xdsl.dialects.builtin import IntegerAttr

from xetl.codegen.arith import in_f32
from xetl.codegen.division import or_one
from xetl.codegen.emitter import EmitTable
from xetl.codegen.types import I1, I16, I32, I64, Type, Value, ll
from xetl.dialects.base import element_type
from xetl.errors import InternalError
from xetl_xegpu import simt
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit.emitter import LINE, Ending, KernelEmitter, combine, shared_array
from xetl_xegpu.simt import SUBGROUP_SIZE

_STEPS = (1, 2, 4, 8)


def shuffle(em: KernelEmitter, value: Value, lane: Value) -> Value:
    """Return the number ``value`` of the lane ``lane`` (i32, less than 16)."""
    return _exchange(em, "intel_sub_group_shuffle", value, lane)


def _exchange(em: KernelEmitter, name: str, value: Value, which: Value) -> Value:
    """Call a shuffle of integers."""
    b, type_ = em.builder, value.type
    bits = _BITS.get(type(type_))
    if bits is not None:
        moved = _exchange(em, name, b.bitcast(value, bits), which)
        return b.bitcast(moved, type_)
    if type_.width < I32.width:
        wide = _exchange(em, name, b.zext(value, I32), which)
        if type_ == I1:
            return b.icmp_signed("!=", wide, I32(0))
        return b.trunc(wide, type_)
    scalar = "uint" if type_ == I32 else "ulong"
    return em.call(builtins.function(name, scalar, scalar, "uint"), [value, which])


_BITS: dict[Any, Any] = {ll.HalfType: I16, ll.FloatType: I32, ll.DoubleType: I64}


def each_element(
    em: KernelEmitter, value: Value, change: Callable[[Value], Value]
) -> Value:
    """Apply ``change``, which keeps the type, to each element or to a number."""
    if not isinstance(value.type, ll.VectorType):
        return change(value)
    b = em.builder
    result: Value = ll.Constant(value.type, ll.Undefined)
    for index in range(value.type.count):
        changed = change(b.extract_element(value, I32(index)))
        result = b.insert_element(result, changed, I32(index))
    return result


def _shuffle(em: KernelEmitter, op: simt.ShuffleOp) -> Value:
    """Emit a shuffle of the lane modulo 16, as the language defines it.

    The number of a constant lane is folded here: if LLVM's backend folds the operation,
    it ends the process if the kernel also has a compare-and-exchange loop.
    """
    value, lane = em.all([op.value, op.lane])
    if isinstance(lane, ll.Constant):
        lane = I32(lane.constant % SUBGROUP_SIZE)
    else:
        lane = em.builder.and_(lane, I32(SUBGROUP_SIZE - 1))
    return each_element(em, value, lambda part: shuffle(em, part, lane))


_NUMBERS = {"float": "float", "double": "double", "i32": "uint", "i64": "ulong"}


def _of_device(em: KernelEmitter, kind: str, type_: Type) -> builtins.Builtin | None:
    """Return the builtin that reduces numbers over lanes, or None.

    Those of floats are not used on OpenCL's driver for CPUs: extrema are NaN if some
    lane, not all, has NaN; on some processors a sum of -0.0 is 0.0.
    """
    name, number = kind[:3], _NUMBERS.get(str(type_))
    if name not in ("add", "min", "max") or number is None:
        return None
    if em.device.emulated and number in ("float", "double"):
        return None
    number = number if kind.endswith("ui") else number.removeprefix("u")
    return builtins.function(f"sub_group_reduce_{name}", number, number)


def _reduce(em: KernelEmitter, op: simt.ReduceOp) -> Value:
    """Emit a reduction; narrow floats are reduced in f32."""
    type_, compute = element_type(op.value.type), partial(reduced, em, op.kind.data)
    return each_element(em, em.get(op.value), partial(in_f32, em, type_, compute))


def reduced(em: KernelEmitter, kind: str, value: Value) -> Value:
    """Reduce by the device's builtin, or else by a butterfly of shuffles.

    Intel's compiler merges the builtins of neighbouring rows into one tree and keeps
    the results together: 8 sums take 12 instructions instead of 64.
    """
    builtin = _of_device(em, kind, value.type)
    if builtin is not None:
        best = em.call(builtin, [value])
        return _or_nan(em, value, best) if kind.endswith("imumf") else best
    for step in _STEPS:
        other = _exchange(em, "sub_group_shuffle_xor", value, I32(step))
        value = combine(em, kind, value, other)
    return value


def _or_nan(em: KernelEmitter, value: Value, best: Value) -> Value:
    """Return NaN if a lane has NaN, else ``best``: the builtins ignore NaN."""
    b = em.builder
    here = b.zext(b.fcmp_unordered("uno", value, value), I32)
    some = em.ask("sub_group_any", here)
    nan = ll.Constant(value.type, float("nan"))
    return b.select(b.icmp_signed("!=", some, I32(0)), nan, best)


_BARRIERS = (simt.BarrierOp, simt.BarrierWaitOp, simt.NamedBarrierOp)


def own_bytes(kernel: simt.FuncOp) -> int:
    """Return the bytes of shared memory for the flags of dead subgroups, or 0."""
    kinds = {type(op) for op in kernel.walk()}
    is_needed = simt.AssertOp in kinds and not kinds.isdisjoint(_BARRIERS)
    return LINE if is_needed else 0


def begin(em: KernelEmitter, kernel: simt.FuncOp) -> None:
    """Emit the walk of programs, and the flags for failed assertions if needed."""
    rows = kernel.attributes.get(simt.WALK)
    if isinstance(rows, IntegerAttr):
        em.walked = _walked(em, rows.value.data)
    if not own_bytes(kernel):
        return
    words = shared_array(em.module, f"{kernel.sym_name.data}.dead", I32, 2)
    em.ending = Ending(em.private_array(I32, 1), em.private_array(I32, 1), words)
    _put(em, em.ending.alive, 1)
    _put(em, em.ending.turn, 0)
    for turn in range(2):
        _put(em, _word(em, words, I64(turn)), 0)
    em.meet()


def _walked(em: KernelEmitter, rows: int) -> tuple[Value, ...]:
    """Return the indices along x and y of this program in a walk by groups.

    A group is ``rows`` programs along x (the last one may have fewer) and all along y.
    Programs are numbered along x first, in the order of their starts. Launches check
    that x times y fits 32 bits.
    """
    b = em.builder

    def ask(name: str, axis: int) -> Value:
        return b.trunc(em.ask(name, I32(axis)), I32)

    wide, high = (ask("get_num_groups", axis) for axis in range(2))
    number = b.add(b.mul(ask("get_group_id", 1), wide), ask("get_group_id", 0))
    most = combine(em, "minui", I32(rows), wide)
    in_group = b.mul(most, high)
    group = b.udiv(number, or_one(b, in_group))
    first = b.mul(group, most)
    inside = b.sub(number, b.mul(group, in_group))
    own = combine(em, "minui", most, b.sub(wide, first))
    column = b.udiv(inside, or_one(b, own))
    row = b.add(first, b.sub(inside, b.mul(column, own)))
    return b.zext(row, I64), b.zext(column, I64)


def _put(em: KernelEmitter, where: Value, value: int) -> None:
    em.builder.store(I32(value), where, align=4)


def _number(em: KernelEmitter, where: Value) -> Value:
    return em.builder.load(where, typ=I32, align=4)


def _word(em: KernelEmitter, words: Value, turn: Value) -> Value:
    return em.builder.gep(words, [turn], source_etype=I32)


def allowed(em: KernelEmitter, mask: Value) -> Value:
    """Return the mask, or false if the subgroup is dead."""
    if em.ending is None:
        return mask
    b = em.builder
    alive = b.icmp_signed("!=", _number(em, em.ending.alive), I32(0))
    return b.and_(mask, alive)


def fail(em: KernelEmitter) -> None:
    """End the subgroup here, or let the workgroup end at the next barrier."""
    if em.ending is None:
        _leave(em)
        return
    turn = em.builder.zext(_number(em, em.ending.turn), I64)
    _put(em, _word(em, em.ending.words, turn), 1)
    _put(em, em.ending.alive, 0)


def _leave(em: KernelEmitter) -> None:
    """Branch to the common end of all paths.

    [measured] If a kernel has several returns, OpenCL's driver for CPUs (2026.2)
    without optimisation runs its lanes one by one.
    """
    if em.exit is None:
        em.exit = em.builder.append_basic_block("exit")
    em.builder.branch(em.exit)


def _return(em: KernelEmitter, op: simt.ReturnOp) -> None:
    """Emit the end of the kernel."""
    if em.ending is not None:
        em.meet()
    if em.exit is not None:
        em.builder.branch(em.exit)
        em.builder.position_at_end(em.exit)
    em.builder.ret_void()


_SCOPES = {"workgroup": 2, "device": 1, "system": 0}
_ACQUIRE, _RELEASE, _BOTH = 2, 4, 8
_MEMORY = {"local": 0x100, "global": 0x200}
_ALL_MEMORY = sum(_MEMORY.values())

_CLK_LOCAL = 1
"""`CLK_LOCAL_MEM_FENCE` of OpenCL C."""


def _barrier(em: KernelEmitter, op: simt.BarrierOp | simt.BarrierWaitOp) -> None:
    """Emit a barrier, after which all end if a subgroup is dead."""
    em.meet()
    if em.ending is None:
        return
    b, ending = em.builder, em.ending
    turn = _number(em, ending.turn)
    found = _number(em, _word(em, ending.words, b.zext(turn, I64)))
    b.store(b.xor(turn, I32(1)), ending.turn, align=4)
    # The shuffle makes the condition uniform, so that drivers see no divergence.
    is_over = b.icmp_signed("!=", shuffle(em, found, I32(0)), I32(0))
    with b.if_then(is_over):
        _leave(em)


def _has_halves(em: KernelEmitter) -> bool:
    """Whether barriers are split. Kernels with flags for failures need whole ones."""
    return not em.device.emulated and em.ending is None


def _arrive(em: KernelEmitter, op: simt.BarrierArriveOp) -> None:
    """Emit the first half of a barrier, or nothing if none is split."""
    if _has_halves(em):
        _half(em, "Arrive", _RELEASE)


def _wait(em: KernelEmitter, op: simt.BarrierWaitOp) -> None:
    """Emit the second half of a barrier, or a whole barrier if none is split.

    The builtin cannot be emulated by a function: LLVM makes the instruction of every
    call with this name, and opencl:cpu refuses the instruction.
    """
    if _has_halves(em):
        _half(em, "Wait", _ACQUIRE)
    else:
        _barrier(em, op)


def _half(em: KernelEmitter, half: str, order: int) -> None:
    """Emit a half of a barrier: execution scope, memory scope, memory semantics."""
    workgroup, memory = I32(_SCOPES["workgroup"]), I32(order | _ALL_MEMORY)
    em.ask(f"__spirv_ControlBarrier{half}INTEL", workgroup, workgroup, memory)


def _named(em: KernelEmitter, op: simt.NamedBarrierOp) -> None:
    """Emit a fence, then a named barrier.

    With flags for both kinds of memory, a named barrier orders only global memory.
    """
    if em.device.emulated:
        raise InternalError("no emulation lets some subgroups meet")
    # The barrier of a number. All subgroups make all barriers on entry.
    number = op.number.value.data
    if number not in em.named_barriers:
        with em.builder.goto_block(em.entry):
            count = I32(op.subgroups.value.data)
            em.named_barriers[number] = em.ask("named_barrier_init", count)
    _order(em, "workgroup", _MEMORY)
    barrier = em.named_barriers[number]
    em.ask("work_group_named_barrier", barrier, I32(_CLK_LOCAL))


def _order(em: KernelEmitter, scope: str, spaces: Iterable[str]) -> None:
    memory = sum(_MEMORY[space] for space in spaces)
    em.ask("__spirv_MemoryBarrier", I32(_SCOPES[scope]), I32(_BOTH | memory))


TABLE: EmitTable = {
    simt.ShuffleOp: _shuffle,
    simt.ReduceOp: _reduce,
    simt.BarrierOp: _barrier,
    simt.BarrierArriveOp: _arrive,
    simt.BarrierWaitOp: _wait,
    simt.NamedBarrierOp: _named,
    simt.FenceOp: lambda em, op: _order(em, op.scope.data, op.spaces),
    simt.GroupIdOp: lambda em, op: em.program(op.axis),
    simt.NumGroupsOp: lambda em, op: em.ask("get_num_groups", I32(op.axis)),
    simt.SubgroupIdOp: lambda em, _: em.ask("get_sub_group_id"),
    simt.LaneIdOp: lambda em, _: em.lane(),
    simt.ReturnOp: _return,
}
