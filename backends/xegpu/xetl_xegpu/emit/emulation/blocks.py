"""Blocks of memory, element by element: what lies outside of the surface is 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xetl.codegen.llvm import ll
from xetl.codegen.types import I8, I32, I64
from xetl_xegpu.emit.emulation.body import Body
from xetl_xegpu.simt import SUBGROUP_SIZE, BlockShape


def define(body: Body) -> None:
    """Write a load, a store or a prefetch."""
    if body.builtin.access != "prefetch":
        surface = _Surface.of(body)
        with body.loop(surface.shape.items) as item:
            move = _store if body.builtin.access == "store" else _load
            move(surface, item)
    body.builder.ret_void()


@dataclass(frozen=True)
class _Surface:
    """The arguments of a block function, and the lane that runs it."""

    b: Any
    shape: BlockShape
    base: Any
    width: Any
    height: Any
    pitch: Any
    x: Any
    y: Any
    step: Any
    memory: Any
    lane: Any

    @classmethod
    def of(cls, body: Body) -> _Surface:
        """Those of a function."""
        assert body.builtin.block is not None
        base, width, height, pitch, place, *step, memory = body.arguments
        # Numbers of a surface: i32 in messages, i64 in what lanes move.
        x, y = (body.builder.extract_element(place, I32(i)) for i in (0, 1))
        lane = body.lane()
        right = step[0] if step else x.type(body.builtin.block.bits // 8)
        surface = (base, width, height, pitch, x, y, right, memory, lane)
        return cls(body.builder, body.builtin.block, *surface)

    @property
    def parts(self) -> int:
        """Elements of an item."""
        return self.shape.item_bits // self.shape.bits

    def place_of(self, item: Any) -> tuple[Any, Any]:
        """Row and column, in the block, of the first element of an item."""
        b, shape = self.b, self.shape
        if shape.mode == "transpose":
            return self.lane, item
        each = shape.items // shape.count
        block, item = b.udiv(item, I32(each)), b.urem(item, I32(each))
        left = b.mul(block, I32(shape.columns))
        if shape.mode == "transform":
            return b.mul(item, I32(self.parts)), b.add(left, self.lane)
        number = b.add(b.mul(item, I32(SUBGROUP_SIZE)), self.lane)
        row_items = I32(shape.columns // self.parts)
        column = b.mul(b.urem(number, row_items), I32(self.parts))
        return b.udiv(number, row_items), b.add(left, column)

    def element(self, item: Any, part: int) -> tuple[Any, Any]:
        """Address of a part of an item, and whether it lies inside."""
        b = self.b
        number = self.x.type
        row, column = (b.zext(each, number) for each in self.place_of(item))
        down = part if self.shape.mode == "transform" else 0
        x = b.add(b.add(self.x, column), number(part - down))
        y = b.add(b.add(self.y, row), number(down))
        left = b.mul(x, self.step)
        # In elements: the bytes of a place far to the right might wrap around. As an
        # unsigned number what is negative lies outside, too.
        columns = b.udiv(self.width, number(self.shape.bits // 8))
        inside = b.and_(
            b.icmp_unsigned("<", x, columns), b.icmp_unsigned("<", y, self.height)
        )
        start = b.mul(b.sext(y, I64), b.sext(self.pitch, I64))
        offset = b.add(start, b.sext(left, I64))
        return b.gep(self.base, [offset], source_etype=I8), inside

    def item_address(self, item: Any) -> Any:
        """Where the private memory has an item."""
        type_ = ll.IntType(self.shape.item_bits)
        return self.b.gep(self.memory, [item], source_etype=type_)


def _load(surface: _Surface, item: Any) -> None:
    b, shape = surface.b, surface.shape
    element, whole = ll.IntType(shape.bits), ll.IntType(shape.item_bits)
    value: Any = None
    for part in range(surface.parts):
        address, inside = surface.element(item, part)
        before = b.block
        with b.if_then(inside):
            loaded = b.load(address, typ=element, align=shape.bits // 8)
            within = b.block
        found = b.phi(element)
        found.add_incoming(element(0), before)
        found.add_incoming(loaded, within)
        if surface.parts == 1:
            value = found
            continue
        placed = b.shl(b.zext(found, whole), whole(part * shape.bits))
        value = placed if value is None else b.or_(value, placed)
    b.store(value, surface.item_address(item), align=shape.item_bits // 8)


def _store(surface: _Surface, item: Any) -> None:
    b, shape = surface.b, surface.shape
    element, whole = ll.IntType(shape.bits), ll.IntType(shape.item_bits)
    align = shape.item_bits // 8
    value = b.load(surface.item_address(item), typ=whole, align=align)
    for part in range(surface.parts):
        address, inside = surface.element(item, part)
        piece = value
        if surface.parts > 1:
            piece = b.trunc(b.lshr(value, whole(part * shape.bits)), element)
        with b.if_then(inside):
            b.store(piece, address, align=shape.bits // 8)
