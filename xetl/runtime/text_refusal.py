"""What a backend could not do with a text, as an error that points into the text."""

from __future__ import annotations

from traceback import walk_tb

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from xetl.dialects.text import FILE, location_of
from xetl.errors import IRError, XetlError


def refused(error: Exception, backend: str) -> XetlError:
    """An `IRError` for whatever stopped a lowering.

    Passes are written for what the front end makes. Where a text has something else,
    the operation they were looking at is found in the frames of the error.
    """
    if isinstance(error, XetlError) and not error.code.startswith("X09"):
        return error
    reason = getattr(error, "message", "") or str(error) or type(error).__name__
    op = _operation_of(error)
    if op is None:
        return IRError(
            f"backend `{backend}` cannot run this text: {reason}", code="X0705"
        )
    place = location_of(op)
    assert place is not None
    return IRError(
        f"backend `{backend}` cannot run `{op.name}` here: {reason}",
        code="X0705",
        file=FILE,
        line=place[0],
        column=place[1],
        length=len(op.name),
        help="backend `reference` runs every operation",
    )


def _operation_of(error: BaseException) -> Operation | None:
    """The operation that the innermost frame with one was looking at."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        for value in frame.f_locals.values():
            if isinstance(value, Operation) and _is_of_text(value):
                return value
    return None


def _is_of_text(op: Operation) -> bool:
    location = op.location
    return isinstance(location, FileLineColLoc) and location.filename.data == FILE
