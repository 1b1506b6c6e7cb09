"""Where and how a text is wrong, as an `IRError` that points into it."""

from __future__ import annotations

import re

from xdsl.utils.exceptions import ParseError, VerifyException

from xetl.errors import IRError

from .parser import XetlParser

FILE = "<text>"
"""What errors call a text that came from no file."""

_UNKNOWN = re.compile(r"(?:Operation |')([\w.]+)'? is not registered")
_UNDEFINED = re.compile(r"values? used but not defined: \[%([^\],]+)")

_CLEARER = {"in block definition": "an operation or '}' expected"}

OF_LANES = (
    *("gpu.shuffle", "gpu.rotate", "gpu.subgroup_reduce", "gpu.subgroup_broadcast"),
    *("gpu.all_reduce", "gpu.ballot", "vector.warp_execute_on_lane_0"),
)
"""Operations of single work items; a XeTile program is a whole subgroup."""


def parse_error(text: str, parser: XetlParser | None, error: Exception) -> IRError:
    """What stopped the parser, or (None) kept it from reading the first word.

    A ParseError has its place.  Other exceptions are of attributes and types that are
    checked while they are made: the operation that is read is the place.
    """
    if isinstance(error, RecursionError):
        return IRError("the text nests too deeply", code="X0701")
    if not isinstance(error, ParseError):
        reason = str(error)
        if not isinstance(error, VerifyException) and not reason.startswith("expected"):
            reason = "the operation is not well formed"
        return _at(text, reason, _operation_position(parser), 1)
    message, start = _first_line(error.msg), error.span.start
    undefined = _UNDEFINED.match(message)
    if undefined is not None:  # the parser is at the end of the text
        name = undefined[1]
        start = (parser.forward_positions if parser else {}).get(name, start)
        message = f"value %{name} is used but not defined"
        return _at(text, message, start, len(name) + 1)
    unknown = _UNKNOWN.search(message)
    if unknown is not None:  # the parser stands behind the name by now
        start = max(text.rfind(unknown[1], 0, start), 0)
        return _unknown(text, unknown[1], message, start)
    if start >= len(text.rstrip()):
        return _at(text, "the text ends too early", start, 1)
    if not _says_what_follows(message) and _begins_line(text, start):
        # A value that does not fit is found when the next line is looked at.
        start = _operation_position(parser)
    return _at(text, message, start, max(1, error.span.end - error.span.start))


def _operation_position(parser: XetlParser | None) -> int:
    return 0 if parser is None else parser.operation_position


def _unknown(text: str, name: str, message: str, start: int) -> IRError:
    if name not in OF_LANES:
        return _at(text, message, start, len(name))
    message = f"`{name}` works on lanes; a text of XeTile works on whole subgroups"
    help_ = "reduce and broadcast vectors with xetile.reduction and xetile.broadcast"
    return _at(text, message, start, len(name), help_)


def _first_line(message: str | None) -> str:
    lines = (message or "wrong syntax").strip().splitlines()
    found = lines[0] if lines else "wrong syntax"
    return _CLEARER.get(found, found)


def _says_what_follows(message: str) -> bool:
    return message.lower().startswith("expected") or message.endswith("expected")


def _begins_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _at(
    text: str, message: str, position: int, length: int, help_: str | None = None
) -> IRError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return text_error(text, line, column, _first_line(message), "X0701", length, help_)


def text_error(
    text: str,
    line: int,
    column: int,
    message: str,
    code: str,
    length: int,
    help_: str | None = None,
) -> IRError:
    """An error with a place of the text and its line."""
    lines = text.split("\n")
    return IRError(
        message,
        code=code,
        file=FILE,
        line=line,
        column=column,
        length=length,
        source_line=lines[line - 1] if line <= len(lines) else None,
        help=help_,
    )
