"""Emission of barriers and fences: who sees what was written, and when.

A fence says which memory it is about: LLVM's own does not, and Intel's compiler makes
nothing of it (ocloc 26.27). Source of the numbers: SPIR-V 1.6, "Scope" and "Memory
Semantics".
"""

from __future__ import annotations

from xetl.codegen.types import I32
from xetl.errors import InternalError
from xetl_xegpu import simt
from xetl_xegpu.emit.builtins import (
    Builtin,
    function,
    named_barrier,
    named_barrier_init,
    split_barrier,
)
from xetl_xegpu.emit.emitter import KernelEmitter, Table
from xetl_xegpu.emit.ending import leave_together

_SCOPES = {"workgroup": 2, "device": 1}
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


def _made(em: KernelEmitter, op: simt.NamedBarrierOp) -> object:
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


TABLE: Table = {
    simt.BarrierOp: _barrier,
    simt.BarrierArriveOp: _arrive,
    simt.BarrierWaitOp: _wait,
    simt.NamedBarrierOp: _named,
    simt.FenceOp: _fence,
}
