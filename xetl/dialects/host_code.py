"""Host functions beside kernels: their bodies are read if all operations are known.

A module of the released dialect contains the program that allocates, launches, prints
and compares, in any dialect (`linalg`, `llvm`, dialects of a runtime). Xetl does not
run this program, and unknown operations in it must not keep a kernel from being loaded.

`FastParser` parses each type once: a module of 1000 operations has some 2000 types, of
which a dozen differ.
"""

from __future__ import annotations

import re
from typing import TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region, TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

_GAP = re.compile(r"(?:[ \t\r\n]++|//[^\n]*+)*+")


def _nested(depth: int) -> str:
    # Possessive: unclosed brackets must fail at once, without backtracking.
    inside = rf"(?:{_nested(depth - 1)}[^<>\"]*+)*+" if depth else ""
    return rf"<[^<>\"]*+{inside}>"


_TYPE = re.compile(rf"(?:vector|memref|!xetile\.tile){_nested(3)}")
"""A type with its parameters, nested up to four deep, without arrows or strings."""


class _Lexer(MLIRLexer):
    # xDSL's expression, made possessive: the original took for ever on a long string
    # that is not closed.
    _unescaped_characters_regex = re.compile(
        r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"'
    )


class FastParser(Parser):
    """A parser that caches types by their text."""

    _types: dict[str, TypeAttribute]

    def read(self, text: str, name: str) -> None:
        """Read ``text`` from its start."""
        self._types = {}
        self._parser_state.lexer = _Lexer(Input(text, name))
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
        # Cache it only if the parser stopped where the regular expression did.
        gap = _GAP.fullmatch(
            self.lexer.input.content, spelt.end(), self._current_token.span.start
        )
        if found is not None and gap is not None:
            self._types[spelt[0]] = found
        return found


UNREAD = "xetile.unread"
"""The attribute of a host function read without its body: the reason for that."""

DEVICE, FUNCTION = "gpu.module", "func.func"
_T = TypeVar("_T")


class HostCodeParser(FastParser):
    """A parser that leaves out bodies of host functions with unknown operations."""

    _device_depth = 0
    _skips_bodies = False

    def parse_operation(self) -> Operation:
        """Parse an operation."""
        name = self._current_token.text
        if name == DEVICE:
            self._device_depth += 1
            device = super().parse_operation()
            self._device_depth -= 1
            return device
        if (
            name != FUNCTION
            or self._device_depth
            or DEVICE not in self.lexer.input.content
        ):
            return super().parse_operation()
        return self._parse_host_function()

    def parse_optional_region(self, arguments: object = None) -> Region | None:
        """Parse a region, or skip it if it is a body to leave out."""
        if not self._skips_bodies:
            return super().parse_optional_region(arguments)  # pyright: ignore[reportArgumentType]
        self._skip_braces()
        return None

    def _parse_host_function(self) -> Operation:
        start, dialects = self.pos, self._parser_state.dialect_stack.copy()
        references = {k: v.copy() for k, v in self.forward_ssa_references.items()}
        kept = {
            "ssa_values": self.ssa_values.copy(),
            "blocks": self.blocks,
            "forward_block_references": self.forward_block_references,
            "forward_ssa_references": references,
        }
        try:
            return super().parse_operation()
        except ParseError as error:
            if "not registered" not in error.msg:
                raise
            reason = error.msg.strip().splitlines()[0]
        self._resume_from(start)
        vars(self).update(kept)
        self._parser_state.dialect_stack = dialects
        self._skips_bodies = True
        declared = super().parse_operation()
        self._skips_bodies = False
        declared.attributes[UNREAD] = StringAttr(reason)
        return declared

    def _skip_braces(self) -> None:
        """Skip to the token after the ``}`` of a body, if a body begins here."""
        opening = (MLIRTokenKind.L_BRACE, MLIRTokenKind.FILE_METADATA_BEGIN)
        closing = (MLIRTokenKind.R_BRACE, MLIRTokenKind.FILE_METADATA_END)
        depth = 0
        while True:
            kind = self._current_token.kind
            depth += (kind in opening) - (kind in closing)
            if kind == MLIRTokenKind.EOF and depth:
                self.raise_error("expected '}' at the end of a function")
            if depth == 0 and kind not in closing:
                return
            self._consume_token()
            if depth == 0:
                return
