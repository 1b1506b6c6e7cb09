"""Blocks of matrices in global memory: what a whole subgroup moves at once.

A message brings a lane just what the type of the value says it holds (`held.py`): the
two are one convention, so nothing moves between lanes afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index
from xetl_xegpu import simt
from xetl_xegpu.caches import Hints, Kind
from xetl_xegpu.dialect import (
    CreateNdTdescOp,
    LoadNdOp,
    PrefetchNdOp,
    StoreNdOp,
    TensorDescType,
    UpdateNdOffsetOp,
)
from xetl_xegpu.lowering.lanes.caches import hints_of
from xetl_xegpu.lowering.lanes.held import bits_of, held
from xetl_xegpu.lowering.lanes.memory import (
    as_i64,
    byte_width,
    memory_of,
    product,
    total,
    value_of,
)
from xetl_xegpu.lowering.lanes.state import Lanes, Matrix
from xetl_xegpu.lowering.lanes.vectors import length_of, recast, recut

_RANK = 2

_NdOp = LoadNdOp | StoreNdOp | PrefetchNdOp


class _How(TypedDict):
    """How a block is moved: what all operations of `simt` on blocks are told."""

    by_lanes: bool
    hints: Hints | None


def create_nd_tdesc(lanes: Lanes, op: CreateNdTdescOp) -> None:
    """The matrix as messages want it: in bytes."""
    type_ = _descriptor(lanes, op, op.result)
    memory = memory_of(lanes, op, op.source)
    shape = [value_of(lanes, size) for size in op.mixed_shape] or memory.sizes
    strides = [value_of(lanes, step) for step in op.mixed_strides] or memory.strides
    if len(shape) != _RANK or len(strides) != _RANK:
        raise lanes.refuse(
            op, "blocks are moved of matrices", "give two sizes and two strides"
        )
    width = byte_width(type_.element_type)
    step = None
    if strides[1] != 1:
        step = as_i64(lanes, product(lanes, strides[1], width))
    row, column = _offsets(lanes, op.mixed_offsets)
    lanes.matrices[op.result] = Matrix(
        memory.address,
        as_i64(lanes, product(lanes, shape[1], width)),
        as_i64(lanes, shape[0]),
        as_i64(lanes, product(lanes, strides[0], width)),
        row,
        column,
        step,
    )


def _descriptor(lanes: Lanes, op: Operation, value: SSAValue) -> TensorDescType:
    type_ = value.type
    assert isinstance(type_, TensorDescType)
    if len(type_.shape) != _RANK or type_.memory_space != "global":
        raise lanes.refuse(
            op,
            f"{type_} is no block of a matrix in global memory",
            "describe two dimensions; the workgroup's memory has `create_mem_desc`",
        )
    return type_


def _offsets(lanes: Lanes, given: tuple[Index, ...]) -> tuple[Index, Index]:
    """Row and column, 0 where nothing is given."""
    row, column = given or (0, 0)
    return value_of(lanes, row), value_of(lanes, column)


def _matrix(lanes: Lanes, op: Operation, descriptor: SSAValue) -> Matrix:
    known = lanes.matrices.get(descriptor)
    if known is None:
        raise lanes.refuse(
            op,
            "a loop or a branch cannot carry this descriptor",
            "carry the offsets, and give them to `load_nd`, `store_nd`, `prefetch_nd`",
        )
    return known


def update_nd_offset(lanes: Lanes, op: UpdateNdOffsetOp) -> None:
    """The same matrix, another place in it."""
    old = _matrix(lanes, op, op.tensor_desc)
    row, column = _offsets(lanes, op.mixed_offsets)
    lanes.matrices[op.result] = replace(
        old,
        row=total(lanes, old.row, row),
        column=total(lanes, old.column, column),
    )


def _surface(
    lanes: Lanes,
    op: _NdOp,
    *,
    down: int = 0,
    per_element: int = 1,
) -> simt.Surface:
    """The matrix, and where the block begins.

    Args:
        lanes: the kernel.
        op: the access.
        down: rows below the offset.
        per_element: how many elements of the message one of the matrix is.
    """
    matrix = _matrix(lanes, op, op.tensor_desc)
    row, column = _offsets(lanes, op.mixed_offsets)
    x = product(lanes, total(lanes, matrix.column, column), per_element)
    y = total(lanes, total(lanes, matrix.row, row), down)
    return simt.Surface(
        matrix.base,
        matrix.width,
        matrix.height,
        matrix.pitch,
        as_i64(lanes, x),
        as_i64(lanes, y),
        matrix.step,
    )


def _how(lanes: Lanes, op: _NdOp, surface: simt.Surface, kind: Kind) -> _How:
    """Whether lanes move a block themselves, which no hint is for; else the hints."""
    if lanes.moves_by_lanes or surface.step is not None:
        return {"by_lanes": True, "hints": None}
    return {"by_lanes": False, "hints": hints_of(lanes, op, kind)}


def load_nd(lanes: Lanes, op: LoadNdOp) -> None:
    """The pieces of a message, as elements of the value."""
    type_ = _descriptor(lanes, op, op.tensor_desc)
    rows, columns = type_.shape
    mode = "plain"
    if op.is_packed:
        mode = "transform"
    elif op.is_transposed:
        mode = "transpose"
    bits = bits_of(type_.element_type)
    shape = simt.BlockShape(bits, rows, columns, type_.array_length, mode)
    layout = held(op.value.type)
    if layout is None or not _fits(shape, layout.lengths, bits_of(layout.element)):
        raise lanes.refuse(
            op,
            f"16 lanes cannot share {op.value.type} as one message brings it",
            "load blocks of 16 columns (8 of tf32, 32 of bytes for A)",
        )
    surface = _surface(lanes, op)
    how = _how(lanes, op, surface, "load")
    loaded = lanes.add(simt.BlockLoadOp(surface, shape, **how)).results
    pieces = [recast(lanes, piece, layout.element) for piece in loaded]
    lanes.hold(op.value, *recut(lanes, pieces, layout.lengths))


def _fits(shape: simt.BlockShape, lengths: tuple[int, ...], bits: int) -> bool:
    return shape.items == sum(lengths) and shape.item_bits == bits


def store_nd(lanes: Lanes, op: StoreNdOp) -> None:
    """At most eight rows a message."""
    type_ = _descriptor(lanes, op, op.tensor_desc)
    columns, bits = type_.shape[1], bits_of(type_.element_type)
    down = 0
    layout = lanes.layout(op.value)
    for piece in lanes.pieces(op.value):
        rows = length_of(piece)
        shape = simt.BlockShape(bits, rows, columns)
        if not _fits(shape, (rows,), bits_of(layout.element)):
            raise lanes.refuse(
                op,
                f"16 lanes do not hold {op.value.type} as one message takes it",
                "store blocks of 16 columns",
            )
        items = recast(lanes, piece, IntegerType(shape.item_bits))
        surface = _surface(lanes, op, down=down)
        how = _how(lanes, op, surface, "store")
        lanes.add(simt.BlockStoreOp(items, surface, shape, **how))
        down += rows


def prefetch_nd(lanes: Lanes, op: PrefetchNdOp) -> None:
    """A hint; elements of 64 bits are asked for as pairs of 32."""
    type_ = _descriptor(lanes, op, op.tensor_desc)
    rows, columns = type_.shape
    bits = bits_of(type_.element_type)
    per_element = max(1, bits // 32)
    shape = simt.BlockShape(
        bits // per_element, rows, columns * per_element, type_.array_length
    )
    surface = _surface(lanes, op, per_element=per_element)
    how = _how(lanes, op, surface, "load")
    lanes.add(simt.BlockPrefetchOp(surface, shape, **how))
