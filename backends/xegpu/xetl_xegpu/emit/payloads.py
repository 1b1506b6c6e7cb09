"""Emission of 2-D block messages that share an address payload.

The address payload of a message is one register with base, width, height, pitch,
position and shape of the block. Outside of loops, Intel's compiler builds one for each
message, with ten instructions. This module builds one for all messages in a block of
code that move blocks of one shape of one matrix. A message at a constant distance from
the first one has the distance (bmg: a field of the message; pvc: a copy and an
addition); other messages set the position.
[measured] ocloc 26.27, four loads and four stores: 48 instructions on pvc, 79 before.

Loads in loops are left alone: the compiler hoists their payload out of the loop. Loads
that transpose are many in a step, and pvc copies the payload for each of them: there
each one has its own payload. So have prefetches in loops beside matrix products of 16
and 8 bits. Beside reductions, which need the registers, few loads have their own
payload, and none if the registers do not suffice. A position that moves by a constant
step is updated in the payload by an addition.
[measured] a GEMM of bf16 on pvc: 53 instructions a step, by B column-major 66; if
places are set, 54 and 71; if the compiler makes these payloads, 70 and 101.
Left alone: messages with hints, and shapes whose items do not fit a SPIR-V vector.

Source: Intel Graphics Compiler, `LSCFuncsResolution.cpp`, `Decompose2DBlockFuncs.cpp`
(names and parameters). The functions read and write memory in order: loads and stores
of one array keep their order (`test_payloads_offline.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.dialects.builtin import IndexType, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from xetl.analysis.affine import is_defined_outside
from xetl.codegen.types import I32, I64, Value, ll
from xetl.dialects.base import around, constant_index, operations_in
from xetl.dialects.upstream import arith, scf
from xetl_xegpu import simt
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit.emitter import KernelEmitter
from xetl_xegpu.simt import SUBGROUP_SIZE
from xetl_xegpu.simt.block_ops import BlockOp, root_and_distance

_MOST_ITEMS = 16
"""The most items of a SPIR-V vector."""
_REACH = 256
"""Distances in rows and columns must be less than this; else the position is set."""
_DEFAULT = I32(0)
"""As a cache hint: the driver's default. As a distance: the payload's position."""
_CACHED = I32(4)
"""A cache hint: cached in both caches, as the driver's prefetches are."""
_BESIDE_REDUCTIONS = 4
"""The most loads in a loop that have their own payloads if rows are reduced.

[measured] Attention, heads of 64, causal, pvc: 701 instructions a step with none, 692
with 4; with 8 it spills 128 bytes, with all 384.
"""
_COPIES = ("pvc",)
"""Devices whose messages have no field for a distance, so that payloads are copied."""


@dataclass
class Payload:
    """A payload in a register, with its present position."""

    pointer: Value
    x: SSAValue
    y: SSAValue


def op_with_pointer(em: KernelEmitter, kernel: simt.FuncOp) -> Operation | None:
    """Return the message that must name its array by a pointer, or None.

    There is one if no other access uses a pointer, because payloads have addresses.
    Level Zero keeps memory at addresses resident only if some access of the kernel uses
    an argument as a pointer. Intel's compiler notes that for a documented message
    (`is_ptr`; source: compute runtime, ``isAnyArgumentPtrByValue``).
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
        return is_message and is_narrow and _may_keep(em, op)
    if is_message and shape.mode == "transpose":
        return em.device.name in _COPIES and _may_keep(em, op)
    if not is_message or shape.mode != "plain" or shape.columns != SUBGROUP_SIZE:
        return False
    if isinstance(op, simt.BlockStoreOp):
        # A failed assertion disables stores: `block_io` moves their position outside.
        is_free = em.ending is None
    else:
        # [measured] Single items of loads with a payload are copied at their use:
        # beside the sums of products there are no registers for it.
        is_wide = shape.items > 1 or not _multiplies(next(around(op, simt.FuncOp)))
        is_free = is_wide and not any(around(op, scf.ForOp, scf.WhileOp))
    return is_free and shape.bits in (16, 32) and shape.items <= _MOST_ITEMS


@lru_cache(maxsize=1)
def _multiplies(kernel: Operation) -> bool:
    """Whether a kernel has products."""
    return bool(operations_in(kernel, *simt.PRODUCTS))


def load(em: KernelEmitter, op: simt.BlockLoadOp) -> Value:
    """Load a block and return all its items."""
    message = builtins.payload_message(em.device, "load", op.shape)
    if op.shape.mode == "transpose":
        return _sent(em, op, message, _DEFAULT)
    return em.call(message, [*_placed(em, op), _DEFAULT])


def store(em: KernelEmitter, op: simt.BlockStoreOp) -> None:
    """Store the items of a block."""
    message = builtins.payload_message(em.device, "store", op.shape)
    em.call(message, [*_placed(em, op), em.get(op.value), _DEFAULT])


def prefetch(em: KernelEmitter, op: simt.BlockPrefetchOp) -> None:
    """Prefetch a block."""
    message = builtins.payload_message(em.device, "prefetch", op.shape)
    _sent(em, op, message, _CACHED)


def _may_keep(em: KernelEmitter, op: BlockOp) -> bool:
    """Whether a load in a loop may have a payload of its own, made before the loop."""
    block, loop = op.parent, op.parent_op()
    if not isinstance(loop, scf.ForOp | scf.WhileOp) or not isinstance(block, Block):
        return False
    # A loop that counts, whose first number says where it comes from.
    counts = bool(block.args) and block.args[0].type in (IndexType(), i32)
    if not counts or block is not loop.regions[0].block:
        return False
    is_beside_reductions = _stands_beside(op, simt.ReductionOp)
    if is_beside_reductions and em.spills:
        return False
    if is_beside_reductions and isinstance(op, simt.BlockLoadOp):
        loads = [each for each in block.ops if isinstance(each, simt.BlockLoadOp)]
        turned = [each for each in loads if each.shape.mode == op.shape.mode]
        if op not in turned[:_BESIDE_REDUCTIONS]:
            return False
    matrix = (op.base, op.width, op.height, op.pitch)
    return all(is_defined_outside(value, loop) for value in matrix)


def _stands_beside(op: BlockOp, kind: type[Operation]) -> bool:
    """Whether there are operations of a kind in the block of ``op``."""
    block = op.parent
    return block is not None and any(isinstance(each, kind) for each in block.ops)


Even = tuple[Value, Value]
"""As a `Path`, that goes as far as a value says."""


def _sent(
    em: KernelEmitter, op: BlockOp, message: builtins.Builtin, hint: Value
) -> Value:
    """What a message in a loop brings, by a payload of its own, made before the loop.

    It goes on before a message, also before the first one; that of the only prefetch of
    a loop behind it, if it goes on evenly: pvc guards what a message without a result
    reads, by 4 instructions at the end of a loop, often by 3 behind it. [measured]
    """
    b, block, loop = em.builder, op.parent, op.parent_op()
    assert isinstance(block, Block)
    assert loop is not None
    phi, inside = em.get(block.args[0]), b.block
    assert isinstance(phi, ll.PhiInstr)
    end = phi.incomings[0][1].terminator
    assert end is not None
    b.position_before(end)
    places = {"X": SSAValue.get(op.x), "Y": SSAValue.get(op.y)}
    moving = {axis: p for axis, p in places.items() if not is_defined_outside(p, loop)}
    paths = {axis: _even(em, place, loop) for axis, place in moving.items()}
    asking = [each for each in block.ops if isinstance(each, simt.BlockPrefetchOp)]
    is_first = asking == [op] and None not in paths.values()
    starts = {
        axis: b.trunc(path[0] if is_first else b.sub(*path), I32) if path else I32(0)
        for axis, path in paths.items()
    }
    pointer = _made(em, op, starts)
    b.position_at_end(inside)
    operands = [pointer, _DEFAULT, _DEFAULT, hint]
    result = em.call(message, operands) if is_first else None
    for axis, path in paths.items():
        verb, number = ("add", path[1]) if path else ("set", em.get(moving[axis]))
        em.call(builtins.payload_mover(verb, axis), [pointer, b.trunc(number, I32)])
    return em.call(message, operands) if result is None else result


def _even(em: KernelEmitter, place: SSAValue, loop: Operation) -> Even | None:
    """Return the path of a place in a loop, or of a select between two places."""
    choice, b = place.owner, em.builder
    is_choice = isinstance(choice, arith.SelectOp)
    if is_choice and is_defined_outside(choice.condition, loop):
        sides = (choice.true_value, choice.false_value)
        first, second = (_even(em, SSAValue.get(side), loop) for side in sides)
        if first is None or second is None:
            return None
        is_first = em.get(choice.condition)
        start, step = (b.select(is_first, *pair) for pair in zip(first, second))
        return start, step
    path = _path(em, place, loop)
    return path and (path[0], I64(path[1]))


Path = tuple[Value, int]
"""The start of a place when a loop begins, and its constant step."""


def _path(em: KernelEmitter, place: SSAValue, loop: Operation) -> Path | None:
    """Return the path of a place in a loop. None: no constant step is known."""
    b, owner = em.builder, place.owner
    number = constant_index(place)
    if number is not None:
        return I64(number), 0
    if is_defined_outside(place, loop):
        return b.sext(em.get(place), I64), 0
    if isinstance(owner, Block):
        step = _step(loop) if place is loop.regions[0].block.args[0] else None
        phi = em.get(place)
        assert isinstance(phi, ll.PhiInstr)
        return None if step is None else (b.sext(phi.incomings[0][0], I64), step)
    if place.type not in (IndexType(), i64):
        return None
    if isinstance(owner, arith.IndexCastOp):
        return _path(em, SSAValue.get(owner.operands[0]), loop)
    if not isinstance(owner, arith.AddiOp | arith.ShrsiOp):
        return None
    left, right = (_path(em, SSAValue.get(each), loop) for each in owner.operands)
    if left is None or right is None:
        return None
    if isinstance(owner, arith.AddiOp):
        return b.add(left[0], right[0]), left[1] + right[1]
    by = constant_index(owner.rhs)
    if by is None or left[1] % (1 << by):
        return None
    return b.ashr(left[0], right[0]), left[1] >> by


def _step(loop: Operation) -> int | None:
    """Return the constant step of the first value that a loop carries, or None."""
    if isinstance(loop, scf.ForOp):
        return constant_index(loop.step)
    block, after = (region.block for region in loop.regions)
    assert block.last_op is not None
    assert after.last_op is not None
    following = block.last_op.operands[1].owner
    is_passed = after.last_op.operands[0] is after.args[0]
    if not (isinstance(following, arith.AddiOp) and is_passed):
        return None
    return constant_index(following.rhs) if following.lhs is block.args[0] else None


def _placed(em: KernelEmitter, op: BlockOp) -> tuple[Value, Value, Value]:
    """Return the payload of a message, and the distances of its block from there."""
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
            em.call(builtins.payload_mover("set", at), [found.pointer, now])
            setattr(found, name, place)
        distances.append(I32(distance or 0))
    return found.pointer, distances[0], distances[1]


def _made(
    em: KernelEmitter, op: BlockOp, starts: Mapping[str, Value] | None = None
) -> Value:
    """Make a payload at the block; ``starts`` replaces its position along axes."""
    b, shape = em.builder, op.shape
    sizes = [
        b.sub(b.trunc(em.get(size), I32), I32(1))
        for size in (op.width, op.height, op.pitch)
    ]
    place = [
        (starts or {}).get(axis) or b.trunc(em.get(at), I32)
        for axis, at in (("X", op.x), ("Y", op.y))
    ]
    block = [I32(n) for n in (shape.columns, shape.rows, shape.count)]
    operands = [em.get(op.base), *sizes, *place, *block]
    return em.call(builtins.new_payload(), operands)


def _distance(start: SSAValue, end: SSAValue) -> int | None:
    """Return the distance from ``start`` to ``end``. None: it is no small constant."""
    (root, first), (other, second) = root_and_distance(start), root_and_distance(end)
    distance = second - first
    return distance if root is other and abs(distance) < _REACH else None
