"""Emission of block accesses and matrix products: by calls of builtins, or by lanes.

A load writes private memory, and its items are read from there in vectors of 8, because
SPIR-V has no vectors longer than 16. If Intel's builtins are emulated, functions take
and return 8 items, narrow ones as words of 32 bits, without private memory: OpenCL's
driver for CPUs runs 16 lanes at once, and each would read its own memory word by word.

On GPUs, lanes move blocks by straight-line code for each element, without loops and
private memory: elements are loaded to registers, and each row and column is checked
once. CPUs get the functions of `emulation`, which their driver builds faster; the
results are the same (`test_by_lanes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import product

from xdsl.ir import SSAValue

from xetl.codegen.emitter import EmitTable
from xetl.codegen.types import I1, I32, I64, Value, ll, llvm_type
from xetl.devices import Access
from xetl.dialects.base import element_type
from xetl_xegpu import simt
from xetl_xegpu.emit import builtins, payloads
from xetl_xegpu.emit.emitter import GLOBAL, LINE, KernelEmitter, together
from xetl_xegpu.emit.memory import always, pointer_for_call
from xetl_xegpu.emit.scalars import ScalarBuilder
from xetl_xegpu.emit.workgroup import allowed, shuffle
from xetl_xegpu.limits import Kind
from xetl_xegpu.simt import SUBGROUP_SIZE, BlockShape
from xetl_xegpu.simt.block_ops import PIECE, BlockOp

_MANY = 1 << 12
"""More rows and columns than a block has; its square is a positive i32."""


def load_by_lanes(em: KernelEmitter, op: simt.BlockLoadOp) -> None:
    """Load all pieces of a block by lanes."""
    elements = _Elements(em, op)
    numbers = range(op.shape.items)
    for start, piece in zip(numbers[::PIECE], op.pieces):
        items = [_item(elements, number) for number in numbers[start : start + PIECE]]
        em.set(piece, together(em.builder, items))


def store_by_lanes(em: KernelEmitter, op: simt.BlockStoreOp) -> None:
    """Store a block by lanes; it is one piece."""
    b, shape, value = em.builder, op.shape, em.get(op.value)
    elements = _Elements(em, op)
    narrow, whole = ll.IntType(shape.bits), ll.IntType(shape.item_bits)
    for number in range(shape.items):
        item = b.extract_element(value, I32(number)) if shape.items > 1 else value
        addresses, mask = elements.at(number)
        for part, address in enumerate(addresses):
            shift = whole(part * shape.bits)
            bits = b.and_(mask, whole((1 << shape.bits) - 1 << part * shape.bits))
            inside = b.icmp_unsigned("!=", bits, whole(0))
            with b.if_then(allowed(em, inside)):
                at = b.inttoptr(address, GLOBAL)
                piece = b.trunc(b.lshr(item, shift), narrow)
                b.store(piece, at, align=shape.bits // 8)


def _item(elements: _Elements, number: int) -> Value:
    """Return an item of a lane: one element, or several side by side."""
    b, shape = elements.em.builder, elements.shape
    element, whole = ll.IntType(shape.bits), ll.IntType(shape.item_bits)
    addresses, mask = elements.at(number)
    loaded = [
        b.load(b.inttoptr(address, GLOBAL), typ=element, align=shape.bits // 8)
        for address in addresses
    ]
    return b.and_(b.bitcast(together(b, loaded), whole), mask)


class _Elements:
    """The addresses of a block's elements, and masks of those inside the matrix.

    Rows (columns of a transposed block) are the same in all lanes; each is computed by
    one lane and shuffled. For an element outside, a lane reads one that is inside, or
    the status words if there is none, and masks the result.
    """

    def __init__(self, em: KernelEmitter, op: BlockOp) -> None:
        self.em, self.shape = em, op.shape
        self._reads = isinstance(op, simt.BlockLoadOp)
        base, width, height, pitch, x, y = em.all(
            [op.base, op.width, op.height, op.pitch, op.x, op.y]
        )
        b, size = em.builder, I64(op.shape.bits // 8)
        step = size if op.step is None else em.get(op.step)
        # In elements, because the byte offset of a far column might overflow.
        columns = b.udiv(width, size)
        is_some = b.icmp_signed("!=", b.mul(height, columns), I64(0))
        base = b.select(is_some, base, em.status_words())
        # In a loop the position usually changes along the first of the two axes. A
        # load's second axis depends on it by ``is_some``: if it were hoisted out of the
        # loop, it would occupy registers there.
        lines = list[Sequence[Value]]()
        axes = (pitch, y, height), (step, x, columns)
        for axis in axes if op.step is None else axes[::-1]:
            lines.append(self._inside(*axis, is_some))
            if self._reads:
                is_some = b.icmp_signed(">", lines[-1][-1], I32(0))
        is_turned = (op.step is None) == (op.shape.mode == "transpose")
        across, along = lines[::-1] if is_turned else lines
        parts = op.shape.item_bits // op.shape.bits
        each, either = (parts, 1) if op.shape.mode == "transform" else (1, parts)

        @cache
        def rows_by_lane(first: int) -> list[Value]:
            *distances, mask = self._line(across, each, first * each)
            return [*(b.add(base, distance) for distance in distances), mask]

        @cache
        def row(number: int) -> list[Value]:
            lane = number % SUBGROUP_SIZE
            values = rows_by_lane(number - lane)
            return [shuffle(em, each, I32(lane)) for each in values]

        self._row = row
        self._column = cache(partial(self._line, along, either))

    def at(self, item: int) -> tuple[Sequence[Value], Value]:
        """Return the addresses of an item's parts, and a mask of those inside."""
        b, shape = self.em.builder, self.shape
        block, number = divmod(item, shape.items // shape.count)
        *rows, row_mask = self._row(number)
        *columns, column_mask = self._column(block * shape.columns)
        addresses = [b.add(*each) for each in product(rows, columns)]
        return addresses, b.and_(row_mask, column_mask)

    def _line(self, of: Sequence[Value], parts: int, first: int) -> list[Value]:
        """Compute ``parts`` rows or columns of each lane, from ``first`` on in lane 0.

        Returns:
            Distances in bytes (lines outside have that of the first line inside), and a
            mask of an item with ones inside. The mask is an integer, because a thread
            has only eight flags.
        """
        step, start, least, count = of
        b, bits = self.em.builder, self.shape.bits
        whole = ll.IntType(self.shape.item_bits)
        cast = b.sext if whole.width > I32.width else b.trunc
        distances, mask = list[Value](), whole(0)
        for part in range(parts):
            index = b.add(b.mul(self.em.lane(), I32(parts)), I32(first + part))
            behind = b.sub(index, least)
            before_end = b.and_(b.sub(behind, count), b.not_(behind))
            inside = b.ashr(before_end, I32(31))
            # A store writes nothing outside, so it needs no valid address there.
            near = b.add(least, b.and_(behind, inside)) if self._reads else index
            distances.append(b.mul(b.add(start, b.zext(near, I64)), step))
            ones = (1 << bits) - 1 << bits * part if parts > 1 else -1
            mask = b.or_(mask, b.and_(cast(inside, whole), whole(ones)))
        return [*distances, mask]

    def _inside(
        self, step: Value, start: Value, extent: Value, is_some: Value
    ) -> Sequence[Value]:
        """Return step, start, first line inside and count of lines inside, or zeros."""
        b = self.em.builder

        def limited(number: Value) -> Value:
            positive = b.select(b.icmp_signed("<", number, I64(0)), I64(0), number)
            is_large = b.icmp_signed(">", positive, I64(_MANY))
            return b.trunc(b.select(is_large, I64(_MANY), positive), I32)

        first, end = limited(b.neg(start)), limited(b.sub(extent, start))
        count = b.sub(end, first)
        is_some = b.and_(is_some, b.icmp_signed(">", count, I32(0)))
        found = start, first, count
        return [step, *(b.select(is_some, each, each.type(0)) for each in found)]


def is_straight(op: BlockOp) -> bool:
    """Whether each item of a lane is in one row, or in one column if transposed."""
    shape = op.shape
    if shape.mode == "transpose":
        return shape.rows == SUBGROUP_SIZE
    return shape.mode == "transform" or shape.columns % SUBGROUP_SIZE == 0


def _surface(em: KernelEmitter, op: BlockOp, kind: Kind) -> list[Value]:
    """Return address, width and pitch in bytes, height, (x, y), and the step if any."""
    b = em.builder
    given = [SSAValue.get(v) for v in op.surface if v is not None]
    base, *numbers = em.all(given)
    if op.by_lanes is None and not em.device.emulated:
        numbers = [b.trunc(number, I32) for number in numbers]
    width, height, pitch, x, y, *step = numbers
    if kind == "store":
        # A block below the last row is not stored at all.
        alive = allowed(em, I1(1))
        y = y if always(alive) else b.select(alive, y, height)
    place = together(b, [x, y])
    pointer = pointer_for_call(em, base, kind, op.hints)
    return [pointer, width, height, pitch, place, *step]


def _send(em: KernelEmitter, op: BlockOp, access: Access, *moved: Value) -> Value:
    """Move the block by a message, or by a function of ours that emulates it.

    Args:
        moved: private memory; if Intel's functions are emulated, the stored value, or
            the number of the first item of the piece to load.
    """
    operands = [*_surface(em, op, "store" if access == "store" else "load")]
    is_value = em.device.emulated and access != "prefetch"
    first = moved if is_value and access == "load" else ()
    if not first:
        operands += moved
    message = builtins.block_message(em.device, access, op.shape)
    if op.by_lanes is not None:
        message = builtins.by_lanes(message, has_step=op.step is not None)
    elif em.device.emulated:
        message = builtins.checked(message)
        operands = [*operands, em.status_words(), I32(em.log_ids[op])]
    if is_value:
        message = builtins.by_value(message)
    return em.call(message, [*operands, *first])


def _in_a_line(em: KernelEmitter, op: BlockOp) -> bool:
    """Whether lanes move this block by straight-line code.

    Rows of single elements use a function: with four arrays of 8,192 columns, the
    addresses of all arrays were live at once, and 5 KB spilled. So does a kernel whose
    values fill the registers: the addresses of 256 rows of 128 halves took more memory
    than a thread has.
    """
    is_wanted = op.by_lanes is not None and not (em.device.emulated or em.spills)
    return is_wanted and op.shape.items > 1 and is_straight(op)


def _load(em: KernelEmitter, op: simt.BlockLoadOp) -> None:
    b, shape = em.builder, op.shape
    if _in_a_line(em, op):
        load_by_lanes(em, op)
    elif payloads.shares_payload(em, op):
        _set_pieces(em, op, payloads.load(em, op))
    elif isinstance(b, ScalarBuilder):
        for number, piece in enumerate(op.pieces):
            loaded = b.taken_apart(_send(em, op, "load", I32(PIECE * number)))
            em.set(piece, b.bitcast(loaded, llvm_type(piece.type)))
    else:
        item = ll.IntType(shape.item_bits)
        at = memory = em.private_array(item, shape.items)
        _send(em, op, "load", memory)
        for number, piece in enumerate(op.pieces):
            if number:
                at = b.gep(memory, [I64(PIECE * number)], source_etype=item)
            type_ = llvm_type(piece.type)
            align = min(shape.item_bits // 8 * getattr(type_, "count", 1), LINE)
            em.set(piece, b.load(at, typ=type_, align=align))


def _set_pieces(em: KernelEmitter, op: simt.BlockLoadOp, items: Value) -> None:
    """Set the pieces of a load to parts of the vector of all items."""
    for number, piece in enumerate(op.pieces):
        part = items
        if len(op.pieces) > 1:
            first, count = PIECE * number, llvm_type(piece.type).count
            order = [*range(first, first + count)]
            picked = ll.Constant(ll.VectorType(I32, count), order)
            part = em.builder.shuffle_vector(items, items, picked)
        em.set(piece, part)


def _store(em: KernelEmitter, op: simt.BlockStoreOp) -> None:
    b, shape, value = em.builder, op.shape, em.get(op.value)
    if _in_a_line(em, op):
        store_by_lanes(em, op)
    elif payloads.shares_payload(em, op):
        payloads.store(em, op)
    elif isinstance(b, ScalarBuilder):
        _send(em, op, "store", _in_words(b, value, shape))
    else:
        memory = em.private_array(ll.IntType(shape.item_bits), shape.items)
        b.store(value, memory, align=min(shape.item_bits // 8 * shape.items, LINE))
        _send(em, op, "store", memory)


def _in_words(b: ScalarBuilder, value: Value, shape: BlockShape) -> Value:
    """Return a value of narrow items as words, in the form of `builtins.by_value`."""
    count, rest = divmod(shape.item_bits * shape.items, I32.width)
    if rest or shape.item_bits >= I32.width:
        return value
    words = b.bitcast(value, I32 if count == 1 else ll.VectorType(I32, count))
    return words if count == 1 else b.together(b.items(words))


def _prefetch(em: KernelEmitter, op: simt.BlockPrefetchOp) -> None:
    if payloads.shares_payload(em, op):
        payloads.prefetch(em, op)
    elif op.by_lanes is None:  # a prefetch by lanes is dropped: it is only a hint
        _send(em, op, "prefetch")


def _dpas(em: KernelEmitter, op: simt.DpasOp) -> Value:
    types = op.a_type.data, op.b_type.data, str(element_type(op.c.type))
    return em.call(builtins.matrix_mad(em.device, *types, op.m), em.all(op.operands))


def _lane_product(em: KernelEmitter, op: simt.LaneProductOp) -> Value:
    return em.call(builtins.lane_product(str(op.element), op.m), em.all(op.operands))


def _round_to_tf32(em: KernelEmitter, op: simt.RoundToTf32Op) -> Value:
    value = em.get(op.value)
    return em.call(builtins.to_tf32(getattr(value.type, "count", 1)), [value])


TABLE: EmitTable = {
    simt.BlockLoadOp: _load,
    simt.BlockStoreOp: _store,
    simt.BlockPrefetchOp: _prefetch,
    simt.DpasOp: _dpas,
    simt.LaneProductOp: _lane_product,
    simt.RoundToTf32Op: _round_to_tf32,
}
