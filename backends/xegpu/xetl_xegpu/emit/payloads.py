"""Emission of 2-D block messages that share an address payload.

The address payload of a message is one register: base, width, height, pitch, place and
shape of the block. Out of loops, Intel's compiler builds one for each message, ten
instructions. Here one is built for all messages of a block of code that move blocks of
one shape of one matrix; those at a constant distance from the first give that distance
(bmg: a field of the message; pvc: a copy and an addition), others set the place.
[measured] ocloc 26.27, four loads and four stores: 48 instructions on pvc, 79 before.

Loads in loops are left alone: the compiler itself keeps their payloads before the loop.
So are messages with hints, and shapes whose items no vector of SPIR-V holds.

Source: Intel Graphics Compiler, `LSCFuncsResolution.cpp`, `Decompose2DBlockFuncs.cpp`
(names and parameters). The functions read and write memory in order: loads and stores
of one array stay as they stand (`test_payloads_offline.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import Block, SSAValue

from xetl.codegen.llvm import Value
from xetl.codegen.types import I32
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
"""What the caches do: as the driver has it."""


@dataclass
class Payload:
    """A payload in a register, and the place that it has now."""

    pointer: Value
    x: SSAValue
    y: SSAValue


def shares_payload(em: KernelEmitter, op: BlockOp) -> bool:
    """Whether a message is emitted by `load` or `store` of this file."""
    shape = op.shape
    is_message = op.by_lanes is None and op.hints is None and not em.device.emulated
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
    builtins.block_load(em.device, op.shape)  # whether there is such a message
    pointer, x, y = _placed(em, op)
    return em.call(builtins.payload_load(op.shape), [pointer, x, y, _DEFAULT])


def store(em: KernelEmitter, op: simt.BlockStoreOp) -> None:
    """The items of a block."""
    builtins.block_store(em.device, op.shape)
    pointer, x, y = _placed(em, op)
    items = em.get(op.value)
    em.call(builtins.payload_store(op.shape), [pointer, x, y, items, _DEFAULT])


def _placed(em: KernelEmitter, op: BlockOp) -> tuple[Value, Value, Value]:
    """The payload of a message, and the distances of its block from there."""
    block = op.parent
    assert isinstance(block, Block)
    shape = replace(op.shape, mode="plain")
    matrix = (op.base, op.width, op.height, op.pitch)
    key = (block, *map(SSAValue.get, matrix), shape)
    found = em.payloads.get(key)
    if found is None:
        found = em.payloads[key] = _made(em, op)
    distances: list[Value] = []
    for at, name in (("X", "x"), ("Y", "y")):
        place = SSAValue.get(getattr(op, name))
        distance = _distance(getattr(found, name), place)
        if distance is None:
            setter, now = (
                builtins.payload_setter(at),
                em.builder.trunc(em.get(place), I32),
            )
            em.call(setter, [found.pointer, now])
            setattr(found, name, place)
        distances.append(I32(distance or 0))
    return found.pointer, distances[0], distances[1]


def _made(em: KernelEmitter, op: BlockOp) -> Payload:
    b, shape = em.builder, op.shape
    sizes = [
        b.sub(b.trunc(em.get(size), I32), I32(1))
        for size in (op.width, op.height, op.pitch)
    ]
    place = [b.trunc(em.get(at), I32) for at in (op.x, op.y)]
    block = [I32(n) for n in (shape.columns, shape.rows, shape.count)]
    operands = [em.get(op.base), *sizes, *place, *block]
    pointer = em.call(builtins.new_payload(), operands)
    return Payload(pointer, SSAValue.get(op.x), SSAValue.get(op.y))


def _distance(start: SSAValue, end: SSAValue) -> int | None:
    """How far ``end`` is from ``start``, if that is a small constant."""
    (root, first), (other, second) = root_and_distance(start), root_and_distance(end)
    distance = second - first
    return distance if root is other and abs(distance) < _REACH else None
