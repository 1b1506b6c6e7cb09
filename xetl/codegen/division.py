"""Emission of integer divisions, none of which can stop the process.

LLVM leaves open what x / 0 and INT_MIN / -1 are, and processors trap. Here x / 0 and
x % 0 are 0 and INT_MIN / -1 wraps, in every lane, masked off or not. A divisor that the
IR guards already is guarded once more where a value was stored and loaded in between:
lanes that do not count hold anything then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xetl.codegen.emitter import Emit, EmitTable, Emitter, emits
from xetl.codegen.types import Builder, Module, Value, ll, repeated
from xetl.dialects.upstream import arith
from xetl.errors import InternalError

_TRAPS = {"sdiv": (0, -1), "srem": (0, -1), "udiv": (0,), "urem": (0,)}
"""The instructions that may trap, and the divisors that make them."""


def check_divisions(module: Module) -> None:
    """Look at each division of an LLVM module.

    Raises:
        InternalError: a divisor may be one that traps.
    """
    for function in module.functions:
        for block in function.blocks:
            for op in block.instructions:
                traps = _TRAPS.get(op.opname)
                if traps and not _is_harmless(op.operands[1], traps):
                    raise InternalError(f"a division may trap: {op}")


def or_one(builder: Builder, value: Value) -> Value:
    """A divisor that is 0 only where there is nothing to divide."""
    zero, one = repeated(value.type, 0), repeated(value.type, 1)
    return builder.select(builder.icmp_signed("==", value, zero), one, value)


def _is_harmless(divisor: Value, traps: tuple[int, ...]) -> bool:
    """A constant, or something else wherever this very value is one that traps."""
    conditions: list[Value] = []
    while True:
        left = set(traps) - {_excluded(each, divisor) for each in conditions}
        numbers = _numbers(divisor)
        if not left or numbers:
            return not left & set(numbers)
        if not isinstance(divisor, ll.SelectInstr):
            return False
        condition, chosen, divisor = divisor.operands
        if not _is_harmless(chosen, traps):
            return False
        conditions.append(condition)


def _excluded(condition: Value, value: Value) -> int | None:
    """The number that a condition says ``value`` to be, in all lanes the same."""
    if not isinstance(condition, ll.ICMPInstr) or condition.op != "eq":
        return None
    tested, number = condition.operands
    numbers = set(_numbers(number))
    return numbers.pop() if tested is value and len(numbers) == 1 else None


def _numbers(value: Value) -> list[int]:
    """The integers of a constant; none of anything else."""
    if not isinstance(value, ll.Constant):
        return []
    found: Any = value.constant
    numbers: list[Any] = found if isinstance(value.type, ll.VectorType) else [found]
    plain = [getattr(number, "constant", number) for number in numbers]
    return plain if all(isinstance(number, int) for number in plain) else []


class _Division:
    """Quotient and remainder by a divisor made harmless.

    By 0 both are 0; by -1 the quotient is ``0 - left``.
    """

    def __init__(
        self, em: Emitter, left: Value, right: Value, *, is_signed: bool
    ) -> None:
        self.b = em.builder
        self.left, self.right, self.is_signed = left, right, is_signed
        self.type = self.left.type
        self.zero, self.one = (repeated(self.type, number) for number in (0, 1))
        traps = _TRAPS["sdiv" if is_signed else "udiv"]
        self.is_guarded = not _is_harmless(self.right, traps)
        self.safe = self.right
        if self.is_guarded:
            self.by_zero = self.b.icmp_signed("==", self.right, self.zero)
            self.safe = self.b.select(self.by_zero, self.one, self.right)
            if is_signed:
                minus = repeated(self.type, -1)
                self.by_minus_one = self.b.icmp_signed("==", self.right, minus)
                self.safe = self.b.select(self.by_minus_one, self.one, self.safe)

    def quotient(self) -> Value:
        """Towards 0."""
        divide = self.b.sdiv if self.is_signed else self.b.udiv
        return divide(self.left, self.safe)

    def remainder(self, quotient: Value) -> Value:
        """Return the remainder; 0 where the divisor was replaced."""
        return self.b.sub(self.left, self.b.mul(quotient, self.safe))

    def finished(self, quotient: Value) -> Value:
        """The quotient, also by 0 and -1."""
        if not self.is_guarded:
            return quotient
        if self.is_signed:
            negative = self.b.sub(self.zero, self.left)
            quotient = self.b.select(self.by_minus_one, negative, quotient)
        return self.b.select(self.by_zero, self.zero, quotient)


def _quotient(division: _Division) -> Value:
    return division.finished(division.quotient())


def _remainder(division: _Division) -> Value:
    return division.remainder(division.quotient())


def _floordiv(division: _Division) -> Value:
    """One less if something is left and the signs differ; by 2, 4, 8 ... a shift."""
    b = division.b
    divisors = set(_numbers(division.right))
    if len(divisors) == 1 and (divisor := divisors.pop()).bit_count() == 1 <= divisor:
        bits = repeated(division.type, divisor.bit_length() - 1)
        return b.ashr(division.left, bits)
    quotient = division.quotient()
    rest = division.remainder(quotient)
    differs = b.icmp_signed("<", b.xor(rest, division.safe), division.zero)
    lower = b.and_(b.icmp_signed("!=", rest, division.zero), differs)
    less = b.sub(quotient, division.one)
    return division.finished(b.select(lower, less, quotient))


def _ceildiv(division: _Division) -> Value:
    """One more if something is left and the signs agree."""
    b, quotient = division.b, division.quotient()
    rest = division.remainder(quotient)
    higher = b.icmp_signed("!=", rest, division.zero)
    if division.is_signed:
        signs = b.xor(rest, division.safe)
        higher = b.and_(higher, b.icmp_signed(">=", signs, division.zero))
    more = b.add(quotient, division.one)
    return division.finished(b.select(higher, more, quotient))


def _emits(give: Callable[[_Division], Value], *, is_signed: bool) -> Emit:
    def emit(em: Emitter, left: Value, right: Value) -> Value:
        short = _not_extended(left, right, is_signed=is_signed)
        if short is None:
            return give(_Division(em, left, right, is_signed=is_signed))
        extend = em.builder.sext if is_signed else em.builder.zext
        return extend(give(_Division(em, *short, is_signed=is_signed)), left.type)

    return emits(emit)


def _not_extended(
    left: Value, right: Value, *, is_signed: bool
) -> tuple[Value, Value] | None:
    """Return what was extended to ``left`` and a positive constant, of its type.

    LLVM divides so for scalars. Of 64 bits vectors have no product that it could use.
    """
    numbers, extension = set(_numbers(right)), "sext" if is_signed else "zext"
    if not isinstance(left, ll.CastInstr) or left.opname != extension:
        return None
    (value,), number = left.operands, min(numbers, default=0)
    is_row = isinstance(value.type, ll.VectorType)
    bits = (value.type.element if is_row else value.type).width
    fits = len(numbers) == 1 and 0 < number < 1 << (bits - 1)
    return (value, repeated(value.type, number)) if fits else None


TABLE: EmitTable = {
    arith.DivsiOp: _emits(_quotient, is_signed=True),
    arith.DivuiOp: _emits(_quotient, is_signed=False),
    arith.RemsiOp: _emits(_remainder, is_signed=True),
    arith.RemuiOp: _emits(_remainder, is_signed=False),
    arith.FloordivsiOp: _emits(_floordiv, is_signed=True),
    arith.CeildivsiOp: _emits(_ceildiv, is_signed=True),
    arith.CeildivuiOp: _emits(_ceildiv, is_signed=False),
}
