"""LLVM's SPIR-V backend, which can also run in another process.

This file imports only llvmlite, so that such a process takes 0.1 s.

Two facts about LLVM, found by experiment:

* The extensions that it may use are an option of the process, which is set once.
* LLVM crashes if a target machine is used again. If a target machine, its context or
  its module is freed, later modules are wrong. So each emission has its own, and all
  are kept.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import llvmlite.binding as _binding

binding: Any = _binding

TRIPLE = "spirv64-unknown-unknown"

KEPT: list[tuple[Any, ...]] = []
"""Machine, context and module of each emission, which LLVM must not free: 1 MB each."""


@cache
def _initialize(extensions: str) -> None:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    binding.set_option("xetl", f"--spirv-ext={extensions}")


def emit(text: str, extensions: str, *, as_text: bool) -> bytes:
    """Return the SPIR-V of a checked LLVM module; the SPIR-V is not checked yet.

    Args:
        extensions: the value of LLVM's option ``--spirv-ext``.
        as_text: return assembly, not a binary module.

    Raises:
        RuntimeError: LLVM does not read the text.
    """
    _initialize(extensions)
    machine = binding.Target.from_triple(TRIPLE).create_target_machine(opt=0)
    context = binding.create_context()
    module = binding.parse_assembly(text, context)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    module.verify()
    KEPT.append((machine, context, module))
    if as_text:
        return str(machine.emit_assembly(module)).encode()
    return bytes(machine.emit_object(module))


if __name__ == "__main__":
    given = sys.stdin.buffer.read().decode()
    found = emit(given, sys.argv[1], as_text=sys.argv[2] == "text")
    sys.stdout.buffer.write(found)
