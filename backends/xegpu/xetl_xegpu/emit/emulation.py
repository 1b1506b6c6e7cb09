"""Definitions of Intel's builtins for devices that lack them.

They implement in LLVM IR what the extensions specify, so that every kernel runs on
opencl:cpu. Each builtin stays a function, and loops run over rows and steps of k,
because drivers build such modules fastest. Products of 16-bit floats are exact in f32.
Sums are computed in f32, in the order of k or pairwise (`XETL_DPAS`), because the order
in which hardware adds is not documented.

Operands of 16-bit integers are passed to functions as words of 32 bits. OpenCL's driver
for CPUs runs 16 lanes at once, and a parameter holds the items of a lane side by side.
So each call assembles 16 vectors item by item; words are half as many items, and x86
handles them better. A product of 64x64 takes half the time to build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xetl.codegen.arith import round_to_bf16, round_to_tf32
from xetl.codegen.types import (
    F32,
    HALF,
    I8,
    I16,
    I32,
    I64,
    Builder,
    Module,
    Type,
    Value,
    element_of,
    ll,
)
from xetl.settings import DpasSums
from xetl_xegpu.emit.builtins import Product, find_builtin
from xetl_xegpu.emit.emitter import ask, new_function, together
from xetl_xegpu.emit.emulated_blocks import Body, define_block
from xetl_xegpu.simt import SUBGROUP_SIZE
from xetl_xegpu.simt.block_ops import PIECE


def define_builtins(
    module: Module, *, emulates_intel: bool, sums: DpasSums = "ordered", room: int = 0
) -> None:
    """Define, in place, the functions that a module declares and no driver has.

    Args:
        emulates_intel: whether Intel's builtins must be defined, too.
        sums: the order in which products of matrices are added; see `xetl.settings`.
        room: capacity in words of the log, which gets the messages that hardware would
            refuse.
    """
    for declared in list(module.functions):
        builtin = None if declared.blocks else find_builtin(declared.name)
        if builtin is None:
            continue
        is_missing = emulates_intel and builtin.is_intel
        if not (builtin.is_ours or builtin.reports or is_missing):
            continue
        # Drivers for CPUs build functions fastest; on GPUs all is inlined.
        if emulates_intel:
            declared = with_word_operands(declared)
        declared.attributes.add("noinline" if emulates_intel else "alwaysinline")
        entry = declared.append_basic_block("entry")
        body = Body(ll.IRBuilder(entry), builtin, room)
        if builtin.block is not None:
            define_block(body)
        elif builtin.reports:
            _define_check(body)
        elif builtin.product is None:  # to the bits of a bf16, or to a tf32
            is_tf32 = builtin.result == builtin.parameters[0]
            convert = round_to_tf32 if is_tf32 else round_to_bf16
            body.builder.ret(convert(body.builder, *body.arguments))
        elif builtin.is_ours:
            _define_lane_product(body)
        else:
            _define_product(body, sums)


def with_word_operands(function: ll.Function) -> ll.Function:
    """Return the function to define, which takes vectors of 16-bit integers as words.

    If there are such parameters, it is a new function, and the given one gets a body
    that calls it.
    """
    types = [argument.type for argument in function.args]
    result = function.ftype.return_type
    # Sums keep the type of the result.
    passed = [type_ if type_ == result else _as_words(type_) for type_ in types]
    if passed == types:
        return function
    signature = ll.FunctionType(result, passed)
    other = new_function(function.module, f"xetl_words_{function.name}", signature)
    function.attributes.add("alwaysinline")
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    pairs = zip(function.args, passed)
    operands = [builder.bitcast(argument, type_) for argument, type_ in pairs]
    builder.ret(builder.call(other, operands, cconv="spir_func"))
    return other


def _as_words(type_: Type) -> Type:
    count = getattr(type_, "count", 1)
    if count % 2 or element_of(type_) != I16:
        return type_
    return I32 if count == 2 else ll.VectorType(I32, count // 2)


def _define_check(body: Body) -> None:
    """Write a function that checks the lanes of a subgroup, or an address."""
    b, (*given, status, number) = body.builder, body.arguments
    if not given:
        lanes = ask(b, "get_sub_group_size")
        with b.if_then(b.icmp_unsigned("!=", lanes, I32(SUBGROUP_SIZE))):
            body.report(status, number, [b.zext(lanes, I64)])
        b.ret_void()
        return
    address, last = given
    size = int(body.builtin.name.split("_")[2])
    is_odd = b.icmp_unsigned("!=", b.and_(address, I64(size - 1)), I64(0))
    is_wrong = b.or_(is_odd, b.icmp_unsigned(">", address, last))
    with b.if_then(is_wrong):
        body.report(status, number, [address])
    b.ret(b.select(is_wrong, I64(0), address))


def _define_lane_product(body: Body) -> None:
    """Write ``C + A @ B``: lane l holds column l of each, and lane k sends A[:, k]."""
    product = body.builtin.product
    assert product is not None
    b, (a, upper, lower, c) = body.builder, body.arguments
    left, sums = _items(b, a, product.rows), _items(b, c, product.rows)
    right = [*_items(b, upper, PIECE), *_items(b, lower, PIECE)]
    for k, factor in enumerate(right):
        for m, mine in enumerate(left):
            theirs = _broadcast(body, mine, k)
            sums[m] = b.fadd(sums[m], b.fmul(theirs, factor))
    b.ret(together(b, sums))


def _items(b: Builder, value: Value, count: int) -> list[Value]:
    if count == 1:
        return [value]
    return [b.extract_element(value, I32(i)) for i in range(count)]


def _broadcast(body: Body, value: Value, lane: int) -> Value:
    """Broadcast a number from one lane; a number of 64 bits in two halves."""
    b, type_ = body.builder, value.type
    if type_ == F32:
        return b.bitcast(body.broadcast(b.bitcast(value, I32), I32(lane)), type_)
    pair = ll.VectorType(I32, 2)
    halves = _items(b, b.bitcast(value, pair), 2)
    received = [body.broadcast(half, I32(lane)) for half in halves]
    return b.bitcast(together(b, received), type_)


_TF32 = 0xFFFFE000
"""The bits of an f32 that tf32 keeps."""
_SIGN, _EXPONENT = 0x80000000, 0x7F800000


def _define_product(body: Body, how: DpasSums) -> None:
    """Write the product as a loop over the lanes that hold a row of A."""
    product = body.builtin.product
    assert product is not None
    is_pairwise = how == "pairwise" and product.acc != "i32"
    numbers = _Numbers(body, product, flushes=is_pairwise)
    b, start = body.builder, [numbers.start(m) for m in range(product.rows)]
    times, plus = (b.mul, b.add) if product.acc == "i32" else (b.fmul, b.fadd)
    size = product.depth if is_pairwise else 1
    sums = [_Private.of(b, [first] * size) for first in start]
    with body.loop(product.lanes, is_unrolled=False) as lane:
        for part in range(product.depth // product.lanes):
            place = b.add(lane, I32(part * product.lanes)) if is_pairwise else I32(0)
            right = numbers.right(lane, part)
            for m, total in enumerate(sums):
                term = times(numbers.left(m, lane, part), right)
                total.put(place, term if is_pairwise else plus(total.get(place), term))
    found = [[total.get(I32(k)) for k in range(size)] for total in sums]
    if is_pairwise:
        found = [[_pairwise(b, terms, first)] for terms, first in zip(found, start)]
    b.ret(numbers.result([total for (total,) in found]))


def _pairwise(b: Builder, terms: list[Value], start: Value) -> Value:
    """Add neighbours until one term is left, and add it to C."""
    while len(terms) > 1:
        terms = [b.fadd(*pair) for pair in zip(terms[::2], terms[1::2])]
    return b.fadd(terms[0], start)


@dataclass(frozen=True)
class _Private:
    """An array in the private memory of a lane."""

    b: Builder
    array: Value

    @classmethod
    def of(cls, b: Builder, values: Sequence[Value]) -> _Private:
        """Return a new array that holds the values."""
        made = cls(b, b.alloca(ll.ArrayType(values[0].type, len(values))))
        for place, value in enumerate(values):
            made.put(I32(place), value)
        return made

    def get(self, place: Value) -> Value:
        """Load the value at an index."""
        return self.b.load(self.b.gep(self.array, [I32(0), place]))

    def put(self, place: Value, value: Value) -> None:
        """Store a value at an index."""
        self.b.store(value, self.b.gep(self.array, [I32(0), place]))


class _Numbers:
    """The operands of a product, decoded to f32 or i32.

    Attributes:
        flushes: whether subnormals of bf16 and tf32 count as zeros.
    """

    def __init__(self, body: Body, product: Product, *, flushes: bool) -> None:
        self.body, self.product, self.flushes = body, product, flushes
        b, (a, right, _) = body.builder, body.arguments
        self._a = [_dword(b, a, i) for i in range((product.rows + 1) // 2)]
        words = product.depth * product.bits // 32
        self._b = _Private.of(b, [_dword(b, right, i) for i in range(words)])

    def left(self, m: int, lane: Value, part: int) -> Value:
        """Return an element of row m of A from a lane; see `xetl_xegpu.simt.DpasOp`.

        A lane holds one or two elements of a row; ``part`` is 0 or 1.
        """
        b, odd = self.body.builder, m % 2
        if self.product.a == "tf32":
            lane, shift = b.add(lane, I32(odd * self.product.lanes)), I32(0)
        else:
            shift = I32(odd * 16 + part * self.product.bits)
        return self._number(
            self.body.broadcast(self._a[m // 2], lane), shift, self.product.a
        )

    def right(self, lane: Value, part: int) -> Value:
        """Return the element of B, in this lane's column, to multiply `left` by."""
        b = self.body.builder
        if self.product.b == "tf32":
            return self._number(self._b.get(lane), I32(0), "tf32")
        half = b.mul(b.and_(lane, I32(1)), I32(16))
        shift = b.add(half, I32(part * self.product.bits))
        return self._number(self._b.get(b.lshr(lane, I32(1))), shift, self.product.b)

    def _number(self, dword: Value, shift: Value, type_: str) -> Value:
        """Decode the bits of a dword from ``shift`` on, to f32 or i32."""
        b = self.body.builder
        low = b.lshr(dword, shift)
        if type_ == "tf32":
            return self._float(b.and_(low, I32(_TF32)))
        if type_ == "bf16":
            return self._float(b.shl(low, I32(16)))
        if type_ == "f16":
            return b.fpext(b.bitcast(b.trunc(low, I16), HALF), F32)
        if type_ in ("e4m3", "e5m2"):
            return self._of_code(low, type_)
        extend = b.sext if type_ == "i8" else b.zext
        return extend(b.trunc(low, I8), I32)

    def _of_code(self, code: Value, type_: str) -> Value:
        """Decode an 8-bit float: read its bits as an f16, and correct the exponent."""
        b = self.body.builder
        sign = b.shl(b.and_(code, I32(0x80)), I32(8))
        magnitude = b.and_(code, I32(0x7F))
        half = b.or_(sign, b.shl(magnitude, I32(8 if type_ == "e5m2" else 7)))
        value = b.fpext(b.bitcast(b.trunc(half, I16), HALF), F32)
        if type_ == "e5m2":
            return value
        is_nan = b.icmp_unsigned("==", magnitude, I32(0x7F))
        return b.select(is_nan, F32(float("nan")), b.fmul(value, F32(256.0)))

    def _float(self, bits: Value) -> Value:
        """Return the bits as f32, with subnormals flushed to zero if ``flushes``."""
        b = self.body.builder
        if self.flushes:
            is_zero = b.icmp_unsigned("==", b.and_(bits, I32(_EXPONENT)), I32(0))
            bits = b.select(is_zero, b.and_(bits, I32(_SIGN)), bits)
        return b.bitcast(bits, F32)

    def start(self, m: int) -> Value:
        """Return C[m], the start of a sum."""
        b, c = self.body.builder, self.body.arguments[2]
        value = c if self.product.rows == 1 else b.extract_element(c, I32(m))
        if self.product.acc == "bf16":
            return b.bitcast(b.shl(b.zext(value, I32), I32(16)), F32)
        return b.fpext(value, F32) if self.product.acc == "f16" else value

    def result(self, sums: list[Value]) -> Value:
        """Return the sums, rounded once to the type of the result."""
        b = self.body.builder
        if self.product.acc == "f16":
            sums = [b.fptrunc(total, HALF) for total in sums]
        elif self.product.acc == "bf16":
            sums = [round_to_bf16(b, total) for total in sums]
        return together(b, sums)


def _dword(b: Builder, items: Value, number: int) -> Value:
    """Return 32 bits of an operand, a vector or scalar with items of 16 or 32 bits."""
    count, element = getattr(items.type, "count", 1), element_of(items.type)
    if element == I16 and count == 1:
        return b.zext(items, I32)
    dwords = count // 2 if element == I16 else count
    if dwords == 1:
        return items if items.type == I32 else b.bitcast(items, I32)
    if element != I32:
        items = b.bitcast(items, ll.VectorType(I32, dwords))
    return b.extract_element(items, I32(number))
