"""From file, line and column to what an error draws: carets and function names.

For errors that are found when a kernel runs: then only positions are left of it.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xetl.errors import CallFrame, XetlError

E = TypeVar("E", bound=XetlError)
_CALLS = (ast.Call, ast.Subscript)


def at_frames(error: E, frames: Sequence[CallFrame]) -> E:
    """Give ``error`` its line (the first frame) and the calls that led to it."""
    if frames:
        own = frames[0]
        error.file, error.line, error.column = own.file, own.line, own.column
        error.length, error.function = own.length, own.function
        error.source_line = own.source_line
        error.frames = tuple(frames[1:])
    return error


def is_debugged() -> bool:
    """Whether a debugger follows this thread line by line."""
    monitoring: Any = getattr(sys, "monitoring", None)  # since Python 3.12
    if monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID):
        return True
    return sys.gettrace() is not None


def may_be_stepped(function: Callable[..., Any]) -> bool:
    """Whether somebody may step through a kernel: now, or from a `breakpoint()` on."""
    return is_debugged() or "breakpoint" in function.__code__.co_names


def frame_at(file: str, line: int, column: int) -> CallFrame:
    """The frame of a position; the source is read again, as far as it is there.

    ``file`` is as Python names it; ``line`` and ``column`` (characters) are from 1.
    """
    lines = linecache.getlines(file)
    if not 0 < line <= len(lines):
        return CallFrame(file, line, column)
    text = lines[line - 1]
    offset = len(text[: column - 1].encode())
    length, function = _syntax("".join(lines), line, offset)
    return CallFrame(file, line, column, length, function, text.rstrip("\n"))


def _syntax(source: str, line: int, offset: int) -> tuple[int, str | None]:
    """Length of the call at a place, in characters, and the function it is in."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:  # a text module, or a file that has changed
        return 1, None
    segments = [
        ast.get_source_segment(source, node) or ""
        for node in nodes
        if isinstance(node, _CALLS) and (node.lineno, node.col_offset) == (line, offset)
    ]
    lengths = [len(segment.splitlines()[0]) for segment in segments if segment]
    # `walk` gives the outer functions first.
    owners = [
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return min(lengths, default=1), owners[-1] if owners else None
