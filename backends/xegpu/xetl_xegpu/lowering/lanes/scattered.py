"""Gathers, scatters and atomics: each lane at an address of its own."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import element_type, shape_of
from xetl.dialects.upstream import arith
from xetl_xegpu import simt
from xetl_xegpu.dialect import (
    AtomicRmwOp,
    CreateTdescOp,
    LoadOp,
    PrefetchOp,
    StoreOp,
    UpdateOffsetOp,
)
from xetl_xegpu.lowering.lanes.caches import hints_of
from xetl_xegpu.lowering.lanes.held import LANES
from xetl_xegpu.lowering.lanes.memory import byte_width, memory_of, moved, space_of
from xetl_xegpu.lowering.lanes.state import Lanes, Memory, Places


def create_tdesc(lanes: Lanes, op: CreateTdescOp) -> None:
    """Memory, and an offset a lane."""
    memory = memory_of(lanes, op, op.source)
    lanes.places[op.result] = Places(memory, lanes.one(op.offsets))


def update_offset(lanes: Lanes, op: UpdateOffsetOp) -> None:
    """The same memory, the offsets moved."""
    old = _places(lanes, op, op.tensor_desc, None)
    new = lanes.emit(arith.AddiOp(old.offset, lanes.one(op.offsets)))
    lanes.places[op.result] = Places(old.memory, new)


def _places(
    lanes: Lanes, op: Operation, base: SSAValue, offsets: SSAValue | None
) -> Places:
    """The memory that is accessed, and the offset of this lane."""
    if offsets is not None:
        return Places(memory_of(lanes, op, base), lanes.one(offsets))
    known = lanes.places.get(base)
    if known is None:
        raise lanes.refuse(
            op,
            "a loop or a branch cannot carry this descriptor",
            "carry the offsets, and describe the places where they are used",
        )
    return known


def _address(
    lanes: Lanes,
    op: LoadOp | StoreOp | AtomicRmwOp,
    base: SSAValue,
    offsets: SSAValue | None,
    value: SSAValue,
) -> tuple[Memory, SSAValue]:
    """The memory, and where in it this lane's element is."""
    if shape_of(value.type) not in ((), (LANES,)):
        raise lanes.refuse(
            op,
            f"16 lanes access one element each, not {value.type}",
            "use `vector<16xT>`, without `chunk_size`",
        )
    places = _places(lanes, op, base, offsets)
    width = byte_width(element_type(value.type))
    memory = places.memory
    return memory, moved(lanes, memory.address, places.offset, width)


def load(lanes: Lanes, op: LoadOp) -> None:
    """Zero in lanes whose mask is not set: upstream leaves open what is there."""
    memory, address = _address(lanes, op, op.base, op.offsets, op.value)
    (type_,) = lanes.layout(op.value).types
    fill = lanes.constant(0, type_)
    mask = lanes.one(op.mask)
    hints = None if memory.shared else hints_of(lanes, op, "load")
    found = simt.LoadOp(address, mask, fill, space_of(memory), hints)
    lanes.hold(op.value, lanes.emit(found))


def store(lanes: Lanes, op: StoreOp) -> None:
    """One element a lane."""
    memory, address = _address(lanes, op, op.base, op.offsets, op.value)
    value, mask = lanes.one(op.value), lanes.one(op.mask)
    hints = None if memory.shared else hints_of(lanes, op, "store")
    lanes.add(simt.StoreOp(value, address, mask, space_of(memory), hints))


def prefetch(lanes: Lanes, op: PrefetchOp) -> None:
    """Nothing: only blocks are worth asking for."""


def atomic(lanes: Lanes, op: AtomicRmwOp) -> None:
    """One element a lane."""
    memory, address = _address(lanes, op, op.tensor_desc, None, op.value)
    value, mask = lanes.one(op.value), lanes.one(op.mask)
    done = simt.AtomicOp(op.kind_name, value, address, mask, space_of(memory))
    lanes.hold(op.result, lanes.emit(done))
