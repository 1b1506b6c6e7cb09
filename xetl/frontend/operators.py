"""The operators: in Python, on floats, on signed and on unsigned integers.

``//`` and ``%`` floor and never trap. An integer lane that divides by zero gives 0
(padded lanes hold 0). INT_MIN // -1 wraps to INT_MIN. Hardware would trap on both, so
divisors 0 and -1 are replaced first.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

from xdsl.ir import Operation, SSAValue

from xetl.dialects.upstream import arith, math
from xetl.frontend.arguments import Arg
from xetl.frontend.casts import convert, runtime, splat, to_float, to_int, wide_of
from xetl.frontend.context import Context
from xetl.frontend.types import Scalar, Shape, Value, Vector, is_constant, scalar_kind
from xetl.language.dtypes import DType, f32, f64, index, u64
from xetl.records import record

OpMaker = Callable[[SSAValue, SSAValue], Operation]


def _python(name: str) -> Callable[[Any, Any], Any]:
    """Return a function of the module ``operator``, whose stubs are not typed."""
    return getattr(operator, name)


@record(frozen=True)
class Binary:
    """A binary operator; an op is None if the operator is not defined on the type."""

    symbol: str
    python: Callable[[Any, Any], Any]
    floats: OpMaker | None = None
    signed: OpMaker | None = None
    unsigned: OpMaker | None = None
    masks: bool = False

    def maker(self, dtype: DType) -> OpMaker | None:
        """Return the op on elements of ``dtype``, or None."""
        if dtype.is_bool:
            return self.signed if self.masks else None
        if dtype.is_float:
            return self.floats
        return self.signed if dtype.kind == "i" else self.unsigned or self.signed


ADD = Binary("+", _python("add"), arith.AddfOp, arith.AddiOp)
SUB = Binary("-", _python("sub"), arith.SubfOp, arith.SubiOp)
MUL = Binary("*", _python("mul"), arith.MulfOp, arith.MuliOp)
DIV = Binary("/", _python("truediv"), arith.DivfOp)
FLOORDIV = Binary("//", _python("floordiv"))
MOD = Binary("%", _python("mod"))
POW = Binary("**", _python("pow"))
AND = Binary("&", _python("and_"), None, arith.AndiOp, masks=True)
OR = Binary("|", _python("or_"), None, arith.OriOp, masks=True)
XOR = Binary("^", _python("xor"), None, arith.XoriOp, masks=True)
SHL = Binary("<<", _python("lshift"), None, arith.ShliOp)
SHR = Binary(">>", _python("rshift"), None, arith.ShrsiOp, arith.ShruiOp)
MINIMUM = Binary("minimum", min, arith.MinimumfOp, arith.MinsiOp, arith.MinuiOp)
MAXIMUM = Binary("maximum", max, arith.MaximumfOp, arith.MaxsiOp, arith.MaxuiOp)
_EXTREMA = {
    ("min", True): MINIMUM,
    ("max", True): MAXIMUM,
    ("min", False): replace(MINIMUM, floats=arith.MinnumfOp),
    ("max", False): replace(MAXIMUM, floats=arith.MaxnumfOp),
}


def extremum(name: str, *, propagate_nan: bool = True) -> Binary:
    """Return ``min`` or ``max``; a NaN operand wins only with ``propagate_nan``."""
    return _EXTREMA[name, propagate_nan]


BINARY: dict[type[ast.operator], Binary] = {
    ast.Add: ADD,
    ast.Sub: SUB,
    ast.Mult: MUL,
    ast.Div: DIV,
    ast.FloorDiv: FLOORDIV,
    ast.Mod: MOD,
    ast.Pow: POW,
    ast.BitAnd: AND,
    ast.BitOr: OR,
    ast.BitXor: XOR,
    ast.LShift: SHL,
    ast.RShift: SHR,
}


@record(frozen=True)
class Comparison:
    """A comparison, with its predicates of ``arith.cmpf`` and ``arith.cmpi``."""

    symbol: str
    python: Callable[[Any, Any], Any]
    floats: str
    signed: str
    unsigned: str


COMPARISONS: dict[type[ast.cmpop], Comparison] = {
    ast.Eq: Comparison("==", _python("eq"), "oeq", "eq", "eq"),
    ast.NotEq: Comparison("!=", _python("ne"), "une", "ne", "ne"),
    ast.Lt: Comparison("<", _python("lt"), "olt", "slt", "ult"),
    ast.LtE: Comparison("<=", _python("le"), "ole", "sle", "ule"),
    ast.Gt: Comparison(">", _python("gt"), "ogt", "sgt", "ugt"),
    ast.GtE: Comparison(">=", _python("ge"), "oge", "sge", "uge"),
}


LARGEST_PRODUCT = 16
"""The largest exponent of a float that becomes products; for integers all do."""


def power(ctx: Context, base: Arg, exponent: Arg) -> Vector | None:
    """Compile ``vector ** constant`` to products or a root; None if powf is needed."""
    value, n = base.value, exponent.value
    if not isinstance(value, Vector) or not is_constant(n) or value.dtype.is_bool:
        return None
    if n == 0.5:
        floats = value if value.dtype.is_float else convert(ctx, value, f32)
        return Vector(ctx.emit(math.SqrtOp(floats.ssa)), value.shape, floats.dtype)
    if not _is_product(n, value.dtype.is_float):
        return None
    if n == 0:
        return splat(ctx, 1, value.shape, value.dtype)
    multiply = arith.MulfOp if value.dtype.is_float else arith.MuliOp
    wide = _wide(ctx, value) if n > 2 else value
    product = _product(ctx, wide.ssa, n, multiply)
    return convert(ctx, Vector(product, wide.shape, wide.dtype), value.dtype)


def _wide(ctx: Context, value: Vector) -> Vector:
    """Convert narrow floats to f32, so that several steps round only once."""
    is_narrow = value.dtype.is_float and value.dtype.bits < f32.bits
    return convert(ctx, value, f32) if is_narrow else value


def power_of_scalars(ctx: Context, base: Value, exponent: Value) -> Scalar:
    """Compile ``base ** exponent`` for two numbers, at least one of them run-time."""
    kind = scalar_kind(base)
    if _is_product(exponent, kind == "float"):
        if not exponent:
            return runtime(ctx, 1.0 if kind == "float" else 1)
        if kind == "float":
            product = _product(ctx, to_float(ctx, base), exponent, arith.MulfOp)
            return Scalar(product, "float")
        product = _product(ctx, to_int(ctx, base), exponent, arith.MuliOp)
        return Scalar(product, "int")
    result = math.PowfOp(to_float(ctx, base), to_float(ctx, exponent))
    return Scalar(ctx.emit(result), "float")


def _is_product(exponent: Value, is_float: bool) -> TypeGuard[int]:
    if not isinstance(exponent, int) or exponent < 0:
        return False
    return exponent <= LARGEST_PRODUCT or not is_float


def _product(
    ctx: Context,
    base: SSAValue,
    n: int,
    multiply: type[arith.FloatBinaryOp] | type[arith.IntegerBinaryOp],
) -> SSAValue:
    """Compute ``base`` to the power ``n`` by repeated squaring."""
    result: SSAValue | None = None
    while True:
        if n & 1:
            product = multiply(result, base) if result is not None else None
            result = base if product is None else ctx.emit(product)
        n >>= 1
        if not n:
            assert result is not None
            return result
        base = ctx.emit(multiply(base, base))


@record(eq=False)
class _Division:
    """Emits ``//`` or ``%``, of one dtype and shape; the shape () means scalars."""

    ctx: Context
    op: Binary
    shape: Shape
    dtype: DType

    def constant(self, value: float) -> SSAValue:
        """Return a constant with ``value`` in every lane."""
        if self.shape:
            return splat(self.ctx, value, self.shape, self.dtype).ssa
        number = float(value) if self.dtype.is_float else int(value)
        return runtime(self.ctx, number).ssa

    def equals(self, value: SSAValue, number: float) -> SSAValue:
        """Return the mask of the lanes of ``value`` that equal ``number``."""
        other = self.constant(number)
        if self.dtype.is_float:
            return self.ctx.emit(arith.CmpfOp("oeq", value, other))
        return self.ctx.emit(arith.CmpiOp("eq", value, other))

    def of(self, left: SSAValue, right: SSAValue, divisor: Value) -> SSAValue:
        """Return the result; ``divisor`` is ``right`` if it is constant, else False."""
        if self.dtype.is_float:
            return self._of_floats(left, right)
        # A constant divisor other than 0 and -1 needs no guard.
        if int(divisor or 0) not in (0, -1):
            return self._safely(left, right)
        emit, zero, one = self.ctx.emit, self.constant(0), self.constant(1)
        by_zero = self.equals(right, 0)
        guarded = emit(arith.SelectOp(by_zero, one, right))
        if self.dtype.kind == "u":
            return emit(arith.SelectOp(by_zero, zero, self._safely(left, guarded)))
        by_minus_one = self.equals(right, -1)
        guarded = emit(arith.SelectOp(by_minus_one, one, guarded))
        result = self._safely(left, guarded)
        # Division by -1: the quotient is -left (wrapping); the remainder is 0, as by 1.
        if self.op is FLOORDIV:
            negated = emit(arith.SubiOp(zero, left))
            result = emit(arith.SelectOp(by_minus_one, negated, result))
        return emit(arith.SelectOp(by_zero, zero, result))

    def _safely(self, left: SSAValue, right: SSAValue) -> SSAValue:
        emit = self.ctx.emit
        if self.dtype.kind == "u":
            unsigned = arith.DivuiOp if self.op is FLOORDIV else arith.RemuiOp
            return emit(unsigned(left, right))
        quotient = emit(arith.FloordivsiOp(left, right))
        if self.op is FLOORDIV:
            return quotient
        return emit(arith.SubiOp(left, emit(arith.MuliOp(quotient, right))))

    def _of_floats(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Divide floats as CPython and NumPy do: the exact remainder first."""
        emit, zero = self.ctx.emit, self.constant(0)
        rest = emit(arith.RemfOp(left, right))
        signs = [emit(arith.CmpfOp("olt", each, zero)) for each in (rest, right)]
        other_sign = emit(arith.XoriOp(*signs))
        inexact = emit(arith.CmpfOp("one", rest, zero))
        shift = emit(arith.AndiOp(other_sign, inexact))
        if self.op is not FLOORDIV:
            shifted = emit(arith.AddfOp(rest, right))
            return emit(arith.SelectOp(shift, shifted, rest))
        # Divide before the shift: after it, an infinite divisor would give NaN.
        whole = emit(arith.DivfOp(emit(arith.SubfOp(left, rest)), right))
        rounded = emit(math.RoundevenOp(whole))
        one = emit(arith.SelectOp(shift, self.constant(1), zero))
        quotient = emit(arith.SubfOp(rounded, one))
        plain = emit(arith.DivfOp(left, right))
        return emit(arith.SelectOp(self.equals(right, 0), plain, quotient))


def divide(
    ctx: Context, op: Binary, left: Vector, right: Vector, divisor: Value
) -> Vector:
    """Compile ``left op right`` for vectors of one shape and dtype.

    ``divisor`` is the value of ``right`` if it is constant, else False.
    """
    one, other = _wide(ctx, left), _wide(ctx, right)
    division = _Division(ctx, op, left.shape, one.dtype)
    result = division.of(one.ssa, other.ssa, divisor)
    ctx.divided.add(result)
    return convert(ctx, Vector(result, left.shape, one.dtype), left.dtype)


def divide_scalars(ctx: Context, op: Binary, left: Value, right: Value) -> Scalar:
    """Compile ``left op right`` for two numbers, at least one of them run-time."""
    constant = right if not isinstance(right, Scalar) else False
    is_float = "float" in (scalar_kind(left), scalar_kind(right))
    kind, number = ("float", to_float) if is_float else ("int", to_int)
    wide = wide_of(kind, left, right)
    one, other = number(ctx, left), number(ctx, right)
    dtype = f64 if is_float else u64 if wide == u64 else index
    return Scalar(_Division(ctx, op, (), dtype).of(one, other, constant), kind, wide)
