"""The meaning of each kind of reduction, for every pass and every backend.

A reduction starts from the identity of its kind, so the sum of -0.0s is -0.0, as in
IEEE 754, and `maxnumf` of NaN alone is NaN. Sums and products of f16 and bf16 run in
f32. Sums of i1 are modulo 2; as a signed number, true is -1.

Source: MLIR, `#vector.kind`, `arith::AtomicRMWKind`; LLVM, `llvm.vector.reduce.*`.
MLIR spells atomics differently (`addf`, `maxs`): this module accepts both spellings and
converts them to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects import builtin
from xdsl.ir import Attribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from xetl.records import record

from .attributes import WordAttr
from .upstream import arith
from .upstream.elementwise import is_float

if TYPE_CHECKING:
    from xdsl.parser import Parser


def _least(bits: int) -> int:
    return -1 << (bits - 1)


def _most(bits: int) -> int:
    return ~_least(bits)


@record(frozen=True)
class OnIntegers:
    """A kind on integers.

    Attributes:
        operation: the operation of `arith`.
        identity: the identity, or what computes it from the number of bits.
        on_bits: the bitwise kind that is equal to it on i1.
        atomic: the name in `arith::AtomicRMWKind`.
        llvm: the name in `llvm.vector.reduce.*`.
        numpy: the ufunc; for unsigned kinds it is for unsigned numbers.
    """

    operation: Any
    identity: int | Callable[[int], int]
    on_bits: str
    atomic: str
    llvm: str
    numpy: str

    @property
    def instruction(self) -> str:
        """The name in LLVM's `atomicrmw`, which has no `mul`."""
        return self.llvm.removeprefix("s")


@record(frozen=True)
class OnFloats:
    """A kind on floats; the attributes are those of `OnIntegers`."""

    operation: Any
    identity: float
    atomic: str
    llvm: str
    numpy: str


_F, _I = OnFloats, OnIntegers
_KINDS: dict[str, tuple[OnFloats | None, OnIntegers | None]] = {
    "add": (
        _F(arith.AddfOp, -0.0, "addf", "fadd", "add"),
        _I(arith.AddiOp, 0, "xor", "addi", "add", "add"),
    ),
    "mul": (
        _F(arith.MulfOp, 1.0, "mulf", "fmul", "multiply"),
        _I(arith.MuliOp, 1, "and", "muli", "mul", "multiply"),
    ),
    "minui": (None, _I(arith.MinuiOp, -1, "and", "minu", "umin", "minimum")),
    "minsi": (None, _I(arith.MinsiOp, _most, "or", "mins", "smin", "minimum")),
    "minnumf": (_F(arith.MinnumfOp, math.nan, "minnumf", "fmin", "fmin"), None),
    "maxui": (None, _I(arith.MaxuiOp, 0, "or", "maxu", "umax", "maximum")),
    "maxsi": (None, _I(arith.MaxsiOp, _least, "and", "maxs", "smax", "maximum")),
    "maxnumf": (_F(arith.MaxnumfOp, math.nan, "maxnumf", "fmax", "fmax"), None),
    "and": (None, _I(arith.AndiOp, -1, "and", "andi", "and", "bitwise_and")),
    "or": (None, _I(arith.OriOp, 0, "or", "ori", "or", "bitwise_or")),
    "xor": (None, _I(arith.XoriOp, 0, "xor", "xori", "xor", "bitwise_xor")),
    "maximumf": (
        _F(arith.MaximumfOp, -math.inf, "maximumf", "fmaximum", "maximum"),
        None,
    ),
    "minimumf": (
        _F(arith.MinimumfOp, math.inf, "minimumf", "fminimum", "minimum"),
        None,
    ),
}
"""All kinds in the order of MLIR's enum."""

ON_FLOATS = {kind: floats for kind, (floats, _) in _KINDS.items() if floats}
ON_INTEGERS = {kind: integers for kind, (_, integers) in _KINDS.items() if integers}
KINDS = tuple(_KINDS)
SUMS = ("add", "mul")
"""The kinds that round; for f16 and bf16 they run in f32."""


def operation_of(kind: str, element: Attribute) -> Any:
    """Return the class of the operation that combines two values of a type."""
    return _of(kind, element).operation


def identity_of(kind: str, element: Attribute) -> float | int:
    """Return the identity of a kind: combined with a number it gives this number."""
    identity = _of(kind, element).identity
    if not callable(identity):
        return identity
    return identity(
        element.bitwidth if isinstance(element, builtin.IntegerType) else 64
    )


def atomic_name(kind: str, element: Attribute) -> str:
    """Return the name of a kind in `memref.atomic_rmw`."""
    return kind if kind == "assign" else _of(kind, element).atomic


def sums_run_in(kind: str, element: Attribute) -> Attribute:
    """Return the type a reduction runs in: f32 for sums and products of 16 bits."""
    narrow = isinstance(element, builtin.Float16Type | builtin.BFloat16Type)
    return builtin.f32 if narrow and kind in SUMS else element


def _of(kind: str, element: Attribute) -> OnFloats | OnIntegers:
    return ON_FLOATS[kind] if is_float(element) else ON_INTEGERS[kind]


FLOAT_KINDS = tuple(ON_FLOATS)
INTEGER_KINDS = tuple(ON_INTEGERS)
ATOMIC_KINDS = (*KINDS, "assign")

_SPELLINGS = {
    **{each.atomic: kind for kind, each in [*ON_FLOATS.items(), *ON_INTEGERS.items()]},
    **{"exchange": "assign", "minf": "minimumf", "maxf": "maximumf"},
}


def normalize_kind(kind: str) -> str:
    """Return our spelling of a kind. Raise a VerifyException for an unknown kind."""
    name = _SPELLINGS.get(kind, kind)
    if name not in ATOMIC_KINDS:
        known = ", ".join(ATOMIC_KINDS)
        raise VerifyException(f"`{kind}` is no kind of reduction; one of {known}")
    return name


def kind_attribute(kind: str) -> builtin.StringAttr:
    """Return a kind in our spelling, as the attribute of an operation."""
    return builtin.StringAttr(normalize_kind(kind))


def kind_fits(kind: str, element: Attribute) -> bool:
    """Whether ``kind`` combines elements of this type."""
    return kind == "assign" or kind in (ON_FLOATS if is_float(element) else ON_INTEGERS)


def parse_kind(parser: Parser) -> str:
    """Parse ``add``, ``"add"`` or ``<add>`` in any spelling."""
    position = parser.pos
    bracket = parser.parse_optional_punctuation("<")
    name = parser.parse_optional_str_literal() or parser.parse_identifier()
    if bracket:
        parser.parse_punctuation(">")
    try:
        return normalize_kind(name)
    except VerifyException as error:
        parser.raise_error(str(error), position)


@irdl_attr_definition(init=False)
class CombiningKindAttr(WordAttr):
    """``#vector.kind<add>``, in any spelling.  Source: MLIR, `vector` dialect."""

    name = "vector.kind"
    WORDS: ClassVar[tuple[str, ...]] = KINDS
    PROBLEM: ClassVar[str] = "`{word}` is no combining kind"
    IS_IN_BRACKETS: ClassVar[bool] = True
    SPELLINGS: ClassVar[Mapping[str, str]] = _SPELLINGS

    def __init__(self, kind: str) -> None:
        super().__init__(normalize_kind(kind))

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return self.word
