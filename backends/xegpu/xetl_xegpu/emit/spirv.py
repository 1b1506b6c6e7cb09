"""LLVM IR to SPIR-V that is right: binary modules, and text that assembles to them.

* What LLVM's SPIR-V backend cannot do ends the process, so `check` comes first.
* A wrong module has a number given twice (all 76 of 480 that freeing made wrong). Every
  module and text is looked at; a wrong one is emitted again, at last in a process of
  its own.
* What an emission uses cannot be freed. After so many, each is in such a process.
* Optimisations of LLVM make modules that are not valid, and gain nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from xetl.errors import InternalError
from xetl.locks import ForkSafeLock
from xetl_xegpu.emit import llvm_spirv
from xetl_xegpu.emit.assembly import problem_with_text, readable
from xetl_xegpu.emit.builtins import EXTENSIONS
from xetl_xegpu.emit.words import problem_with

_LOCK = ForkSafeLock()

_MOST_HERE = 256
"""Emissions in this process: their memory is never given back."""

_ATTEMPTS = 3
"""In this process: each takes 10 ms, a process of its own takes 100."""

_EXTENSIONS = ",".join(f"+{name}" for name in EXTENSIONS)

Emit = Callable[[str, bool], bytes]


def emit_once(text: str, as_text: bool) -> bytes:
    """SPIR-V of a checked LLVM module in this process, not yet looked at."""
    with _LOCK.held():
        try:
            return llvm_spirv.emit(text, _EXTENSIONS, as_text=as_text)
        except RuntimeError as error:
            raise InternalError(f"LLVM does not read a kernel: {error}") from error


def emit_elsewhere(text: str, as_text: bool) -> bytes:
    """As `emit_once`, in a process of its own."""
    # Of `sys.path` no more than it needs: there may be a user's ``types.py``.
    package = cast("Any", sys.modules["llvmlite"]).__file__
    environment = {**os.environ, "PYTHONPATH": str(Path(package).parents[1])}
    form = "text" if as_text else "binary"
    done = subprocess.run(
        [sys.executable, "-P", llvm_spirv.__file__, _EXTENSIONS, form],
        input=text.encode(),
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        what = "does not read a kernel" if done.returncode == 1 else "ended its process"
        raise InternalError(f"LLVM {what}: {' '.join(last)}")
    return done.stdout


def to_spirv(text: str) -> bytes:
    """A module of SPIR-V of the text of a checked LLVM module.

    Raises:
        InternalError: LLVM does not read the text, or makes a wrong module of it.
    """
    return _right(text, False, problem_with)


def to_assembly(text: str) -> str:
    """The same module as text that `spirv-as` reads.

    Raises:
        InternalError: as `to_spirv`.
    """
    found = _right(text, True, lambda made: problem_with_text(made.decode()))
    return readable(found.decode())


def _right(
    text: str, as_text: bool, problem_with: Callable[[bytes], str | None]
) -> bytes:
    """The first emission that nothing is wrong with."""
    here = _ATTEMPTS if len(llvm_spirv.KEPT) < _MOST_HERE else 0
    attempts: list[Emit] = [*[emit_once] * here, emit_elsewhere]
    problem = None
    for attempt in attempts:
        found = attempt(text, as_text)
        problem = problem_with(found)
        if problem is None:
            return found
    raise InternalError(f"LLVM makes a wrong module of SPIR-V: {problem}")
