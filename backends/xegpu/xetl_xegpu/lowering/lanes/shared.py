"""Matrices in the workgroup's memory: each lane at its column."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, shape_of
from xetl_xegpu import simt
from xetl_xegpu.dialect import (
    CreateMemDescOp,
    LoadMatrixOp,
    MemDescType,
    StoreMatrixOp,
)
from xetl_xegpu.lowering.lanes.held import Spread, held
from xetl_xegpu.lowering.lanes.memory import (
    address_of,
    always,
    memory_of,
    space_of,
    total,
    value_of,
)
from xetl_xegpu.lowering.lanes.state import Lanes, Memory
from xetl_xegpu.lowering.lanes.vectors import elements_of, recut


def create_mem_desc(lanes: Lanes, op: CreateMemDescOp) -> None:
    """Memory of the workgroup, with the strides of the matrix."""
    memory = memory_of(lanes, op, op.source)
    matrix = op.mem_desc.type
    assert isinstance(matrix, MemDescType)
    if matrix.block is not None:
        raise lanes.refuse(
            op,
            "a matrix in shared memory has no blocks here",
            "leave `block` out of its `mem_layout`",
        )
    lanes.memories[op.mem_desc] = Memory(
        memory.address, matrix.shape, matrix.strides, matrix.element_type, shared=True
    )


def _addresses(
    lanes: Lanes, op: LoadMatrixOp | StoreMatrixOp, value: SSAValue
) -> tuple[Memory, list[SSAValue]]:
    """The memory, and where each element of this lane is."""
    memory = memory_of(lanes, op, op.mem_desc)
    layout, shape = held(value.type), shape_of(value.type)
    if layout is None or layout.spread not in (Spread.SAME, Spread.COLUMNS):
        raise _refusal(lanes, op, value)
    *_, row, column = (0, *(value_of(lanes, at) for at in op.mixed_offsets))
    if layout.spread is Spread.COLUMNS:
        lane = lanes.lane_index
        column = total(lanes, column, lane)
    rows = sum(layout.lengths)
    along_rows = len(shape) > 1 or not shape or layout.spread is Spread.COLUMNS
    found: list[SSAValue] = []
    for number in range(rows):
        down, right = (number, 0) if along_rows else (0, number)
        at: list[Index] = [total(lanes, row, down), total(lanes, column, right)]
        found.append(address_of(lanes, memory, at[-len(memory.strides) :]))
    return memory, found


def _refusal(lanes: Lanes, op: Operation, value: SSAValue) -> Exception:
    return lanes.refuse(
        op,
        f"16 lanes cannot share {value.type} in shared memory",
        "load and store `vector<hx16xT>`, h 1, 2, 4 or 8",
    )


def load_matrix(lanes: Lanes, op: LoadMatrixOp) -> None:
    """A row at a time."""
    memory, addresses = _addresses(lanes, op, op.value)
    layout = lanes.layout(op.value)
    fill = lanes.constant(0, layout.element)
    space = space_of(memory)
    rows = [
        lanes.emit(simt.LoadOp(address, always(lanes), fill, space))
        for address in addresses
    ]
    lanes.hold(op.value, *recut(lanes, rows, layout.lengths))


def store_matrix(lanes: Lanes, op: StoreMatrixOp) -> None:
    """A row at a time; what every lane has, the first one stores."""
    memory, addresses = _addresses(lanes, op, op.value)
    mask = always(lanes)
    if lanes.layout(op.value).spread is Spread.SAME:
        mask = lanes.is_first
    rows = elements_of(lanes, lanes.pieces(op.value))
    for row, address in zip(rows, addresses):
        lanes.add(simt.StoreOp(row, address, mask, space_of(memory)))
