"""Make the error of a call point at the user's line that made the call."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from itertools import islice
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from xetl.errors import InternalError, LaunchError, XetlError
from xetl.language.source_lines import lines_of_code

E = TypeVar("E", bound=XetlError)
P = ParamSpec("P")
R = TypeVar("R")

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def at_caller(error: E) -> E:
    """Give ``error`` the user's line, and a traceback that ends there.

    The error of a kernel has its line already: only the frames of xetl are removed.
    Use it as ``raise at_caller(error) from None``.
    """
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None and last.tb_frame.f_code.co_filename == error.file:
        return error.with_traceback(last)
    frame = _user_frame()
    if frame is None or isinstance(error, InternalError):
        return error  # a bug of xetl: all frames are needed to find it
    if isinstance(error, LaunchError) and error.file is None:
        _locate(error, frame)
    end = TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
    return error.with_traceback(end)


def errors_at_caller(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its errors have the line of the call (`at_caller`).

    This costs a call, so functions that must be fast do it themselves.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except XetlError as error:
            raise at_caller(error) from None

    return called


def warn_at_caller(text: str, category: type[Warning]) -> None:
    """Warn at the user's line; frames of a backend that warns are skipped, too."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    package = _package(frame)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OURS) or _package(frame) == package
    ):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    place = (frame.f_code.co_filename, frame.f_lineno)
    warnings.warn_explicit(text, category, *place, registry=registry)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _user_frame() -> FrameType | None:
    """Return the innermost frame that runs code outside of this package."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def _locate(error: XetlError, frame: FrameType) -> None:
    """Set file, line and columns of the error to those of the call in ``frame``."""
    code = frame.f_code
    positions = next(islice(code.co_positions(), frame.f_lasti // 2, None), None)
    line, last, start, end = positions or (None, None, None, None)
    error.file = code.co_filename
    error.line = line or frame.f_lineno
    error.function = code.co_name
    lines = lines_of_code(code, frame.f_globals)
    source = lines[error.line - 1] if error.line <= len(lines) else ""
    error.source_line = source or None
    if start is None or end is None or not source:
        error.column = 1
        return
    raw = source.encode()
    error.column = len(raw[:start].decode(errors="replace")) + 1
    # A call of several lines is underlined to the end of the first.
    stop = end if last == line else len(raw.rstrip())
    error.length = max(1, len(raw[start:stop].decode(errors="replace")))
