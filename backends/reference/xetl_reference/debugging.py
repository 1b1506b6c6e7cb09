"""Printing and checking while a kernel runs: `xetile.print`, assertions.

Source: docs/language.md, "debug"; MLIR, `cf.assert`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from xetl.dialects.base import ints_of
from xetl.errors import LaunchError
from xetl_reference.values import (
    Function,
    Meaning,
    bits_of,
    dtype_of,
    is_vector,
    unsigned,
)
from xetl_reference.where import at_operation


def _shown(type_: Any, is_unsigned: bool) -> Function:
    """How a value of a type is given to ``str.format``."""
    dtype = dtype_of(type_)
    if dtype.kind == "f" and not is_vector(type_):
        return float
    if not is_unsigned:
        return _same
    mask = (1 << bits_of(dtype)) - 1

    def without_sign(value: Any) -> Any:
        return unsigned(value) if is_vector(type_) else value & mask

    return without_sign


def _same(value: Any) -> Any:
    return value


def _text(op: Any) -> Callable[[Sequence[Any]], str]:
    """The function from values to the text of an operation."""
    template: str = op.template.data
    without_sign = ints_of(op.unsigned)
    show = [_shown(a.type, i in without_sign) for i, a in enumerate(op.arguments)]

    def run(values: Sequence[Any]) -> str:
        return template.format(*(f(value) for f, value in zip(show, values)))

    return run


def _print(op: Any) -> Function:
    text = _text(op)

    def run(*values: Any) -> None:
        sys.stdout.write(text(values) + "\n")

    return run


def _failure(op: Any, text: str) -> LaunchError:
    """The error of an assertion, at the user's line where that is known."""
    error = LaunchError(f"assertion failed: {text}", code="X0820")
    return at_operation(error, op)


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


MEANINGS: dict[str, Meaning] = {
    "xetile.print": _print,
    "xetile.assert": _assert,
    "cf.assert": _cf_assert,
}
