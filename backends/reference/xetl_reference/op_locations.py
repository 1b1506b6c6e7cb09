"""An error at the user's line of an operation, drawn as the front end draws its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from xetl.errors import CallFrame, XetlError
from xetl.frames import at_frames, frame_at
from xetl.transforms.diagnostics import positions_of

E = TypeVar("E", bound=XetlError)


def at_operation(error: E, op: Any) -> E:
    """Give ``error`` the line of ``op``, and the calls it was inlined through."""
    return at_frames(error, list(frames_of(op)))


def line_of(op: Any) -> int | None:
    """The innermost line of an operation."""
    return next((at.line.data for at in positions_of(op.location)), None)


def frames_of(op: Any) -> Iterator[CallFrame]:
    """The lines of an operation, the innermost first."""
    for at in positions_of(op.location):
        yield frame_at(at.filename.data, at.line.data, at.column.data)
