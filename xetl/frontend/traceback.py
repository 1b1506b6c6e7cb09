"""Tracebacks of compile errors end at the line of the kernel that is wrong.

Python draws its own carets from code positions, so a frame is made whose only
statement stands where the erring expression stands.  Idea: Jinja2's tracebacks.
"""

from __future__ import annotations

import ast
from types import TracebackType

from xetl.errors import XetlError


def point_at_user(error: XetlError) -> XetlError:
    """Give ``error`` a traceback of one entry: the user's line.

    ``raise point_at_user(error) from None`` puts the host's frames before it.
    """
    if error.file is None or error.line is None:
        return error
    # Raising extends the traceback there is: ours must not be at its end.
    error.__traceback__ = None
    return error.with_traceback(_traceback_at(error, error.file, error.line))


def _traceback_at(error: XetlError, file: str, line: int) -> TracebackType | None:
    text, column = error.source_line or "", (error.column or 1) - 1
    start = len(text[:column].encode())
    end = start + len(text[column : column + error.length].encode())
    position = {
        "lineno": line,
        "end_lineno": line,
        "col_offset": start,
        "end_col_offset": max(end, start + 1),
    }
    name = ast.Name("error", ast.Load(), **position)
    module = ast.Module([ast.Raise(exc=name, cause=None, **position)], [])
    code = compile(module, file, "exec")
    function = error.function or "<module>"
    try:
        exec(code.replace(co_name=function, co_qualname=function), {"error": error})
    except XetlError as raised:
        own = raised.__traceback__
        return own.tb_next if own is not None else None
    return None
