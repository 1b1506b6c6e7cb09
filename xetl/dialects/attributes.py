"""Base classes of attributes (a word, or ``<name = value, ...>``) and shaped types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self, TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr, i1
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import param_def
from xdsl.utils.exceptions import VerifyException

from .base import check, is_integer_attr

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

IntList = ArrayAttr[IntAttr]
AttrT = TypeVar("AttrT", bound=Attribute)


def int_list(values: Sequence[int]) -> IntList:
    """Return an attribute for a list of integers."""
    return ArrayAttr([IntAttr(value) for value in values])


def int_tuple(attribute: IntList) -> tuple[int, ...]:
    """Return the integers of an attribute; the inverse of ``int_list``."""
    return tuple(value.data for value in attribute)


def parse_int_list(parser: AttrParser) -> IntList:
    """Parse ``[1, 2]`` or ``array<i64: 1, 2>``."""
    if not parser.parse_optional_keyword("array"):
        square, one = parser.Delimiter.SQUARE, parser.parse_integer
        return int_list(parser.parse_comma_separated_list(square, one))
    with parser.in_angle_brackets():
        parser.parse_type()
        parser.parse_punctuation(":")
        none, one = parser.Delimiter.NONE, parser.parse_integer
        return int_list(parser.parse_comma_separated_list(none, one))


def parse_struct(
    parser: AttrParser, fields: dict[str, Callable[[AttrParser], Attribute]]
) -> dict[str, Attribute]:
    """Parse ``<name = value, ...>`` with the names in any order."""
    found: dict[str, Attribute] = {}

    def parse_field() -> None:
        position = parser.pos
        name = parser.parse_identifier(" (name of a parameter)")
        if name not in fields:
            known = ", ".join(fields)
            parser.raise_error(
                f"unknown parameter `{name}`, expected one of {known}", position
            )
        if name in found:
            parser.raise_error(f"parameter `{name}` is given twice", position)
        parser.parse_punctuation("=")
        found[name] = fields[name](parser)

    parser.parse_optional_comma_separated_list(parser.Delimiter.ANGLE, parse_field)
    return found


def build_at(parser: AttrParser, position: int, build: Callable[[], AttrT]) -> AttrT:
    """Build an attribute; report an error of its verifier at ``position``."""
    try:
        return build()
    except VerifyException as error:
        parser.raise_error(str(error), position)


def parse_int(parser: AttrParser) -> Attribute:
    """Parse ``3``, ``3 : i64`` or ``true``."""
    position = parser.pos
    found = parser.parse_attribute()
    if not is_integer_attr(found):
        parser.raise_error("expected an integer", position)
    return IntAttr(abs(found.value.data) if found.type == i1 else found.value.data)


# Words --------------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class WordAttr(ParametrizedAttribute):
    """An attribute that is one word of ``WORDS``.

    The text is ``#dialect<name word>``, or ``#dialect.name<word>`` if `IS_IN_BRACKETS`.
    ``SPELLINGS`` has other spellings that texts may use.
    """

    WORDS: ClassVar[tuple[str, ...]] = ()
    PROBLEM: ClassVar[str] = "`{word}` is not one of {known}"
    IS_IN_BRACKETS: ClassVar[bool] = False
    SPELLINGS: ClassVar[Mapping[str, str]] = {}

    text: StringAttr = param_def()  # noqa: RUF009 (xDSL makes the field)

    def __init__(self, word: str) -> None:
        super().__init__(StringAttr(word))

    @property
    def word(self) -> str:
        """The word, one of WORDS."""
        return self.text.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        if not cls.IS_IN_BRACKETS:
            return cls.parse_word(parser).parameters
        with parser.in_angle_brackets():
            return cls.parse_word(parser).parameters

    @classmethod
    def parse_word(cls, parser: AttrParser) -> Self:
        """Parse a word without brackets."""
        position = parser.pos
        word = parser.parse_identifier()
        if cls.SPELLINGS.get(word, word) not in cls.WORDS:
            parser.raise_error(cls._problem_with(word), position)
        return cls(word)

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{self.word}>" if self.IS_IN_BRACKETS else self.word)

    def verify(self) -> None:
        check(self.word in self.WORDS, self._problem_with(self.word))

    @classmethod
    def _problem_with(cls, word: str) -> str:
        return cls.PROBLEM.format(word=word, known=", ".join(cls.WORDS))


# Structs ------------------------------------------------------------------------------


ABSENT = NoneAttr()


class Field(NamedTuple):
    """A parameter of a `StructAttr`.

    Attributes:
        parse: reads the value from a text.
        show: prints the value.
        default: the value if the text gives none; it is not printed. With None the
            text must give a value.
    """

    parse: Callable[[AttrParser], Attribute]
    show: Callable[[Printer, Attribute], None]
    default: Attribute | None = ABSENT


def list_field(default: Attribute | None = ABSENT) -> Field:
    """Return a field for a list of integers, ``[1, 2]``."""

    def show(printer: Printer, value: Attribute) -> None:
        printer.print_string(str(list(int_tuple(cast(IntList, value)))))

    return Field(parse_int_list, show, default)


def int_field(text: str, default: int) -> Field:
    """Return a field for a number, printed in place of the ``{}`` of ``text``."""

    def show(printer: Printer, value: Attribute) -> None:
        printer.print_string(text.format(cast(IntAttr, value).data))

    return Field(parse_int, show, IntAttr(default))


class StructAttr(ParametrizedAttribute):
    """``<name = value, ...>`` in any order; fields with default values are not printed.

    The parser also takes the names of ``OTHER_NAMES``.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {}
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<name = value, ...>``."""
        position = parser.pos
        known = {name: field.parse for name, field in cls.FIELDS.items()}
        others = {other: known[name] for other, name in cls.OTHER_NAMES.items()}
        found = parse_struct(parser, known | others)
        for other, name in cls.OTHER_NAMES.items():
            if other in found and name in found:
                parser.raise_error(f"`{other}` and `{name}` are the same", position)
            if other in found:
                found[name] = found[other]
        for name, field in cls.FIELDS.items():
            if field.default is None and name not in found:
                parser.raise_error(f"{cls.name} needs `{name}`", position)
        defaults = cls.defaults(found)
        parameters = [found.get(name, defaults[name]) for name in cls.FIELDS]
        build_at(parser, position, lambda: cls.new(parameters))
        return parameters

    @classmethod
    def defaults(cls, given: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
        """Return the values of fields that the text leaves out."""
        fields = cls.FIELDS.items()
        return {n: ABSENT if f.default is None else f.default for n, f in fields}

    def print_parameters(self, printer: Printer) -> None:
        given = dict(zip(self.FIELDS, self.parameters))
        usual = self.defaults(given)

        def print_one(name: str) -> None:
            printer.print_string(f"{name} = ")
            self.FIELDS[name].show(printer, given[name])

        with printer.in_angle_brackets():
            shown = [name for name, value in given.items() if value != usual[name]]
            printer.print_list(shown, print_one)


# Shaped types -------------------------------------------------------------------------


@dataclass(frozen=True, init=False)
class ShapedType(ParametrizedAttribute, TypeAttribute):
    """``<8x16xf16, ...>``: a shape, an element type, and other parameters."""

    dims: IntList = param_def()  # noqa: RUF009 (xDSL makes the field)
    element: Attribute = param_def()  # noqa: RUF009 (xDSL makes the field)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents; those of a matrix are rows and columns."""
        return int_tuple(self.dims)

    @property
    def element_type(self) -> Attribute:
        """The type of one element."""
        return self.element

    @classmethod
    def parse_other(cls, parser: AttrParser) -> Attribute:
        """Parse a parameter after the element type."""
        return parser.parse_attribute()

    @classmethod
    def arrange(cls, given: Sequence[Attribute]) -> Sequence[Attribute]:
        """Return all other parameters, in order, from those in the text."""
        return given or [ABSENT]

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse ``<8x16xf16, ...>``."""
        position, given = parser.pos, list[Attribute]()
        room = len(cls.get_irdl_definition().parameters) - 2
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            while len(given) < room and parser.parse_optional_punctuation(","):
                given.append(cls.parse_other(parser))
        parts = [int_list(shape), element, *cls.arrange(given)]
        build_at(parser, position, lambda: cls.new(parts))
        return parts

    def print_parameters(self, printer: Printer) -> None:
        usual = self.arrange([])
        others = [p for p, u in zip(self.parameters[2:], usual) if p != u]
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{extent}x" for extent in self.shape))
            printer.print_list([self.element, *others], printer.print_attribute)
