"""A frame that a debugger steps through as if the kernel itself ran in Python.

It is of a generator whose code stands at the lines of the kernel. The interpreter sends
it to a line when it comes to a statement, so the debugger sees one frame that moves
from line to line, with the kernel's variables as its locals. What chooses the line is
code without line numbers, where no debugger stops.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from xetl.transforms.diagnostics import positions_of
from xetl_reference.op_locations import frames_of, line_of

_SOURCE = """\
def kernel():
    __line, __hook, __values = yield
    while True:
{names}
{lines}
"""
_NAME = """\
        if {name!r} in __values:
            {name} = __values[{name!r}]
"""
_LINE = """\
        if __line == {line}:
            if __hook:
                __import__('sys').breakpointhook()
{resume}            __values = None
            __line, __hook, __values = yield
            continue
"""
_RESUME = """\
                __values = None
                __line, __hook, __values = yield
                continue
"""
"""Where a debugger that the hook started goes on, from Python 3.13 on: it has stopped
in the line already. Before, it has not: it stops first at the `yield` of the line."""
_ANY = "function"
_MOST = 4096


class Stepper:
    """The frame of one function of a kernel."""

    def __init__(
        self, file: str, name: str, lines: Sequence[int], names: Iterable[str]
    ) -> None:
        self._code = _code(file, name, lines, names)
        self._generator: Generator[None, Any, None] | None = None

    def go(self, line: int, values: Mapping[str, Any], *, hook: bool) -> None:
        """Come to a line with these variables; there a debugger may stop.

        Args:
            line: one of those it was made for.
            values: variables by name; others keep what they have.
            hook: whether `sys.breakpointhook` is called from the line.
        """
        generator = self._generator = self._generator or self._started()
        try:
            generator.send((line, hook, values))
        except BaseException:  # the debugger was left: the next run has a new frame
            self._generator = None
            raise

    def _started(self) -> Generator[None, Any, None]:
        scope = {"__builtins__": builtins, "__name__": self._code.co_name}
        generator = FunctionType(self._code, scope)()
        tracer = sys.gettrace()
        sys.settrace(None)  # no line of the user is reached yet
        try:
            next(generator)
        finally:
            sys.settrace(tracer)
        return generator


_steppers: dict[tuple[Any, str, str], Stepper] = {}
"""By function of the IR, file and name of the Python function."""


@lru_cache(_MOST)
def stepper_of(op: Any) -> Stepper | None:
    """The frame for an `xetile.breakpoint`; None: its line is not known."""
    where = next(frames_of(op), None)
    if where is None:
        return None
    root = op
    while root.parent_op() is not None:
        root = root.parent_op()
    name = where.function or _ANY
    key = root, where.file, name
    if key not in _steppers:
        # All stops of a file: functions share lines with no other.
        stops = [each for each in root.walk() if each.name == op.name]
        same = [each for each in stops if _file_of(each) == where.file]
        lines = sorted({line_of(each) or 0 for each in same})
        names = sorted({name.data for each in same for name in each.names})
        _steppers[key] = Stepper(where.file, name, lines, names)
    return _steppers[key]


def _file_of(op: Any) -> str | None:
    return next((at.filename.data for at in positions_of(op.location)), None)


def _code(file: str, name: str, lines: Sequence[int], names: Iterable[str]) -> CodeType:
    resume = _RESUME if sys.version_info >= (3, 13) else ""
    text = _SOURCE.format(
        names="".join(_NAME.format(name=each) for each in names),
        lines="".join(_LINE.format(line=line, resume=resume) for line in lines),
    )
    tree = ast.parse(text)
    _place(tree, -1)
    function: Any = tree.body[0]
    _place(function, lines[0], deep=False)
    stops = [each for each in function.body[1].body if _is_stop(each)]
    for line, stop in zip(lines, stops, strict=True):
        # Between hook and yield there is no line: so a debugger that the hook started
        # comes to a new one, not to the end of the frame's turn.
        hooked, _, yielding, _ = stop.body
        _place(hooked.body[0], line)
        _place(yielding, line)
    module = compile(tree, file, "exec")
    found = next(each for each in module.co_consts if isinstance(each, CodeType))
    return found.replace(co_name=name, co_firstlineno=lines[0])


def _is_stop(node: Any) -> bool:
    return isinstance(node.test.left, ast.Name)


def _place(tree: ast.AST, line: int, *, deep: bool = True) -> None:
    """Give nodes a line; -1: none."""
    for node in ast.walk(tree) if deep else [tree]:
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = min(line, 0)
