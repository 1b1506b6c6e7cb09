"""Parsing where most of the time went: words by one expression, a type only once.

A module of 1000 operations spells out some 2000 types, of which a dozen differ; xDSL
would parse and verify each of them again.
"""

from __future__ import annotations

import re

from xdsl.ir import TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.lexer import Input, Span, Token
from xdsl.utils.mlir_lexer import (
    KIND_BY_PUNCTUATION_SPELLING,
    MLIRLexer,
    MLIRToken,
    MLIRTokenKind,
)

_SUFFIX = r"(?:[0-9]+|[a-zA-Z$._-][a-zA-Z0-9$._-]*)"
_BLANK = r"(?:[ \t\r\n]++|//[^\n]*+)*+"
_GAP = re.compile(_BLANK)
_WORD = re.compile(
    rf"{_BLANK}(?:([a-zA-Z_][\w$.]*)|(%{_SUFFIX})|(->|[:,()\[\]<>=}}]))",
    re.ASCII,
)


def _nested(depth: int) -> str:
    # Possessive: what is not closed must fail at once, not be tried in every way.
    inside = rf"(?:{_nested(depth - 1)}[^<>\"]*+)*+" if depth else ""
    return rf"<[^<>\"]*+{inside}>"


_TYPE = re.compile(rf"(?:vector|memref|!xetile\.tile){_nested(3)}")
"""A type with its parameters, nested up to four deep, without arrows or strings."""


class FastLexer(MLIRLexer):
    """Knows the most frequent words by itself and leaves the others to xDSL."""

    # As xDSL's, but possessive: a long string that is not closed took for ever.
    _unescaped_characters_regex = re.compile(
        r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'
    )

    def lex(self) -> MLIRToken:
        """The next word."""
        found = _WORD.match(self.input.content, self.pos)
        if found is None:
            return super().lex()
        number = found.lastindex
        assert number is not None
        start, self.pos = found.span(number)
        span = Span(start, self.pos, self.input)
        if number == 1:
            return Token(MLIRTokenKind.BARE_IDENT, span)
        if number == 2:
            return Token(MLIRTokenKind.PERCENT_IDENT, span)
        return Token(KIND_BY_PUNCTUATION_SPELLING[found[3]], span)


class FastParser(Parser):
    """Remembers the types that a text spells the same way."""

    _types: dict[str, TypeAttribute]

    def use_fast_words(self, text: str, name: str) -> None:
        """Read ``text`` from its start with the faster lexer."""
        self._types = {}
        self._parser_state.lexer = FastLexer(Input(text, name))
        self._resume_from(0)

    def parse_optional_type(self) -> TypeAttribute | None:
        """Parse a type, if there is one."""
        start = self._current_token.span.start
        spelt = _TYPE.match(self.lexer.input.content, start)
        if spelt is None:
            return super().parse_optional_type()
        known = self._types.get(spelt[0])
        if known is not None:
            self._resume_from(spelt.end())
            return known
        found = super().parse_optional_type()
        # Only if the parser, which knows what nests, stopped where the expression did.
        gap = _GAP.fullmatch(
            self.lexer.input.content, spelt.end(), self._current_token.span.start
        )
        if found is not None and gap is not None:
            self._types[spelt[0]] = found
        return found
