"""What `kernel.interpret` adds to a launch: checks by name, and who makes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, cast

from xetl.backend import INTERPRETER, Argument
from xetl.errors import LaunchError, did_you_mean
from xetl.runtime.executables import Loaded
from xetl.runtime.grid import Grid
from xetl.runtime.tensors import note_written, stored_objects

CHECKS = ("oob", "uninit", "race")
ALL = ",".join(CHECKS)
OPTIONS = {"backend": INTERPRETER, "queue": None}
"""Of the launch that an interpretation is."""


class CheckingExecutable(Protocol):
    """The executable of the interpreter."""

    def check(
        self, grid: Grid, args: Sequence[Argument], checks: Collection[str]
    ) -> None:
        """Run on copies of the arrays, and keep what was written if all is well."""


def checks_of(check: object) -> frozenset[str]:
    """The checks in ``"oob,race"``; none in an empty text.

    Raises:
        LaunchError: there is no such check.
    """
    if not isinstance(check, str):
        problem = f"`check=` is a {type(check).__name__}, but must be a text"
        help_ = f'write check="{ALL}", some of these, or ""'
        raise LaunchError(problem, "X0817", help_)
    names = [name.strip() for name in check.split(",") if name.strip()]
    for name in names:
        if name not in CHECKS:
            listed = ", ".join(f"`{each}`" for each in CHECKS)
            help_ = did_you_mean(name, CHECKS) or f"the checks are {listed}"
            raise LaunchError(f"there is no check called `{name}`", "X0817", help_)
    return frozenset(names)


def refuse_other_backend(options: Mapping[str, Any]) -> None:
    """Refuse ``backend="cpu"``: the interpreter is a backend itself."""
    name = options.get("backend")
    if name not in (None, INTERPRETER):
        problem = f"`interpret` runs on backend `{INTERPRETER}`, not on `{name}`"
        raise LaunchError(problem, "X0810", "leave out `backend=`")


def run_checked(
    loaded: Loaded,
    grid: Grid,
    args: Sequence[Argument],
    checks: Collection[str],
) -> None:
    """Run a kernel on the interpreter.

    Without checks it is a launch. With checks the arrays are written only if all
    programs have run and nothing was found.
    """
    executable = loaded.executable
    note_written(stored_objects(args, loaded.stored))
    if checks:
        cast("CheckingExecutable", executable).check(grid, args, checks)
    else:
        executable.launch(grid, args)
