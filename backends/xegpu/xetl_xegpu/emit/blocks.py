"""Emission of blocks of memory and of matrices: each is a call of a builtin.

A load goes through private memory, out of which its items come in vectors of 8:
SPIR-V has none longer than 16.

Where Intel's builtins are emulated, narrow items go there and back as words of 32 bits:
OpenCL's driver for CPUs runs 16 lanes at once, for which x86 gathers words, but moves
narrower items one by one. A copy of 64x64 f16 takes 0.5 s to build, not 4.3 s.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from xetl.codegen.llvm import ll
from xetl.codegen.types import I1, I32, I64, llvm_type
from xetl.dialects.base import element_type
from xetl_xegpu import simt
from xetl_xegpu.caches import Kind
from xetl_xegpu.emit import builtins, by_lanes
from xetl_xegpu.emit.builtins import Builtin
from xetl_xegpu.emit.caches import pointer_for_call
from xetl_xegpu.emit.emitter import LINE, KernelEmitter, Table
from xetl_xegpu.emit.ending import allowed
from xetl_xegpu.emit.memory import always
from xetl_xegpu.simt.block_ops import PIECE, BlockOp


def _surface(em: KernelEmitter, op: BlockOp, kind: Kind) -> list[Any]:
    """Address, width and pitch in bytes, height, (x, y), and the step if any."""
    b = em.builder
    given = [SSAValue.get(v) for v in op.surface if v is not None]
    base, *numbers = em.all(given)
    if op.by_lanes is None:
        numbers = [b.trunc(number, I32) for number in numbers]
    width, height, pitch, x, y, *step = numbers
    if kind == "store":
        # A block below the last row is not stored at all.
        alive = allowed(em, I1(1))
        y = y if always(alive) else b.select(alive, y, height)
    place: Any = ll.Constant(ll.VectorType(x.type, 2), ll.Undefined)
    for index, number in enumerate((x, y)):
        place = b.insert_element(place, number, I32(index))
    pointer = pointer_for_call(em, base, kind, op.hints)
    return [pointer, width, height, pitch, place, *step]


def _by(op: BlockOp, message: Builtin) -> Builtin:
    """The function that moves the block: a message, or ours where none may."""
    if op.by_lanes is None:
        return message
    return builtins.by_lanes(message, has_step=op.step is not None)


def _in_a_line(em: KernelEmitter, op: BlockOp) -> bool:
    """Whether lanes move this block, and each element by an instruction of its own.

    Without products the small register file does, and loops need fewer registers.
    """
    is_wanted = op.by_lanes is not None and em.multiplies and not em.device.emulated
    return is_wanted and by_lanes.is_straight(op)


def _load(em: KernelEmitter, op: simt.BlockLoadOp) -> None:
    if _in_a_line(em, op):
        by_lanes.load(em, op)
        return
    b, shape = em.builder, op.shape
    item = ll.IntType(shape.item_bits)
    memory = em.private_array(item, shape.items)
    surface = _surface(em, op, "load")
    em.call(_by(op, builtins.block_load(em.device, shape)), [*surface, memory])
    for number, piece in enumerate(op.pieces):
        at = memory
        if number:
            at = b.gep(memory, [I64(PIECE * number)], source_etype=item)
        type_ = llvm_type(piece.type)
        count = getattr(type_, "count", 1)
        align = min(shape.item_bits // 8 * count, LINE)
        moved = _moved_type(em, type_, shape.item_bits * count)
        loaded = b.load(at, typ=moved, align=align)
        em.set(piece, loaded if moved is type_ else b.bitcast(loaded, type_))


def _store(em: KernelEmitter, op: simt.BlockStoreOp) -> None:
    if _in_a_line(em, op):
        by_lanes.store(em, op)
        return
    shape = op.shape
    memory = em.private_array(ll.IntType(shape.item_bits), shape.items)
    align = min(shape.item_bits // 8 * shape.items, LINE)
    value = em.get(op.value)
    moved = _moved_type(em, value.type, shape.item_bits * shape.items)
    if moved is not value.type:
        value = em.builder.bitcast(value, moved)
    em.builder.store(value, memory, align=align)
    builtin = _by(op, builtins.block_store(em.device, shape))
    em.call(builtin, [*_surface(em, op, "store"), memory])


_WORD = 32
"""Bits that x86 gathers at once; see the top of the file."""


def _moved_type(em: KernelEmitter, type_: Any, bits: int) -> Any:
    """As what a value of so many bits goes to private memory and comes back."""
    element = getattr(type_, "element", type_)
    is_narrow = isinstance(element, ll.IntType) and element.width < _WORD
    if not (em.device.emulated and is_narrow) or bits % _WORD:
        return type_
    return I32 if bits == _WORD else ll.VectorType(I32, bits // _WORD)


def _prefetch(em: KernelEmitter, op: simt.BlockPrefetchOp) -> None:
    if op.by_lanes is None:  # it is a hint
        builtin = builtins.block_prefetch(em.device, op.shape)
        em.call(builtin, _surface(em, op, "load"))


def _dpas(em: KernelEmitter, op: simt.DpasOp) -> None:
    builtin = builtins.matrix_mad(
        em.device,
        op.a_type.data,
        op.b_type.data,
        str(element_type(op.c.type)),
        op.m,
    )
    em.set(op.result, em.call(builtin, em.all([op.a, op.b, op.c])))


def _lane_product(em: KernelEmitter, op: simt.LaneProductOp) -> None:
    builtin = builtins.lane_product(str(op.element), op.m)
    operands = em.all([op.a, op.upper, op.lower, op.c])
    em.set(op.result, em.call(builtin, operands))


TABLE: Table = {
    simt.BlockLoadOp: _load,
    simt.BlockStoreOp: _store,
    simt.BlockPrefetchOp: _prefetch,
    simt.DpasOp: _dpas,
    simt.LaneProductOp: _lane_product,
}
