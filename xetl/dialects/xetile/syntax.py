"""Text of the XeTile operations, both spellings (docs/xetile.md, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    VectorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ..base import (
    ParsedIndices,
    dense_i64,
    parse_attributes,
    parse_indices,
    parse_operands,
    print_attributes,
    print_indices,
    resolve_indices,
)
from .types import TileType

OpT = TypeVar("OpT", bound=IRDLOperation)
NO_INDICES = ParsedIndices([], dense_i64(()))
HIDDEN = (
    *("operandSegmentSizes", "static_offsets", "static_sizes", "static_strides"),
    "locality",
)


def mask_type(tile: TileType) -> VectorType[Attribute]:
    """i1 in the shape of the vector of a tile."""
    return VectorType(i1, tile.vector_type().shape)


def parse_arrow(parser: Parser) -> None:
    """Parse ``->``, or ``into`` or ``to`` as the RFC writes."""
    if not parse_optional_arrow(parser):
        parser.raise_error("expected '->'")


def parse_optional_arrow(parser: Parser) -> bool:
    """Parse ``->`` or what the RFC writes for it, if present."""
    return bool(
        parser.parse_optional_punctuation("->")
        or parser.parse_optional_keyword("into")
        or parser.parse_optional_keyword("to")
    )


def parse_types(parser: Parser) -> list[Attribute]:
    """Parse ``type, type``; the RFC also has ``(type, type)``."""
    with_parentheses = parser._current_token.text == "("  # pyright: ignore[reportPrivateUsage]
    delimiter = parser.Delimiter.PAREN if with_parentheses else parser.Delimiter.NONE
    return list(parser.parse_comma_separated_list(delimiter, parser.parse_type))


def _is_list(parser: Parser) -> bool:
    return parser._current_token.text == "["  # pyright: ignore[reportPrivateUsage]


# init_tile --------------------------------------------------------------------------


def parse_init_tile(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%m[o0, o1], [sizes], [strides] : base -> tile`` or ``%m, %idx : ...``."""
    source = parser.parse_unresolved_operand()
    lists: list[ParsedIndices] = []
    if _is_list(parser):
        lists.append(parse_indices(parser))
    scattered: UnresolvedOperand | None = None
    while parser.parse_optional_punctuation(","):
        if _is_list(parser):
            lists.append(parse_indices(parser))
        else:
            scattered = parser.parse_unresolved_operand()
    properties, attributes = parse_attributes(parser, op_type)
    parser.parse_punctuation(":")
    types = parse_types(parser)
    parse_arrow(parser)
    result = parser.parse_type()
    lists += [NO_INDICES] * (3 - len(lists))
    names = ("static_offsets", "static_sizes", "static_strides")
    indices = None
    if scattered is not None:
        if not isinstance(result, TileType) or len(types) < 1:
            parser.raise_error("expected the type of a scattered tile")
        default = VectorType(IndexType(), result.shape)
        type_ = types[1] if len(types) > 1 else default
        indices = parser.resolve_operand(scattered, type_)
    return op_type.build(
        operands=[
            parser.resolve_operand(source, types[0]),
            *(resolve_indices(parser, part.values) for part in lists[:3]),
            indices,
        ],
        result_types=[result],
        properties=properties | {n: p.static for n, p in zip(names, lists)},
        attributes=attributes,
    )


class _InitTile(Protocol):
    @property
    def source(self) -> SSAValue: ...
    @property
    def offsets(self) -> Sequence[SSAValue]: ...
    @property
    def sizes(self) -> Sequence[SSAValue]: ...
    @property
    def strides(self) -> Sequence[SSAValue]: ...
    @property
    def indices(self) -> SSAValue | None: ...
    @property
    def static_offsets(self) -> Attribute: ...
    @property
    def static_sizes(self) -> Attribute: ...
    @property
    def static_strides(self) -> Attribute: ...
    @property
    def result(self) -> OpResult: ...


def print_init_tile(printer: Printer, op: _InitTile) -> None:
    """Print either form of init_tile."""
    assert isinstance(op, Operation)
    printer.print_string(" ")
    printer.print_ssa_value(op.source)
    if op.indices is not None:
        printer.print_string(", ")
        printer.print_ssa_value(op.indices)
    else:
        print_indices(printer, op.static_offsets, op.offsets)
        for static, values in (
            (op.static_sizes, op.sizes),
            (op.static_strides, op.strides),
        ):
            if static != NO_INDICES.static:
                printer.print_string(", ")
                print_indices(printer, static, values)
    print_attributes(printer, op, HIDDEN)
    printer.print_string(" : ")
    printer.print_attribute(op.source.type)
    if op.indices is not None:
        printer.print_string(", ")
        printer.print_attribute(op.indices.type)
    printer.print_string(" -> ")
    printer.print_attribute(op.result.type)


# Operands, then types ---------------------------------------------------------------


def parse_load_tile(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%t {...} : tile -> vector, vector``; ``transpose`` may be ``[1, 0]``."""
    op = _parse_results(parser, op_type, parse_operands(parser), {})
    given = op.properties.get("transpose")
    if isinstance(given, ArrayAttr):
        listed = cast("ArrayAttr[Attribute]", given)
        numbers = [n.value.data for n in listed if isinstance(n, IntegerAttr)]
        op.properties["transpose"] = dense_i64(numbers)
    return op


def _parse_results(
    parser: Parser,
    op_type: type[OpT],
    operands: Sequence[UnresolvedOperand],
    given: dict[str, Attribute],
) -> OpT:
    """Parse attributes and ``: types -> types`` of operands that are read already."""
    properties, attributes = parse_attributes(parser, op_type)
    parser.parse_punctuation(":")
    position = parser.pos
    types = parse_types(parser)
    results = parse_types(parser) if parse_optional_arrow(parser) else []
    if len(types) + 1 == len(operands) and isinstance(types[0], TileType):
        types.append(mask_type(types[0]))  # the RFC leaves the type of a mask out
    return op_type.create(
        operands=parser.resolve_operands(operands, types, position),
        result_types=results,
        properties=properties | given,
        attributes=attributes,
    )


def parse_operands_with_types(
    parser: Parser, op_type: type[OpT], given: dict[str, Attribute] | None = None
) -> OpT:
    """Parse ``%a, %b {...} : types -> types``; no arrow without results.

    The RFC also has a comma in front of the attributes: ``%mask, {padding = 1.0}``.
    """
    operands = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(","):
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            break
        operands.append(operand)
    return _parse_results(parser, op_type, operands, given or {})


def print_operands_to_results(
    printer: Printer, op: Operation, elided: Sequence[str] = ()
) -> None:
    """Print ``%a, %b {...} : types -> types``; no arrow without results."""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_ssa_value)
    print_attributes(printer, op, elided)
    printer.print_string(" : ")
    printer.print_list(op.operand_types, printer.print_attribute)
    if op.results:
        printer.print_string(" -> ")
        printer.print_list(op.result_types, printer.print_attribute)


class _ParsedStore(NamedTuple):
    """A store up to the types in front of an arrow."""

    operands: list[UnresolvedOperand]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    position: int
    types: list[Attribute]


def _parse_store(parser: Parser, op_type: type[IRDLOperation]) -> _ParsedStore:
    operands = parse_operands(parser)
    properties, attributes = parse_attributes(parser, op_type)
    parser.parse_punctuation(":")
    position = parser.pos
    types = parse_types(parser)
    return _ParsedStore(operands, properties, attributes, position, types)


def parse_store_tile(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%v, %t {...} : vector, tile``.

    The RFC also has ``vector into tile``, and the tile first.
    """
    operands, properties, attributes, position, types = _parse_store(parser, op_type)
    if parse_optional_arrow(parser):
        types += parse_types(parser)
    first, index = parser.ssa_values.get(operands[0].operand_name), operands[0].index
    if first and index < len(first) and isinstance(first[index].type, TileType):
        operands.reverse()
    if isinstance(types[0], TileType):
        types.reverse()
    return op_type.create(
        operands=parser.resolve_operands(operands, types, position),
        properties=properties,
        attributes=attributes,
    )


def parse_store_scatter(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%v, %mask, %t : ...`` or ``%v, %t, %mask : ...``."""
    operands, properties, attributes, position, types = _parse_store(parser, op_type)
    if parse_optional_arrow(parser):
        # RFC: `vector into tile`, with the type of the mask left out.
        types += [parser.parse_type()]
        tile = types[-1]
        if len(types) == 2 and isinstance(tile, TileType):
            types.insert(1, mask_type(tile))
    values = list(parser.resolve_operands(operands, types, position))
    if len(values) == 3 and isinstance(values[1].type, TileType):
        values[1], values[2] = values[2], values[1]
    return op_type.create(operands=values, properties=properties, attributes=attributes)


def parse_prefetch(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%t locality<3> {...} : tile``."""
    tile = parser.parse_unresolved_operand()
    properties: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("locality"):
        with parser.in_angle_brackets():
            properties["locality"] = IntegerAttr(parser.parse_integer(), i32)
    found, attributes = parse_attributes(parser, op_type)
    parser.parse_punctuation(":")
    return op_type.create(
        operands=[parser.resolve_operand(tile, parser.parse_type())],
        properties=properties | found,
        attributes=attributes,
    )


def print_prefetch(
    printer: Printer, op: Operation, locality: IntegerAttr | None
) -> None:
    """Print ``%t locality<3> {...} : tile``."""
    printer.print_string(" ")
    printer.print_ssa_value(op.operands[0])
    if locality is not None:
        printer.print_string(f" locality<{locality.value.data}>")
    print_attributes(printer, op, HIDDEN)
    printer.print_string(" : ")
    printer.print_attribute(op.operands[0].type)


# update_tile_offset -----------------------------------------------------------------


def parse_update(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse ``%t, [%dx, 32] : tile`` or ``%t, %step : tile, vector``.

    The RFC's ``%t, %dx, %dy : tile, index, index -> tile`` is taken as well.
    """
    tile = parser.parse_unresolved_operand()
    parser.parse_punctuation(",")
    offsets, operands = NO_INDICES, []
    if _is_list(parser):
        offsets = parse_indices(parser)
    else:
        operands = parse_operands(parser)
    properties, attributes = parse_attributes(parser, op_type)
    parser.parse_punctuation(":")
    types = parse_types(parser)
    if parse_optional_arrow(parser):
        parser.parse_type()
    if len(operands) == 2:
        offsets = ParsedIndices(operands, dense_i64([DYNAMIC_INDEX, DYNAMIC_INDEX]))
    indices = None
    if len(operands) == 1:
        if len(types) != 2:
            parser.raise_error("expected the types of the tile and of the indices")
        indices = parser.resolve_operand(operands[0], types[1])
    return op_type.build(
        operands=[
            parser.resolve_operand(tile, types[0]),
            resolve_indices(parser, offsets.values),
            indices,
        ],
        result_types=[types[0]],
        properties=properties | {"static_offsets": offsets.static},
        attributes=attributes,
    )


class _Update(Protocol):
    @property
    def tile(self) -> SSAValue: ...
    @property
    def offsets(self) -> Sequence[SSAValue]: ...
    @property
    def indices(self) -> SSAValue | None: ...
    @property
    def static_offsets(self) -> Attribute: ...


def print_update(printer: Printer, op: _Update) -> None:
    """Print either form of update_tile_offset."""
    assert isinstance(op, Operation)
    printer.print_string(" ")
    printer.print_ssa_value(op.tile)
    printer.print_string(", ")
    if op.indices is None:
        print_indices(printer, op.static_offsets, op.offsets)
    else:
        printer.print_ssa_value(op.indices)
    print_attributes(printer, op, HIDDEN)
    printer.print_string(" : ")
    printer.print_attribute(op.tile.type)
    if op.indices is not None:
        printer.print_string(", ")
        printer.print_attribute(op.indices.type)
