"""A declared grid as a text that needs neither the user's file nor xetl."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from textwrap import dedent
from typing import Any

_KNOWN = frozenset({"cdiv", "min", "max", "abs", "int", "len", "sum", "range"})


def grid_text(kernel: Any) -> str | None:
    """Python for the grid that a kernel declares; None if it has none.

    A function counts as having none if it uses names besides its own arguments,
    constants of its file that are numbers, and a few functions of Python.
    """
    grid: Any = kernel.grid
    if grid is None or not callable(grid):
        return None if grid is None else repr(grid)
    written = _written(kernel.fn)
    if not isinstance(written, ast.Lambda):
        return None
    return _alone(written, kernel.fn.__globals__)


def checked_grid(text: str, names: Mapping[str, Any]) -> str:
    """A grid that a user gives, with numbers in place of names of the kernel's file.

    Raises:
        ValueError: it is no Python, or uses what a wheel does not have.
    """
    try:
        written = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"`{text}` is no Python: {error.msg}") from None
    if not isinstance(written, ast.Lambda):
        return ast.unparse(written)
    found = _alone(written, names)
    if found is None:
        known = ", ".join(sorted(_KNOWN))
        raise ValueError(f"`{text}` uses more than its argument, numbers, {known}")
    return found


def _alone(written: ast.Lambda, scope: Mapping[str, Any]) -> str | None:
    """The text of a function; None if it uses names that a wheel does not have."""
    own = {each.arg for each in written.args.args}
    for node in ast.walk(written):
        if isinstance(node, ast.Name) and node.id not in own | _KNOWN:
            if type(scope.get(node.id)) not in (int, float):
                return None
            # The text has no file of its own: numbers take the place of names.
            _Replace(node.id, ast.Constant(scope[node.id])).visit(written)
    return ast.unparse(written)


class _Replace(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name, self._value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name else node


def _written(function: Callable[..., Any]) -> ast.expr | None:
    """What stands behind ``grid=`` in the decorator."""
    try:
        tree = ast.parse(dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # it is in no file
        return None
    return next(_keywords(tree), None)


def _keywords(tree: ast.Module) -> Iterator[ast.expr]:
    for function in tree.body:
        for each in getattr(function, "decorator_list", ()):
            for keyword in getattr(each, "keywords", ()):
                if keyword.arg == "grid":
                    yield keyword.value
