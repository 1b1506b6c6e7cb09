"""Every error a user can see, and its text.

An error has a headline, the innermost line of the user with a caret, the lines that
called it, notes and a help. ``str(error)`` draws all of them; they are also attributes.
The structure follows the rustc development guide, "Diagnostics".

This module imports only the standard library and `records`, so all others may use it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypedDict, Unpack

from xetl.records import record


class Parts(TypedDict, total=False):
    """The optional parts of an error besides its headline; see `XetlError`."""

    label: str
    notes: Sequence[str | None]
    help: str | None


@record(frozen=True)
class CallFrame:
    """One line of the user's source in the call chain of an error.

    ``line`` and ``column`` count from 1, ``column`` and ``length`` in characters.
    """

    file: str
    line: int
    column: int
    length: int = 1
    function: str | None = None
    source_line: str | None = None
    label: str = "called here"


class XetlError(Exception):
    """The root of all errors of xetl.

    Args:
        message: the headline. It is complete without the other parts, begins in lower
            case and has no full stop.
        code: a stable name such as ``X0201``, explained in ``docs/errors``.
        help: what the user can do about the error.
        file: the file of the user's line; None if the error belongs to no line.
        line: the number of the line, from 1.
        column: the column of the first caret, from 1, in characters.
        length: the number of characters that the carets underline.
        label: a text right of the carets.
        notes: further facts, a line each. A None is skipped.
        frames: the callers of an inlined function, innermost first.
        source_line: the text of ``line``.
        function: the function that the line belongs to.
    """

    family = "X00"

    def __init__(
        self,
        message: str,
        code: str | None = None,
        help: str | None = None,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        length: int = 1,
        label: str = "",
        notes: Sequence[str | None] = (),
        frames: Sequence[CallFrame] = (),
        source_line: str | None = None,
        function: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or f"{self.family}00"
        self.file = file
        self.line = line
        self.column = column
        self.length = length
        self.label = label
        self.notes = tuple(filter(None, notes))
        self.help = help
        self.frames = tuple(frames)
        self.source_line = source_line
        self.function = function

    def __str__(self) -> str:
        return draw(self)


class CompileError(XetlError):
    """A kernel is wrong. The error is raised before machine code is made."""


class NameLookupError(CompileError):
    """X01xx: a name, attribute, keyword or argument does not exist."""

    family = "X01"


class TileShapeError(CompileError):
    """X02xx: shapes or ranks do not fit."""

    family = "X02"


class TileTypeError(CompileError):
    """X03xx: dtypes or kinds of value do not fit."""

    family = "X03"


class SyntaxNotSupportedError(CompileError):
    """X04xx: a kernel uses Python that is not part of the kernel language."""

    family = "X04"


class TileMapError(CompileError):
    """X05xx: a map or an order is not legal."""

    family = "X05"


class ControlFlowError(CompileError):
    """X06xx: a kernel has a loop or a branch that is not supported."""

    family = "X06"


COMPILE_ERRORS = {each.family: each for each in CompileError.__subclasses__()}
"""The classes by the first characters of a code, such as ``X01``."""


class IRError(XetlError):
    """X07xx: a text module is wrong."""

    family = "X07"


class LaunchError(XetlError):
    """X08xx: a call from the host is wrong. No array was written."""

    family = "X08"


class MissingKernelError(LaunchError, KeyError):
    """X08xx: a module has no kernel of that name."""


class CheckError(XetlError):
    """X082x: a check of `kernel.interpret` found something wrong in a kernel.

    Attributes:
        array: the name of the array, if the error is about one.
        index: the index of the element in the array (of a scatter tile: in its base).
        programs: (x, y, z) of each program involved, the earlier one first.
    """

    family = "X08"

    def __init__(
        self,
        message: str,
        *,
        code: str,
        array: str | None = None,
        index: tuple[int, ...] = (),
        programs: Sequence[tuple[int, int, int]] = (),
        **parts: Unpack[Parts],
    ) -> None:
        super().__init__(message, code, **parts)
        self.array = array
        self.index = index
        self.programs = tuple(programs)


class InternalError(XetlError):
    """X09xx: an invariant of xetl itself is broken; please report it."""

    family = "X09"


class TileMapWarning(UserWarning):
    """Maps that the user gave make a kernel do more work than expected.

    Subgroups exchange data because two maps do not fit, or several subgroups do the
    same work.
    """


class SettingWarning(UserWarning):
    """A variable ``XETL_...`` is set, but is no setting: probably a misspelt name."""


class TuningWarning(UserWarning):
    """A config of `xetl.autotune` is not used: it fails or computes other results."""


class LibraryWarning(UserWarning):
    """A library that the user asked for (`xetl.config.xsmm`) is not used.

    The library is missing, computes wrong numbers or lacks a kernel. xetl's own code is
    used instead.
    """


class ThreadLayerWarning(UserWarning):
    """A library is missing, so kernels run on threads that are slow to start."""


class EmulatedDeviceWarning(UserWarning):
    """A GPU runs kernels slowly, because Intel's tile instructions are emulated."""


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that is most similar to a misspelt ``name``, or None."""
    import difflib  # noqa: PLC0415 - only for errors

    # A short name is easily part of another: "foo" is no misspelt "floor".
    near = [c for c in candidates if len(name) > 3 or len(c) <= len(name) + 1]
    matches = difflib.get_close_matches(name, near, n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a help text for a misspelt ``name``; None if no candidate is similar."""
    match = suggest(name, candidates)
    return None if match is None else f"did you mean `{match}`?"


def a_kind(value: object) -> str:
    """Return the name of a value's class with its article, such as "an int"."""
    name = type(value).__name__
    return f"{'an' if name.startswith((*'aeioAEIO', 'ndarray')) else 'a'} {name}"


def cannot_be_shown(name: str) -> LaunchError:
    """Return the error for an exported kernel that prints or asserts."""
    return LaunchError(
        f"`{name}` prints or asserts, which only a launch from Python can show",
        code="X0844",
        help="compile it without `device_print`, `device_assert` and `assert`",
    )


def draw(error: XetlError) -> str:
    """Draw ``error`` as text: headline, lines with carets, notes, help."""
    lines = [f"error[{error.code}]: {error.message}"]
    frames = [*_own_frame(error), *error.frames]
    # Line numbers take two columns at least, so that most errors look alike.
    width = max([2, *(len(str(frame.line)) for frame in frames)])
    for frame in frames:
        lines += _draw_frame(frame, width)
    gutter = " " * (width + 1)
    lines += [f"{gutter}= note: {note}" for note in error.notes]
    if error.help is not None:
        lines.append(f"{gutter}= help: {error.help}")
    return "\n".join(lines)


def _own_frame(error: XetlError) -> list[CallFrame]:
    if error.file is None or error.line is None:
        return []
    place = error.file, error.line, error.column or 1, error.length
    return [CallFrame(*place, error.function, error.source_line, error.label)]


def _draw_frame(frame: CallFrame, width: int) -> list[str]:
    where = f"{_shown_path(frame.file)}:{frame.line}:{frame.column}"
    owner = f" in {frame.function}" if frame.function else ""
    lines = [f"{' ' * (width - 1)}--> {where}{owner}"]
    if frame.source_line is None:
        return lines
    gutter = " " * (width + 1)
    source = frame.source_line.rstrip()
    before = source[: frame.column - 1]
    # A tab stays a tab, so that the caret is below its column at any tab width.
    padding = "".join("\t" if char == "\t" else " " for char in before)
    carets = "^" * max(1, min(frame.length, len(source) - len(before)))
    lines.append(f"{gutter}|")
    lines.append(f"{frame.line:>{width}} | {source}".rstrip())
    lines.append(f"{gutter}| {padding}{carets} {frame.label}".rstrip())
    return lines


def _shown_path(path: str) -> str:
    """Return ``path`` relative to the current folder, if it is inside of it."""
    try:
        here = os.getcwd() + os.sep
    except FileNotFoundError:  # the current folder was deleted
        return path
    return path.removeprefix(here)
