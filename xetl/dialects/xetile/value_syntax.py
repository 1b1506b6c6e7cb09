"""Text of operations on tile values, both spellings (docs/xetile.md, section 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ..base import (
    dense_i64,
    ints_of,
    parse_attributes,
    parse_operands,
    print_attributes,
)
from ..combining import parse_kind
from .attributes import parse_int_list
from .syntax import parse_arrow, parse_optional_arrow, parse_types

OpT = TypeVar("OpT", bound=IRDLOperation)

# What the released dialect calls the maps of source and result.
MAP_SPELLINGS = {
    **{"map1": "source_map", "map2": "map"},
    **{"wg_map_source": "source_map", "wg_map_result": "map"},
}


_MAPS_OF_MMA = ("wg_map_a", "wg_map_b", "wg_map_c")
_MAPS = ("source_map", "map")
_BARE_MAPS = re.compile(r"\{\s*#")


def _parse_maps(
    parser: Parser, op_type: type[IRDLOperation], names: Sequence[str]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Parse attributes; the RFC has maps without ``names``, the last ones: ``{#c}``."""
    position = parser.pos
    if _BARE_MAPS.match(parser.lexer.input.content, position):
        given: list[Attribute] = []
        parser.parse_punctuation("{")
        while not parser.parse_optional_punctuation("}"):
            given.append(parser.parse_attribute())
            parser.parse_optional_punctuation(",")
        if len(given) > len(names):
            parser.raise_error(f"{len(given)} maps for {', '.join(names)}", position)
        found = dict(zip(names[-len(given) :], given))
        known = op_type.get_irdl_definition().properties
        properties = {name: map_ for name, map_ in found.items() if name in known}
        return properties, {k: v for k, v in found.items() if k not in known}
    properties, attributes = parse_attributes(parser, op_type)
    return properties, {MAP_SPELLINGS.get(k, k): v for k, v in attributes.items()}


def parse_mma(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%a, %b, %c {...} : types -> type``."""
    operands = parse_operands(parser)
    properties, attributes = _parse_maps(parser, op_type, _MAPS_OF_MMA)
    parser.parse_punctuation(":")
    position = parser.pos
    types = parse_types(parser)
    parse_arrow(parser)
    return op_type.create(
        operands=parser.resolve_operands(operands, types, position),
        result_types=[parser.parse_type()],
        properties=properties,
        attributes=attributes,
    )


def print_mma(printer: Printer, op: Operation) -> None:
    """Print ``%a, %b, %c {...} : types -> type``."""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    print_attributes(printer, op)
    printer.print_string(" : ")
    printer.print_list(op.operand_types, printer.print_attribute)
    printer.print_string(" -> ")
    printer.print_attribute(op.results[0].type)


def parse_reduction_kind(parser: Parser) -> dict[str, Attribute]:
    """Parse ``<add>`` and a comma that may be absent."""
    kind = parse_kind(parser)
    parser.parse_optional_punctuation(",")
    return {"kind": StringAttr(kind)}


def parse_with_dims(
    parser: Parser,
    op_type: type[OpT],
    name: str,
    given: dict[str, Attribute] | None = None,
) -> OpT:
    """Parse ``%v, [1, 0] {...} : vector -> vector``; the RFC also has ``[1, 0] %v``."""
    source = parser.parse_optional_unresolved_operand()
    parser.parse_optional_punctuation(",")
    dims = dense_i64(value.data for value in parse_int_list(parser))
    if source is None:
        source = parser.parse_unresolved_operand()
    return _parse_unary(parser, op_type, source, {name: dims, **(given or {})})


def _parse_unary(
    parser: Parser,
    op_type: type[OpT],
    source: UnresolvedOperand,
    given: dict[str, Attribute],
) -> OpT:
    properties, attributes = _parse_maps(parser, op_type, _MAPS)
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    result = parser.parse_type() if parse_optional_arrow(parser) else type_
    return op_type.create(
        operands=[parser.resolve_operand(source, type_)],
        result_types=[result],
        properties=given | properties,
        attributes=attributes,
    )


class _Unary(Protocol):
    @property
    def source(self) -> SSAValue: ...
    @property
    def result(self) -> OpResult: ...


def print_with_dims(printer: Printer, op: _Unary, name: str, separator: str) -> None:
    """Print ``%v, [1, 0] {...} : vector -> vector``."""
    assert isinstance(op, Operation)
    printer.print_string(" ")
    printer.print_ssa_value(op.source)
    printer.print_string(f"{separator}{list(ints_of(op.properties[name]))}")
    print_attributes(printer, op, (name, "kind"))
    printer.print_string(" : ")
    printer.print_attribute(op.source.type)
    printer.print_string(" -> ")
    printer.print_attribute(op.result.type)


def parse_conv_layout(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%v {map = #new, source_map = #old} : vector``."""
    source = parser.parse_unresolved_operand()
    return _parse_unary(parser, op_type, source, {})


def print_conv_layout(printer: Printer, op: _Unary) -> None:
    """Print ``%v {map = #new, source_map = #old} : vector``."""
    assert isinstance(op, Operation)
    printer.print_string(" ")
    printer.print_ssa_value(op.source)
    print_attributes(printer, op)
    printer.print_string(" : ")
    printer.print_attribute(op.source.type)


def parse_pack(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%v {inner_blocks = array<i64: 16, 16>} : vector -> vector``."""
    return _parse_unary(parser, op_type, parser.parse_unresolved_operand(), {})


def print_pack(printer: Printer, op: _Unary) -> None:
    """Print ``%v {inner_blocks = array<i64: 16, 16>} : vector -> vector``."""
    print_conv_layout(printer, op)
    printer.print_string(" -> ")
    printer.print_attribute(op.result.type)
