"""Text that operations of XeGPU share: lists of offsets, dictionaries, types.

MLIR prints properties as ``<{...}>`` and other attributes behind them; it does not
take a property from the plain dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from xetl.dialects.base import (
    Index,
    IndexList,
    ParsedIndices,
    Value,
    check,
    check_indices,
    mix_indices,
    parse_indices,
    print_indices,
    split_indices,
)
from xetl.dialects.operation import Common, XetlOp

from .attributes import CacheHintAttr

HIDDEN = (
    *("operandSegmentSizes", "const_offsets", "const_shape", "const_strides"),
    *("kind", "memory_kind", "fence_scope"),
)


class Hints(Common, total=False):
    """Keywords of operations that go through the caches, beside the common ones."""

    l1_hint: str | None
    l2_hint: str | None
    l3_hint: str | None


class SplitHints(NamedTuple):
    """Hints as properties, and the keywords that are left."""

    properties: dict[str, Attribute | None]
    common: Common


def split_hints(**given: Unpack[Hints]) -> SplitHints:
    """Take the hints, which are words, out of the keywords of a constructor."""
    words = {f"l{n}_hint": given.get(f"l{n}_hint") for n in (1, 2, 3)}
    properties: dict[str, Attribute | None] = {
        name: CacheHintAttr(word) for name, word in words.items() if word is not None
    }
    common = Common(attributes=given.get("attributes"), location=given.get("location"))
    return SplitHints(properties, common)


def check_hints(op: XetlOp, allowed: Sequence[str]) -> None:
    """Check that hints are words, and make sense for reading or for writing."""
    for name in ("l1_hint", "l2_hint", "l3_hint"):
        hint = op.properties.get(name)
        if hint is None:
            continue
        fits = isinstance(hint, CacheHintAttr) and hint.word in allowed
        check(fits, f"{name} is one of {', '.join(allowed)}, found {hint}")


READ_HINTS = ("cached", "uncached", "streaming", "read_invalidate")
WRITE_HINTS = ("cached", "uncached", "streaming", "write_back", "write_through")


def split_optional(indices: Sequence[int | Value]) -> IndexList | None:
    """Split a mixed list; None if it is empty."""
    return split_indices(indices) if indices else None


def mixed(
    static: DenseArrayBase | None, values: Iterable[SSAValue]
) -> tuple[Index, ...]:
    """Constants and values of an optional list; () where it is absent."""
    return () if static is None else mix_indices(static, values)


def check_mixed(
    name: str, static: DenseArrayBase | None, values: Sequence[SSAValue]
) -> None:
    """Check that an optional list has a value for each of its gaps."""
    if static is not None:
        check_indices(name, static, values)
        return
    check(not values, f"{name}: {len(values)} values are given without their places")


def parse_optional_indices(parser: Parser) -> ParsedIndices | None:
    """Parse ``[8, %i]`` if it is there."""
    is_list = parser._current_token.text == "["  # pyright: ignore[reportPrivateUsage]
    return parse_indices(parser) if is_list else None


def print_optional_indices(
    printer: Printer, static: DenseArrayBase | None, values: Iterable[SSAValue]
) -> None:
    """Print ``[8, %i]`` if it is there."""
    if static is not None:
        print_indices(printer, static, values)


def print_dictionaries(printer: Printer, op: Operation) -> None:
    """Print ``<{properties}> {attributes}``, but for what has a text of its own."""
    shown = {name: a for name, a in op.properties.items() if name not in HIDDEN}
    if shown:
        printer.print_string(" ")
        with printer.in_angle_brackets():
            printer.print_attr_dict(shown)
    printer.print_op_attributes(op.attributes)


def print_types(
    printer: Printer, operands: Iterable[SSAValue], results: Sequence[SSAValue] = ()
) -> None:
    """Print ``: types -> types``; no arrow without results."""
    printer.print_string(" : ")
    printer.print_list([each.type for each in operands], printer.print_attribute)
    if results:
        printer.print_string(" -> ")
        printer.print_list([each.type for each in results], printer.print_attribute)


class ParsedTypes(NamedTuple):
    """What stands behind the colon."""

    operands: list[Attribute]
    results: list[Attribute]


def parse_types(parser: Parser) -> ParsedTypes:
    """Parse ``: types -> types``; without an arrow there are no results."""
    parser.parse_punctuation(":")
    none = parser.Delimiter.NONE
    operands = parser.parse_comma_separated_list(none, parser.parse_type)
    results: list[Attribute] = []
    if parser.parse_optional_punctuation("->"):
        results += parser.parse_comma_separated_list(none, parser.parse_type)
    return ParsedTypes(list(operands), results)


def resolve(
    parser: Parser, operands: Sequence[UnresolvedOperand], types: Sequence[Attribute]
) -> list[SSAValue]:
    """The values of operands, as many as there are types."""
    return list(parser.resolve_operands(operands, types, parser.pos))
