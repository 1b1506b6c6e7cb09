"""Helpers over ``llvmlite.ir``.

Every helper takes the ``IRBuilder`` first and emits at its position.  Pointers are
opaque; offsets are in elements of the type that is named.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache

from xetl.codegen.llvm import BF16, Block, Builder, Function, Module, Type, Value
from xetl.codegen.llvm import ll as ir
from xetl.records import record

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
_BY_NAME = _INTEGERS | _FLOATS


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
    if isinstance(type_, ir.VectorType) and isinstance(value, float):
        value = [value] * type_.count
    return ir.Constant(type_, value)


@lru_cache(maxsize=1024, typed=True)
def _integer(type_: Type, value: int) -> Value:
    """The same object each time: it keeps the text that it was printed as."""
    is_vector = isinstance(type_, ir.VectorType)
    return ir.Constant(type_, [value] * type_.count if is_vector else value)


@lru_cache(maxsize=64)
def iota(lanes: int, type_: Type = I32) -> Value:
    """The constant vector 0, 1, 2, ..."""
    return const(vector(type_, lanes), list(range(lanes)))


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


def leave_as_it_is(function: Function) -> None:
    """Have LLVM spend no time on a function that runs once for much work.

    Launching and taking trips then costs 2 and 11 ns more (Zen 4), and compiling a
    product a sixth less.
    """
    function.attributes.add("noinline")
    function.attributes.add("optnone")


def declare(module: Module, name: str, result: Type, params: Sequence[Type]) -> Value:
    """Get or create the declaration of an intrinsic."""
    known = module.globals.get(name)
    if known is not None:
        return known
    return ir.Function(module, ir.FunctionType(result, list(params)), name)


def call_intrinsic(
    builder: Builder, name: str, result: Type, arguments: Sequence[Value]
) -> Value:
    """Call ``name`` (complete with its type suffix), declaring it at need."""
    types = [argument.type for argument in arguments]
    return builder.call(declare(builder.module, name, result, types), list(arguments))


# --- memory ------------------------------------------------------------------


def offset(builder: Builder, pointer: Value, type_: Type, index: Value | int) -> Value:
    """``pointer`` moved on by ``index`` elements of ``type_``."""
    if isinstance(index, int):
        if index == 0:
            return pointer
        index = const(I64, index)
    return builder.gep(pointer, [index], source_etype=type_)


def prefetch(builder: Builder, pointer: Value) -> None:
    """Ask for the line of ``pointer``, to be read soon; it may be anywhere."""
    _prefetch(builder, pointer, 3)


def prefetch_to_l2(builder: Builder, pointer: Value) -> None:
    """As `prefetch`, but it leaves the first cache alone."""
    _prefetch(builder, pointer, 2)


def _prefetch(builder: Builder, pointer: Value, locality: int) -> None:
    # read, how near it is kept (3: in all caches), data
    codes = [const(I32, code) for code in (0, locality, 1)]
    call_intrinsic(builder, "llvm.prefetch.p0", VOID, [pointer, *codes])


def load(builder: Builder, pointer: Value, type_: Type, align: int) -> Value:
    """Load a ``type_``; ``align`` in bytes."""
    return builder.load(pointer, align=align, typ=type_)


def store(builder: Builder, value: Value, pointer: Value, align: int) -> None:
    """Store; ``align`` in bytes."""
    builder.store(value, pointer, align=align)


def stack_array(builder: Builder, type_: Type, count: int) -> ir.Instruction:
    """Address of ``count`` elements on the stack; call it in the entry block."""
    array = builder.alloca(type_, count)
    # llvmlite still gives it a typed pointer, and then refuses other stores.
    array.type = PTR
    return array


def masked_load(builder: Builder, pointer: Value, type_: Type, mask: Value) -> Value:
    """Load the lanes of ``mask``; the others are 0 and their memory is not touched.

    Cheap on AVX-512 only: elsewhere LLVM makes a branch for each narrow lane.
    """
    name = f"llvm.masked.load.{_suffix(type_)}.p0"
    nothing = const(type_, 0)
    return call_intrinsic(builder, name, type_, [pointer, mask, nothing])


def masked_store(builder: Builder, value: Value, pointer: Value, mask: Value) -> None:
    """Store the lanes of ``mask``."""
    name = f"llvm.masked.store.{_suffix(value.type)}.p0"
    call_intrinsic(builder, name, VOID, [value, pointer, mask])


def _suffix(type_: Type) -> str:
    return f"v{type_.count}{type_.element.intrinsic_name}"


# --- values ------------------------------------------------------------------


def minimum(builder: Builder, left: Value, right: Value) -> Value:
    """The smaller of two signed integers."""
    return builder.select(builder.icmp_signed("<", left, right), left, right)


def maximum(builder: Builder, left: Value, right: Value) -> Value:
    """The larger of two signed integers."""
    return builder.select(builder.icmp_signed(">", left, right), left, right)


def shuffle(builder: Builder, left: Value, right: Value, lanes: Sequence[int]) -> Value:
    """Pick ``lanes`` out of the two vectors laid end to end."""
    picked = const(vector(I32, len(lanes)), list(lanes))
    return builder.shuffle_vector(left, right, picked)


def splat(builder: Builder, value: Value, lanes: int) -> Value:
    """All lanes equal to the scalar ``value``."""
    if lanes == 1:
        return value
    blank = _blank(vector(value.type, lanes))
    first = builder.insert_element(blank, value, const(I32, 0))
    return builder.shuffle_vector(first, blank, const(vector(I32, lanes), 0))


@lru_cache(maxsize=64)
def _blank(type_: Type) -> Value:
    return const(type_, ir.Undefined)


def lane_mask(builder: Builder, count: Value, lanes: int) -> Value:
    """``<lanes x i1>``: the first ``count`` (i64; may be out of range) are true."""
    top = const(I64, lanes)
    zero = const(I64, 0)
    clipped = minimum(builder, count, top)
    clipped = builder.select(builder.icmp_signed("<", clipped, zero), zero, clipped)
    wide = splat(builder, builder.trunc(clipped, I32), lanes)
    return builder.icmp_signed("<", iota(lanes), wide)


# --- control flow --------------------------------------------------------------


@record()
class Loop:
    """One ``counted_loop``; its body sets ``next``, its successor reads ``results``."""

    index: Value
    values: list[Value]
    next: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


@contextmanager
def counted_loop(
    builder: Builder,
    stop: Value,
    *,
    start: Value | None = None,
    step: int | Value = 1,
    carried: Sequence[Value] = (),
    name: str = "loop",
    is_hidden: bool = False,
) -> Generator[Loop]:
    """``for index in range(start, stop, step)``, the body being the ``with`` block.

    ``carried`` values are seen by the body as ``loop.values``; it puts what they become
    into ``loop.next``.  After the block ``loop.results`` holds the final ones.
    The test stands at the bottom: without LLVM's IR passes nobody rotates loops.  An
    index that ``is_hidden`` is as it is in the machine code, too: strength reduction
    would take a third of the time to compile, and spill the pointers that it makes.
    Where few instructions are in a loop, it gains up to 8 %.
    """
    start = const(I64, 0) if start is None else start
    before = builder.block
    body = builder.append_basic_block(name)
    after = builder.append_basic_block(name + ".end")
    builder.cbranch(builder.icmp_signed("<", start, stop), body, after)
    builder.position_at_end(body)
    index = _phi(builder, start.type, start, before)
    phis = [_phi(builder, value.type, value, before) for value in carried]
    loop = Loop(index, list(phis))
    yield loop
    assert len(loop.next) == len(phis), f"{name}: {len(loop.next)} of {len(phis)} set"
    by = const(start.type, step) if isinstance(step, int) else step
    onward = builder.add(index, by)
    onward = _hidden(builder, onward) if is_hidden else onward
    latch = builder.block
    builder.cbranch(builder.icmp_signed("<", onward, stop), body, after)
    index.add_incoming(onward, latch)
    for phi, value in zip(phis, loop.next, strict=True):
        phi.add_incoming(value, latch)
    builder.position_at_end(after)
    for initial, final in zip(carried, loop.next, strict=True):
        result = _phi(builder, initial.type, initial, before)
        result.add_incoming(final, latch)
        loop.results.append(result)


def _hidden(builder: Builder, number: Value) -> Value:
    """The same number; LLVM does not know it before it selects instructions."""
    name = "llvm.launder.invariant.group.p0"
    pointer = call_intrinsic(builder, name, PTR, [builder.inttoptr(number, PTR)])
    return builder.ptrtoint(pointer, number.type)


@record()
class Branch:
    """An ``either``: values as a branch leaves them, and as they are behind it."""

    values: list[Value] = field(default_factory=list[Value])
    results: list[Value] = field(default_factory=list[Value])


@contextmanager
def either(
    builder: Builder, values: list[Value], condition: Value, name: str
) -> Generator[Branch]:
    """``values``, or what the ``with`` block puts in their place ``if condition``."""
    before = builder.block
    some = builder.append_basic_block(name)
    after = builder.append_basic_block(name + ".end")
    builder.cbranch(condition, some, after)
    builder.position_at_end(some)
    branch = Branch()
    yield branch
    end = builder.block
    builder.branch(after)
    builder.position_at_end(after)
    for old, new in zip(values, branch.values, strict=True):
        result = _phi(builder, old.type, old, before)
        result.add_incoming(new, end)
        branch.results.append(result)


def _phi(builder: Builder, type_: Type, value: Value, block: Block) -> ir.PhiInstr:
    phi = builder.phi(type_)
    phi.add_incoming(value, block)
    return phi
