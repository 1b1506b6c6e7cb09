"""Directives for the text of XeTile, in both spellings (docs/xetile.md, section 4).

The printer writes the form of the released dialect; the parser also takes the RFC's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, StringAttr, VectorType
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    OperandsDirective,
    OperandVariable,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from .. import base
from ..assembly import Silent, spelt
from ..attributes import parse_int_list
from ..reduction_kinds import parse_kind
from .types import TileType, mask_type

_NO_INDICES = base.ParsedIndices([], base.dense_i64(()))


def _parse_arrow(parser: Parser) -> bool:
    """Parse ``->``, or the RFC's ``into`` or ``to``; return whether there was one."""
    return bool(
        parser.parse_optional_punctuation("->")
        or parser.parse_optional_keyword("into")
        or parser.parse_optional_keyword("to")
    )


def _parse_types(parser: Parser) -> list[Attribute]:
    """Parse ``type, type``; the RFC also has ``(type, type)``."""
    with_parentheses = parser._current_token.text == "("  # pyright: ignore[reportPrivateUsage]
    delimiter = parser.Delimiter.PAREN if with_parentheses else parser.Delimiter.NONE
    return list(parser.parse_comma_separated_list(delimiter, parser.parse_type))


def _is_list(parser: Parser) -> bool:
    return parser._current_token.text == "["  # pyright: ignore[reportPrivateUsage]


def _check_count(
    parser: Parser, position: int, operands: int, types: Sequence[Attribute]
) -> None:
    if operands != len(types):
        problem = f"expected {operands} operand types but had {len(types)}"
        parser.raise_error(problem, position)


# Kinds, dimensions and dictionaries ---------------------------------------------------

# Names of the maps of source and result in the released dialect, and ours.
MAP_SPELLINGS = {
    **{"map1": "source_map", "map2": "map"},
    **{"wg_map_source": "source_map", "wg_map_result": "map"},
}
_BARE_MAPS = re.compile(r"\{\s*#")


@irdl_custom_directive
class Maps(Silent):
    """In front of ``attr-dict``: other names of maps, and maps without names, ``{#c}``.

    Maps without names are the last ones of ``MAPS`` of the operation.  The directive
    prints nothing.
    """

    def parse(self, parser: Parser, state: ParsingState) -> None:
        names = cast("tuple[str, ...]", getattr(state.op_type, "MAPS"))  # noqa: B009 (not of all)
        if _BARE_MAPS.match(parser.lexer.input.content, parser.pos):
            found = _parse_bare_maps(parser, names)
            known = state.op_type.get_irdl_definition().properties
            for name, value in found.items():
                (state.properties if name in known else state.attributes)[name] = value
            return
        properties, attributes = base.parse_attributes(parser, state.op_type)
        for name, value in attributes.items():
            state.attributes[MAP_SPELLINGS.get(name, name)] = value
        state.properties |= properties


def _parse_bare_maps(parser: Parser, names: Sequence[str]) -> dict[str, Attribute]:
    position, given = parser.pos, list[Attribute]()
    parser.parse_punctuation("{")
    while not parser.parse_optional_punctuation("}"):
        given.append(parser.parse_attribute())
        parser.parse_optional_punctuation(",")
    if len(given) > len(names):
        parser.raise_error(f"{len(given)} maps for {', '.join(names)}", position)
    return dict(zip(names[-len(given) :], given))


@irdl_custom_directive
class PlainLists(Silent):
    """In front of ``attr-dict``: properties ``[1, 0]`` are dense arrays."""

    def parse(self, parser: Parser, state: ParsingState) -> None:
        properties, attributes = base.parse_attributes(parser, state.op_type)
        for name, value in properties.items():
            if base.is_array(value):
                numbers = [n.value.data for n in value if base.is_integer_attr(n)]
                value = base.dense_i64(numbers)
            state.properties[name] = value
        state.attributes |= attributes


def _read_kind(parser: Parser) -> Attribute:
    """Parse ``<add>``, ``"add"`` or another spelling, and a comma if one follows."""
    kind = StringAttr(parse_kind(parser))
    parser.parse_optional_punctuation(",")
    return kind


@irdl_custom_directive
class Dims(CustomDirective):
    """``%v [1, 0]``; the RFC also has ``%v, [1, 0]`` and ``[1, 0] %v``."""

    BEHIND_SOURCE = ""

    source: OperandVariable
    dims: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        source = parser.parse_optional_unresolved_operand()
        parser.parse_optional_punctuation(",")
        dims = base.dense_i64(value.data for value in parse_int_list(parser))
        self.dims.set(state, dims)
        self.source.set(state, source or parser.parse_unresolved_operand())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.source.print(printer, state, op)
        dims = list(base.ints_of(self.dims.get(op)))
        printer.print_string(f"{self.BEHIND_SOURCE} {dims}")


@irdl_custom_directive
class DimsBehindComma(Dims):
    """As `Dims`, printed ``%v, [1, 0]``."""

    BEHIND_SOURCE = ","

    source: OperandVariable
    dims: AttributeVariable


# Operands, then types -----------------------------------------------------------------


@irdl_custom_directive
class Listed(CustomDirective):
    """``%a, %b``; the RFC has a comma in front of attributes, ``%m, {padding = 0}``."""

    operands: OperandsDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        operands = [parser.parse_unresolved_operand()]
        while parser.parse_optional_punctuation(","):
            operand = parser.parse_optional_unresolved_operand()
            if operand is None:
                break
            operands.append(operand)
        # Give each operand of the definition one value; the last one may be absent.
        definition = state.op_type.get_irdl_definition()
        if len(operands) > len(state.operands):
            parser.raise_error(f"{definition.name} has {len(state.operands)} operands")
        state.operands[:] = [(each,) for each in operands]
        state.operands += [()] * (len(definition.operands) - len(operands))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.operands.print(printer, state, op)


def _set_operand_types(state: ParsingState, types: Sequence[Attribute]) -> None:
    missing = len(state.operand_types) - len(types)
    state.operand_types[:] = [*((each,) for each in types), *[()] * missing]


@irdl_custom_directive
class Conversion(CustomDirective):
    """``types -> types``; the RFC leaves the type of a mask out."""

    operands: TypeDirective
    results: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        position = parser.pos
        count = sum(len(each or ()) for each in state.operands)
        types = _parse_types(parser)
        if len(types) + 1 == count and isinstance(types[0], TileType):
            types.append(mask_type(types[0]))
        _check_count(parser, position, count, types)
        _set_operand_types(state, types)
        self.results.set(state, self.parse_results(parser, types))

    def parse_results(
        self, parser: Parser, types: Sequence[Attribute]
    ) -> Sequence[Attribute]:
        """Parse ``-> types``."""
        if not _parse_arrow(parser):
            parser.raise_error("expected '->'")
        return _parse_types(parser)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.operands.print(printer, state, op)
        printer.print_string(" ->")
        self.results.print(printer, state, op)


@irdl_custom_directive
class OptionalConversion(Conversion):
    """As `Conversion`; without an arrow the result has the type of the operand."""

    operands: TypeDirective
    results: TypeDirective

    def parse_results(
        self, parser: Parser, types: Sequence[Attribute]
    ) -> Sequence[Attribute]:
        """Parse ``-> type`` if present."""
        return [parser.parse_type()] if _parse_arrow(parser) else types


@irdl_custom_directive
class SameType(OptionalConversion):
    """As `OptionalConversion`; only the type of the operand is printed."""

    operands: TypeDirective
    results: TypeDirective

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.operands.print(printer, state, op)


@irdl_custom_directive
class Stored(CustomDirective):
    """The types of a store, ``vector, tile`` or ``vector, mask, tile``.

    The RFC also has ``vector into tile``, the tile first, and the mask last or without
    a type.
    """

    operands: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        position = parser.pos
        types = _parse_types(parser)
        if _parse_arrow(parser):
            types += _parse_types(parser)
        count = sum(len(each or ()) for each in state.operands)
        if count == 3 and len(types) == 2 and isinstance(types[1], TileType):
            types.insert(1, mask_type(types[1]))
        _check_count(parser, position, count, types)
        self.order(parser, state, types)
        _set_operand_types(state, types)

    def order(
        self, parser: Parser, state: ParsingState, types: list[Attribute]
    ) -> None:
        """Sort ``types`` and the operands in place: vector, mask if any, tile."""
        operands = state.operands
        if len(types) == 3:
            if isinstance(types[1], TileType):
                types[1:], operands[1:] = types[:0:-1], operands[:0:-1]
            return
        assert operands[0]
        first = operands[0][0]
        values = parser.ssa_values.get(first.operand_name) or ()
        if first.index < len(values) and isinstance(values[first.index].type, TileType):
            operands.reverse()
        if isinstance(types[0], TileType):
            types.reverse()

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.operands.print(printer, state, op)


# Places of tiles ----------------------------------------------------------------------


@irdl_custom_directive
class Window(CustomDirective):
    """``[%i, 0], [sizes], [strides]``, or ``, %indices`` of a scattered tile."""

    offsets: VariadicOperandVariable
    static_offsets: AttributeVariable
    sizes: VariadicOperandVariable
    static_sizes: AttributeVariable
    strides: VariadicOperandVariable
    static_strides: AttributeVariable
    indices: OptionalOperandVariable

    @property
    def _lists(self) -> list[tuple[VariadicOperandVariable, AttributeVariable]]:
        return [
            (self.offsets, self.static_offsets),
            (self.sizes, self.static_sizes),
            (self.strides, self.static_strides),
        ]

    def parse(self, parser: Parser, state: ParsingState) -> None:
        found = [base.parse_indices(parser)] if _is_list(parser) else []
        scattered: UnresolvedOperand | None = None
        while parser.parse_optional_punctuation(","):
            if _is_list(parser):
                found.append(base.parse_indices(parser))
            else:
                scattered = parser.parse_unresolved_operand()
        found += [_NO_INDICES] * 3
        for (values, static), part in zip(self._lists, found):
            values.set(state, part.values)
            static.set(state, part.static)
        self.indices.set(state, scattered)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if self.indices.is_present(op):
            printer.print_string(",")
            self.indices.print(printer, state, op)
            return
        for number, (values, static) in enumerate(self._lists):
            constants = static.get(op)
            assert constants is not None
            if number and constants != _NO_INDICES.static:
                printer.print_string(", ")
            if not number or constants != _NO_INDICES.static:
                base.print_indices(printer, constants, values.get(op))


@irdl_custom_directive
class WindowTypes(CustomDirective):
    """``base, vector -> tile``; the RFC leaves the type of the indices out."""

    source: TypeDirective
    indices: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types = _parse_types(parser)
        if not _parse_arrow(parser):
            parser.raise_error("expected '->'")
        tile = parser.parse_type()
        self.source.set(state, types[:1])
        self.result.set(state, [tile])
        if not state.operands[-1]:
            self.indices.set(state, ())
        elif isinstance(tile, TileType):
            self.indices.set(state, types[1:2] or [VectorType(IndexType(), tile.shape)])
        else:
            parser.raise_error("expected the type of a scattered tile")

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.source.print(printer, state, op)
        if self.indices.is_present(op):
            printer.print_string(",")
            self.indices.print(printer, state, op)
        printer.print_string(" ->")
        self.result.print(printer, state, op)


@irdl_custom_directive
class Step(CustomDirective):
    """``[%dx, 32]``, or ``%indices`` of a scattered tile; the RFC has ``%dx, %dy``."""

    offsets: VariadicOperandVariable
    static_offsets: AttributeVariable
    indices: OptionalOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        offsets, operands = _NO_INDICES, list[UnresolvedOperand]()
        if _is_list(parser):
            offsets = base.parse_indices(parser)
        else:
            operands = base.parse_operands(parser)
        if len(operands) == 2:
            offsets = base.ParsedIndices(operands, base.dense_i64([DYNAMIC_INDEX] * 2))
        self.offsets.set(state, offsets.values)
        self.static_offsets.set(state, offsets.static)
        self.indices.set(state, operands[0] if len(operands) == 1 else None)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        if self.indices.is_present(op):
            self.indices.print(printer, state, op)
            return
        state.print_whitespace(printer)
        static = self.static_offsets.get(op)
        assert static is not None
        base.print_indices(printer, static, self.offsets.get(op))


@irdl_custom_directive
class StepTypes(CustomDirective):
    """``tile`` or ``tile, vector``; the RFC has ``tile, index, index -> tile``."""

    tile: TypeDirective
    indices: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        types = _parse_types(parser)
        if _parse_arrow(parser):
            parser.parse_type()
        has_indices = bool(state.operands[-1])
        if has_indices and len(types) != 2:
            parser.raise_error("expected the types of the tile and of the indices")
        self.tile.set(state, types[:1])
        self.indices.set(state, types[1:] if has_indices else ())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.tile.print(printer, state, op)
        if self.indices.is_present(op):
            printer.print_string(",")
            self.indices.print(printer, state, op)


DIRECTIVES = (
    spelt("Kind", _read_kind, lambda kind: f"<{kind.data}>"),
    spelt("KindAndComma", _read_kind, lambda kind: f"<{kind.data}>,"),
    *(Maps, PlainLists, Dims, DimsBehindComma),
    *(Listed, Conversion, OptionalConversion, SameType, Stored),
    *(Window, WindowTypes, Step, StepTypes),
)
