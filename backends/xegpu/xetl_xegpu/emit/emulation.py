"""Intel's builtins for devices that lack them: their definitions, beside the kernels.

They say in LLVM IR what the extensions say in words, so that every kernel runs on
opencl:cpu. Each stays a function, which drivers build fastest; rows are loops, products
are not. Products of 16-bit floats are exact in f32; sums run in f32, in the order of
k, or pairwise (`XETL_DPAS`): nobody says how hardware adds.

Operands of 16-bit integers go to functions as words of 32 bits: OpenCL's driver for
CPUs runs 16 lanes at once. What a function takes has the items of a lane side by side,
so each call puts 16 vectors together, item by item: of words half as many, and x86 is
better at them. A product of 64x64 takes half the time to build.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xetl.codegen.arith import round_to_bf16, round_to_tf32
from xetl.codegen.llvm import Builder, Module, Type, Value, ll
from xetl.codegen.types import F32, HALF, I8, I16, I32, I64
from xetl.settings import DpasSums
from xetl_xegpu.emit.builtin_body import Body, together
from xetl_xegpu.emit.builtins import Product, find_builtin, function
from xetl_xegpu.emit.emulated_blocks import define_block
from xetl_xegpu.simt import SUBGROUP_SIZE
from xetl_xegpu.simt.block_ops import PIECE


def define_builtins(
    module: Module, *, emulates_intel: bool, sums: DpasSums = "ordered", room: int = 0
) -> None:
    """Define what an `llvmlite.ir.Module` declares and no driver knows.

    Args:
        module: completed in place.
        emulates_intel: whether Intel's builtins are among them.
        sums: how products of matrices add up; see `xetl.settings`.
        room: words of the log, where messages that hardware refuses are told.
    """
    for declared in list(module.functions):
        builtin = None if declared.blocks else find_builtin(declared.name)
        if builtin is None or not (
            builtin.is_ours or builtin.reports or (emulates_intel and builtin.is_intel)
        ):
            continue
        # Drivers of processors build functions fastest; GPUs have no calls here.
        if emulates_intel:
            declared = behind(declared)
        declared.attributes.add("noinline" if emulates_intel else "alwaysinline")
        entry = declared.append_basic_block("entry")
        body = Body(ll.IRBuilder(entry), builtin, room)
        if builtin.block is not None:
            define_block(body)
        elif builtin.reports:
            _define_check(body)
        elif builtin.product is None:
            _define_conversion(body)
        elif builtin.is_ours:
            _define_lane_product(body)
        else:
            _define_product(body, sums)


def behind(function: ll.Function) -> ll.Function:
    """The function that does the work: another one if there is anything narrow.

    Args:
        function: declared; given a body that calls the other one, and is inlined.
    """
    types = [argument.type for argument in function.args]
    result = function.ftype.return_type
    # Sums stay as they come back.
    passed = [type_ if type_ == result else _as_words(type_) for type_ in types]
    if passed == types:
        return function
    signature = ll.FunctionType(result, passed)
    other = ll.Function(function.module, signature, f"xetl_words_{function.name}")
    other.calling_convention = function.calling_convention
    other.attributes.add("nounwind")
    function.attributes.add("alwaysinline")
    builder = ll.IRBuilder(function.append_basic_block("entry"))
    pairs = zip(function.args, passed)
    operands = [builder.bitcast(argument, type_) for argument, type_ in pairs]
    builder.ret(builder.call(other, operands, cconv="spir_func"))
    return other


def _as_words(type_: Type) -> Type:
    count = getattr(type_, "count", 1)
    if count % 2 or getattr(type_, "element", None) != I16:
        return type_
    return I32 if count == 2 else ll.VectorType(I32, count // 2)


def _define_check(body: Body) -> None:
    """Write what looks at the lanes of a subgroup, or at an address."""
    b, (*given, status, number) = body.builder, body.arguments
    if not given:
        lanes = body.call(function("get_sub_group_size", "uint"), [])
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


def _define_conversion(body: Body) -> None:
    """Write the conversion: to the bits of a bf16, or to a tf32."""
    (value,) = body.arguments
    is_tf32 = body.builtin.result == body.builtin.parameters[0]
    convert = round_to_tf32 if is_tf32 else round_to_bf16
    body.builder.ret(convert(body.builder, value))


def _define_lane_product(body: Body) -> None:
    """Write ``C + A @ B``; lane l has column l of each, and asks lane k for A[:, k]."""
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
    """A number as a lane has it; of 64 bits in halves."""
    b, type_ = body.builder, value.type
    if type_ == F32:
        return b.bitcast(body.broadcast(b.bitcast(value, I32), lane), type_)
    pair = ll.VectorType(I32, 2)
    halves = _items(b, b.bitcast(value, pair), 2)
    there = [body.broadcast(half, lane) for half in halves]
    return b.bitcast(together(b, there), type_)


_TF32 = 0xFFFFE000
"""What tf32 keeps of an f32."""
_HIGH = 0xFFFF0000
_SIGN, _EXPONENT = 0x80000000, 0x7F800000


def _define_product(body: Body, how: DpasSums) -> None:
    """Write the product."""
    assert body.builtin.product is not None
    is_pairwise = how == "pairwise" and body.builtin.product.acc != "i32"
    numbers = _Numbers(body, body.builtin.product, flushes=is_pairwise)
    b, product = body.builder, numbers.product
    sums = [numbers.start(m) for m in range(product.rows)]
    if is_pairwise:
        b.ret(numbers.result([_pairwise(numbers, m, s) for m, s in enumerate(sums)]))
        return
    for k in range(product.depth):
        right = numbers.right(k)
        for m, total in enumerate(sums):
            left = numbers.left(m, k)
            if product.acc == "i32":
                sums[m] = b.add(total, b.mul(left, right))
            else:
                sums[m] = b.fadd(total, b.fmul(left, right))
    b.ret(numbers.result(sums))


def _pairwise(numbers: _Numbers, row: int, start: Value) -> Value:
    """Neighbours added until one is left, to which C is added."""
    b, depth = numbers.body.builder, range(numbers.product.depth)
    terms = [b.fmul(numbers.left(row, k), numbers.right(k)) for k in depth]
    while len(terms) > 1:
        terms = [b.fadd(*pair) for pair in zip(terms[::2], terms[1::2])]
    return b.fadd(terms[0], start)


@dataclass
class _Numbers:
    """The operands of a product as numbers to compute with.

    Attributes:
        body: of the function.
        product: what it computes.
        flushes: whether subnormals of bf16 and tf32 count as zeros.
        asked: what other lanes were asked for.
    """

    body: Body
    product: Product
    flushes: bool = False
    asked: dict[tuple[int, int], Value] = field(
        default_factory=dict[tuple[int, int], Value]
    )

    def left(self, m: int, k: int) -> Value:
        """A[m, k]; see `xetl_xegpu.simt.DpasOp` for the lane that holds it."""
        if self.product.a == "tf32":
            item, lane, shift = m // 2, m % 2 * 8 + k, 0
            return self._number(self._asked(item, lane), shift, "tf32")
        pairs = 16 // self.product.bits
        lane, part = divmod(k, pairs)
        shift = m % 2 * 16 + part * self.product.bits
        return self._number(self._asked(m // 2, lane), shift, self.product.a)

    def _asked(self, dword: int, lane: int) -> Value:
        """A dword of A as a lane has it, asked for once."""
        if (dword, lane) not in self.asked:
            mine = _dword(self.body.builder, self.body.arguments[0], dword)
            self.asked[dword, lane] = self.body.broadcast(mine, lane)
        return self.asked[dword, lane]

    def right(self, k: int) -> Value:
        """B[k] of this lane's column."""
        dword, part = divmod(k, 32 // self.product.bits)
        mine = _dword(self.body.builder, self.body.arguments[1], dword)
        return self._number(mine, part * self.product.bits, self.product.b)

    def _number(self, dword: Value, shift: int, type_: str) -> Value:
        """The bits of a dword from ``shift`` on, as f32 or i32."""
        b = self.body.builder
        if type_ == "tf32":
            return self._float(b.and_(dword, I32(_TF32)))
        if type_ == "bf16":
            high = b.and_(dword, I32(_HIGH)) if shift else b.shl(dword, I32(16))
            return self._float(high)
        low = b.lshr(dword, I32(shift)) if shift else dword
        if type_ == "f16":
            return b.fpext(b.bitcast(b.trunc(low, I16), HALF), F32)
        if type_ in ("e4m3", "e5m2"):
            return self._of_code(low, type_)
        extend = b.sext if type_ == "i8" else b.zext
        return extend(b.trunc(low, I8), I32)

    def _of_code(self, code: Value, type_: str) -> Value:
        """A float of eight bits: what its bits are as an f16, with another exponent."""
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
        """The bits as f32."""
        b = self.body.builder
        if self.flushes:
            is_zero = b.icmp_unsigned("==", b.and_(bits, I32(_EXPONENT)), I32(0))
            bits = b.select(is_zero, b.and_(bits, I32(_SIGN)), bits)
        return b.bitcast(bits, F32)

    def start(self, m: int) -> Value:
        """C[m], to add to."""
        b, c = self.body.builder, self.body.arguments[2]
        value = c if self.product.rows == 1 else b.extract_element(c, I32(m))
        if self.product.acc == "bf16":
            return b.bitcast(b.shl(b.zext(value, I32), I32(16)), F32)
        return b.fpext(value, F32) if self.product.acc == "f16" else value

    def result(self, sums: list[Value]) -> Value:
        """The sums, rounded once, as the function gives them."""
        b = self.body.builder
        if self.product.acc == "f16":
            sums = [b.fptrunc(total, HALF) for total in sums]
        elif self.product.acc == "bf16":
            sums = [round_to_bf16(b, total) for total in sums]
        return together(b, sums)


def _dword(b: Builder, items: Value, number: int) -> Value:
    """32 bits of an operand: of a vector or a number, of 16 or 32 bits an item."""
    count = getattr(items.type, "count", 1)
    element = getattr(items.type, "element", items.type)
    if element == I16 and count == 1:
        return b.zext(items, I32)
    dwords = count // 2 if element == I16 else count
    if dwords == 1:
        return items if items.type == I32 else b.bitcast(items, I32)
    if element != I32:
        items = b.bitcast(items, ll.VectorType(I32, dwords))
    return b.extract_element(items, I32(number))
