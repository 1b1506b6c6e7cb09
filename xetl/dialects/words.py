"""Attributes that are one word of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .base import check


class WordAttr(ParametrizedAttribute):
    """One word of a list; each class has its parameter, else all words are equal.

    The text is ``#dialect<name word>``, with `IS_IN_BRACKETS` ``#dialect.name<word>``.
    """

    WORDS: ClassVar[tuple[str, ...]] = ()
    PROBLEM: ClassVar[str] = "`{word}` is not one of {known}"
    IS_IN_BRACKETS: ClassVar[bool] = False

    def __init__(self, word: str) -> None:
        super().__init__(StringAttr(word))

    @property
    def word(self) -> str:
        """One of WORDS."""
        return cast(StringAttr, self.parameters[0]).data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse the word."""
        if not cls.IS_IN_BRACKETS:
            return cls.parse_word(parser).parameters
        with parser.in_angle_brackets():
            return cls.parse_word(parser).parameters

    @classmethod
    def parse_word(cls, parser: AttrParser) -> Self:
        """The attribute of a word that stands alone."""
        position = parser.pos
        word = parser.parse_identifier()
        if word not in cls.WORDS:
            parser.raise_error(cls._problem_with(word), position)
        return cls(word)

    def print_parameters(self, printer: Printer) -> None:
        """Print the word."""
        text = f"<{self.word}>" if self.IS_IN_BRACKETS else self.word
        printer.print_string(text)

    def verify(self) -> None:
        """Check that there is such a word."""
        check(self.word in self.WORDS, self._problem_with(self.word))

    @classmethod
    def _problem_with(cls, word: str) -> str:
        return cls.PROBLEM.format(word=word, known=", ".join(cls.WORDS))
