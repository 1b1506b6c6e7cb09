"""Emission of where a lane is, what lanes tell one another, barriers, and the end.

Values travel between lanes as integers of 32 or 64 bits: those every driver shuffles.
Vectors go element by element.

A fence says which memory it is about: LLVM's own does not, and Intel's compiler makes
nothing of it (ocloc 26.27). Source of the numbers: SPIR-V 1.6, "Scope" and "Memory
Semantics".

How a workgroup ends when one of its subgroups finds that an assertion fails: others may
wait for it at a barrier, so it cannot just end. GPUs would wait for ever, and
opencl:cpu, which runs one subgroup after the other, goes on with wrong numbers. It goes
on to the next barrier as one that is dead: it loads what is always there, stores
nothing and prints nothing. Before, it leaves word in shared memory; after the barrier
all read it, and all end.

Word is left in one of two places by turns. Somebody slow still reads of the last
barrier when somebody fast leaves word of the next one.

On its way a dead subgroup may take another branch than it would have, and come to
another barrier, or to the end. A barrier of a GPU is over when all have come to one,
whichever it is, so all meet once more at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from xetl.codegen.arith import narrow, widen
from xetl.codegen.division import or_one
from xetl.codegen.types import I1, I16, I32, I64, Type, Value, is_narrow_float, ll
from xetl.dialects.base import element_type
from xetl.errors import InternalError
from xetl_xegpu import simt
from xetl_xegpu.emit.builtins import (
    Builtin,
    function,
    named_barrier,
    named_barrier_init,
    split_barrier,
)
from xetl_xegpu.emit.emitter import LINE, LOCAL, Ending, KernelEmitter, Table, combine
from xetl_xegpu.simt import SUBGROUP_SIZE

_STEPS = (1, 2, 4, 8)


def shuffle(em: KernelEmitter, value: Value, lane: Value) -> Value:
    """The number ``value`` as lane ``lane`` (i32, below 16) has it."""
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
    return em.call(function(name, scalar, scalar, "uint"), [value, which])


_BITS: dict[Any, Any] = {ll.HalfType: I16, ll.FloatType: I32, ll.DoubleType: I64}


def each_element(
    em: KernelEmitter, value: Value, change: Callable[[Value], Value]
) -> Value | None:
    """A vector of what becomes of each element; a number becomes one."""
    if not isinstance(value.type, ll.VectorType):
        return change(value)
    b, result = em.builder, None
    for index in range(value.type.count):
        changed = change(b.extract_element(value, I32(index)))
        if result is None:
            type_ = ll.VectorType(changed.type, value.type.count)
            result = ll.Constant(type_, ll.Undefined)
        result = b.insert_element(result, changed, I32(index))
    return result


def _shuffle(em: KernelEmitter, op: simt.ShuffleOp) -> None:
    value, lane = em.all([op.value, op.lane])
    lane = _existing_lane(em, lane)
    result = each_element(em, value, lambda part: shuffle(em, part, lane))
    em.set(op.result, result)


def _existing_lane(em: KernelEmitter, lane: Value) -> Value:
    """The lane as the language counts them: round and round.

    Of a constant it must be a constant: where LLVM's backend folds the operation itself
    it ends the process if the kernel has a loop of compare and exchange as well.
    """
    if isinstance(lane, ll.Constant):
        return I32(lane.constant % SUBGROUP_SIZE)
    return em.builder.and_(lane, I32(SUBGROUP_SIZE - 1))


_NUMBERS = {"float": "float", "double": "double", "i32": "uint", "i64": "ulong"}


def _of_device(em: KernelEmitter, kind: str, type_: Type) -> Builtin | None:
    """What reduces numbers over lanes; None: the device has nothing that does.

    Those of floats on OpenCL's driver for CPUs are not ours: extrema are NaN where some
    lane has NaN, not all; on some processors a sum of -0.0 is 0.0.
    """
    name, number = kind[:3], _NUMBERS.get(str(type_))
    if name not in ("add", "min", "max") or number is None:
        return None
    if em.device.emulated and number in ("float", "double"):
        return None
    number = number if kind.endswith("ui") else number.removeprefix("u")
    return function(f"sub_group_reduce_{name}", number, number)


def _reduce(em: KernelEmitter, op: simt.ReduceOp) -> None:
    """Of the narrow floats in f32."""
    type_: Attribute = element_type(op.value.type)
    kind = op.kind.data

    def of_number(part: Value) -> Value:
        if not is_narrow_float(type_):
            return _reduced(em, kind, part)
        return narrow(em, _reduced(em, kind, widen(em, part)), type_)

    em.set(op.result, each_element(em, em.get(op.value), of_number))


def _reduced(em: KernelEmitter, kind: str, value: Value) -> Value:
    """By the device's own function, else with the lane that differs in a bit, for all.

    Of rows that are reduced side by side Intel's compiler makes one tree, and keeps the
    results together: 8 sums are 12 instructions instead of 64.
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
    """NaN if a lane has one: the device's functions prefer numbers."""
    b = em.builder
    here = b.zext(b.fcmp_unordered("uno", value, value), I32)
    some = em.call(function("sub_group_any", "int", "int"), [here])
    nan = ll.Constant(value.type, float("nan"))
    return b.select(b.icmp_signed("!=", some, I32(0)), nan, best)


_BARRIERS = (simt.BarrierOp, simt.BarrierWaitOp, simt.NamedBarrierOp)


def own_bytes(kernel: simt.FuncOp) -> int:
    """Shared memory of a kernel beside its own; 0 if nobody may wait for a dead one."""
    kinds = {type(op) for op in kernel.walk()}
    is_needed = simt.AssertOp in kinds and not kinds.isdisjoint(_BARRIERS)
    return LINE if is_needed else 0


def begin(em: KernelEmitter, kernel: simt.FuncOp) -> None:
    """Find the program; prepare for failures, if somebody may wait for who failed."""
    rows = kernel.attributes.get(simt.WALK)
    if isinstance(rows, IntegerAttr):
        em.walked = _walked(em, rows.value.data)
    if not own_bytes(kernel):
        return
    b, name = em.builder, f"{kernel.sym_name.data}.dead"
    words = ll.GlobalVariable(em.module, ll.ArrayType(I32, 2), name, addrspace=3)
    words.linkage, words.align = "internal", LINE
    words.initializer = ll.Constant(words.value_type, ll.Undefined)
    words.type = LOCAL  # llvmlite would compare what it points to
    em.ending = Ending(em.private_array(I32, 1), em.private_array(I32, 1), words)
    _put(em, em.ending.alive, 1)
    _put(em, em.ending.turn, 0)
    for turn in range(2):
        b.store(I32(0), _word(em, em.ending, I64(turn)), align=4)
    em.meet()


def _walked(em: KernelEmitter, rows: int) -> tuple[Value, ...]:
    """The numbers along x and y of the program that is this one in a walk by groups.

    A group is ``rows`` programs along x (the last one may have fewer) and all along y.
    Programs start with x, so these numbers count them; a launch sees that x times y
    fits 32 bits.
    """
    b = em.builder

    def ask(name: str, axis: int) -> Value:
        return b.trunc(em.call(function(name, "ulong", "uint"), [I32(axis)]), I32)

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


def _word(em: KernelEmitter, ending: Ending, turn: Value) -> Value:
    return em.builder.gep(ending.words, [turn], source_etype=I32)


def allowed(em: KernelEmitter, mask: Value) -> Value:
    """The lanes of a mask, as long as the subgroup is alive."""
    if em.ending is None:
        return mask
    b = em.builder
    alive = b.icmp_signed("!=", _number(em, em.ending.alive), I32(0))
    return b.and_(mask, alive)


def fail(em: KernelEmitter) -> None:
    """End here, or at the next barrier."""
    if em.ending is None:
        _leave(em)
        return
    turn = em.builder.zext(_number(em, em.ending.turn), I64)
    em.builder.store(I32(1), _word(em, em.ending, turn), align=4)
    _put(em, em.ending.alive, 0)


def _leave(em: KernelEmitter) -> None:
    """End, where all paths do.

    [measured] OpenCL's driver for CPUs (2026.2), told not to optimise, runs the lanes
    of a kernel that returns at several places one by one.
    """
    if em.exit is None:
        em.exit = em.builder.append_basic_block("exit")
    em.builder.branch(em.exit)


def leave_together(em: KernelEmitter) -> None:
    """Behind a barrier: end, if somebody is dead."""
    if em.ending is None:
        return
    b, ending = em.builder, em.ending
    turn = _number(em, ending.turn)
    found = _number(em, _word(em, ending, b.zext(turn, I64)))
    b.store(b.xor(turn, I32(1)), ending.turn, align=4)
    # Known to be the same in all lanes: drivers see that nobody is left behind.
    is_over = b.icmp_signed("!=", shuffle(em, found, I32(0)), I32(0))
    with b.if_then(is_over):
        _leave(em)


def end(em: KernelEmitter) -> None:
    """At the end of the kernel."""
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


def _barrier(em: KernelEmitter, op: simt.BarrierOp) -> None:
    em.meet()
    leave_together(em)


def _has_halves(em: KernelEmitter) -> bool:
    """Not where failures are told: between the halves it would be too late."""
    return not em.device.emulated and em.ending is None


def _arrive(em: KernelEmitter, op: simt.BarrierArriveOp) -> None:
    if _has_halves(em):
        _half(em, split_barrier("Arrive"), _RELEASE)


def _wait(em: KernelEmitter, op: simt.BarrierWaitOp) -> None:
    """Where there are no halves, all meet here.

    A function of ours would not do: LLVM makes the instruction of every call that has
    this name, and opencl:cpu refuses it.
    """
    if not _has_halves(em):
        em.meet()
        leave_together(em)
        return
    _half(em, split_barrier("Wait"), _ACQUIRE)


def _half(em: KernelEmitter, half: Builtin, order: int) -> None:
    workgroup = I32(_SCOPES["workgroup"])
    em.call(half, [workgroup, workgroup, I32(order | _ALL_MEMORY)])


def _named(em: KernelEmitter, op: simt.NamedBarrierOp) -> None:
    """Asked for both, it orders global memory alone: the fence comes first."""
    if em.device.emulated:
        raise InternalError("no emulation lets some subgroups meet")
    barrier = _made(em, op)
    _order(em, "workgroup", _ALL_MEMORY)
    em.call(named_barrier(), [barrier, I32(_CLK_LOCAL)])


def _made(em: KernelEmitter, op: simt.NamedBarrierOp) -> Value:
    """The barrier of a number, made on entry: all subgroups make all of them."""
    number = op.number.value.data
    if number not in em.named_barriers:
        with em.builder.goto_block(em.entry):
            count = I32(op.subgroups.value.data)
            em.named_barriers[number] = em.call(named_barrier_init(), [count])
    return em.named_barriers[number]


def _fence(em: KernelEmitter, op: simt.FenceOp) -> None:
    _order(em, op.scope.data, sum(_MEMORY[space] for space in op.spaces))


def _order(em: KernelEmitter, scope: str, memory: int) -> None:
    fence = function("__spirv_MemoryBarrier", "void", "int", "int")
    em.call(fence, [I32(_SCOPES[scope]), I32(_BOTH | memory)])


def _group_id(em: KernelEmitter, op: simt.GroupIdOp) -> None:
    em.set(op.result, em.program(op.axis))


def _num_groups(em: KernelEmitter, op: simt.NumGroupsOp) -> None:
    builtin = function("get_num_groups", "ulong", "uint")
    em.set(op.result, em.call(builtin, [I32(op.axis)]))


def _subgroup_id(em: KernelEmitter, op: simt.SubgroupIdOp) -> None:
    em.set(op.result, em.call(function("get_sub_group_id", "uint"), []))


def _lane_id(em: KernelEmitter, op: simt.LaneIdOp) -> None:
    em.set(op.result, em.lane())


def _return(em: KernelEmitter, op: simt.ReturnOp) -> None:
    end(em)


TABLE: Table = {
    simt.ShuffleOp: _shuffle,
    simt.ReduceOp: _reduce,
    simt.BarrierOp: _barrier,
    simt.BarrierArriveOp: _arrive,
    simt.BarrierWaitOp: _wait,
    simt.NamedBarrierOp: _named,
    simt.FenceOp: _fence,
    simt.GroupIdOp: _group_id,
    simt.NumGroupsOp: _num_groups,
    simt.SubgroupIdOp: _subgroup_id,
    simt.LaneIdOp: _lane_id,
    simt.ReturnOp: _return,
}
