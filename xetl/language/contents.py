"""Describe a Python value as a text: values with equal texts are equal for a kernel.

The text of numbers, strings, dtypes, maps and sequences of these is the whole value.
The text of a function is its source; the values that it refers to are read when it is
compiled. The text of modules, classes and members of an enumeration is their name. All
other objects are *opaque*: the text is their class, and a kernel can only use their
attributes and elements, each of which is a value again.
"""

from __future__ import annotations

from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from xetl.language.dtypes import DType, is_foreign
from xetl.language.maps import SgMap, WgMap, XeMap
from xetl.language.operation import Function, operation_name
from xetl.language.signature import Record
from xetl.language.source_lines import lines_of

_PRINTED = (
    *(int, float, complex, bool, str, bytes),
    *(type(None), type(Ellipsis), range, DType, WgMap, SgMap, XeMap),
)
"""Types whose values differ exactly if their printed forms differ."""

_FIXED = ("xetl", "numpy", "math", "builtins")
"""Packages whose versions are in the key, or whose contents never change."""


def content(value: object) -> str:
    """Return the text of a value."""
    if is_plain(value):
        return f"{type(value).__name__} {value!r}"
    operation = operation_name(value)
    if operation is not None:
        return f"operation {operation}"
    if isinstance(value, Function | FunctionType):
        return _of_function(
            cast("Any", value).fn if isinstance(value, Function) else value
        )
    if isinstance(value, Record):
        return f"{value.form}({', '.join(map(content, value))})"
    if isinstance(value, list | tuple):
        parts = map(content, cast("list[object]", value))
        return f"{_class_name(cast('object', value))}({', '.join(parts)})"
    if isinstance(value, Enum):
        return f"{_class_name(value)}.{value.name} {content(value.value)}"
    for kind in (int, float, str, bytes):
        if isinstance(value, kind):  # of a class derived from these
            return f"{_class_name(value)} {kind.__repr__(cast('Any', value))}"
    return _named(value)


def _named(value: object) -> str:
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    classes = [f"{each.__module__}.{each.__qualname__}" for each in type(value).__mro__]
    return f"object {' '.join(classes[:-1])}"


def is_plain(value: object) -> bool:
    """Whether a value is immutable and its text has all of its contents."""
    is_number = isinstance(value, np.generic)
    return type(value) in _PRINTED or is_number or is_foreign(value)


def is_opaque(value: object) -> bool:
    """Whether the text of a value leaves out contents that operators would use."""
    if is_plain(value) or operation_name(value) is not None:
        return False
    if isinstance(value, list | tuple):
        return any(map(is_opaque, cast("list[object]", value)))
    known = (Enum, int, float, str, bytes, ModuleType, type)
    functions = (Function, FunctionType, BuiltinFunctionType)
    return not isinstance(value, (*known, *functions))


def is_fixed(value: object) -> bool:
    """Whether the text of a value, or the version of a package, determines it."""
    if is_plain(value) or operation_name(value) is not None:
        return True
    if isinstance(value, BuiltinFunctionType):
        return value.__self__ is None or isinstance(value.__self__, ModuleType)
    if isinstance(value, ModuleType):
        owner = value.__name__
    elif isinstance(value, type | FunctionType) and value.__name__ != "<lambda>":
        owner = str(cast("Any", value).__module__)
    else:
        return False
    return owner.partition(".")[0] in _FIXED


def _class_name(value: object) -> str:
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind.__name__
    return f"{kind.__module__}.{kind.__qualname__}"


def _of_function(fn: Any) -> str:
    level = str(getattr(fn, "__xetl_subgroups__", None))
    return "\n".join(
        [f"function {fn.__name__}", source_text(fn), _instructions(fn.__code__), level]
    )


def source_text(fn: Any) -> str:
    """Return the source text of ``fn``; for a lambda, all lines that contain it.

    `inspect.getsource` would tokenize each line to find the end, which costs 5 ms at
    the first use. Here the end is that of the indented block: one line too many does no
    harm.
    """
    code: CodeType = fn.__code__
    lines = lines_of(fn)
    first, last = code.co_firstlineno - 1, _last_line(code)
    if not first < last <= len(lines):
        return fn.__name__  # typed at a prompt
    indent = _indent(lines[first])
    while last < len(lines) and fn.__name__ != "<lambda>":
        if lines[last].strip() and _indent(lines[last]) <= indent:
            break
        last += 1
    return "".join(lines[first:last]).rstrip()


def _last_line(code: CodeType) -> int:
    """Return the last line that has instructions, also of nested functions."""
    ends = [end for _, end, _, _ in code.co_positions() if end is not None]
    nested = [c for c in code.co_consts if isinstance(c, CodeType)]
    return max([code.co_firstlineno, *ends, *map(_last_line, nested)])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _instructions(code: CodeType) -> str:
    """Return the instructions as text: they distinguish two lambdas on one line."""
    nested = [c for c in code.co_consts if isinstance(c, CodeType)]
    plain = [c for c in code.co_consts if not isinstance(c, CodeType)]
    inner = " ".join(map(_instructions, nested))
    return f"{code.co_code.hex()} {plain!r} {code.co_names} {inner}"
