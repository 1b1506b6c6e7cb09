"""The operators: in Python, on floats, on signed and on unsigned integers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from xetl.dialects.upstream import arith
from xetl.language.dtypes import DType
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
