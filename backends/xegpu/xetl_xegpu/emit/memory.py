"""Emission of loads and stores of one element a lane."""

from __future__ import annotations

from typing import Any

from xetl.codegen.emitter import constant, is_constant
from xetl.codegen.types import I1, I8, byte_width, memory_type
from xetl.errors import InternalError
from xetl_xegpu import simt
from xetl_xegpu.emit.caches import hinted
from xetl_xegpu.emit.emitter import GLOBAL, KernelEmitter, Table
from xetl_xegpu.emit.ending import allowed


def pointer(em: KernelEmitter, address: Any, is_local: bool) -> Any:
    """A pointer to an address of memory of the device, or of the workgroup."""
    if not is_local:
        return em.builder.inttoptr(address, GLOBAL)
    if em.slm is None:
        raise InternalError("a kernel without local memory accesses it")
    return em.builder.gep(em.slm, [address], source_etype=I8)


def always(mask: Any) -> bool:
    """Whether the mask is known to be set."""
    return is_constant(mask, 1)


def _load(em: KernelEmitter, op: simt.LoadOp) -> None:
    """Lanes that are masked read what is always there: no branch is needed."""
    b = em.builder
    address, mask, fill = em.all([op.address, op.mask, op.fill])
    mask = allowed(em, mask)
    if not always(mask):
        address = b.select(mask, address, _safe_address(em, op.is_local))
    element = op.result.type
    at = hinted(em, pointer(em, address, op.is_local), "load", op.hints)
    value = b.load(at, typ=memory_type(element), align=byte_width(element))
    if fill.type == I1:
        value = b.icmp_signed("!=", value, I8(0))
    em.set(op.result, value if always(mask) else b.select(mask, value, fill))


def _safe_address(em: KernelEmitter, is_local: bool) -> Any:
    """8 bytes that may be read at any time."""
    if is_local:
        return constant(0)
    return em.status_words()


def _store(em: KernelEmitter, op: simt.StoreOp) -> None:
    b = em.builder
    value, address, mask = em.all([op.value, op.address, op.mask])
    mask = allowed(em, mask)
    if value.type == I1:
        value = b.zext(value, I8)

    def store() -> None:
        at = hinted(em, pointer(em, address, op.is_local), "store", op.hints)
        b.store(value, at, align=byte_width(op.value.type))

    if always(mask):
        store()
        return
    with b.if_then(mask):
        store()


def _local_base(em: KernelEmitter, op: simt.LocalBaseOp) -> None:
    em.set(op.result, constant(op.offset.value.data))


TABLE: Table = {
    simt.LoadOp: _load,
    simt.StoreOp: _store,
    simt.LocalBaseOp: _local_base,
}
