"""Block messages for devices that lack them, as functions in LLVM IR.

A message that hardware would refuse (`xetl_xegpu.limits`) loads bits that are all 1
(NaN of every float type) and stores nothing. It also reports its operands, so the
launch raises an error with the kernel, the line and these numbers. Kernels need no code
for this: the functions of this module make the check.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce

from xetl.codegen.types import I8, I32, I64, PTR, Builder, Type, Value, ll
from xetl_xegpu import limits
from xetl_xegpu.emit.builtins import Builtin
from xetl_xegpu.emit.emitter import GLOBAL, ask, chosen, new_function
from xetl_xegpu.simt import SUBGROUP_SIZE, BlockShape
from xetl_xegpu.simt.block_ops import PIECE


@dataclass(frozen=True)
class Body:
    """The body of a function that is being written.

    Attributes:
        builder: inserts instructions at the current position.
        builtin: the function that the body replaces.
        room: capacity of the log in words.
    """

    builder: Builder
    builtin: Builtin
    room: int = 0

    @property
    def arguments(self) -> Sequence[Value]:
        """The arguments of the function."""
        return self.builder.function.args

    def group(self, axis: int) -> Value:
        """The number of this workgroup along an axis, i64."""
        return ask(self.builder, "get_group_id", I32(axis))

    def broadcast(self, value: Value, lane: Value) -> Value:
        """Broadcast an i32 from one lane; ``lane`` must be the same in all lanes."""
        return ask(self.builder, "sub_group_broadcast", value, lane)

    @contextmanager
    def loop(self, count: int, *, is_unrolled: bool = True) -> Generator[Value]:
        """Write a loop over i32 numbers below ``count``, without loop-carried values.

        Args:
            is_unrolled: whether the driver may unroll the loop. If not, the loop ends
                at ``count + (group id >> 48)``: group ids are below 2^48.

        [measured] intel-opencl-rt 2026.2 unrolls a loop of known count: a product of
        bytes then took 3 s to build, otherwise 0.8 s.
        """
        b = self.builder
        end = I32(count)
        if not is_unrolled:
            end = b.add(end, b.trunc(b.lshr(self.group(0), I64(48)), I32))
        before, inside = b.block, b.append_basic_block("row")
        b.branch(inside)
        b.position_at_end(inside)
        number = b.phi(I32)
        number.add_incoming(I32(0), before)
        yield number
        after = b.append_basic_block("rows")
        following = b.add(number, I32(1))
        number.add_incoming(following, b.block)
        b.cbranch(b.icmp_unsigned("<", following, end), inside, after)
        b.position_at_end(after)

    def report(self, status: Value, number: Value, values: Sequence[Value]) -> None:
        """Write a record of `xetl.runtime.log`, if there is room for it.

        Args:
            status: address of the log. Memory that is not a log begins with 0, and
                nothing is written to it.
            number: i32, the number of the operation in the log.
            values: i64, the numbers to report.
        """
        name = f"xetl_report_{len(values)}"
        found = self.builder.module.globals.get(name)
        if found is None:  # one function for all: no copy in each function that checks
            types = [I64, I32, *[I64] * len(values)]
            type_ = ll.FunctionType(ll.VoidType(), types)
            found = new_function(self.builder.module, name, type_, "noinline")
            builder = ll.IRBuilder(found.append_basic_block("entry"))
            replace(self, builder=builder)._write_record(*found.args)
            builder.ret_void()
        operands = [status, number, *values]
        self.builder.call(found, operands, cconv="spir_func")

    def _write_record(self, status: Value, number: Value, *values: Value) -> None:
        b = self.builder
        words = [b.zext(number, I64), *map(self.group, range(3)), *values]
        log = b.inttoptr(status, GLOBAL)
        used = b.load(log, typ=I64, align=8)
        last = I64(self.room - len(words))
        is_log = b.icmp_signed(">", used, I64(0))
        with b.if_then(b.and_(is_log, b.icmp_signed("<=", used, last))):
            start = b.atomic_rmw("add", log, I64(len(words)), "monotonic")
            with b.if_then(b.icmp_signed("<=", start, last)):
                for index, word in enumerate(words):
                    place = b.add(start, I64(index))
                    b.store(word, b.gep(log, [place], source_etype=I64), align=8)


def define_block(body: Body) -> None:
    """Write the body of a load, a store or a prefetch."""
    surface, builtin, b = _Surface.of(body), body.builtin, body.builder
    if builtin.access != "prefetch":
        with body.loop(surface.count, is_unrolled=builtin.has_memory) as item:
            move = _store if builtin.access == "store" else _load
            move(surface, item)
    if builtin.gives_items:
        align = surface.shape.item_bits // 8
        b.ret(b.load(surface.memory, typ=builtin.type.return_type, align=align))
    else:
        b.ret_void()


@dataclass(frozen=True)
class _Surface:
    """The arguments of a block function, and the lane that runs it.

    ``fill`` is the i32 that is read outside of the surface: 0, or -1 if no GPU takes
    the message. The function moves ``count`` items of the block, starting with item
    ``first``. ``memory`` is the private memory of the lane; a prefetch has none.
    """

    b: Builder
    shape: BlockShape
    base: Value
    width: Value
    height: Value
    pitch: Value
    x: Value
    y: Value
    step: Value
    memory: Value
    first: Value
    count: int
    lane: Value
    fill: Value

    @classmethod
    def of(cls, body: Body) -> _Surface:
        """Return the arguments of the function whose body is being written."""
        builtin, b, shape = body.builtin, body.builder, body.builtin.block
        assert shape is not None
        base, width, height, pitch, place, *others = body.arguments
        lane, first, count = ask(b, "get_sub_group_local_id"), I32(0), shape.items
        if builtin.gives_items:
            (*others, first), count = others, min(PIECE, shape.items)
        # The numbers of a surface are i32 in messages, i64 in functions by lanes.
        x, y = (b.extract_element(place, I32(i)) for i in (0, 1))
        numbers = [width, height, pitch, x, y]
        fill = b.lshr(lane, I32(16))
        if not builtin.is_ours:
            legal = _is_legal(b, shape, base, numbers)
            if builtin.reports:
                *others, status, number = others
                is_one = b.icmp_signed("==", b.or_(lane, first), I32(0))
                refused = b.and_(b.not_(legal), is_one)
                with b.if_then(refused):
                    values = (b.ptrtoint(base, I64), width, pitch, height, x, y)
                    body.report(status, number, values)
                width, height, pitch, x, y = (b.trunc(each, I32) for each in numbers)
            height = b.select(legal, height, I32(0))
            fill = b.select(legal, fill, I32(-1))
        right = others[0] if builtin.has_step else x.type(shape.bits // 8)
        memory = others[-1] if others else base
        if builtin.access != "prefetch" and not builtin.has_memory:
            with b.goto_entry_block():
                memory = b.alloca(ll.ArrayType(ll.IntType(shape.item_bits), count))
            memory.type = PTR  # llvmlite would compare the types of pointees
            memory.align = limits.BASE_ALIGNMENT
            if builtin.access == "store":
                b.store(others[-1], memory, align=shape.item_bits // 8)
        place = (width, height, pitch, x, y, right)
        return cls(b, shape, base, *place, memory, first, count, lane, fill)

    @property
    def parts(self) -> int:
        """The number of elements in an item."""
        return self.shape.item_bits // self.shape.bits

    def place_of(self, item: Value) -> tuple[Value, Value]:
        """Return the row and column, in the block, of an item's first element."""
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

    def element(self, item: Value, part: int) -> tuple[Value, Value]:
        """Return the address of an item's element, and whether it is in the matrix."""
        b = self.b
        number = self.x.type
        row, column = (b.zext(each, number) for each in self.place_of(item))
        down = part if self.shape.mode == "transform" else 0
        x = b.add(b.add(self.x, column), number(part - down))
        y = b.add(b.add(self.y, row), number(down))
        left = b.mul(x, self.step)
        # Compare in elements, because the byte offset of a far column might overflow.
        # The unsigned comparisons also find negative positions to be outside.
        columns = b.udiv(self.width, number(self.shape.bits // 8))
        inside = b.and_(
            b.icmp_unsigned("<", x, columns), b.icmp_unsigned("<", y, self.height)
        )
        start = b.mul(b.sext(y, I64), b.sext(self.pitch, I64))
        offset = b.add(start, b.sext(left, I64))
        return b.gep(self.base, [offset], source_etype=I8), inside

    def outside(self, type_: Type) -> Value:
        """Return the value that is read outside; the driver cannot constant-fold it.

        [measured] intel-opencl-rt 2026.2: if the driver knows that all of a block is
        outside, it fills the memory of the lanes at once, wrongly below 32 bits.
        """
        cast = self.b.sext if type_.width >= I32.width else self.b.trunc
        return cast(self.fill, type_)

    def item_address(self, item: Value) -> Value:
        """Return the address of an item in private memory."""
        type_ = ll.IntType(self.shape.item_bits)
        return self.b.gep(self.memory, [item], source_etype=type_)


def _is_legal(
    b: Builder, shape: BlockShape, base: Value, numbers: Sequence[Value]
) -> Value:
    """Compute whether hardware takes a message; positions must fit 32 bits."""
    width, height, pitch, x, y = numbers
    word, bytes_ = width.type, shape.bits // 8
    rests = (
        (b.trunc(b.ptrtoint(base, I64), word), limits.BASE_ALIGNMENT),
        (width, max(limits.WIDTH_STEP, bytes_)),
        (pitch, limits.PITCH_STEP),
        (b.mul(x, word(bytes_)), limits.WIDTH_STEP),
    )
    rest = reduce(b.or_, [b.and_(value, word(step - 1)) for value, step in rests])
    bounds = (
        (width, limits.LEAST_WIDTH, limits.LIMIT),
        (height, 1, limits.LIMIT),
        (pitch, limits.LEAST_PITCH, limits.LIMIT),
    )
    inside = [
        b.icmp_unsigned("<=", b.sub(value, word(least)), word(most - least))
        for value, least, most in bounds
    ]
    if word == I64:
        inside += [b.icmp_signed("==", b.sext(b.trunc(z, I32), I64), z) for z in (x, y)]
    together = b.icmp_unsigned(">=", pitch, width)
    is_even = b.icmp_unsigned("==", rest, word(0))
    return reduce(b.and_, inside, b.and_(together, is_even))


def _load(surface: _Surface, item: Value) -> None:
    b, shape = surface.b, surface.shape
    element, whole = ll.IntType(shape.bits), ll.IntType(shape.item_bits)
    zero, number = surface.outside(element), b.add(surface.first, item)
    value: Value | None = None
    for part in range(surface.parts):
        address, inside = surface.element(number, part)
        load = partial(b.load, address, typ=element, align=shape.bits // 8)
        found = chosen(b, inside, load, zero)
        if surface.parts == 1:
            value = found
            continue
        placed = b.shl(b.zext(found, whole), whole(part * shape.bits))
        value = placed if value is None else b.or_(value, placed)
    assert value is not None
    b.store(value, surface.item_address(item), align=shape.item_bits // 8)


def _store(surface: _Surface, item: Value) -> None:
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
