"""A module at the ``lanes`` stage as SPIR-V, and as text on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl_xegpu.emit.builtins import device_of
from xetl_xegpu.emit.check import check_module
from xetl_xegpu.emit.emulation import define_builtins
from xetl_xegpu.emit.kernel import emit_module, text_of
from xetl_xegpu.emit.log import entry_of, log_operations, number_of
from xetl_xegpu.emit.spirv import to_assembly, to_spirv

EMULATED = "opencl"
"""The target of devices that lack Intel's builtins."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """What became of a module.

    Attributes:
        spirv: all its kernels, as an OpenCL or Level Zero driver takes them.
        log: for `xetl.runtime.log.read_records`: its prints and assertions.
    """

    spirv: bytes
    log: list[dict[str, Any]]


def llvm_text(module: ModuleOp, target: str) -> str:
    """LLVM IR of a module at the ``lanes`` stage, checked.

    Args:
        module: its kernels are `simt.func`.
        target: ``pvc``, ``bmg`` or ``opencl``; the last defines Intel's builtins.

    Raises:
        InternalError: it needs what the target, or SPIR-V, has not.
    """
    numbers = number_of(log_operations(module))
    llvm = emit_module(module, device_of(target), numbers)
    define_builtins(llvm, emulates_intel=target == EMULATED)
    check_module(llvm)
    return text_of(llvm)


def emit(module: ModuleOp, target: str) -> Emitted:
    """SPIR-V of a module at the ``lanes`` stage; as `llvm_text`."""
    log = [entry_of(op) for op in log_operations(module)]
    return Emitted(to_spirv(llvm_text(module, target)), log)


def spirv_text(module: ModuleOp, target: str) -> str:
    """The same module of SPIR-V as text; as `llvm_text`."""
    return to_assembly(llvm_text(module, target))
