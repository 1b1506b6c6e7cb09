"""Find the syntax tree of a Python function, with positions in the user's file.

The whole file is parsed, not the lines of the function: those would have to be
dedented, which fails on continuation lines with less indentation, and positions would
have to be shifted.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import field
from types import CodeType
from typing import Any, TypeAlias

from xetl.errors import SyntaxNotSupportedError
from xetl.language.source_lines import lines_of
from xetl.records import record

FunctionNode: TypeAlias = ast.FunctionDef | ast.Lambda

Span = tuple[int, int, int]
"""Line and column from 1 and length, in characters."""


@record(frozen=True, eq=False)
class SourceFile:
    """A parsed file; lines count from 1."""

    path: str
    lines: list[str]
    tree: ast.Module = field(repr=False)
    _functions: dict[int, list[FunctionNode]] = field(
        repr=False, default_factory=dict[int, list[FunctionNode]]
    )

    def functions_at(self, line: int) -> list[FunctionNode]:
        """Return the functions that begin at a line; only these are searched for."""
        known = self._functions.get(line)
        if known is None:
            around = [
                each
                for each in self.tree.body
                if _first_line(each) <= line <= (each.end_lineno or line)
            ]
            inside = [node for each in around for node in ast.walk(each)]
            known = self._functions[line] = [
                node
                for node in inside
                if isinstance(node, ast.FunctionDef | ast.Lambda)
                and _first_line(node) == line
            ]
        return known

    def text(self, line: int) -> str:
        """Return a line without its line break; "" if the file has no such line."""
        return self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""

    def column(self, line: int, offset: int) -> int:
        """Convert a UTF-8 byte offset of ``ast`` to a column in characters, from 1."""
        text = self.text(line)
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode(errors="replace")) + 1


@record(eq=False)
class Frame:
    """A function that is being compiled, and the call at which it is inlined.

    ``hidden`` is true of the body of an operation: errors show the call instead.
    """

    source: SourceFile
    function: str
    parent: Frame | None = None
    call: ast.AST | None = None
    hidden: bool = False

    @property
    def depth(self) -> int:
        """The number of calls around it."""
        return 0 if self.parent is None else self.parent.depth + 1

    def functions(self) -> list[str]:
        """Return the names of the functions being compiled, the innermost first."""
        outer = [] if self.parent is None else self.parent.functions()
        return [self.function, *outer]

    def operation(self) -> str | None:
        """Return the operation, called by the user, that contains it; None if none."""
        outer = None if self.parent is None else self.parent.operation()
        return outer or (self.function if self.hidden else None)

    def of_user(self, node: ast.AST) -> tuple[Frame, ast.AST]:
        """Return the innermost frame and node that are not inside of an operation."""
        if self.hidden and self.parent is not None and self.call is not None:
            return self.parent.of_user(self.call)
        return self, node

    def span(self, node: ast.AST) -> Span:
        """Return the position of ``node`` in the user's file."""
        line: int = getattr(node, "lineno", 1)
        offset: int = getattr(node, "col_offset", 0)
        end_line: int = getattr(node, "end_lineno", None) or line
        end: int = getattr(node, "end_col_offset", None) or offset + 1
        column = self.source.column(line, offset)
        if end_line == line:
            return line, column, self.source.column(line, end) - column
        return line, column, len(self.source.text(line)) - column + 1

    def text(self, node: ast.AST) -> str:
        """Return the user's text of ``node``: only the first line if it has several."""
        line, column, length = self.span(node)
        return self.source.text(line)[column - 1 : column - 1 + length]


@record(frozen=True)
class FunctionSource:
    """The file and the syntax tree of a function."""

    file: SourceFile
    node: FunctionNode


_PARSED: dict[str, SourceFile] = {}


def find_source(function: Callable[..., Any]) -> FunctionSource:
    """Return the syntax tree of ``function``.

    Raises:
        SyntaxNotSupportedError: its source is not available or has changed, or the
            function is ``async``.
    """
    lines = lines_of(function)
    code = function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise _of_async_function(code, lines)
    file = _parse_file(code.co_filename, lines, code.co_name)
    candidates = [
        node
        for node in file.functions_at(code.co_firstlineno)
        if getattr(node, "name", "<lambda>") == code.co_name
    ]
    if len(candidates) > 1:
        candidates = [_pick_lambda(candidates, code)]
    if not candidates:
        raise SyntaxNotSupportedError(
            f"`{code.co_name}` is not at line {code.co_firstlineno} of its file",
            code="X0401",
            file=code.co_filename,
            line=code.co_firstlineno,
            column=1,
            help="the file changed after it was loaded: import it again",
        )
    return FunctionSource(file, candidates[0])


def _parse_file(path: str, lines: list[str], name: str) -> SourceFile:
    known = _PARSED.get(path)
    if known is not None and known.lines is lines:
        return known
    if not lines:
        raise SyntaxNotSupportedError(
            f"the source of `{name}` cannot be read from {path}",
            code="X0401",
            help="define kernels in a file or a notebook; for code given to `exec`,"
            " put its text into `linecache.cache`",
        )
    parsed = SourceFile(path, lines, _parsed(lines, path, name))
    _PARSED[path] = parsed
    return parsed


def _parsed(lines: list[str], path: str, name: str) -> ast.Module:
    try:
        return ast.parse("".join(lines), path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        raise SyntaxNotSupportedError(
            f"Python's parser cannot read the file of `{name}`: {problem}",
            code="X0401",
            file=path,
            line=getattr(problem, "lineno", None) or 1,
            help="the file changed after it was loaded, or is nested too deeply",
        ) from None


def _of_async_function(code: CodeType, lines: list[str]) -> SyntaxNotSupportedError:
    """Return the error for an ``async`` function, at its ``def`` and name."""
    first = code.co_firstlineno
    pattern = re.compile(rf"(async\s+)?def\s+{code.co_name}\b")
    numbered = enumerate(lines[first - 1 : first + 49], first)
    matches = ((line, text, pattern.search(text)) for line, text in numbered)
    line, text, found = next((m for m in matches if m[2]), (first, None, None))
    start, end = found.span() if found else (0, 1)
    return SyntaxNotSupportedError(
        f"`{code.co_name}` is an `async` function, which is not part of the kernel"
        " language",
        code="X0402",
        file=code.co_filename,
        line=line,
        column=start + 1,
        length=end - start,
        source_line=text and text.rstrip("\n"),
        help="write `def`: launches return at once with `wait=False`",
    )


def _first_line(node: ast.stmt | ast.Lambda) -> int:
    """Return CPython's first line of a function: that of its first decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _pick_lambda(candidates: list[FunctionNode], code: CodeType) -> FunctionNode:
    """Return, among functions that start on one line, the one that ``code`` is of."""
    positions = [
        (line, column)
        for line, _, column, end in code.co_positions()
        if line is not None and column is not None and end
    ]

    def holds(node: FunctionNode) -> bool:
        body = node.body if isinstance(node, ast.Lambda) else node
        start = (body.lineno, body.col_offset)
        end = (body.end_lineno or 0, body.end_col_offset or 0)
        return all(start <= position < end for position in positions)

    holding = [node for node in candidates if holds(node)]
    # Among nested lambdas the innermost one with all positions is the last in the walk.
    return holding[-1] if holding else candidates[0]
