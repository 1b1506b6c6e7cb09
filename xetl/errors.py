"""Every error a user can see, and how it is drawn.

An error is a headline, the innermost line of the user with a caret, the lines that
called it, notes and a help.  ``str(error)`` is the whole drawing; the parts stay
fields.  The anatomy follows the rustc development guide, "Diagnostics".

This module imports the standard library and `records` alone, so all others may use it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from xetl.records import record


@record(frozen=True)
class CallFrame:
    """One line of the user's source on the way to an error.

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
        message: the headline; stands alone, lower case, no full stop.
        code: stable name such as ``X0201``, explained in ``docs/errors``.
        help: what to do about it.
        file: where the user's line is; ``None`` if the error belongs to no line.
        line: from 1.
        column: of the caret's first character, from 1, in characters.
        length: how many characters the carets underline.
        label: stands right of the carets.
        notes: further facts, a line each.
        frames: the callers of an inlined function, innermost first.
        source_line: the text of ``line``.
        function: the function the line belongs to.
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
        notes: Sequence[str] = (),
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
        self.notes = tuple(notes)
        self.help = help
        self.frames = tuple(frames)
        self.source_line = source_line
        self.function = function

    def __str__(self) -> str:
        return draw(self)


class CompileError(XetlError):
    """A kernel is wrong; raised before any machine code is made."""


class NameLookupError(CompileError):
    """X01xx: a name, attribute, keyword or argument that is not there."""

    family = "X01"


class TileShapeError(CompileError):
    """X02xx: shapes or ranks that do not fit."""

    family = "X02"


class TileTypeError(CompileError):
    """X03xx: dtypes or kinds of value that do not fit."""

    family = "X03"


class SyntaxNotSupportedError(CompileError):
    """X04xx: Python that is not part of the kernel language."""

    family = "X04"


class TileMapError(CompileError):
    """X05xx: a map or an order that is not legal."""

    family = "X05"


class ControlFlowError(CompileError):
    """X06xx: loops and branches that a kernel cannot have."""

    family = "X06"


COMPILE_ERRORS = {each.family: each for each in CompileError.__subclasses__()}
"""By the first digits of a code."""


class IRError(XetlError):
    """X07xx: a text module is wrong."""

    family = "X07"


class LaunchError(XetlError):
    """X08xx: a call from the host is wrong; nothing was written."""

    family = "X08"


class MissingKernelError(LaunchError, KeyError):
    """X08xx: a module has no kernel of that name."""


class CheckError(XetlError):
    """X082x: a check of `kernel.interpret` found something wrong in a kernel.

    Attributes:
        array: the name of the array it is about, if any.
        index: of the element, in the array (of a scatter tile: in its base).
        programs: (x, y, z) of the programs that take part, the earlier one first.
    """

    family = "X08"

    def __init__(
        self,
        message: str,
        *,
        code: str,
        label: str = "",
        notes: Sequence[str] = (),
        help: str | None = None,
        array: str | None = None,
        index: tuple[int, ...] = (),
        programs: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        super().__init__(message, code=code, label=label, notes=notes, help=help)
        self.array = array
        self.index = index
        self.programs = tuple(programs)


class InternalError(XetlError):
    """X09xx: an invariant of xetl itself is broken; please report it."""

    family = "X09"


class TileMapWarning(UserWarning):
    """Maps that the user gave make the kernel do more work than he may expect.

    Data changes hands, as two do not fit together, or several do the same work.
    """


class SettingWarning(UserWarning):
    """A variable ``XETL_...`` is set that is no setting: probably it is misspelt."""


class TuningWarning(UserWarning):
    """A config of `xetl.autotune` is not used: it fails, or gives other results."""


class LibraryWarning(UserWarning):
    """A library that the user asked for (`xetl.config.xsmm`) is not used.

    It is not there, or computes wrong numbers, or lacks a kernel; xetl's own is used.
    """


class ThreadLayerWarning(UserWarning):
    """Kernels run on threads that are slow to start, because a library is missing."""


class EmulatedDeviceWarning(UserWarning):
    """A GPU runs kernels slowly: Intel's instructions for tiles are emulated on it."""


def suggest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate a misspelt ``name`` was probably meant to be, if any is near."""
    import difflib  # noqa: PLC0415 - only for what is wrong

    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A help text for a misspelt ``name``; ``None`` if nothing is near."""
    match = suggest(name, candidates)
    return None if match is None else f"did you mean `{match}`?"


def cannot_be_shown(name: str) -> LaunchError:
    """The error for an exported kernel whose records nobody would read."""
    return LaunchError(
        f"`{name}` prints or asserts, which only a launch from Python can show",
        code="X0844",
        help="compile it without `device_print`, `device_assert` and `assert`",
    )


def draw(error: XetlError) -> str:
    """The drawing of ``error``: headline, lines with carets, notes, help."""
    lines = [f"error[{error.code}]: {error.message}"]
    frames = [*_own_frame(error), *error.frames]
    # Two columns at least, so that short files look like long ones.
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
    return [
        CallFrame(
            error.file,
            error.line,
            error.column or 1,
            error.length,
            error.function,
            error.source_line,
            error.label,
        )
    ]


def _draw_frame(frame: CallFrame, width: int) -> list[str]:
    where = f"{_shown_path(frame.file)}:{frame.line}:{frame.column}"
    owner = f" in {frame.function}" if frame.function else ""
    lines = [f"{' ' * (width - 1)}--> {where}{owner}"]
    if frame.source_line is None:
        return lines
    gutter = " " * (width + 1)
    source = frame.source_line.rstrip()
    before = source[: frame.column - 1]
    # A tab stays a tab, so that the caret stands where the editor shows it.
    padding = "".join("\t" if char == "\t" else " " for char in before)
    carets = "^" * max(1, min(frame.length, len(source) - len(before)))
    lines.append(f"{gutter}|")
    lines.append(f"{frame.line:>{width}} | {source}".rstrip())
    lines.append(f"{gutter}| {padding}{carets} {frame.label}".rstrip())
    return lines


def _shown_path(path: str) -> str:
    """``path`` as a user at the prompt would type it."""
    try:
        here = os.getcwd() + os.sep
    except FileNotFoundError:  # the folder was deleted under us
        return path
    return path.removeprefix(here)
