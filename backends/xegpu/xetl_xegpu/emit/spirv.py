"""LLVM IR to SPIR-V: the one place that calls LLVM's backend.

It has its ways, each found the hard way:

* What it cannot do ends the process, so `check` comes first.
* Which extensions it may use is an option of the process, set once.
* A target machine that is used again crashes; one that is freed, or whose context or
  module is, makes later modules wrong. Each emission has its own, and all of them are
  kept, but for the oldest ones of very many: a kernel takes a megabyte.
* A wrong module has a number given twice (all 76 of 480 that freeing made wrong). Every
  module is looked at; a wrong one is emitted again, at last in a process of its own.
* Optimisations of LLVM make modules that are not valid, and gain nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as _binding

from xetl.errors import InternalError
from xetl_xegpu.emit.builtins import EXTENSIONS
from xetl_xegpu.emit.words import problem_with

binding: Any = _binding

TRIPLE = "spirv64-unknown-unknown"

_LOCK = threading.Lock()
_KEPT: deque[tuple[Any, ...]] = deque(maxlen=256)
"""Machine, context and module of the last emissions, which LLVM must not free."""

_PACKAGES = ("xetl", "xetl_xegpu", "llvmlite", "xdsl", "numpy")

_ATTEMPTS = 3
"""In this process: each takes 10 ms, a process of its own takes 300."""


@cache
def _initialize() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    extensions = ",".join(f"+{name}" for name in EXTENSIONS)
    binding.set_option("xetl", f"--spirv-ext={extensions}")


def _prepared(text: str) -> tuple[Any, Any]:
    """A target machine of its own, and the module."""
    _initialize()
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(opt=0)
    context = binding.create_context()
    try:
        module = binding.parse_assembly(text, context)
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM does not read a kernel: {error}") from error
    _KEPT.append((machine, context, module))
    return machine, module


def emit_once(text: str) -> bytes:
    """SPIR-V of a checked LLVM module in this process, not yet looked at."""
    with _LOCK:
        machine, module = _prepared(text)
        return bytes(machine.emit_object(module))


def to_spirv(text: str) -> bytes:
    """A module of SPIR-V of the text of a checked LLVM module.

    Raises:
        InternalError: LLVM does not read the text, or makes a wrong module of it.
    """
    problem = None
    for attempt in (*[emit_once] * _ATTEMPTS, emit_elsewhere):
        found = attempt(text)
        problem = problem_with(found)
        if problem is None:
            return found
    raise InternalError(f"LLVM makes a wrong module of SPIR-V: {problem}")


def emit_elsewhere(text: str) -> bytes:
    """Emit in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_places())}
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=text.encode(),
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise InternalError(f"LLVM's SPIR-V backend failed: {' '.join(last)}")
    return done.stdout


def _places() -> list[str]:
    """Where the packages are that the other process needs.

    Not all of `sys.path`: there, a user's ``types.py`` would come before Python's own,
    which this process may have loaded long ago.
    """
    files = [sys.modules[name].__file__ for name in _PACKAGES if name in sys.modules]
    return list(dict.fromkeys(str(Path(file).parents[1]) for file in files if file))


def to_assembly(text: str) -> str:
    """The same module as text that `spirv-as` reads.

    Raises:
        InternalError: as `to_spirv`.
    """
    with _LOCK:
        machine, module = _prepared(text)
        return str(machine.emit_assembly(module))


if __name__ == "__main__":
    sys.stdout.buffer.write(emit_once(sys.stdin.buffer.read().decode()))
