"""Prints, assertions, promises and breakpoints of a kernel.

At `xetile.breakpoint`, `sys.breakpointhook` is called from a frame that looks as if the
kernel itself ran in Python: its file, line and name are the kernel's, its locals the
kernel's variables.

That frame belongs to a generator whose code has the line numbers of the kernel. The
interpreter sends it to the line of each statement, so the debugger sees one frame that
moves from line to line. The code that chooses the line has no line numbers, so that no
debugger stops there.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from xetl.dialects.base import ints_of, is_vector
from xetl.errors import LaunchError
from xetl.frames import is_debugged
from xetl.transforms.diagnostics import positions_of
from xetl_reference import floats
from xetl_reference.findings import at_operation, frames_of, line_of
from xetl_reference.memory import View
from xetl_reference.tiles import ScatteredTile, Tile
from xetl_reference.values import (
    F8E4M3,
    F8E5M2,
    Array,
    Function,
    Meaning,
    Unary,
    bits_of,
    dtype_of,
    unsigned,
)

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
"""The code after the hook, from Python 3.13 on: a debugger that the hook started has
stopped in the line already. Before 3.13 it stops first at the `yield` of the line."""
_MOST = 4096


class Stepper:
    """The frame of one function of a kernel."""

    def __init__(
        self, file: str, name: str, lines: Sequence[int], names: Iterable[str]
    ) -> None:
        self._code = _code_at_lines(file, name, lines, names)
        self._generator: Generator[None, Any, None] | None = None

    def go(self, line: int, values: Mapping[str, Any], *, hook: bool) -> None:
        """Move to a line with these variables; a debugger may stop there.

        Args:
            line: one of the lines of the stepper.
            values: variables by name; others keep their values.
            hook: whether `sys.breakpointhook` is called from the line.
        """
        generator = self._generator = self._generator or self._started()
        try:
            generator.send((line, hook, values))
        except BaseException:  # the user quit: the next run gets a new frame
            self._generator = None
            raise

    def _started(self) -> Generator[None, Any, None]:
        scope = {"__builtins__": builtins, "__name__": self._code.co_name}
        generator = FunctionType(self._code, scope)()
        tracer = sys.gettrace()
        sys.settrace(None)  # no line of the user runs yet
        try:
            next(generator)
        finally:
            sys.settrace(tracer)
        return generator


_steppers: dict[tuple[Any, str, str], Stepper] = {}
"""Steppers by function of the IR, file, and name of the Python function."""


@lru_cache(_MOST)
def stepper_of(op: Any) -> Stepper | None:
    """Return the frame for an `xetile.breakpoint`. None: its line is unknown."""
    where = next(frames_of(op), None)
    if where is None:
        return None
    root = op.get_toplevel_object()
    name = where.function or "function"
    key = root, where.file, name
    if key not in _steppers:
        # All stops of a file: no two functions share a line.
        stops = [each for each in root.walk() if each.name == op.name]
        places = ((each, next(positions_of(each.location), None)) for each in stops)
        same = [op for op, at in places if at and at.filename.data == where.file]
        lines = sorted({line_of(each) or 0 for each in same})
        names = sorted({name.data for each in same for name in each.names})
        _steppers[key] = Stepper(where.file, name, lines, names)
    return _steppers[key]


def _code_at_lines(
    file: str, name: str, lines: Sequence[int], names: Iterable[str]
) -> CodeType:
    resume = _RESUME if sys.version_info >= (3, 13) else ""
    text = _SOURCE.format(
        names="".join(_NAME.format(name=each) for each in names),
        lines="".join(_LINE.format(line=line, resume=resume) for line in lines),
    )
    tree = ast.parse(text)
    _place(tree, -1)
    function: Any = tree.body[0]
    _place(function, lines[0], deep=False)
    body = function.body[1].body
    stops = [each for each in body if isinstance(each.test.left, ast.Name)]
    for line, stop in zip(lines, stops, strict=True):
        # Code between hook and yield has no line, so that a debugger that the hook
        # started stops at a new line, and not at the end of this turn.
        hooked, _, yielding, _ = stop.body
        _place(hooked.body[0], line)
        _place(yielding, line)
    module = compile(tree, file, "exec")
    found = next(each for each in module.co_consts if isinstance(each, CodeType))
    return found.replace(co_name=name, co_firstlineno=lines[0])


def _place(tree: ast.AST, line: int, *, deep: bool = True) -> None:
    """Set the line of nodes; -1: no line."""
    for node in ast.walk(tree) if deep else [tree]:
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = min(line, 0)


def _shown(type_: Any, is_unsigned: bool) -> Unary:
    """Return the function that converts a value of a type for ``str.format``."""
    dtype = dtype_of(type_)
    if dtype.kind == "f" and not is_vector(type_):
        return float
    if dtype in (F8E4M3, F8E5M2):  # compiled code has no such text
        return floats.widen
    if not is_unsigned:
        return lambda value: value
    mask = (1 << bits_of(dtype)) - 1
    return unsigned if is_vector(type_) else lambda value: value & mask


def _text(op: Any) -> Callable[[Sequence[Any]], str]:
    """Return the function from values to the text of an operation."""
    template: str = op.template.data
    without_sign = ints_of(op.unsigned)
    show = [_shown(a.type, i in without_sign) for i, a in enumerate(op.arguments)]

    def run(values: Sequence[Any]) -> str:
        return template.format(*(f(value) for f, value in zip(show, values)))

    return run


def _print(op: Any) -> Function:
    text = _text(op)
    return lambda *values: sys.stdout.write(text(values) + "\n")


def _failure(op: Any, text: str) -> LaunchError:
    """Return the error of an assertion, at the user's line if it is known."""
    return at_operation(LaunchError(f"assertion failed: {text}", code="X0820"), op)


def _assert(op: Any) -> Function:
    text = _text(op)

    def run(condition: bool, *values: Any) -> None:
        if not condition:
            raise _failure(op, text(values))

    return run


def _cf_assert(op: Any) -> Function:
    def run(condition: bool) -> None:
        if not condition:
            raise _failure(op, op.msg.data)

    return run


_SLACK = 64
"""The largest number that a promise of 0 or less allows, because of rounding."""


def _exp2(op: Any) -> Function:
    """Return the function; it checks the promise that numbers are 0 or less."""
    compute = floats.MEANINGS[op.name](op)
    if op.nonpositive is None:
        return compute

    def run(x: Any) -> Any:
        if np.any(x > _SLACK):
            raise _failure(op, "broken promise: exp2(x, nonpositive=True)")
        return compute(x)

    return run


_CALL = "__import__('sys').breakpointhook()"


class SeenTile:
    """A tile as a debugger shows it.

    Attributes:
        offsets: row and column in its matrix; the indices of a scatter tile.
        values: the result of a load now; None for a scatter tile.
    """

    def __init__(self, tile: Tile | ScatteredTile, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.offsets: Any = None
        self.values: Array | None = None
        if isinstance(tile, ScatteredTile):
            self.offsets = tile.indices
        else:
            rows, columns = self.shape
            self.offsets = (tile.row, tile.column)
            self.values = tile.load(rows, columns, kind=None)

    def __repr__(self) -> str:
        if self.values is None:
            return f"<scatter tile {self.shape} of indices {self.offsets}>"
        return f"<tile {self.shape} at {self.offsets} of {self.values.dtype}>"


def _breakpoint(op: Any) -> Function:
    names = [name.data for name in op.names]
    shapes = [getattr(argument.type, "shape", None) for argument in op.arguments]
    without_sign = ints_of(op.unsigned)
    code, line, is_step = _code(op), line_of(op), op.step is not None

    def variables(values: Sequence[Any]) -> dict[str, Any]:
        return {
            name: _seen(value, shapes[i], i in without_sign)
            for i, (name, value) in enumerate(zip(names, values))
        }

    def run(*values: Any) -> None:
        frame = stepper_of(op) if sys.breakpointhook is sys.__breakpointhook__ else None
        if frame is None or line is None:
            # Other debuggers than pdb may keep the frame and read it later.
            exec(code, {"__builtins__": builtins, **variables(values)})
        else:
            frame.go(line, variables(values), hook=True)

    def step(*values: Any) -> None:
        if is_debugged():
            frame = stepper_of(op)
            if frame is not None and line is not None:
                frame.go(line, variables(values), hook=False)

    return step if is_step else run


def _code(op: Any) -> CodeType:
    """Return code that calls the hook, at the user's line."""
    where = next(frames_of(op), None)
    if where is None:
        return compile(_CALL, "<kernel>", "exec")
    code = compile("\n" * (where.line - 1) + _CALL, where.file, "exec")
    return code.replace(co_name=where.function or code.co_name)


def _seen(value: Any, shape: Any, is_unsigned: bool) -> Any:
    """Return a value in the user's form; arrays are read-only NumPy arrays."""
    if isinstance(value, Tile | ScatteredTile):
        return SeenTile(value, shape)
    array: Array
    if isinstance(value, View):
        array = value.whole()
    elif getattr(value, "ndim", 0):
        array = value
    else:
        return value.item() if hasattr(value, "item") else value
    seen = (unsigned(array) if is_unsigned else array).view()
    seen.flags.writeable = False
    return seen


MEANINGS: dict[str, Meaning] = {
    "xetile.print": _print,
    "xetile.assert": _assert,
    "cf.assert": _cf_assert,
    "math.exp2": _exp2,
    "xetile.breakpoint": _breakpoint,
}
