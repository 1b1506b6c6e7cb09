"""Errors about an operation, in the terms of the user's source.

A kernel came from Python or from a text: the error is then a `CompileError` on his
line, or an `IRError` on the line of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.ir import Operation

from xetl.dialects.kernel_attributes import ARG_NAMES, TEXT
from xetl.dialects.upstream import func, gpu
from xetl.errors import CallFrame, CompileError, IRError, XetlError
from xetl.frames import at_frames, frame_at
from xetl.records import record
from xetl.transforms.remarks import positions_of

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
    """Makes errors about the operations of one kernel.

    Attributes:
        kernel: the function.
    """

    kernel: Operation

    @property
    def is_python(self) -> bool:
        """Whether the kernel was written in Python."""
        known = self.kernel.attributes
        # A text that is launched has both; one that is read by a tool has neither.
        return ARG_NAMES in known and TEXT not in known

    def name(self, op: Operation) -> str:
        """What the user calls an operation."""
        if self.is_python:
            return f"`{_IN_PYTHON.get(op.name, op.name.partition('.')[2])}`"
        return f"`{op.name}`"

    def place(self, op: Operation) -> str:
        """What the user calls an operation, and its line."""
        position = next(positions_of(op.location), None)
        line = "" if position is None else f" at line {position.line.data}"
        return f"{self.name(op)}{line}"

    def error(
        self,
        kind: DiagnosticKind,
        op: Operation,
        message: str,
        *,
        label: str = "",
        notes: Sequence[str] = (),
        help: str | None = None,
    ) -> XetlError:
        """The error, on the line of ``op``."""
        if self.is_python:
            error = kind.error(
                message, code=kind.code, label=label, notes=notes, help=help
            )
            return self.located(error, op)
        found = IRError(
            f"{self.name(op)}: {message}",
            code=kind.text_code,
            label=label,
            notes=notes,
            help=help,
        )
        return self.located(found, op)

    def located(self, error: E, op: Operation) -> E:
        """Give an error the line of ``op``, and the calls that led to it."""
        places = _places(op)
        if self.is_python:
            return at_frames(error, [frame_at(*place) for place in places])
        # Who has the text adds the line itself.
        frames = [CallFrame(*place, length=len(op.name)) for place in places[:1]]
        return at_frames(error, frames)


def _places(op: Operation) -> list[tuple[str, int, int]]:
    """File, line and column of an operation, then of the calls it came through."""
    found: Operation | None = op
    while found is not None:
        places = [
            (each.filename.data, each.line.data, each.column.data)
            for each in positions_of(found.location)
        ]
        if places:
            return places
        found = found.parent_op()
    return []


_CANNOT = DiagnosticKind(CompileError, "X0705", "X0705")


def refusal(op: Operation, message: str, help: str) -> XetlError:
    """The error that an operation cannot be distributed.

    Args:
        op: the operation.
        message: what is wrong with it.
        help: what to write instead.
    """
    kernel: Operation = op
    while not isinstance(kernel, gpu.FuncOp | func.FuncOp):
        above = kernel.parent_op()
        if above is None:
            break
        kernel = above
    return DiagnosticEmitter(kernel).error(_CANNOT, op, message, help=help)
