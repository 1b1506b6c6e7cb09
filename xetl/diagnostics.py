"""Diagnostics of a compilation: dumps of the IR, map conflicts, too deep nesting."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl.dialects.xetile.used_maps import maps_may_meet
from xetl.errors import SyntaxNotSupportedError
from xetl.imports import import_whole
from xetl.settings import config


class Dump:
    """Prints IR to stderr: ``after:<pass or stage>`` in `config.dump`, or ``all``."""

    def __init__(self, backend: str, known: Sequence[str]) -> None:
        """Warn about names that are not ``known``; another backend may have them."""
        parts = (config.dump or "").split(",")
        self._wanted = {part.strip().removeprefix("after:") for part in parts} - {""}
        for name in sorted(self._wanted - {*known, "all"}):
            listed = ", ".join(known)
            _print(f"// XETL_DUMP: `{backend}` has no `{name}`; there are {listed}")

    def show(self, name: str, stage: str | None, module: ModuleOp) -> None:
        """Print the module after a pass if that is wanted."""
        if self._wanted & {name, stage, "all"}:
            _print(f"// after {name}\n{module!s}")


def _print(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - asked for


def report_map_conflicts(module: ModuleOp, passes: Sequence[ModulePass]) -> None:
    """Report where maps that a user gave disagree, if no pass resolves them."""
    resolves = any(each.name == "propagate-wg-maps" for each in passes)
    if not resolves and any(maps_may_meet(op) for op in module.ops):
        follow = import_whole("xetl.transforms.report_map_conflicts")
        follow.report_map_conflicts(module)


@contextmanager
def refuse_deep_nesting(kernel: str, file: str) -> Generator[None]:
    """Turn a RecursionError of the compiler into an error about the kernel."""
    try:
        yield
    except RecursionError:
        help_ = "split it: branches and dependent operations stand in one another"
        raise SyntaxNotSupportedError(
            f"`{kernel}` is nested too deeply", code="X0408", file=file, help=help_
        ) from None
