"""Arithmetic on vectors of floats, and operations on their IEEE bits.

``Lanes`` fixes the builder, the float format and the number of lanes (1: scalars), so
that the functions of this package read like formulas.
"""

from collections.abc import Sequence

from xetl.records import record
from xetl_cpu.llvm import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    Builder,
    Type,
    Value,
    const,
    vector,
)
from xetl_cpu.targets import Target

__all__ = ["FORMATS", "FloatFormat", "Lanes"]


@record(frozen=True)
class FloatFormat:
    """An IEEE binary format.

    Attributes:
        fraction: stored bits of the significand.
    """

    name: str
    bits: int
    fraction: int
    bias: int

    @property
    def magic(self) -> float:
        """1.5 * 2**fraction: adding it rounds to an integer in the low bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.fraction


FORMATS = {
    "f32": FloatFormat("f32", 32, 23, 127),
    "f64": FloatFormat("f64", 64, 52, 1023),
}


@record(frozen=True)
class Lanes:
    """``count`` lanes of ``format`` at a builder."""

    builder: Builder
    target: Target
    format: FloatFormat
    count: int

    @property
    def type(self) -> Type:
        """The type of a value: a vector, or a scalar for one lane."""
        return vector(F32 if self.format.bits == 32 else F64, self.count)

    @property
    def int_type(self) -> Type:
        """The integer type of the same size."""
        return vector(I32 if self.format.bits == 32 else I64, self.count)

    # --- constants and arithmetic ---

    def of(self, value: float) -> Value:
        """Return ``value`` in all lanes."""
        return const(self.type, value)

    def factor(self, value: float) -> Value:
        """Return ``value`` in all lanes, loaded from memory if registers are few.

        Otherwise LLVM broadcasts it to a register, and if none is free does so each
        time: unlike AVX-512, AVX2 has no broadcast operands. [measured] On Zen 3 gelu
        and swiglu in f64 are 1.2 times as fast, softmax and silu in f32 1.1.
        """
        lanes = self.target.vector_bytes * 8 // self.format.bits
        if self.target.vector_registers >= 32 or self.count % lanes:
            return self.of(value)
        type_ = vector(F32 if self.format.bits == 32 else F64, lanes)
        one = self.builder.constant_in_memory(type_, value)
        if self.count == lanes:
            return one
        return self.builder.shuffle(one, one, [*range(lanes)] * (self.count // lanes))

    def integer(self, value: int) -> Value:
        """Return ``value`` in all lanes, as integers of the same size."""
        return const(self.int_type, value)

    def add(self, a: Value, b: Value | float) -> Value:
        """Return the sum."""
        return self.builder.fadd(a, self._value(b))

    def sub(self, a: Value | float, b: Value | float) -> Value:
        """Return the difference."""
        return self.builder.fsub(self._value(a), self._value(b))

    def mul(self, a: Value, b: Value | float) -> Value:
        """Return the product."""
        return self.builder.fmul(a, self._value(b))

    def div(self, a: Value | float, b: Value) -> Value:
        """Return the quotient, correctly rounded."""
        return self.builder.fdiv(self._value(a), b)

    def fma(self, a: Value, b: Value | float, c: Value | float) -> Value:
        """Return ``a * b + c``, rounded once."""
        return self._intrinsic("fma", a, self._value(b), self._value(c))

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Evaluate a polynomial by Horner's scheme, constant term first."""
        *rest, total = coefficients
        result = self.factor(total)
        for coefficient in reversed(rest):
            result = self.fma(result, x, self.factor(coefficient))
        return result

    def absolute(self, x: Value) -> Value:
        """Return ``|x|``."""
        return self._intrinsic("fabs", x)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        """Return ``magnitude`` with the sign of ``sign``."""
        return self._intrinsic("copysign", magnitude, sign)

    def round(self, x: Value) -> Value:
        """Round to the nearest integer, ties to even, for any magnitude."""
        return self._intrinsic("roundeven", x)

    def truncate(self, x: Value) -> Value:
        """Round to an integer, towards 0."""
        return self._intrinsic("trunc", x)

    def sqrt(self, x: Value) -> Value:
        """Return the square root, correctly rounded."""
        return self._intrinsic("sqrt", x)

    # --- choices ---

    def compare(self, predicate: str, a: Value, b: Value | float) -> Value:
        """Compare ordered: the result is false if either is NaN."""
        return self.builder.fcmp_ordered(predicate, a, self._value(b))

    def select(self, mask: Value, a: Value | float, b: Value | float) -> Value:
        """Return ``a`` where ``mask`` holds, else ``b``."""
        return self.builder.select(mask, self._value(a), self._value(b))

    def at_least(self, x: Value, low: float) -> Value:
        """Return a mask of lanes that are ``low`` or more, or NaN."""
        return self.builder.fcmp_unordered(">=", x, self._value(low))

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """Clamp to ``low`` and ``high``; NaN stays NaN."""
        x = self.select(self.compare(">", x, high), high, x)
        return self.select(self.compare("<", x, low), low, x)

    def limit(self, x: Value, low: float, high: float) -> Value:
        """Clamp before `scale`, whose mask is enough at the lower end."""
        if not self.has_scale():
            return self.clamp(x, low, high)
        return self.select(self.compare(">", x, high), high, x)

    def has_scale(self) -> bool:
        """Whether `scale` is one instruction."""
        width = self.format.bits * self.count
        return self.target.has_masks and width in (128, 256, 512)

    def has_lookup(self) -> bool:
        """Whether `lookup` exists: for f32 in a register of AVX2 or AVX-512."""
        is_whole = self.count == 8 or (self.count == 16 and self.target.has_masks)
        return self.format.bits == 32 and is_whole

    def lookup(self, table: Sequence[float], index: Value) -> Value:
        """Select a number of ``table`` for each lane, by the low bits of ``index``."""
        numbers = const(self.type, list(table))
        wide, narrow = "llvm.x86.avx512.permvar.sf.512", "llvm.x86.avx2.permps"
        name = wide if self.count == 16 else narrow
        return self.builder.intrinsic(name, self.type, [numbers, index])

    # --- the IEEE form ---

    def bits(self, x: Value) -> Value:
        """Return the bits of x as an integer."""
        return self.builder.bitcast(x, self.int_type)

    def from_bits(self, bits: Value) -> Value:
        """Return the float with these bits."""
        return self.builder.bitcast(bits, self.type)

    def nearest(self, x: Value, by: float = 1.0) -> Value:
        """Round ``x * by`` to an integer n, as a float with n in its low bits.

        The low bits hold n plus twice the bias; see `whole`, `power_of_two` and
        `scale`.
        """
        if by == 1.0:
            return self.add(x, self._far)
        return self.fma(x, by, self._far)

    def whole(self, nearest: Value) -> Value:
        """Return the integer n as a float."""
        return self.sub(nearest, self._far)

    @property
    def _far(self) -> float:
        return self.format.magic + 2 * self.format.bias

    def power_of_two(self, nearest: Value) -> Value:
        """Return 2**n, if that is a normal number."""
        up = self.integer(self.format.fraction)
        shifted = self.builder.shl(self.bits(nearest), up)
        return self.from_bits(self.builder.sub(shifted, self.integer(self.format.one)))

    def shifted(self, nearest: Value) -> Value:
        """Return 2**(n - bias) for the low bits n of ``nearest``; 0 for n = 0."""
        up = self.integer(self.format.fraction)
        return self.from_bits(self.builder.shl(self.bits(nearest), up))

    def fraction(self, x: Value) -> Value:
        """Return ``x - floor(x)``, 0 for infinities; it needs `has_scale`."""
        down = const(I32, 9)  # an inexact result is no event
        mask = const(I16 if self.count == 16 else I8, -1)
        return self._with_masks("reduce", [x, down, x, mask])

    def scale(self, x: Value, nearest: Value, where: Value, by: Value) -> Value:
        """Return ``x * 2**n``, and 0 in lanes that are not in the mask ``where``.

        2**n itself may overflow or underflow. A product that underflows takes some
        hundred cycles on Intel's cores, so lanes known to become 0 are left out of the
        mask.  AVX-512 has an instruction for it.  Without it the mask is not used:
        ``by``, which is about n, is at least `least`; n is moved towards 0, and a
        second factor, chosen by the sign, makes up for that. For `least` the result is
        0.
        """
        if self.has_scale():
            return self.scale_by_floor(x, self.whole(nearest), where)
        builder, up = self.builder, self.integer(self.format.fraction)
        is_small = builder.icmp_signed("<", self.bits(by), self.integer(0))
        rest = 2.0 ** (self.format.fraction + 1)
        second = self.select(is_small, 1 / rest, rest)
        # One of the two biases in ``nearest`` remains after subtracting the second's
        # bits.
        moved = builder.sub(builder.shl(self.bits(nearest), up), self.bits(second))
        return self.mul(self.mul(x, self.from_bits(moved)), second)

    @property
    def least(self) -> float:
        """The exponent of 2 at which `scale` returns exactly 0."""
        return -float(self.format.bias + self.format.fraction + 1)

    def scale_by_floor(self, x: Value, n: Value, where: Value) -> Value:
        """Scale by 2 to the floor of any n; it needs `has_scale`."""
        return self.select(where, self._scalef(x, n), 0.0)

    def _scalef(self, x: Value, n: Value) -> Value:
        mask = const(I16 if self.count == 16 else I8, -1)
        return self._with_masks("scalef", [x, n, x, mask])

    def _with_masks(self, name: str, arguments: list[Value]) -> Value:
        suffix = "ps" if self.format.bits == 32 else "pd"
        width = self.format.bits * self.count
        if width == 512:
            arguments.append(const(I32, 4))  # the rounding mode in force
        full = f"llvm.x86.avx512.mask.{name}.{suffix}.{width}"
        return self.builder.intrinsic(full, self.type, arguments)

    def _intrinsic(self, name: str, *arguments: Value) -> Value:
        scalar = self.format.name
        suffix = scalar if self.count == 1 else f"v{self.count}{scalar}"
        full = f"llvm.{name}.{suffix}"
        return self.builder.intrinsic(full, self.type, list(arguments))

    def _value(self, x: Value | float) -> Value:
        return self.of(x) if isinstance(x, int | float) else x
