"""Errors and remarks about an operation, in the terms of the user's source.

A kernel came from Python or from a text: the error is then a `CompileError` on his
line, or an `IRError` on the line of the text.

Decisions of passes for `explain()` are remarks, in the same terms: a pass calls
`remark`; nothing happens unless somebody collects.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import TypeVar, Unpack

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Operation

from xetl.dialects.base import around, is_vector, operations_in
from xetl.dialects.kernel_attributes import ARG_NAMES, TEXT
from xetl.dialects.upstream import func, gpu
from xetl.dialects.xetile import TileMmaOp, TileSortOp
from xetl.errors import (
    CallFrame,
    CompileError,
    IRError,
    Parts,
    TileMapWarning,
    XetlError,
)
from xetl.frames import at_frames, frame_at
from xetl.records import record


@record(frozen=True)
class Remark:
    """One decision.

    Attributes:
        line: line of the user's file; 0 where it is not known.
        topic: what it is about, such as ``brgemm`` or ``packing``.
        text: what was done, or why not.
        file: where the line is; a helper may come from another file than the kernel.
        is_warning: whether the user is to be told even if he does not ask.
    """

    line: int
    topic: str
    text: str
    file: str = ""
    is_warning: bool = False


_collected: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


@contextmanager
def collect_remarks() -> Generator[list[Remark]]:
    """Collect the remarks of all passes that run inside."""
    found: list[Remark] = []
    token = _collected.set(found)
    try:
        yield found
    finally:
        _collected.reset(token)


def remark(op: Operation, topic: str, text: str, *, is_warning: bool = False) -> None:
    """Say what was decided about an operation; each thing once.

    A warning is given to the user whenever he loads the code, also from a cache; where
    nobody collects it is given at once.
    """
    file, line, _ = next(iter(_places(op)), ("", 0, 0))
    new = Remark(line, topic, text, file, is_warning)
    found = _collected.get()
    if found is None:
        if is_warning:
            warn(text, file, line)
    elif new not in found:
        found.append(new)


def warn(text: str, file: str, line: int) -> None:
    """Give a warning about a line of the user."""
    warnings.warn_explicit(text, TileMapWarning, file or "<unknown>", max(line, 1))


def positions_of(location: Attribute) -> Iterator[FileLineColLoc]:
    """The positions of a location: the innermost, then the calls it came through."""
    while isinstance(location, CallSiteLoc):
        if isinstance(location.callee, FileLineColLoc):
            yield location.callee
        location = location.caller
    if isinstance(location, FileLineColLoc):
        yield location


def places_of(location: Attribute) -> list[tuple[str, int, int]]:
    """File, line and column of each of its positions."""
    found = positions_of(location)
    return [(at.filename.data, at.line.data, at.column.data) for at in found]


def facts_of(remarks: list[Remark], file: str) -> dict[str, list[list[int | str]]]:
    """The remarks as an artifact keeps them: ``[line, topic, text]`` and warnings.

    The file is added where it is not ``file``, that of the kernel.
    """
    described: list[list[int | str]] = []
    for each in remarks:
        elsewhere = [each.file] if each.file and each.file != file else []
        described.append([each.line, each.topic, each.text, *elsewhere])
    warned: list[list[int | str]] = [
        [each.line, each.text, each.file] for each in remarks if each.is_warning
    ]
    return {"remarks": described, "warnings": warned}


_FRAMES = (ModuleOp, gpu.ModuleOp, gpu.FuncOp)
_LONG = (TileMmaOp, TileSortOp)


def elements_each(module: ModuleOp) -> int | None:
    """Elements of all vectors that the operations of a program read and make.

    None: there are loops, conditions, calls, products or sorts.
    """
    count = 0
    for op in operations_in(module, Operation):
        if isinstance(op, _LONG) or (op.regions and not isinstance(op, _FRAMES)):
            return None
        types = [value.type for value in (*op.operands, *op.results)]
        count += sum(prod(each.get_shape()) for each in types if is_vector(each))
    return count


E = TypeVar("E", bound=XetlError)

_IN_PYTHON = {
    "gpu.barrier": "barrier",
    "gpu.subgroup_id": "subgroup_id",
    "memref.alloc": "slm",
    "scf.if": "if",
    "scf.for": "for",
    "scf.while": "loop",
    "xetile.atomic_rmw_tile": "atomic_rmw_tile",
}


@record(frozen=True)
class DiagnosticKind:
    """A kind of mistake: its error class and code in Python, its code in a text."""

    error: type[CompileError]
    code: str
    text_code: str


@record(frozen=True)
class DiagnosticEmitter:
    """Makes errors about the operations of one kernel."""

    kernel: Operation

    @property
    def is_python(self) -> bool:
        """Whether the kernel was written in Python."""
        known = self.kernel.attributes
        # A text that is launched has both; one that is read by a tool has neither.
        return ARG_NAMES in known and TEXT not in known

    def name(self, op: Operation) -> str:
        """Return the user's name of an operation."""
        if self.is_python:
            return f"`{_IN_PYTHON.get(op.name, op.name.partition('.')[2])}`"
        return f"`{op.name}`"

    def place(self, op: Operation) -> str:
        """Return the user's name of an operation, and its line."""
        position = next(positions_of(op.location), None)
        line = "" if position is None else f" at line {position.line.data}"
        return f"{self.name(op)}{line}"

    def error(
        self, kind: DiagnosticKind, op: Operation, message: str, **parts: Unpack[Parts]
    ) -> XetlError:
        """The error, on the line of ``op``."""
        if self.is_python:
            return self.located(kind.error(message, kind.code, **parts), op)
        problem = f"{self.name(op)}: {message}"
        return self.located(IRError(problem, kind.text_code, **parts), op)

    def located(self, error: E, op: Operation) -> E:
        """Give an error the line of ``op``, and the calls that led to it."""
        places = _places(op)
        if self.is_python:
            return at_frames(error, [frame_at(*place) for place in places])
        # Who has the text adds the line itself.
        frames = [CallFrame(*place, length=len(op.name)) for place in places[:1]]
        return at_frames(error, frames)


def _places(op: Operation) -> list[tuple[str, int, int]]:
    """File, line and column of an operation, then of the calls it came through.

    What a pass made and gave no place has that of the operation around it.
    """
    for outer in around(op, Operation):
        places = places_of(outer.location)
        if places:
            return places
    return []


_CANNOT = DiagnosticKind(CompileError, "X0705", "X0705")


def refusal(op: Operation, message: str, help: str) -> XetlError:
    """The error that an operation cannot be distributed."""
    kernel = next(around(op, gpu.FuncOp, func.FuncOp), op)
    return DiagnosticEmitter(kernel).error(_CANNOT, op, message, help=help)
