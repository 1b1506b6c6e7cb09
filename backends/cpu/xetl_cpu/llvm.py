"""Types, constants and functions of LLVM, and `Builder`, which emits instructions.

Pointers are opaque; offsets are in elements of the given type. Elements are passed as
integers of their size (``<n x i16>``, ``<n x i32>``) up to `convert`, so that loads,
masks and shuffles do not depend on their meaning.
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
    """Return ``<lanes x element>``; for one lane the element itself."""
    return element if lanes == 1 else ir.VectorType(element, lanes)


def const(type_: Type, value: int | float | Sequence[int | float]) -> Value:
    """Return a constant; a plain number on a vector type fills all lanes."""
    if isinstance(value, int):
        return _integer(type_, value)
    if isinstance(value, Sequence):
        return ir.Constant(type_, value)
    return repeated(type_, value)


@lru_cache(maxsize=1024, typed=True)
def _integer(type_: Type, value: int) -> Value:
    """Return the same object each time, because it caches its printed text."""
    return repeated(type_, value)


@lru_cache(maxsize=64)
def iota(lanes: int, type_: Type = I32) -> Value:
    """Return the constant vector 0, 1, 2, ..."""
    return const(vector(type_, lanes), list(range(lanes)))


_ALIGNED = 32
"""Bytes of a register of AVX2."""


# --- functions ---------------------------------------------------------------


def define(
    module: Module, name: str, result: Type, params: Sequence[tuple[str, Type]]
) -> Function:
    """Define a new internal function with named arguments and no body yet.

    It must never become, or contain, a call to the C library: its object is loaded
    without a linker.
    """
    signature = ir.FunctionType(result, [type_ for _, type_ in params])
    function = ir.Function(module, signature, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    for text in ('"no-builtins"', '"prefer-vector-width"="512"'):
        _add_attribute(function, text)
    for argument, (label, _) in zip(function.args, params, strict=True):
        argument.name = label
    return function


def _add_attribute(function: Function, text: str) -> None:
    # llvmlite refuses unknown attributes; `set.add` does not check them.
    set[str].add(function.attributes, text)


def parameters(text: str) -> tuple[tuple[str, Type], ...]:
    """Return names and types of parameters, as in LLVM: ``"ptr a, i64 k, i1 add"``."""
    pairs = (each.split() for each in text.split(","))
    return tuple((name, _BY_NAME[type_]) for type_, name in pairs)


def leave_as_it_is(function: Function) -> None:
    """Make LLVM skip optimisations of a function that runs once for much work.

    Launching and taking trips then costs 2 and 11 ns more (Zen 4), and a product takes
    a sixth less time to compile.
    """
    function.attributes.add("noinline")
    function.attributes.add("optnone")


FINAL = '"xetl-final"'
"""An attribute of functions that LLVM's passes are not run on."""


def mark_final(function: Function) -> None:
    """Make LLVM's passes skip a function that has the form which they would make.

    The code generator then makes the same inner loops, in a tenth less time in all.
    """
    _add_attribute(function, FINAL)


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
    """One ``counted_loop``; its body sets ``next``, later code reads ``results``."""

    index: Value
    values: list[Value]
    next: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


def _suffix(type_: Type) -> str:
    return f"v{type_.count}{type_.element.intrinsic_name}"


@lru_cache(maxsize=64)
def _blank(type_: Type) -> Value:
    return const(type_, ir.Undefined)


# --- instructions ------------------------------------------------------------


def _of_two(
    method: Callable[..., Value], neutral: int | None = None
) -> Callable[..., Value]:
    """Let an instruction take a plain number as one of its last two operands.

    If the right one is ``neutral``, the result is the left one, without an instruction.
    """

    def emit(self: Builder, *given: Any, **named: Any) -> Value:
        *how, left, right = given
        if neutral is not None and getattr(right, "constant", right) == neutral:
            return left if isinstance(left, ir.Value) else const(right.type, left)
        if isinstance(right, int):
            assert not isinstance(left, int)
            right = const(left.type, right)
        elif isinstance(left, int):
            left = const(right.type, left)
        return method(self, *how, left, right, **named)

    return emit


def as_word(value: Value | int) -> Value:
    """Return a number as an i64 constant; return a value as it is."""
    return const(I64, value) if isinstance(value, int) else value


class Builder(ir.IRBuilder):
    """llvmlite's builder that takes plain numbers, with more instructions."""

    add = _of_two(ir.IRBuilder.add, 0)
    sub = _of_two(ir.IRBuilder.sub, 0)
    mul = _of_two(ir.IRBuilder.mul, 1)
    udiv = _of_two(ir.IRBuilder.udiv, 1)
    sdiv = _of_two(ir.IRBuilder.sdiv, 1)
    urem = _of_two(ir.IRBuilder.urem)
    srem = _of_two(ir.IRBuilder.srem)
    shl = _of_two(ir.IRBuilder.shl, 0)
    ashr = _of_two(ir.IRBuilder.ashr, 0)
    lshr = _of_two(ir.IRBuilder.lshr, 0)
    and_ = _of_two(ir.IRBuilder.and_, -1)
    or_ = _of_two(ir.IRBuilder.or_, 0)
    xor = _of_two(ir.IRBuilder.xor, 0)
    select = _of_two(ir.IRBuilder.select)
    icmp_signed = _of_two(ir.IRBuilder.icmp_signed)
    icmp_unsigned = _of_two(ir.IRBuilder.icmp_unsigned)

    def ret(self, value: Value | int) -> Instruction:
        """Return a value."""
        return super().ret(as_word(value))

    def gep(
        self, ptr: Value, indices: Sequence[Value | int], *rest: Any, **named: Any
    ) -> Value:
        """Return the address of an element."""
        if [getattr(each, "constant", each) for each in indices] == [0]:
            return ptr
        return super().gep(ptr, [*map(as_word, indices)], *rest, **named)

    def intrinsic(self, name: str, result: Type, arguments: Sequence[Value]) -> Value:
        """Call ``name`` (complete with its type suffix), declaring it at need."""
        types = [argument.type for argument in arguments]
        return self.call(declare(self.module, name, result, types), list(arguments))

    # --- memory ---

    def offset(self, pointer: Value, type_: Type, index: Value | int) -> Value:
        """Return ``pointer`` moved on by ``index`` elements of ``type_``."""
        return self.gep(pointer, [index], source_etype=type_)

    def word_at(self, pointer: Value, index: Value | int) -> Value:
        """Return the address of the 64-bit word number ``index``."""
        return self.gep(pointer, [index], source_etype=I64)

    def prefetch(self, pointer: Value) -> None:
        """Prefetch the line of ``pointer`` (any address) into all caches."""
        self._prefetch(pointer, 3)

    def prefetch_to_l2(self, pointer: Value) -> None:
        """Prefetch as `prefetch` does, but not into L1."""
        self._prefetch(pointer, 2)

    def prefetch_to_write(self, pointer: Value) -> None:
        """Prefetch the line of ``pointer`` (any address) into L1, for a store."""
        self._prefetch(pointer, 3, writes=1)

    def _prefetch(self, pointer: Value, locality: int, writes: int = 0) -> None:
        # Arguments: a read (0), the locality (3: all caches), data.
        codes = [const(I32, code) for code in (writes, locality, 1)]
        self.intrinsic("llvm.prefetch.p0", VOID, [pointer, *codes])

    def store_past_caches(self, value: Value, pointer: Value) -> None:
        """Store a vector, past the caches, at a multiple of its size."""
        size = value.type.count * value.type.element.width // 8
        store = self.store(value, pointer, size)
        store.set_metadata("nontemporal", self.module.add_metadata([const(I32, 1)]))

    def constant_in_memory(self, type_: Type, value: float) -> Value:
        """Load a constant vector from memory, so that it can be a memory operand."""
        module, name = self.module, f"all.{type_.count}x{type_.element}.{value.hex()}"
        place = module.globals.get(name)
        if place is None:
            place = ir.GlobalVariable(module, type_, name)
            place.initializer, place.global_constant = const(type_, value), True
            place.align = _ALIGNED
            # LLVM folds loads of constants, unless a linker may replace the constant.
            place.linkage = "weak hidden"
        found = self.load(place, align=_ALIGNED)
        found.set_metadata("invariant.load", module.add_metadata([]))
        return found

    def stack_array(self, type_: Type, count: int) -> Instruction:
        """Return the address of elements in the frame of the function."""
        with self.goto_entry_block():
            array = self.alloca(type_, count)
        # llvmlite still returns a typed pointer, and then refuses stores of other
        # types.
        array.type = PTR
        return array

    def stack_words(self, count: int) -> Instruction:
        """Return the address of ``count`` i64 in the frame of the function."""
        return self.stack_array(I64, count)

    def masked_load(self, pointer: Value, type_: Type, mask: Value) -> Value:
        """Load the lanes of ``mask``; others are 0, and their memory is not accessed.

        This is cheap only on AVX-512: elsewhere LLVM makes a branch for each narrow
        lane.
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
        """Return the smaller of two signed integers."""
        return self.select(self.icmp_signed("<", left, right), left, right)

    def maximum(self, left: Value | int, right: Value | int) -> Value:
        """Return the larger of two signed integers."""
        return self.select(self.icmp_signed(">", left, right), left, right)

    def shuffle(self, left: Value, right: Value, lanes: Sequence[int]) -> Value:
        """Select ``lanes`` of the two vectors laid end to end."""
        picked = const(vector(I32, len(lanes)), list(lanes))
        return self.shuffle_vector(left, right, picked)

    def splat(self, value: Value, lanes: int) -> Value:
        """Return a vector with the scalar ``value`` in all lanes."""
        if lanes == 1:
            return value
        blank = _blank(vector(value.type, lanes))
        first = self.insert_element(blank, value, const(I32, 0))
        return self.shuffle_vector(first, blank, const(vector(I32, lanes), 0))

    def lane_mask(self, count: Value, lanes: int) -> Value:
        """Return ``<lanes x i1>``: the first ``count`` (i64, any value) are true."""
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
        """Emit ``for index in range(start, stop, step)`` around the ``with`` block.

        The body reads ``carried`` values from ``loop.values`` and puts their next
        values into ``loop.next``.  Code behind the loop reads final values from
        ``loop.results``. The test is at the end of the body, because no LLVM pass
        rotates loops. An index that ``is_hidden`` stays as it is in the machine code:
        strength reduction would take a third of the compile time, and spill the
        pointers that it makes.  In loops of few instructions, hiding gains up to 8 %.
        """
        if start == 0 and stop == step and isinstance(step, int):
            loop = Loop(as_word(0), list(carried))  # one trip: no loop
            yield loop
            loop.results = loop.next
            return
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
        """Freeze a value (no longer undefined); llvmlite lacks this instruction."""
        found = Instruction(self.block, value.type, "freeze", [value])
        self._insert(found)
        return found

    def hidden(self, value: Value) -> Value:
        """Return the same number or pointer, unknown to LLVM until it selects code."""
        name = "llvm.launder.invariant.group.p0"
        if value.type == PTR:
            return self.intrinsic(name, PTR, [value])
        pointer = self.intrinsic(name, PTR, [self.inttoptr(value, PTR)])
        return self.ptrtoint(pointer, value.type)

    def one_of(
        self, condition: Value, ways: Sequence[Callable[[], list[Value]]], name: str
    ) -> list[Value]:
        """Return the values of the first way if ``condition``, else of the second."""
        blocks = [self.append_basic_block(each) for each in (name, f"{name}.else")]
        after = self.append_basic_block(f"{name}.end")
        self.cbranch(condition, *blocks)
        found: list[tuple[list[Value], Block]] = []
        for block, way in zip(blocks, ways, strict=True):
            self.position_at_end(block)
            found.append((way(), self.block))
            self.branch(after)
        self.position_at_end(after)
        (first, end), (second, other_end) = found
        results: list[Value] = []
        for one, other in zip(first, second, strict=True):
            result = self._phi(one.type, one, end)
            result.add_incoming(other, other_end)
            results.append(result)
        return results

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
    """Return the integer type that elements of a dtype are passed as."""
    return _BITS[dtype]


def convert(builder: Builder, value: Value, source: str, target: str) -> Value:
    """Convert the bits of ``source`` elements to the bits of ``target`` elements.

    Bytes become wider integers or stay as they are.  Conversions are exact, except f32
    to f16 and f32 or f16 to bf16: these round to nearest even (and bf16 needs a target
    with instructions for it, which flush subnormals).
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
