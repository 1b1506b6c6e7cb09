"""Lowering of accesses: blocks, scattered elements, matrices in shared memory.

A message loads exactly the elements that a lane holds by the type of the value
(`state.py`), so no shuffles are needed afterwards. Cache hints do not change values: a
hint that the device lacks becomes a remark, so that a kernel for one device runs on
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i32, i64
from xdsl.ir import Operation, SSAValue

from xetl.dialects.base import Index, element_type, shape_of
from xetl.dialects.upstream import arith
from xetl.transforms.diagnostics import refusal, remark
from xetl_xegpu import dialect as xegpu
from xetl_xegpu import limits, simt
from xetl_xegpu.lowering.convert_xetile_to_xegpu.views import stored_bytes
from xetl_xegpu.simt.block_ops import PIECE

from .memrefs import address_of, as_i64, memory_of, moved, space_of, value_of
from .pieces import elements_of, length_of, recast, recut
from .shuffles import is_read_in_halves
from .state import (
    LANES,
    Distribution,
    Halves,
    Lanes,
    Memory,
    Places,
    bits_of,
    lane_layout,
)

_CachedOp = (
    xegpu.LoadNdOp | xegpu.StoreNdOp | xegpu.PrefetchNdOp | xegpu.LoadOp | xegpu.StoreOp
)


def hints_of(lanes: Lanes, op: _CachedOp, kind: limits.Kind) -> limits.Hints | None:
    """Return the cache hints of an access. None: the device's default."""
    legal = limits.legal_hints(lanes.device.name, kind)
    if not legal:
        return None
    given = (op.properties.get(f"l{level}_hint") for level in (1, 2, 3))
    l1, l2, l3 = (
        hint.word if isinstance(hint, xegpu.CacheHintAttr) else None for hint in given
    )
    if l2 is not None:
        remark(op, "caches", "`l2_hint` is left out: messages speak of L1 and L3 only")
    if l1 is None and l3 is None:
        return None
    found = limits.completed(kind, l1, l3)
    if found in legal:
        return found
    has, name = "; ".join(map(str, legal)), lanes.device.name
    text = f"hints are left out: `{name}` has no {kind} that is {found}. It has {has}"
    remark(op, "caches", text)
    return None


_RANK = 2

_NdOp = xegpu.LoadNdOp | xegpu.StoreNdOp | xegpu.PrefetchNdOp


class _How(TypedDict):
    """Arguments of all operations of `simt` on blocks: how the block is moved."""

    by_lanes: bool
    hints: limits.Hints | None


def create_nd_tdesc(lanes: Lanes, op: xegpu.CreateNdTdescOp) -> None:
    """Describe a matrix in bytes, as messages need it."""
    type_ = _descriptor(op, op.result)
    memory = memory_of(lanes, op, op.source)
    shape = [value_of(lanes, size) for size in op.mixed_shape] or memory.sizes
    strides = [value_of(lanes, step) for step in op.mixed_strides] or memory.strides
    if len(shape) != _RANK or len(strides) != _RANK:
        help_ = "give two sizes and two strides"
        raise refusal(op, "blocks are moved of matrices", help_)
    width, step = stored_bytes(type_.element_type), None
    if strides[1] != 1:
        step = as_i64(lanes, lanes.times(strides[1], width))
    lanes.surfaces[op.result] = partial(
        simt.Surface,
        memory.address,
        _row_bytes(lanes, shape[1], strides, width),
        as_i64(lanes, shape[0]),
        as_i64(lanes, lanes.times(strides[0], width)),
        step=step,
    )


def _row_bytes(
    lanes: Lanes, columns: Index, strides: Sequence[Index], width: int
) -> SSAValue:
    """Return the width of a surface in bytes, rounded up to a legal one for messages.

    If it is more than a row has, launches pad the row with zeros.
    """
    size = as_i64(lanes, lanes.times(columns, width))
    if lanes.moves_by_lanes or strides[1] != 1:
        return size
    if isinstance(columns, int):
        if isinstance(strides[0], int):
            return size
        even = columns * width + -columns * width % limits.WIDTH_STEP
        return as_i64(lanes, max(even, limits.LEAST_WIDTH))

    def number(value: int) -> SSAValue:
        return lanes.insert(arith.ConstantOp(IntegerAttr(value, i32)))

    short = lanes.insert(arith.TrunciOp(size, i32))  # below `limits.LIMIT`
    if width % limits.WIDTH_STEP:
        more = lanes.insert(arith.AddiOp(short, number(limits.WIDTH_STEP - 1)))
        short = lanes.insert(arith.AndiOp(more, number(-limits.WIDTH_STEP)))
    least = lanes.insert(arith.MaxsiOp(short, number(limits.LEAST_WIDTH)))
    return lanes.insert(arith.ExtsiOp(least, i64))


def _descriptor(op: Operation, value: SSAValue) -> xegpu.TensorDescType:
    type_ = value.type
    assert isinstance(type_, xegpu.TensorDescType)
    if len(type_.shape) != _RANK or type_.memory_space != "global":
        raise refusal(
            op,
            f"{type_} is no block of a matrix in global memory",
            "describe two dimensions; the workgroup's memory has `create_mem_desc`",
        )
    return type_


def _surface(
    lanes: Lanes, op: _NdOp, kind: limits.Kind, *, down: int = 0, per_element: int = 1
) -> tuple[simt.Surface, _How]:
    """Return the surface with the begin of a block, and how the block is moved.

    Args:
        down: the number of rows to add to the offset.
        per_element: elements of the message for each element of the matrix.
    """
    with_block_at = lanes.surfaces.get(op.tensor_desc)
    if with_block_at is None:
        raise refusal(
            op,
            "a loop or a branch cannot carry this descriptor",
            "carry the offsets, and give them to `load_nd`, `store_nd`, `prefetch_nd`",
        )
    row, column = (value_of(lanes, offset) for offset in op.mixed_offsets)
    at = lanes.times(column, per_element), lanes.plus(row, down)
    surface = with_block_at(*[as_i64(lanes, each) for each in at])
    if lanes.moves_by_lanes or surface.step is not None:  # hints are for messages only
        return surface, {"by_lanes": True, "hints": None}
    return surface, {"by_lanes": False, "hints": hints_of(lanes, op, kind)}


def load_nd(lanes: Lanes, op: xegpu.LoadNdOp) -> None:
    """Load a block, and cast its pieces to elements of the value."""
    type_ = _descriptor(op, op.tensor_desc)
    rows, columns = type_.shape
    mode = "transpose" if op.is_transposed else "plain"
    mode = "transform" if op.is_packed else mode
    block = bits_of(type_.element_type), rows, columns, type_.array_length
    shape = simt.BlockShape(*block, mode)
    layout = lane_layout(op.value.type)
    if layout is None or not _fits(shape, layout.lengths, bits_of(layout.element)):
        raise refusal(
            op,
            f"16 lanes cannot share {op.value.type} as one message brings it",
            "load blocks of 16 columns (8 of tf32, 32 of bytes for A)",
        )
    surface, how = _surface(lanes, op, "load")
    in_halves = _in_halves(shape, op.value) and not how["by_lanes"]
    if in_halves:
        shape = replace(shape, columns=columns // 2, count=2)
    load = lanes.add(simt.BlockLoadOp(*surface, shape.pieces(), shape=shape, **how))
    pieces = [recast(lanes, piece, layout.element) for piece in load.results]
    if in_halves:
        lanes.halves[op.value] = Halves(tuple(pieces), rows)
        return
    lanes.hold(op.value, *recut(lanes, pieces, layout.lengths))


def _in_halves(shape: simt.BlockShape, value: SSAValue) -> bool:
    """Whether a block is A of products of tf32, and two narrow blocks can load it."""
    is_whole = (shape.bits, shape.columns, shape.count) == (32, LANES, 1)
    fits = is_whole and shape.mode == "plain" and shape.rows % PIECE == 0
    return fits and is_read_in_halves(value)


def _fits(shape: simt.BlockShape, lengths: tuple[int, ...], bits: int) -> bool:
    return shape.items == sum(lengths) and shape.item_bits == bits


def store_nd(lanes: Lanes, op: xegpu.StoreNdOp) -> None:
    """Store a block, with at most eight rows in a message."""
    type_ = _descriptor(op, op.tensor_desc)
    columns, bits = type_.shape[1], bits_of(type_.element_type)
    down = 0
    layout = lanes.layout(op.value)
    for piece in lanes.pieces(op.value):
        rows = length_of(piece)
        shape = simt.BlockShape(bits, rows, columns)
        if not _fits(shape, (rows,), bits_of(layout.element)):
            problem = f"16 lanes do not hold {op.value.type} as one message takes it"
            raise refusal(op, problem, "store blocks of 16 columns")
        items = recast(lanes, piece, IntegerType(shape.item_bits))
        surface, how = _surface(lanes, op, "store", down=down)
        lanes.add(simt.BlockStoreOp(items, *surface, shape=shape, **how))
        down += rows


def prefetch_nd(lanes: Lanes, op: xegpu.PrefetchNdOp) -> None:
    """Prefetch a block; elements of 64 bits are pairs of 32."""
    type_ = _descriptor(op, op.tensor_desc)
    (rows, columns), bits = type_.shape, bits_of(type_.element_type)
    each = max(1, bits // 32)
    shape = simt.BlockShape(bits // each, rows, columns * each, type_.array_length)
    surface, how = _surface(lanes, op, "load", per_element=each)
    lanes.add(simt.BlockPrefetchOp(*surface, shape=shape, **how))


def create_tdesc(lanes: Lanes, op: xegpu.CreateTdescOp) -> None:
    """Describe scattered elements: memory, and an offset for each lane."""
    memory = memory_of(lanes, op, op.source)
    lanes.places[op.result] = Places(memory, lanes.one(op.offsets))


def _address(
    lanes: Lanes, op: xegpu.LoadOp | xegpu.StoreOp | xegpu.AtomicRmwOp
) -> tuple[Memory, SSAValue]:
    """Return the memory, and the address of this lane's element."""
    if isinstance(op, xegpu.AtomicRmwOp):
        base, offsets = op.tensor_desc, None
    else:
        base, offsets = op.base, op.offsets
    type_ = op.value.type
    if shape_of(type_) not in ((), (LANES,)):
        problem = f"16 lanes access one element each, not {type_}"
        raise refusal(op, problem, "use `vector<16xT>`, without `chunk_size`")
    places = lanes.places.get(base)
    if offsets is not None:
        places = Places(memory_of(lanes, op, base), lanes.one(offsets))
    if places is None:
        help_ = "carry the offsets, and describe the places where they are used"
        raise refusal(op, "a loop or a branch cannot carry this descriptor", help_)
    width = stored_bytes(element_type(type_))
    memory = places.memory
    return memory, moved(lanes, memory.address, places.offset, width)


def load(lanes: Lanes, op: xegpu.LoadOp) -> None:
    """Load an element in each lane; masked lanes get 0 (undefined upstream)."""
    memory, address = _address(lanes, op)
    (type_,) = lanes.layout(op.value).types
    fill, mask = lanes.constant(0, type_), lanes.one(op.mask)
    hints = None if memory.shared else hints_of(lanes, op, "load")
    found = simt.LoadOp(address, mask, fill, space=space_of(memory), hints=hints)
    lanes.hold(op.value, lanes.insert(found))


def store(lanes: Lanes, op: xegpu.StoreOp) -> None:
    """Store an element in each lane."""
    memory, address = _address(lanes, op)
    value, mask = lanes.one(op.value), lanes.one(op.mask)
    hints = None if memory.shared else hints_of(lanes, op, "store")
    lanes.add(simt.StoreOp(value, address, mask, space=space_of(memory), hints=hints))


def atomic(lanes: Lanes, op: xegpu.AtomicRmwOp) -> None:
    """Update an element in each lane."""
    memory, address = _address(lanes, op)
    value, mask = lanes.one(op.value), lanes.one(op.mask)
    expected = None if op.expected is None else lanes.one(op.expected)
    done = simt.AtomicOp(
        *(value, address, mask, expected), kind=op.kind_name, space=space_of(memory)
    )
    lanes.hold(op.result, lanes.insert(done))


def create_mem_desc(lanes: Lanes, op: xegpu.CreateMemDescOp) -> None:
    """Describe a matrix in the workgroup's memory, with its strides."""
    memory = memory_of(lanes, op, op.source)
    matrix = op.mem_desc.type
    assert isinstance(matrix, xegpu.MemDescType)
    if matrix.block is not None:
        problem = "a matrix in shared memory has no blocks here"
        raise refusal(op, problem, "leave `block` out of its `mem_layout`")
    lanes.memories[op.mem_desc] = Memory(
        memory.address, matrix.shape, matrix.strides, matrix.element_type, shared=True
    )


def _addresses(
    lanes: Lanes, op: xegpu.LoadMatrixOp | xegpu.StoreMatrixOp, value: SSAValue
) -> tuple[Memory, list[SSAValue]]:
    """Return the memory, and the address of each element of this lane."""
    memory = memory_of(lanes, op, op.mem_desc)
    layout, shape = lane_layout(value.type), shape_of(value.type)
    if layout is None or layout.spread not in (Distribution.SAME, Distribution.COLUMNS):
        problem = f"16 lanes cannot share {value.type} in shared memory"
        help_ = "load and store `vector<hx16xT>`, h 1, 2, 4 or 8"
        raise refusal(op, problem, help_)
    *_, row, column = (0, *(value_of(lanes, at) for at in op.mixed_offsets))
    in_columns = layout.spread is Distribution.COLUMNS
    if in_columns:
        column = lanes.plus(column, lanes.lane_index)
    along_rows = len(shape) > 1 or not shape or in_columns
    found: list[SSAValue] = []
    for number in range(sum(layout.lengths)):
        down, right = (number, 0) if along_rows else (0, number)
        at: list[Index] = [lanes.plus(row, down), lanes.plus(column, right)]
        found.append(address_of(lanes, memory, at[-len(memory.strides) :]))
    return memory, found


def load_matrix(lanes: Lanes, op: xegpu.LoadMatrixOp) -> None:
    """Load a block of a matrix row by row."""
    memory, addresses = _addresses(lanes, op, op.value)
    layout = lanes.layout(op.value)
    fill, always = lanes.constant(0, layout.element), lanes.constant(1, i1)
    access, space = (always, fill), space_of(memory)
    rows = [lanes.insert(simt.LoadOp(at, *access, space=space)) for at in addresses]
    lanes.hold(op.value, *recut(lanes, rows, layout.lengths))


def store_matrix(lanes: Lanes, op: xegpu.StoreMatrixOp) -> None:
    """Store a block row by row. The first lane stores what all lanes hold."""
    memory, addresses = _addresses(lanes, op, op.value)
    mask = lanes.constant(1, i1)
    if lanes.layout(op.value).spread is Distribution.SAME:
        mask = lanes.is_first
    rows = elements_of(lanes, lanes.pieces(op.value))
    for row, address in zip(rows, addresses):
        lanes.add(simt.StoreOp(row, address, mask, space=space_of(memory)))
