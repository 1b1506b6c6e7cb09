"""An error at the user's line of an operation, drawn as the front end draws its own.

An operation knows file, line and column; what else the drawing needs, the length of
the carets and the name of the function, is read from the source.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import Any, TypeVar

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc

from xetl.errors import CallFrame, XetlError

E = TypeVar("E", bound=XetlError)
_CALLS = (ast.Call, ast.Subscript)


def at_operation(error: E, op: Any) -> E:
    """Give ``error`` the line of ``op``, and the calls it was inlined through."""
    frames = list(frames_of(op))
    if frames:
        own = frames[0]
        error.file, error.line, error.column = own.file, own.line, own.column
        error.length, error.function = own.length, own.function
        error.source_line = own.source_line
        error.frames = tuple(frames[1:])
    return error


def line_of(op: Any) -> int | None:
    """The innermost line of an operation."""
    return next((frame.line for frame in frames_of(op)), None)


def frames_of(op: Any) -> Iterator[CallFrame]:
    """The lines of an operation, the innermost first."""
    location = op.location
    while isinstance(location, CallSiteLoc):
        if isinstance(location.callee, FileLineColLoc):
            yield _frame(location.callee)
        location = location.caller
    if isinstance(location, FileLineColLoc):
        yield _frame(location)


def _frame(location: FileLineColLoc) -> CallFrame:
    file, line = location.filename.data, location.line.data
    column = location.column.data
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return CallFrame(file, line, column)
    text = lines[line - 1]
    length, function = _syntax("".join(lines), line, len(text[: column - 1].encode()))
    return CallFrame(file, line, column, length, function, text.rstrip("\n"))


def _syntax(source: str, line: int, offset: int) -> tuple[int, str | None]:
    """How many characters the call at a place takes, and in which function it is."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a text module, or a file that has changed
        return 1, None
    calls = [
        node
        for node in nodes
        if isinstance(node, _CALLS) and (node.lineno, node.col_offset) == (line, offset)
    ]
    segments = [ast.get_source_segment(source, node) or "" for node in calls]
    lengths = [len(segment.splitlines()[0]) for segment in segments if segment]
    # `walk` gives the outer functions first.
    owners = [
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return min(lengths, default=1), owners[-1] if owners else None
