"""Types, constants and functions of LLVM, and `Builder`, which emits instructions.

Pointers are opaque; offsets are in elements of the type that is named. Elements travel
as integers of their size (``<n x i16>``, ``<n x i32>``) up to `convert`, so that loads,
masks and shuffles need not know what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from typing import Any

from xetl.codegen.types import (
    BF16,
    Block,
    Function,
    Module,
    Type,
    Value,
    declare,
    repeated,
)
from xetl.codegen.types import ll as ir
from xetl.records import record

Instruction = ir.Instruction

VOID: Type = ir.VoidType()
PTR: Type = ir.PointerType()
I1: Type = ir.IntType(1)
I8: Type = ir.IntType(8)
I16: Type = ir.IntType(16)
I32: Type = ir.IntType(32)
I64: Type = ir.IntType(64)
F16: Type = ir.HalfType()
F32: Type = ir.FloatType()
F64: Type = ir.DoubleType()

_INTEGERS = {"i1": I1, "i8": I8, "i16": I16, "i32": I32, "i64": I64}
_FLOATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
_BY_NAME = _INTEGERS | _FLOATS | {"ptr": PTR}


def element_type(name: str) -> Type:
    """The LLVM type of a dtype name such as ``"bf16"``."""
    return _BY_NAME[name]


def vector(element: Type, lanes: int) -> Type:
    """``<lanes x element>``; for one lane the element itself."""
    return element if lanes == 1 else ir.VectorType(element, lanes)


def const(type_: Type, value: int | float | Sequence[int | float]) -> Value:
    """A constant; a plain number on a vector type fills all lanes."""
    if isinstance(value, int):
        return _integer(type_, value)
    if isinstance(value, Sequence):
        return ir.Constant(type_, value)
    return repeated(type_, value)


@lru_cache(maxsize=1024, typed=True)
def _integer(type_: Type, value: int) -> Value:
    """The same object each time: it keeps the text that it was printed as."""
    return repeated(type_, value)


@lru_cache(maxsize=64)
def iota(lanes: int, type_: Type = I32) -> Value:
    """The constant vector 0, 1, 2, ..."""
    return const(vector(type_, lanes), list(range(lanes)))


_ALIGNED = 32
"""Bytes: a register of AVX2."""


# --- functions ---------------------------------------------------------------


def define(
    module: Module, name: str, result: Type, params: Sequence[tuple[str, Type]]
) -> Function:
    """A new internal function with named arguments and no body yet.

    It may never become, or hold, a call to the C library: the object it ends up in
    is loaded without a linker.
    """
    signature = ir.FunctionType(result, [type_ for _, type_ in params])
    function = ir.Function(module, signature, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    add_anything = set[str].add
    for text in ('"no-builtins"', '"prefer-vector-width"="512"'):
        # llvmlite refuses attributes it has not heard of; `set.add` does not ask.
        add_anything(function.attributes, text)
    for argument, (label, _) in zip(function.args, params, strict=True):
        argument.name = label
    return function


def parameters(text: str) -> tuple[tuple[str, Type], ...]:
    """Names and types of what is written as in LLVM: ``"ptr a, i64 k, i1 add"``."""
    pairs = (each.split() for each in text.split(","))
    return tuple((name, _BY_NAME[type_]) for type_, name in pairs)


def leave_as_it_is(function: Function) -> None:
    """Have LLVM spend no time on a function that runs once for much work.

    Launching and taking trips then costs 2 and 11 ns more (Zen 4), and compiling a
    product a sixth less.
    """
    function.attributes.add("noinline")
    function.attributes.add("optnone")


def begin(
    module: Module, name: str, params: Sequence[tuple[str, Type]], result: Type = VOID
) -> tuple[Function, Builder | None]:
    """Get the function that `define` makes; if it is new, with a builder for it."""
    known = module.globals.get(name)
    if known is not None:
        return known, None
    function = define(module, name, result, params)
    return function, Builder(function.append_basic_block("entry"))


@record()
class Loop:
    """One ``counted_loop``; its body sets ``next``, its successor reads ``results``."""

    index: Value
    values: list[Value]
    next: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


@record()
class Branch:
    """An ``either``: values as a branch leaves them, and as they are behind it."""

    values: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


def _suffix(type_: Type) -> str:
    return f"v{type_.count}{type_.element.intrinsic_name}"


@lru_cache(maxsize=64)
def _blank(type_: Type) -> Value:
    return const(type_, ir.Undefined)


# --- instructions ------------------------------------------------------------


def _of_two(method: Callable[..., Instruction]) -> Callable[..., Instruction]:
    """An instruction that also takes a number as one of its last two operands."""

    def emit(self: Builder, *given: Any, **named: Any) -> Instruction:
        *how, left, right = given
        if isinstance(right, int):
            assert not isinstance(left, int)
            right = const(left.type, right)
        elif isinstance(left, int):
            left = const(right.type, left)
        return method(self, *how, left, right, **named)

    return emit


def as_word(value: Value | int) -> Value:
    """A number as an i64."""
    return const(I64, value) if isinstance(value, int) else value


class Builder(ir.IRBuilder):
    """llvmlite's, for which numbers are constants, with what is emitted often."""

    add = _of_two(ir.IRBuilder.add)
    sub = _of_two(ir.IRBuilder.sub)
    mul = _of_two(ir.IRBuilder.mul)
    udiv = _of_two(ir.IRBuilder.udiv)
    sdiv = _of_two(ir.IRBuilder.sdiv)
    urem = _of_two(ir.IRBuilder.urem)
    srem = _of_two(ir.IRBuilder.srem)
    shl = _of_two(ir.IRBuilder.shl)
    ashr = _of_two(ir.IRBuilder.ashr)
    lshr = _of_two(ir.IRBuilder.lshr)
    and_ = _of_two(ir.IRBuilder.and_)
    or_ = _of_two(ir.IRBuilder.or_)
    xor = _of_two(ir.IRBuilder.xor)
    select = _of_two(ir.IRBuilder.select)
    icmp_signed = _of_two(ir.IRBuilder.icmp_signed)
    icmp_unsigned = _of_two(ir.IRBuilder.icmp_unsigned)

    def ret(self, value: Value | int) -> Instruction:
        """Return a value."""
        return super().ret(as_word(value))

    def gep(
        self, ptr: Value, indices: Sequence[Value | int], *rest: Any, **named: Any
    ) -> Instruction:
        """The address of an element."""
        return super().gep(ptr, [*map(as_word, indices)], *rest, **named)

    def intrinsic(self, name: str, result: Type, arguments: Sequence[Value]) -> Value:
        """Call ``name`` (complete with its type suffix), declaring it at need."""
        types = [argument.type for argument in arguments]
        return self.call(declare(self.module, name, result, types), list(arguments))

    # --- memory ---

    def offset(self, pointer: Value, type_: Type, index: Value | int) -> Value:
        """``pointer`` moved on by ``index`` elements of ``type_``."""
        if isinstance(index, int) and index == 0:
            return pointer
        return self.gep(pointer, [index], source_etype=type_)

    def word_at(self, pointer: Value, index: Value | int) -> Value:
        """The address of the 64-bit word number ``index``."""
        return self.gep(pointer, [index], source_etype=I64)

    def prefetch(self, pointer: Value) -> None:
        """Ask for the line of ``pointer``, to be read soon; it may be anywhere."""
        self._prefetch(pointer, 3)

    def prefetch_to_l2(self, pointer: Value) -> None:
        """As `prefetch`, but it leaves the first cache alone."""
        self._prefetch(pointer, 2)

    def _prefetch(self, pointer: Value, locality: int) -> None:
        # read, how near it is kept (3: in all caches), data
        codes = [const(I32, code) for code in (0, locality, 1)]
        self.intrinsic("llvm.prefetch.p0", VOID, [pointer, *codes])

    def store_past_caches(self, value: Value, pointer: Value) -> None:
        """Store a vector whose place is a multiple of its size."""
        size = value.type.count * value.type.element.width // 8
        store = self.store(value, pointer, size)
        store.set_metadata("nontemporal", self.module.add_metadata([const(I32, 1)]))

    def constant_in_memory(self, type_: Type, value: float) -> Value:
        """All lanes ``value``, loaded, so that an instruction can read it there."""
        module, name = self.module, f"all.{type_.count}x{type_.element}.{value.hex()}"
        place = module.globals.get(name)
        if place is None:
            place = ir.GlobalVariable(module, type_, name)
            place.initializer, place.global_constant = const(type_, value), True
            place.align = _ALIGNED
            # Of a constant that a linker may not replace LLVM would fold the load.
            place.linkage = "weak hidden"
        found = self.load(place, align=_ALIGNED)
        found.set_metadata("invariant.load", module.add_metadata([]))
        return found

    def stack_array(self, type_: Type, count: int) -> Instruction:
        """Address of ``count`` elements on the stack; call it in the entry block."""
        array = self.alloca(type_, count)
        # llvmlite still gives it a typed pointer, and then refuses other stores.
        array.type = PTR
        return array

    def stack_words(self, count: int) -> Instruction:
        """Address of as many i64 in the frame of the function."""
        with self.goto_entry_block():
            room = self.alloca(ir.ArrayType(I64, count))
        room.type = PTR
        return room

    def masked_load(self, pointer: Value, type_: Type, mask: Value) -> Value:
        """Load the lanes of ``mask``; the others are 0 and their memory is not touched.

        Cheap on AVX-512 only: elsewhere LLVM makes a branch for each narrow lane.
        """
        name = f"llvm.masked.load.{_suffix(type_)}.p0"
        nothing = const(type_, 0)
        return self.intrinsic(name, type_, [pointer, mask, nothing])

    def masked_store(self, value: Value, pointer: Value, mask: Value) -> None:
        """Store the lanes of ``mask``."""
        name = f"llvm.masked.store.{_suffix(value.type)}.p0"
        self.intrinsic(name, VOID, [value, pointer, mask])

    # --- values ---

    def minimum(self, left: Value | int, right: Value | int) -> Value:
        """The smaller of two signed integers."""
        return self.select(self.icmp_signed("<", left, right), left, right)

    def maximum(self, left: Value | int, right: Value | int) -> Value:
        """The larger of two signed integers."""
        return self.select(self.icmp_signed(">", left, right), left, right)

    def shuffle(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        """Pick ``lanes`` out of the two vectors laid end to end."""
        picked = const(vector(I32, len(lanes)), list(lanes))
        return self.shuffle_vector(left, right, picked)

    def splat(self, value: Value, lanes: int) -> Value:
        """All lanes equal to the scalar ``value``."""
        if lanes == 1:
            return value
        blank = _blank(vector(value.type, lanes))
        first = self.insert_element(blank, value, const(I32, 0))
        return self.shuffle_vector(first, blank, const(vector(I32, lanes), 0))

    def lane_mask(self, count: Value, lanes: int) -> Value:
        """``<lanes x i1>``: the first ``count`` (i64; may be out of range) are true."""
        clipped = self.minimum(count, lanes)
        clipped = self.select(self.icmp_signed("<", clipped, 0), 0, clipped)
        wide = self.splat(self.trunc(clipped, I32), lanes)
        return self.icmp_signed("<", iota(lanes), wide)

    # --- control flow ---

    @contextmanager
    def counted_loop(
        self,
        stop: Value | int,
        *,
        start: Value | int = 0,
        step: int | Value = 1,
        carried: Sequence[Value] = (),
        name: str = "loop",
        is_hidden: bool = False,
    ) -> Generator[Loop]:
        """``for index in range(start, stop, step)``, the body being the ``with`` block.

        ``carried`` values are seen by the body as ``loop.values``; it puts what they
        become into ``loop.next``.  Behind it ``loop.results`` holds the final ones.
        The test stands at the bottom: without LLVM's IR passes nobody rotates loops.
        An index that ``is_hidden`` is as it is in the machine code, too: strength
        reduction would take a third of the time to compile, and spill the pointers that
        it makes.  Where few instructions are in a loop, it gains up to 8 %.
        """
        start = as_word(start)
        before = self.block
        body = self.append_basic_block(name)
        after = self.append_basic_block(name + ".end")
        self.cbranch(self.icmp_signed("<", start, stop), body, after)
        self.position_at_end(body)
        index = self._phi(start.type, start, before)
        phis = [self._phi(value.type, value, before) for value in carried]
        loop = Loop(index, list(phis))
        yield loop
        assert len(loop.next) == len(phis), (
            f"{name}: {len(loop.next)} of {len(phis)} set"
        )
        onward = self.add(index, step)
        onward = self.hidden(onward) if is_hidden else onward
        latch = self.block
        self.cbranch(self.icmp_signed("<", onward, stop), body, after)
        index.add_incoming(onward, latch)
        for phi, value in zip(phis, loop.next, strict=True):
            phi.add_incoming(value, latch)
        self.position_at_end(after)
        for initial, final in zip(carried, loop.next, strict=True):
            result = self._phi(initial.type, initial, before)
            result.add_incoming(final, latch)
            loop.results.append(result)

    def freeze(self, value: Value) -> Value:
        """The same value, any but undefined; llvmlite has no function for it."""
        found = Instruction(self.block, value.type, "freeze", [value])
        self._insert(found)
        return found

    def hidden(self, number: Value) -> Value:
        """The same number; LLVM does not know it before it selects instructions."""
        name = "llvm.launder.invariant.group.p0"
        pointer = self.intrinsic(name, PTR, [self.inttoptr(number, PTR)])
        return self.ptrtoint(pointer, number.type)

    @contextmanager
    def either(
        self, values: list[Value], condition: Value, name: str
    ) -> Generator[Branch]:
        """``values``; ``if condition``, what the ``with`` block puts in their place."""
        before = self.block
        some = self.append_basic_block(name)
        after = self.append_basic_block(name + ".end")
        self.cbranch(condition, some, after)
        self.position_at_end(some)
        branch = Branch()
        yield branch
        end = self.block
        self.branch(after)
        self.position_at_end(after)
        for old, new in zip(values, branch.values, strict=True):
            result = self._phi(old.type, old, before)
            result.add_incoming(new, end)
            branch.results.append(result)

    def _phi(self, type_: Type, value: Value, block: Block) -> ir.PhiInstr:
        phi = self.phi(type_)
        phi.add_incoming(value, block)
        return phi


_BITS = {
    **{"i8": I8, "u8": I8, "i16": I16, "f16": I16, "bf16": I16},
    **{"i32": I32, "f32": I32, "f64": I64},
}

_NARROW = {"f16": F16, "bf16": BF16}


def bits_of(dtype: str) -> Type:
    """The integer type an element travels as."""
    return _BITS[dtype]


def convert(builder: Builder, value: Value, source: str, target: str) -> Value:
    """Convert the bits of ``source`` elements to the bits of ``target`` elements.

    Bytes become wider integers or stay as they are.  Exact, but for f32 to f16 and f32
    or f16 to bf16: these round to nearest even (and bf16 takes a target with
    instructions for it, which flush subnormals).
    """
    if source == target or (source, target) == ("u8", "i8"):
        return value
    lanes = value.type.count if isinstance(value.type, ir.VectorType) else 1
    if source in ("i8", "u8"):
        extend = builder.zext if source == "u8" else builder.sext
        return extend(value, vector(bits_of(target), lanes))
    if source == "bf16":
        wide = builder.zext(value, vector(I32, lanes))
        shift = const(wide.type, 16)
        return builder.shl(wide, shift)
    if source == "f16":
        half = builder.bitcast(value, vector(F16, lanes))
        single = builder.fpext(half, vector(F32, lanes))
    else:
        single = builder.bitcast(value, vector(F32, lanes))
    if target in _NARROW:
        single = builder.fptrunc(single, vector(_NARROW[target], lanes))
    return builder.bitcast(single, vector(bits_of(target), lanes))
