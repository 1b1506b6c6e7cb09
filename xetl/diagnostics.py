"""Diagnostics of a compilation: dumps of the IR, map conflicts, too deep nesting."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl.dialects.xetile.used_maps import maps_may_meet
from xetl.errors import InternalError, SyntaxNotSupportedError, XetlError
from xetl.pipeline import LaterPass
from xetl.settings import config
from xetl.transforms.canonicalize import CanonicalizePass
from xetl.transforms.cse import CSEPass
from xetl.transforms.diagnostics import remark


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


_RESOLVES = "propagate-wg-maps"


def report_map_conflicts(module: ModuleOp, passes: Sequence[ModulePass]) -> None:
    """Leave remarks where maps that a user gave disagree, if no pass resolves them.

    The kernel is written for hardware on which they cost something. The passes run on
    a copy of the module, at stage ``xetile``; what cannot be followed is a remark, too:
    it is no reason not to run the kernel.
    """
    resolves = any(each.name == _RESOLVES for each in passes)
    if resolves or not any(maps_may_meet(op) for op in module.ops):
        return
    copy, context = module.clone(), Context()
    to_maps = (LaterPass("normalize-tiles"), CanonicalizePass(), CSEPass())
    try:
        for each in (*to_maps, LaterPass(_RESOLVES)):
            each.apply(context, copy)
    except InternalError:
        raise
    except XetlError as error:
        remark(module, "maps", f"the maps could not be followed: {error}")


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
