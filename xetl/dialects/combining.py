"""Names of the operations that reductions and atomics combine values with.

Source: MLIR, `#vector.kind` and `arith::AtomicRMWKind`; the second spells some
differently (`addf`, `maxs`), which is accepted and made one here.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .reduction_kinds import KINDS, ON_FLOATS, ON_INTEGERS
from .upstream.elementwise import is_float

FLOAT_KINDS = tuple(ON_FLOATS)
INTEGER_KINDS = tuple(ON_INTEGERS)
ATOMIC_KINDS = (*KINDS, "assign")

_SPELLINGS = {
    **{each.atomic: kind for kind, each in [*ON_FLOATS.items(), *ON_INTEGERS.items()]},
    **{"exchange": "assign", "minf": "minimumf", "maxf": "maximumf"},
}


def normalize_kind(kind: str) -> str:
    """The one spelling of a kind; a VerifyException if there is no such kind."""
    name = _SPELLINGS.get(kind, kind)
    if name not in ATOMIC_KINDS:
        known = ", ".join(ATOMIC_KINDS)
        raise VerifyException(f"`{kind}` is no kind of reduction; one of {known}")
    return name


def kind_attribute(kind: str) -> StringAttr:
    """The kind in its one spelling, as operations have it."""
    return StringAttr(normalize_kind(kind))


def kind_fits(kind: str, element: Attribute) -> bool:
    """Whether ``kind`` combines elements of this type."""
    fitting = FLOAT_KINDS if is_float(element) else INTEGER_KINDS
    return kind == "assign" or kind in fitting


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


@irdl_attr_definition
class CombiningKindAttr(ParametrizedAttribute):
    """``#vector.kind<add>``.  Source: MLIR, `vector` dialect."""

    name = "vector.kind"

    number: IntAttr = param_def()

    def __init__(self, kind: str) -> None:
        super().__init__(IntAttr(KINDS.index(normalize_kind(kind))))

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return KINDS[self.number.data]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<add>``."""
        with parser.in_angle_brackets():
            position = parser.pos
            name = parser.parse_identifier()
        if _SPELLINGS.get(name, name) not in KINDS:
            parser.raise_error(f"`{name}` is no combining kind", position)
        return cls(name).parameters

    def print_parameters(self, printer: Printer) -> None:
        """Print ``<add>``."""
        printer.print_string(f"<{self.kind}>")
