"""Operations that print and check values while a kernel runs.

Source: `gpu.printf` and `cf.assert` of MLIR, whose texts cannot show vectors.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from ..base import check, ints_of
from ..operation import XetlOp
from ..traits import READS_AND_WRITES


def count_fields(template: str) -> int | None:
    """Return the number of fields in a text. Return None if the text is malformed.

    Fields are those of Python's ``str.format``, in order and without names: ``{}``,
    ``{:.3f}``; ``{{`` and ``}}`` are braces.
    """
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return None
    fields = [(name, spec) for _, name, spec, _ in parts if name is not None]
    if any(name or "{" in (spec or "") for name, spec in fields):
        return None
    return len(fields)


def wrong_format(template: str, types: Sequence[Attribute]) -> tuple[int, str] | None:
    """Return the first of ``types`` that its field cannot format, and the reason.

    Return None if all fields fit.
    """
    parts = string.Formatter().parse(template)
    formats = [spec or "" for _, name, spec, _ in parts if name is not None]
    for i, (spec, type_) in enumerate(zip(formats, types)):
        if isinstance(type_, VectorType):
            if spec:
                return i, "only numbers take a format"
            continue
        kind = float if isinstance(type_, AnyFloat) else bool if type_ == i1 else int
        try:
            format(kind(), spec)
        except ValueError as problem:
            return i, str(problem)
    return None


# The traits keep it from being removed, or moved across other effects.
class _TextOp(XetlOp, traits=READS_AND_WRITES):
    """An operation with a text and values for its fields."""

    arguments = var_operand_def()
    template = prop_def(StringAttr)
    unsigned = opt_prop_def(DenseArrayBase)

    def verify_(self) -> None:
        wanted, found = count_fields(self.template.data), len(self.arguments)
        text = self.template
        check(wanted is not None, "{} is no text with fields {{}}", text)
        check(wanted == found, "{} has {} fields for {} values", text, wanted, found)
        wrong = wrong_format(text.data, self.arguments.types)
        if wrong is not None:
            raise VerifyException(f"value {wrong[0]} of {text}: {wrong[1]}")
        positions = ints_of(self.unsigned)
        fits = all(0 <= position < found for position in positions)
        check(fits, "`unsigned` names values that are not there: {}", list(positions))


_TEXT = "$template (`(` $arguments^ `)`)? attr-dict (`:` type($arguments)^)?"


class PrintOp(_TextOp, name="xetile.print"):
    """Print a line: ``template`` with its fields replaced by the values.

    Each program of the grid prints its own lines, in its own order.  Scalars (index,
    i64, f64, i1) are formatted as Python formats an int, float or bool; vectors of
    rank 1 and 2 as NumPy prints arrays of that rank (a field of a vector has no
    format).  ``unsigned`` lists the values whose integers have no sign.
    """

    assembly_format = _TEXT


class AssertOp(_TextOp, name="xetile.assert"):
    """Stop the program unless ``condition`` holds; the text is that of `PrintOp`.

    Earlier stores of the program stay; other programs may still run.  The launch fails
    with the text and the location of the operation.  Only the interpreter checks a
    condition that is ``assumed``.
    """

    condition = operand_def(i1)
    assumed = opt_prop_def(UnitAttr)

    assembly_format = "$condition `,` " + _TEXT


class BreakpointOp(XetlOp, name="xetile.breakpoint", traits=READS_AND_WRITES):
    """Let a debugger show the variables of a kernel; compiled code does not stop.

    ``names`` are the names of the values, which may have any type.  ``unsigned`` lists
    the vectors whose integers have no sign.  ``step`` marks the start of a statement,
    at which a debugger stops in single steps.  Source: Python, `breakpoint()`.
    """

    arguments = var_operand_def()
    names = prop_def(ArrayAttr[StringAttr])
    unsigned = opt_prop_def(DenseArrayBase)
    step = opt_prop_def(UnitAttr)

    assembly_format = "(`(` $arguments^ `)`)? attr-dict (`:` type($arguments)^)?"

    def verify_(self) -> None:
        names, values = len(self.names), len(self.arguments)
        check(names == values, "there are {} names for {} values", names, values)
