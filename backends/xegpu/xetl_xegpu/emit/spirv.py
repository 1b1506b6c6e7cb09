"""LLVM IR to SPIR-V: the one place that calls LLVM's backend.

It has its ways, each found the hard way:

* What it cannot do ends the process, so `check` comes first.
* Which extensions it may use is an option of the process, set once.
* A target machine that is freed or used again makes later modules wrong, or crashes.
  Each emission has its own, with its own context, and all of them are kept.
* Even so a module may come out with a number given twice. Every module is looked at,
  and a wrong one is emitted again in a process of its own.
* Optimisations of LLVM make modules that are not valid, and gain nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from functools import cache
from typing import Any

import llvmlite.binding as _binding

from xetl.errors import InternalError
from xetl_xegpu.emit.builtins import EXTENSIONS
from xetl_xegpu.emit.words import problem_with

binding: Any = _binding

TRIPLE = "spirv64-unknown-unknown"

_LOCK = threading.Lock()
_KEPT: list[Any] = []
"""What LLVM must not free."""


@cache
def _initialize() -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    extensions = ",".join(f"+{name}" for name in EXTENSIONS)
    binding.set_option("xetl", f"--spirv-ext={extensions}")


def _machine() -> Any:
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(opt=0)
    _KEPT.append(machine)
    return machine


def _parse(text: str, machine: Any) -> Any:
    context = binding.create_context()
    try:
        module = binding.parse_assembly(text, context)
        module.triple, module.data_layout = TRIPLE, str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM does not read a kernel: {error}") from error
    _KEPT.extend((context, module))
    return module


def emit_once(text: str) -> bytes:
    """SPIR-V of a checked LLVM module in this process, unchecked."""
    with _LOCK:
        _initialize()
        machine = _machine()
        return bytes(machine.emit_object(_parse(text, machine)))


def to_spirv(text: str) -> bytes:
    """A module of SPIR-V of the text of a checked LLVM module.

    Raises:
        InternalError: LLVM does not read the text, or makes a wrong module of it.
    """
    found = emit_once(text)
    problem = problem_with(found)
    if problem is None:
        return found
    found = emit_elsewhere(text)
    problem = problem_with(found)
    if problem is not None:
        raise InternalError(f"LLVM makes a wrong module of SPIR-V: {problem}")
    return found


def emit_elsewhere(text: str) -> bytes:
    """Emit in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
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


def to_assembly(text: str) -> str:
    """The same module as text that `spirv-as` reads.

    Raises:
        InternalError: as `to_spirv`.
    """
    with _LOCK:
        _initialize()
        machine = _machine()
        return str(machine.emit_assembly(_parse(text, machine)))


if __name__ == "__main__":
    sys.stdout.buffer.write(emit_once(sys.stdin.buffer.read().decode()))
