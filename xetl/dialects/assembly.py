"""Parse and print operations by their ``assembly_format``.

The language of formats is MLIR's; xDSL's `FormatParser` reads it. Differences to xDSL:

* A format is compiled when the first operation is parsed or printed, not on import.
* Types that the text leaves out are inferred (see `type_rules`).
* ``attr-dict`` takes properties as ``<{...}>`` or in the plain dictionary, and prints
  one dictionary, properties first; ``prop-dict`` in front of it prints two, as MLIR.
* ``types($a, $b)`` is one list of the types of operands, some of which may be absent.
* All formats know the directives here and those of `_MODULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, ClassVar, TypeVar

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttrDictDirective,
    AttributeVariable,
    CustomDirective,
    FormatDirective,
    FunctionalTypeDirective,
    OperandDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariableDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.irdl.declarative_assembly_format_parser import FormatParser
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xetl.imports import import_whole

from . import base
from .operation import FORMATS, SEGMENTS, flatten
from .property_values import default_properties
from .type_rules import infer_types, plan_types, types_of

OpT = TypeVar("OpT", bound=IRDLOperation)


# Directives ---------------------------------------------------------------------------


@irdl_custom_directive
class Indices(CustomDirective):
    """``[%i, %j]`` directly after a value; an empty list is printed as ``[]``."""

    values: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        square = parser.Delimiter.SQUARE
        self.values.set(state, base.parse_optional_operands(parser, square))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        with printer.in_square_brackets():
            printer.print_list(self.values.get(op), printer.print_ssa_value)
        state.should_emit_space, state.last_was_punctuation = True, False


@irdl_custom_directive
class DynamicIndexList(CustomDirective):
    """``[8, %i]``: constants, and values in the gaps between them."""

    values: VariadicOperandVariable
    static: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        values, static = base.parse_indices(parser)
        self.values.set(state, values)
        self.static.set(state, static)

    def parse_optional(self, parser: Parser, state: ParsingState) -> None:
        """Parse the list if there is one."""
        if parser._current_token.text == "[":  # pyright: ignore[reportPrivateUsage]
            self.parse(parser, state)
        else:
            self.set_empty(state)

    def set_empty(self, state: ParsingState) -> None:
        """Set an empty list."""
        self.values.set(state, ())

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        static = self.static.get(op)
        assert static is not None
        base.print_indices(printer, static, self.values.get(op))

    def is_present(self, op: IRDLOperation) -> bool:
        """Whether there is a list."""
        return self.static.get(op) is not None

    def is_anchorable(self) -> bool:
        """Return True: an optional group may depend on the list."""
        return True

    def is_optional_like(self) -> bool:
        """Return True: an optional group may begin with the list."""
        return True


class Silent(CustomDirective):
    """A directive that is parsed, but printed by another directive or not at all."""

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Print nothing."""


class _SpeltAttribute(CustomDirective):
    attribute: AttributeVariable

    # Functions, not methods: they are taken from the class.
    read: ClassVar[Callable[[Parser], Attribute]]
    spell: ClassVar[Callable[[Any], str]]

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.attribute.set(state, type(self).read(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        printer.print_string(type(self).spell(self.attribute.get(op)))


def spelt(
    name: str, read: Callable[[Parser], Attribute], spell: Callable[[Any], str]
) -> type[CustomDirective]:
    """Make a directive for an attribute that two functions parse and print."""
    body = {"read": staticmethod(read), "spell": staticmethod(spell)}
    made = type(name, (_SpeltAttribute,), body)
    made.__annotations__ = {"attribute": AttributeVariable}
    return irdl_custom_directive(made)


@irdl_custom_directive
class Enumerated(CustomDirective):
    """A word for a number: its index in the list ``WORDS`` of the operation."""

    number: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        position = parser.pos
        word, known = parser.parse_identifier(), _words(state.op_type)
        if word not in known:
            what = f"unknown {self.number.name} {word}"
            parser.raise_error(f"{what}, expected one of {', '.join(known)}", position)
        self.number.set(state, builtin.IntegerAttr(known.index(word), builtin.i64))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        number = self.number.get(op)
        assert isinstance(number, builtin.IntegerAttr)
        printer.print_string(_words(type(op))[number.value.data])


def _read_words(parser: Parser) -> Attribute:
    paren, one = parser.Delimiter.PAREN, parser.parse_identifier
    words = parser.parse_comma_separated_list(paren, one)
    return builtin.ArrayAttr([builtin.StringAttr(word) for word in words])


def _words(op_type: type[IRDLOperation]) -> tuple[str, ...]:
    words: tuple[str, ...] = getattr(op_type, "WORDS")  # noqa: B009 (not of all classes)
    return words


_DIRECTIVES = (
    *(Indices, DynamicIndexList, Enumerated),
    # ``[1, 0]`` for a dense array of i64, a bare word for a text, ``(a, b)`` for some.
    spelt(
        "Integers",
        lambda p: base.parse_indices(p).static,
        lambda a: str([*base.ints_of(a)]),
    ),
    spelt(
        "Word",
        lambda p: builtin.StringAttr(p.parse_identifier()),
        lambda text: text.data,
    ),
    spelt("Words", _read_words, lambda a: f"({', '.join(text.data for text in a)})"),
)
_MODULES = ("xetl.dialects.upstream.directives", "xetl.dialects.xetile.syntax")
"""These import operations, which import this module when one is parsed or printed."""


@cache
def _directives() -> dict[str, type[CustomDirective]]:
    found = list(_DIRECTIVES)
    for name in _MODULES:
        found += import_whole(name).DIRECTIVES
    return {each.__name__: each for each in found}


@dataclass(frozen=True)
class _Dictionary(FormatDirective):
    """``attr-dict``: what is not ``hidden``, properties too unless they are apart."""

    hidden: frozenset[str]
    with_keyword: bool
    apart: bool

    def parse(self, parser: Parser, state: ParsingState) -> None:
        if self.with_keyword and not parser.parse_optional_keyword("attributes"):
            return
        properties, attributes = base.parse_attributes(parser, state.op_type)
        for name, value in properties.items():
            state.properties.setdefault(name, value)
        state.attributes |= attributes

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        defaults = _defaults_of(op)
        if defaults:
            shown = {k: v for k, v in op.properties.items() if defaults.get(k) != v}
            printer.print_op_attributes(
                shown | op.attributes, reserved_attr_names=self.hidden
            )
        elif self.apart or self.with_keyword:
            shown = op.attributes if self.apart else op.properties | op.attributes
            printer.print_op_attributes(
                shown, reserved_attr_names=self.hidden, print_keyword=self.with_keyword
            )
        else:
            base.print_attributes(printer, op, self.hidden)
        state.last_was_punctuation = False
        state.should_emit_space = True


def _defaults_of(op: IRDLOperation) -> dict[str, Attribute]:
    if getattr(op, "DEFAULTS", None) is None:
        return {}
    definition = op.get_irdl_definition()
    names = [name for name, _ in (*definition.operands, *definition.results)]
    return default_properties(type(op), [types_of(getattr(op, n)) for n in names])


@dataclass(frozen=True)
class _PropertyDictionary(FormatDirective):
    """``prop-dict``: ``<{...}>``; ``attr-dict`` behind it parses both."""

    hidden: frozenset[str] = frozenset()

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Leave it to ``attr-dict``."""

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        shown = {k: v for k, v in op.properties.items() if k not in self.hidden}
        if shown:
            printer.print_string(" ")
            with printer.in_angle_brackets():
                printer.print_attr_dict(shown)


@dataclass(frozen=True)
class _TypeList(FormatDirective):
    """``types($a, $b)``: the types of all values of these operands, in one list."""

    operands: tuple[OperandDirective, ...]

    def parse(self, parser: Parser, state: ParsingState) -> None:
        none = parser.Delimiter.NONE
        found = parser.parse_comma_separated_list(none, parser.parse_type)
        counts = [len(state.operands[_index(each)] or ()) for each in self.operands]
        if sum(counts) != len(found):
            problem = f"expected {sum(counts)} operand types but had {len(found)}"
            parser.raise_error(problem)
        rest = iter(found)
        for each, count in zip(self.operands, counts):
            each.set_types(state, list(islice(rest, count)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        types = [type_ for each in self.operands for type_ in each.get_types(op)]
        printer.print_list(types, printer.print_attribute)


def _index(operand: OperandDirective) -> int:
    assert isinstance(operand, VariableDirective)
    return operand.index


# Formats ------------------------------------------------------------------------------


class _Parser(FormatParser):
    """Reads a format; types that it lacks are inferred by rules, not constraints."""

    def __init__(self, op_type: type[IRDLOperation], text: str) -> None:
        definition = op_type.get_irdl_definition()
        definition.custom_directives |= _directives()
        super().__init__(text, definition)

    def parse_format_directive(self, inside_ref: bool) -> FormatDirective:
        """Parse a directive of xDSL, ``prop-dict`` or ``types``."""
        if self.parse_optional_keyword("prop-dict"):
            return _PropertyDictionary()
        if self.parse_optional_keyword("types"):
            # Parse ``($a, $b)``.
            found: list[OperandDirective] = []

            def parse_one() -> None:
                operand = self.parse_typeable_directive(False)
                assert isinstance(operand, OperandDirective)
                found.append(operand)

            self.parse_comma_separated_list(self.Delimiter.PAREN, parse_one)
            return _TypeList(tuple(found))
        return super().parse_format_directive(inside_ref)

    def verify_properties(
        self, elements: list[FormatDirective], attr_dict_idx: int
    ) -> None:
        """Hide the properties with a text of their own from the dictionaries."""
        hidden = frozenset(self.seen_properties | {SEGMENTS})
        apart = False
        for index, each in enumerate(elements):
            if isinstance(each, _PropertyDictionary):
                elements[index] = _PropertyDictionary(hidden)
                apart = True
        given = elements[attr_dict_idx]
        assert isinstance(given, AttrDictDirective)
        elements[attr_dict_idx] = _Dictionary(hidden, given.with_keyword, apart)

    def verify_operands(self, var_constraint_names: object) -> None:
        """Leave types to `plan_types`."""

    def verify_results(self, var_constraint_names: object) -> None:
        """Leave types to `plan_types`."""

    def types_in_text(self) -> list[str]:
        """Return the names of operands and results whose types are in the text."""
        flags = [*self.seen_operand_types, *self.seen_result_types]
        names = [name for name, _ in (*self.op_def.operands, *self.op_def.results)]
        return [name for name, is_seen in zip(names, flags) if is_seen]


class Format:
    """The compiled format of an operation class."""

    def __init__(self, op_type: type[IRDLOperation], text: str) -> None:
        parser = _Parser(op_type, text)
        self._directives = parser.parse_format().stmts
        kinds = TypeDirective | FunctionalTypeDirective | _TypeList
        found = [
            i
            for i, each in enumerate(self._directives)
            if isinstance(each, kinds)
            or any(isinstance(part, TypeDirective) for part in vars(each).values())
        ]
        split = found[0] if found else len(self._directives)
        self._before_types = self._directives[:split]
        self._types = self._directives[split:]
        self._steps = plan_types(op_type, parser.types_in_text())
        self._has_segments = SEGMENTS in op_type.get_irdl_definition().properties

    def parse(self, parser: Parser, op_type: type[OpT]) -> OpT:
        """Parse an operation after its name."""
        state = ParsingState(op_type)
        for directive in self._before_types:
            directive.parse(parser, state)
        position = parser.pos
        for directive in self._types:
            directive.parse(parser, state)
        operands = [each or () for each in state.operands]
        counts = [len(each) for each in operands]
        types, results = state.operand_types, state.result_types
        try:
            infer_types(self._steps, types, results, counts, state.properties)
        except (TypeError, VerifyException) as error:
            parser.raise_error(str(error), position)
        defaults = default_properties(op_type, [*types, *results])
        properties: dict[str, Attribute] = defaults | state.properties
        if self._has_segments:
            properties[SEGMENTS] = builtin.DenseArrayBase.from_list(builtin.i32, counts)
        return op_type.create(
            operands=[
                value
                for names, given in zip(operands, types)
                for value in parser.resolve_operands(names, given or (), position)
            ],
            result_types=[each for given in results for each in given or ()],
            properties=properties,
            attributes=state.attributes,
            successors=flatten(state.successors, Block),
            regions=flatten(state.regions, Region),
        )

    def print(self, printer: Printer, op: IRDLOperation) -> None:
        """Print an operation after its name."""
        state = PrintingState()
        for directive in self._directives:
            directive.print(printer, state, op)


@cache
def format_of(op_type: type[IRDLOperation]) -> Format:
    """Return the compiled format of a class; it is compiled once."""
    return Format(op_type, next(FORMATS[c] for c in op_type.mro() if c in FORMATS))
