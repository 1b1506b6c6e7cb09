"""Emission of 2-D block messages that share an address payload.

The address payload of a message is one register: base, width, height, pitch, place and
shape of the block. Out of loops, Intel's compiler builds one for each message, ten
instructions. Here one is built for all messages of a block of code that move blocks of
one shape of one matrix; those at a constant distance from the first give that distance
(bmg: a field of the message; pvc: a copy and an addition), others set the place.
[measured] ocloc 26.27, four loads and four stores: 48 instructions on pvc, 79 before.

Loads in loops are left alone: the compiler itself keeps a payload before the loop. Of
loads that transpose there are many a step, and pvc copies it for each: there each has
a payload of its own (a GEMM by B column-major: 95 instructions a step, 111 without),
except beside reductions, which need the registers.
So have prefetches in loops beside matrix products of 16 and 8 bits (58 instead of 70
instructions).
Left alone are messages with hints, and shapes whose items no vector of SPIR-V holds.

Source: Intel Graphics Compiler, `LSCFuncsResolution.cpp`, `Decompose2DBlockFuncs.cpp`
(names and parameters). The functions read and write memory in order: loads and stores
of one array stay as they stand (`test_payloads_offline.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.codegen.types import I32, Value, ll
from xetl.dialects.upstream import scf
from xetl_xegpu import simt
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit.emitter import KernelEmitter
from xetl_xegpu.emit.memory import always
from xetl_xegpu.emit.workgroup import allowed
from xetl_xegpu.simt import SUBGROUP_SIZE
from xetl_xegpu.simt.block_ops import BlockOp, root_and_distance

_BITS = (16, 32)
_MOST_ITEMS = 16
"""Of a vector of SPIR-V."""
_REACH = 256
"""Rows and columns that a message can go without setting its place."""
_DEFAULT = I32(0)
"""What the caches do: as the driver has it. No distance from a payload's place."""
_CACHED = I32(4)
"""In both caches: what the driver has for prefetches."""
_COPIES = ("pvc",)
"""Devices of which a message has no field for a distance: payloads are copied."""


@dataclass
class Payload:
    """A payload in a register, and the place that it has now."""

    pointer: Value
    x: SSAValue
    y: SSAValue


def op_with_pointer(em: KernelEmitter, kernel: simt.FuncOp) -> Operation | None:
    """The message that names its array by a pointer, as no access else does.

    Payloads take addresses. Level Zero keeps memory resident that is given by its
    address if some access of the kernel is by a pointer that is an argument: Intel's
    compiler notes that of a documented message (`is_ptr`; source: compute runtime,
    ``isAnyArgumentPtrByValue``).
    """
    blocks: list[BlockOp] = []
    for op in kernel.walk():
        if isinstance(op, simt.LoadOp | simt.StoreOp | simt.AtomicOp):
            if not op.is_local:
                return None
        elif isinstance(op, simt.BlockLoadOp | simt.BlockStoreOp):
            if not _may_share(em, op):
                return None
            blocks.append(op)
    return blocks[0] if blocks else None


def shares_payload(em: KernelEmitter, op: BlockOp) -> bool:
    """Whether a message is emitted by `load` or `store` of this file."""
    return op is not em.pointed and _may_share(em, op)


def _may_share(em: KernelEmitter, op: BlockOp) -> bool:
    shape = op.shape
    is_message = op.by_lanes is None and op.hints is None and not em.device.emulated
    if isinstance(op, simt.BlockPrefetchOp):
        # [measured] Products of f32, by vectors or as tf32, need the registers.
        is_narrow = shape.bits < 32 and _stands_beside(op, simt.DpasOp)
        return is_message and is_narrow and _may_keep(op)
    if is_message and shape.mode == "transpose":
        return em.device.name in _COPIES and _may_keep(op)
    if not is_message or shape.mode != "plain" or shape.columns != SUBGROUP_SIZE:
        return False
    if isinstance(op, simt.BlockStoreOp):
        # An assertion that failed stops stores: `block_io` moves their place.
        is_free = always(allowed(em, I32(1))) if em.ending else True
    else:
        # [measured] Single items of a payload's loads are copied where they are used.
        is_free = shape.items > 1 and not op.is_in_loop
    return is_free and shape.bits in _BITS and shape.items <= _MOST_ITEMS


def load(em: KernelEmitter, op: simt.BlockLoadOp) -> Value:
    """All items of a block."""
    if op.shape.mode == "transpose":
        pointer, x, y = _kept(em, op), _DEFAULT, _DEFAULT
    else:
        pointer, x, y = _placed(em, op)
    message = builtins.payload_message(em.device, "load", op.shape)
    return em.call(message, [pointer, x, y, _DEFAULT])


def store(em: KernelEmitter, op: simt.BlockStoreOp) -> None:
    """The items of a block."""
    pointer, x, y = _placed(em, op)
    items = em.get(op.value)
    message = builtins.payload_message(em.device, "store", op.shape)
    em.call(message, [pointer, x, y, items, _DEFAULT])


def prefetch(em: KernelEmitter, op: simt.BlockPrefetchOp) -> None:
    """Ask for a block."""
    message = builtins.payload_message(em.device, "prefetch", op.shape)
    em.call(message, [_kept(em, op), _DEFAULT, _DEFAULT, _CACHED])


def _may_keep(op: BlockOp) -> bool:
    """Whether a load in a loop may have a payload of its own, made before the loop."""
    block, loop = op.parent, op.parent_op()
    if not isinstance(loop, scf.ForOp | scf.WhileOp) or not isinstance(block, Block):
        return False
    # A loop that counts, whose first number says where it comes from.
    counts = bool(block.args) and isinstance(block.args[0].type, IndexType)
    if not counts or block is not loop.regions[0].block:
        return False
    if _stands_beside(op, simt.ReduceOp):
        return False  # [measured] some attention kernels spill 768 bytes by it
    matrix = (op.base, op.width, op.height, op.pitch)
    return all(is_defined_outside(value, loop) for value in matrix)


def _stands_beside(op: BlockOp, kind: type[Operation]) -> bool:
    """Whether there are operations of a kind in the block of ``op``."""
    block = op.parent
    return block is not None and any(isinstance(each, kind) for each in block.ops)


def _kept(em: KernelEmitter, op: BlockOp) -> Value:
    """The payload of a message in a loop, at its place; made before the loop."""
    b, block, loop = em.builder, op.parent, op.parent_op()
    assert isinstance(block, Block)
    assert loop is not None
    phi, inside = em.get(block.args[0]), b.block
    assert isinstance(phi, ll.PhiInstr)
    (_, before), *_ = phi.incomings
    end = before.terminator
    assert end is not None
    b.position_before(end)
    places = {"X": SSAValue.get(op.x), "Y": SSAValue.get(op.y)}
    moving = {axis: p for axis, p in places.items() if not is_defined_outside(p, loop)}
    pointer = _made(em, op, moving)
    b.position_at_end(inside)
    for axis, place in moving.items():
        now = b.trunc(em.get(place), I32)
        em.call(builtins.payload_setter(axis), [pointer, now])
    return pointer


def _placed(em: KernelEmitter, op: BlockOp) -> tuple[Value, Value, Value]:
    """The payload of a message, and the distances of its block from there."""
    block = op.parent
    assert isinstance(block, Block)
    shape = replace(op.shape, mode="plain")
    matrix = (op.base, op.width, op.height, op.pitch)
    key = (block, *map(SSAValue.get, matrix), shape)
    found = em.payloads.get(key)
    if found is None:
        pointer = _made(em, op)
        x, y = SSAValue.get(op.x), SSAValue.get(op.y)
        found = em.payloads[key] = Payload(pointer, x, y)
    distances: list[Value] = []
    for at, name in (("X", "x"), ("Y", "y")):
        place = SSAValue.get(getattr(op, name))
        distance = _distance(getattr(found, name), place)
        if distance is None:
            now = em.builder.trunc(em.get(place), I32)
            em.call(builtins.payload_setter(at), [found.pointer, now])
            setattr(found, name, place)
        distances.append(I32(distance or 0))
    return found.pointer, distances[0], distances[1]


def _made(em: KernelEmitter, op: BlockOp, moving: Collection[str] = ()) -> Value:
    """A payload; axes that are set later begin at 0."""
    b, shape = em.builder, op.shape
    sizes = [
        b.sub(b.trunc(em.get(size), I32), I32(1))
        for size in (op.width, op.height, op.pitch)
    ]
    place = [
        I32(0) if axis in moving else b.trunc(em.get(at), I32)
        for axis, at in (("X", op.x), ("Y", op.y))
    ]
    block = [I32(n) for n in (shape.columns, shape.rows, shape.count)]
    operands = [em.get(op.base), *sizes, *place, *block]
    return em.call(builtins.new_payload(), operands)


def _distance(start: SSAValue, end: SSAValue) -> int | None:
    """How far ``end`` is from ``start``, if that is a small constant."""
    (root, first), (other, second) = root_and_distance(start), root_and_distance(end)
    distance = second - first
    return distance if root is other and abs(distance) < _REACH else None
