"""Functions of the host that stand around kernels: read if we know their operations.

A module of the released dialect brings the program that allocates, launches, prints
and compares, in whatever dialects that takes (`linalg`, `llvm`, a runtime's own).
None of it is run here; what we cannot read must not keep a kernel from being loaded.
"""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRTokenKind

from .fast_parsing import FastParser

UNREAD = "xetile.unread"
"""On a function of the host without its body: why there is none."""

DEVICE, FUNCTION = "gpu.module", "func.func"
_UNKNOWN = "not registered"
_T = TypeVar("_T")


class HostCodeParser(FastParser):
    """Reads a function of the host without its body if that has unknown operations."""

    _device_depth = 0
    _skips_bodies = False

    def parse_operation(self) -> Operation:
        """Parse an operation."""
        name = self._current_token.text
        if name == DEVICE:
            self._device_depth += 1
            device = super().parse_operation()
            self._device_depth -= 1
            return device
        if name != FUNCTION or self._device_depth or not self._has_kernels():
            return super().parse_operation()
        return self._parse_host_function()

    def parse_optional_region(self, arguments: object = None) -> Region | None:
        """Parse a region, or leave it out where bodies are."""
        if not self._skips_bodies:
            return super().parse_optional_region(arguments)  # pyright: ignore[reportArgumentType]
        self._skip_braces()
        return None

    def _has_kernels(self) -> bool:
        return DEVICE in self.lexer.input.content

    def _parse_host_function(self) -> Operation:
        start, kept = self.pos, self._scopes()
        try:
            return super().parse_operation()
        except ParseError as error:
            if _UNKNOWN not in error.msg:
                raise
            reason = error.msg.strip().splitlines()[0]
        self._resume_from(start)
        self._restore(kept)
        self._skips_bodies = True
        declared = super().parse_operation()
        self._skips_bodies = False
        declared.attributes[UNREAD] = StringAttr(reason)
        return declared

    def _scopes(self) -> tuple[object, ...]:
        return (
            self.ssa_values.copy(),
            self.blocks,
            self.forward_block_references,
            {k: v.copy() for k, v in self.forward_ssa_references.items()},
            self._parser_state.dialect_stack.copy(),
        )

    def _restore(self, kept: tuple[object, ...]) -> None:
        values, blocks, block_references, references, dialects = kept
        self.ssa_values = values  # pyright: ignore[reportAttributeAccessIssue]
        self.blocks = blocks  # pyright: ignore[reportAttributeAccessIssue]
        self.forward_block_references = block_references  # pyright: ignore[reportAttributeAccessIssue]
        self.forward_ssa_references = references  # pyright: ignore[reportAttributeAccessIssue]
        self._parser_state.dialect_stack = dialects  # pyright: ignore[reportAttributeAccessIssue]

    def _skip_braces(self) -> None:
        """Go behind the ``}`` of the body that begins here, if one does."""
        opening = (MLIRTokenKind.L_BRACE, MLIRTokenKind.FILE_METADATA_BEGIN)
        closing = (MLIRTokenKind.R_BRACE, MLIRTokenKind.FILE_METADATA_END)
        depth = 0
        while True:
            kind = self._current_token.kind
            depth += (kind in opening) - (kind in closing)
            if kind == MLIRTokenKind.EOF and depth:
                self.raise_error("expected '}' at the end of a function")
            if depth == 0 and kind not in closing:
                return
            self._consume_token()
            if depth == 0:
                return
