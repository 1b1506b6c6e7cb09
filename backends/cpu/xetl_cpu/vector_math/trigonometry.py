"""sin, cos and tan: angles are reduced to a quarter turn in f64, also for f32.

Up to 2**30 the reduction subtracts multiples of pi / 2 in three parts with FMAs (each
but the last is exact). Beyond that, lanes go one by one through `emit_reduce_huge`,
which reduces exactly, with integers: Payne and Hanek's method.

x = m * 2**e with a 53-bit integer m, and x * 2 / pi is needed modulo 4.  Only 192 bits
of 2 / pi matter: higher bits give multiples of 4, lower bits change nothing.  They are
read from a table at a byte address, so the product with m, modulo 2**192, has the
quadrant in its two top bits and the rest of the turn in the others.
"""

from math import inf
from typing import Any

from xetl_cpu.llvm import (
    F64,
    I8,
    I64,
    PTR,
    Builder,
    Function,
    Module,
    Value,
    begin,
    const,
    ir,
    vector,
)
from xetl_cpu.vector_math.coefficients import COS, HALF_PI_PARTS, SIN, TWO_OVER_PI
from xetl_cpu.vector_math.lanes import FORMATS, Lanes

__all__ = ["any_lane", "cos", "merge", "sin", "tan"]

_HUGE = 2.0**30


def sin(lanes: Lanes, x: Value) -> Value:
    """Compute the sine within 3 ulp for every finite x; NaN for infinities."""
    return _sine(lanes, x, 0)


def cos(lanes: Lanes, x: Value) -> Value:
    """Compute the cosine within 3 ulp for every finite x; NaN for infinities."""
    return _sine(lanes, x, 1)


def tan(lanes: Lanes, x: Value) -> Value:
    """Compute the tangent within 5 ulp for every finite x; NaN for infinities."""
    quadrant, sine, cosine = _near_zero(lanes, x)
    is_odd = _is_odd(lanes, quadrant)
    above = lanes.select(is_odd, lanes.mul(cosine, -1.0), sine)
    return lanes.div(above, lanes.select(is_odd, sine, cosine))


def _sine(lanes: Lanes, x: Value, ahead: int) -> Value:
    """Compute the sine of x plus ``ahead`` quarter turns."""
    builder = lanes.builder
    quadrant, sine, cosine = _near_zero(lanes, x)
    quadrant = builder.add(quadrant, lanes.integer(ahead))
    value = lanes.bits(lanes.select(_is_odd(lanes, quadrant), cosine, sine))
    turned = builder.shl(
        builder.lshr(quadrant, lanes.integer(1)), lanes.integer(lanes.format.bits - 1)
    )
    return lanes.from_bits(builder.xor(value, turned))


def _is_odd(lanes: Lanes, quadrant: Value) -> Value:
    low = lanes.builder.and_(quadrant, lanes.integer(1))
    return lanes.builder.icmp_signed("!=", low, lanes.integer(0))


def _near_zero(lanes: Lanes, x: Value) -> tuple[Value, Value, Value]:
    """Return the quadrant of x, and sine and cosine of the rest."""
    quadrant, r = _reduce(lanes, x)
    z = lanes.mul(r, r)
    name = lanes.format.name
    tail = lanes.mul(lanes.polynomial(z, SIN[name]), z)
    # The sign of -0 would be lost in the sum.
    sine = lanes.copysign(lanes.fma(tail, r, r), r)
    tail = lanes.fma(lanes.polynomial(z, COS[name]), z, -0.5)
    return quadrant, sine, lanes.fma(tail, z, 1.0)


def _reduce(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """Return (quadrant, r): x is r, |r| <= pi / 4, plus quadrants modulo 4."""
    if lanes.format.bits == 64:
        return _reduce_f64(lanes, x)
    builder = lanes.builder
    wide = Lanes(builder, lanes.target, FORMATS["f64"], lanes.count)
    quadrant, r = _reduce_f64(wide, builder.fpext(x, wide.type))
    return builder.trunc(quadrant, lanes.int_type), builder.fptrunc(r, lanes.type)


def _reduce_f64(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    builder = lanes.builder
    shifted = lanes.fma(x, TWO_OVER_PI, lanes.format.magic)
    n = lanes.sub(shifted, lanes.format.magic)
    r = x
    for part in HALF_PI_PARTS:
        r = lanes.fma(n, -part, r)
    # The parts have different signs, so -0 would become 0.
    r = lanes.select(lanes.compare("==", n, 0.0), x, r)
    # Infinities are not reduced: r is NaN already.
    size = lanes.absolute(x)
    is_huge = builder.and_(
        lanes.compare(">", size, _HUGE), lanes.compare("<", size, inf)
    )
    quadrant = lanes.bits(shifted)
    before = builder.block
    with builder.if_then(any_lane(lanes, is_huge), likely=False):
        both = builder.call(emit_reduce_huge(builder.module, lanes), [x])
        found = builder.extract_value(both, 0)
        huge_quadrant = builder.select(is_huge, found, quadrant)
        huge_r = builder.select(is_huge, builder.extract_value(both, 1), r)
        inside = builder.block
    return (
        merge(builder, (quadrant, before), (huge_quadrant, inside)),
        merge(builder, (r, before), (huge_r, inside)),
    )


def merge(builder: Any, *incoming: tuple[Value, Any]) -> Value:
    """Return the value of the block that control came from."""
    phi = builder.phi(incoming[0][0].type)
    for value, block in incoming:
        phi.add_incoming(value, block)
    return phi


def any_lane(lanes: Lanes, mask: Value) -> Value:
    """Return whether any lane of the mask is true, as one i1."""
    if lanes.count == 1:
        return mask
    name = f"llvm.vector.reduce.or.v{lanes.count}i1"
    return lanes.builder.intrinsic(name, mask.type.element, [mask])


# Huge angles --------------------------------------------------------------------------


_WINDOW = 192
_TABLE_BITS = 1216
"""Bits of 2 / pi after the point: more than 971 + 190 for the largest f64."""

_I192 = ir.IntType(_WINDOW)
_I256 = ir.IntType(256)


def two_over_pi_bits(bits: int) -> int:
    """Return 2 / pi * 2**bits, rounded down.

    It uses Machin's formula in integers; the last 32 bits of the working precision are
    lost.

    >>> hex(two_over_pi_bits(32))
    '0xa2f9836e'
    """
    unit = 1 << (bits + 32)
    pi = 4 * (4 * _arctan_of_inverse(5, unit) - _arctan_of_inverse(239, unit))
    return (2 * unit << bits) // pi


def _arctan_of_inverse(n: int, unit: int) -> int:
    total, power, divisor = 0, unit // n, 1
    while power:
        total += power // divisor if divisor % 4 == 1 else -(power // divisor)
        power //= n * n
        divisor += 2
    return total


def emit_reduce_huge(module: Module, lanes: Lanes) -> Function:
    """Get or create ``{<n x i64> quadrant, <n x f64> r} reduce(<n x f64> x)``.

    x is r plus quadrant times pi / 2 (modulo 4); |r| is at most pi / 4, and r is within
    2 ulp.  Only results of finite lanes of at least 2**30 are valid; it loops over
    lanes.
    """
    count = lanes.count
    name = f"xetl_reduce_huge_x{count}"
    pair = ir.LiteralStructType([vector(I64, count), vector(F64, count)])
    function, builder = begin(module, name, [("x", vector(F64, count))], pair)
    if builder is None:
        return function
    function.attributes.add("noinline")
    one = _emit_reduce_one(module)
    x, rest = builder.stack_array(F64, count), builder.stack_array(F64, count)
    quadrants = builder.stack_array(I64, count)
    builder.store(function.args[0], x, 8)
    with builder.counted_loop(count, name="lane") as lane:
        angle = builder.load(builder.offset(x, F64, lane.index), typ=F64, align=8)
        both = builder.call(one, [angle])
        for number, (array, type_) in enumerate(((quadrants, I64), (rest, F64))):
            to = builder.offset(array, type_, lane.index)
            builder.store(builder.extract_value(both, number), to, 8)
    result = const(pair, ir.Undefined)
    for number, array in enumerate((quadrants, rest)):
        value = builder.load(array, typ=pair.elements[number], align=8)
        result = builder.insert_value(result, value, number)
    builder.ret(result)
    return function


def _table(module: Module) -> Value:
    """Return the bits of 2 / pi, little-endian, in memory; zeros above the point."""
    known = module.globals.get("xetl_two_over_pi")
    if known is not None:
        return known
    size = _TABLE_BITS // 8 + 32
    data = two_over_pi_bits(_TABLE_BITS).to_bytes(size, "little")
    type_ = ir.ArrayType(I8, size)
    table = ir.GlobalVariable(module, type_, "xetl_two_over_pi")
    table.linkage = "internal"
    table.global_constant = True
    table.initializer = const(type_, bytearray(data))
    return table


def _emit_reduce_one(module: Module) -> Function:
    """Emit the scalar reduction: ``{i64, f64} reduce(f64)``."""
    pair = ir.LiteralStructType([I64, F64])
    function, builder = begin(module, "xetl_reduce_huge_one", [("x", F64)], pair)
    if builder is None:
        return function
    function.attributes.add("noinline")
    bits = builder.bitcast(function.args[0], I64)
    turn = _turn(builder, bits)
    # Half a quadrant is added, so that the rest is centred on 0.
    half = const(_I192, 1 << (_WINDOW - 3))
    quadrant = builder.lshr(builder.add(turn, half), _WINDOW - 2)
    quadrant = builder.trunc(quadrant, I64)
    # Without the quadrant's two bits, the next bit is the sign.
    r = _to_radians(builder, builder.shl(turn, 2))
    is_negative = builder.icmp_signed("<", bits, 0)
    quadrant = builder.select(is_negative, builder.neg(quadrant), quadrant)
    r = builder.select(is_negative, builder.fneg(r), r)
    result = const(pair, ir.Undefined)
    result = builder.insert_value(result, quadrant, 0)
    builder.ret(builder.insert_value(result, r, 1))
    return function


def _turn(builder: Builder, bits: Value) -> Value:
    """Compute ``|x| * 2 / pi`` modulo 4, in units of 2**-190."""
    exponent = builder.lshr(bits, 52)
    exponent = builder.and_(exponent, 0x7FF)
    exponent = builder.sub(exponent, 1023 + 52)
    fraction = builder.and_(bits, (1 << 52) - 1)
    m = builder.zext(builder.or_(fraction, 1 << 52), _I192)
    below = builder.sub(_TABLE_BITS - (_WINDOW - 2), exponent)
    # Lanes that are not huge are not used, but must not read outside the table.
    top = const(I64, _TABLE_BITS - _WINDOW + 32)
    is_outside = builder.icmp_unsigned(">", below, top)
    below = builder.select(is_outside, top, below)
    table = builder.bitcast(_table(builder.module), PTR)
    at = builder.offset(table, I8, builder.lshr(below, 3))
    bytes_ = builder.load(at, typ=_I256, align=1)
    odd = builder.zext(builder.and_(below, 7), _I256)
    window = builder.trunc(builder.lshr(bytes_, odd), _I192)
    return builder.mul(window, m)


def _to_radians(builder: Builder, part: Value) -> Value:
    """Multiply a signed 192-bit fraction of half turns by pi / 4; 53 bits are exact."""
    zero = const(_I192, 0)
    is_negative = builder.icmp_signed("<", part, zero)
    size = builder.select(is_negative, builder.neg(part), part)
    zeros = builder.intrinsic("llvm.ctlz.i192", _I192, [size, const(ir.IntType(1), 0)])
    # Never 192 zeros: no f64 is that near to a multiple of pi / 2.
    top = builder.lshr(builder.shl(size, zeros), _WINDOW - 63)
    value = builder.sitofp(builder.trunc(top, I64), F64)
    # value is about 2**62; as a fraction of 2**191 it is 2**-(zeros - 1) of the whole.
    exponent = builder.sub(1023 - 62, builder.trunc(zeros, I64))
    scale = builder.bitcast(builder.shl(exponent, 52), F64)
    quarter_pi = const(F64, 0.7853981633974483)
    value = builder.fmul(builder.fmul(value, scale), quarter_pi)
    return builder.select(is_negative, builder.fneg(value), value)
