"""The lines of the file, notebook cell or command line a function was written in.

`linecache` knows files, notebooks and what a user registers there. Beside these,
Python keeps the text of ``python -c`` among its arguments and that of a redirected
standard input in the file it came from; since 3.13 it keeps both by itself. Texts of
such names are taken only if the very function is in them: ``<string>`` is also what
``exec`` calls its texts. The decorators keep the lines, since the next text of that
name may replace them. A function that came from another process by value has lost its
file; the texts that came with kernels are searched for it in the same way.
"""

from __future__ import annotations

import linecache
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from textwrap import dedent
from types import CodeType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_KEPT = "__xetl_lines__"
_COMMAND, _INPUT = "<string>", "<stdin>"
_BY_VALUE = "<dynamic-code>"
"""The file of functions that cloudpickle 3.1.2 and later restore."""
_CARRIED: dict[str, tuple[str, list[str]]] = {}
"""Texts that came from other processes: the file of each, and its lines."""
_MOST_CARRIED = 256
_ANNOTATIONS = 0x1000000
"""The flag of code behind ``from __future__ import annotations``."""


def keep_lines(fn: F) -> F:
    """Note the lines of a function that is in no file, as long as they are known."""
    code = fn.__code__
    if not (code.co_filename.startswith("<") and code.co_filename.endswith(">")):
        return fn
    lines = lines_of_code(code, fn.__globals__)
    if lines:
        fn.__dict__[_KEPT] = lines
    if lines and code.co_filename == _BY_VALUE:
        path, _ = _CARRIED["".join(lines)]
        cast("Any", fn).__code__ = code.replace(co_filename=path)
    return fn


def carry_lines(path: str, text: str) -> None:
    """Note a text from another process, which functions from there may be in."""
    if len(_CARRIED) >= _MOST_CARRIED:
        _CARRIED.pop(next(iter(_CARRIED)))
    _CARRIED.setdefault(text, (path, text.splitlines(keepends=True)))


def lines_of(fn: Callable[..., Any]) -> list[str]:
    """Return all lines, each with its line break; an empty list if not known.

    The code of a function that came from another process gets its file back.
    """
    kept: Any = getattr(fn, _KEPT, None)
    if kept is None and fn.__code__.co_filename == _BY_VALUE:
        kept = getattr(keep_lines(fn), _KEPT, None)
    if kept is not None:
        return cast("list[str]", kept)
    return lines_of_code(fn.__code__, getattr(fn, "__globals__", None))


def lines_of_code(code: CodeType, names: Mapping[str, Any] | None) -> list[str]:
    """Do the same as `lines_of`, for the code of a function or module."""
    path = code.co_filename
    linecache.checkcache(path)  # a reloaded module has new lines
    found = linecache.getlines(path, cast("Any", names))
    if path == _BY_VALUE:
        holding = (text for text in [*_CARRIED] if _holds(text, code))
        return _CARRIED[text][1] if (text := next(holding, None)) else []
    if path not in (_COMMAND, _INPUT):
        return found or _kept_by_python(code)
    if found and _holds("".join(found), code):
        return found
    found = _kept_by_python(code)
    if found:
        return found
    texts = _commands() if path == _COMMAND else _redirected()
    text = next((each for each in texts if _holds(each, code)), "")
    return text.splitlines(keepends=True)


def _kept_by_python(code: CodeType) -> list[str]:
    """Return the lines that Python 3.13 keeps of the prompt, ``-c`` and stdin."""
    find: Any = getattr(linecache, "_getlines_from_code", None)
    lines: Any = find(code) if find is not None else None
    return list(cast("list[str]", lines)) if lines else []


def _commands() -> Iterator[str]:
    """Yield possible texts of ``python -c``; newer versions dedent it."""
    for text in sys.orig_argv[1:]:
        if "\n" in text or ":" in text:
            yield text + "\n"
            yield dedent(text) + "\n"


def _redirected() -> Iterator[str]:
    """Yield the text of a file as standard input; that of a pipe is consumed."""
    with suppress(OSError):
        status = os.fstat(0)
        if stat.S_ISREG(status.st_mode):
            yield os.pread(0, status.st_size, 0).decode(errors="replace")


def _holds(text: str, code: CodeType) -> bool:
    """Whether a text contains exactly this code."""
    try:
        future = code.co_flags & _ANNOTATIONS
        whole = compile(text, code.co_filename, "exec", future, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    rest = [whole]
    while rest:
        each = rest.pop()
        if each == code:
            return True
        rest += [c for c in each.co_consts if isinstance(c, CodeType)]
    return False
