"""A module at the ``lanes`` stage as SPIR-V, and as text on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl.devices import find_device
from xetl_xegpu.emit.casts import mend_zero_extensions
from xetl_xegpu.emit.check import check_module
from xetl_xegpu.emit.emulation import define_builtins
from xetl_xegpu.emit.kernel import emit_module, text_of
from xetl_xegpu.emit.log import entry_of, log_operations, number_of
from xetl_xegpu.emit.spirv import to_assembly, to_spirv


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
        target: as `xetl.devices` has it; Intel's builtins are defined for those that
            are emulated.

    Raises:
        InternalError: it needs what the target, or SPIR-V, has not.
    """
    numbers = number_of(log_operations(module))
    device = find_device(target)
    llvm = emit_module(module, device, numbers)
    define_builtins(llvm, emulates_intel=device.emulated)
    mend_zero_extensions(llvm)
    check_module(llvm)
    return text_of(llvm)


def emit(module: ModuleOp, target: str) -> Emitted:
    """SPIR-V of a module at the ``lanes`` stage; as `llvm_text`."""
    log = [entry_of(op) for op in log_operations(module)]
    return Emitted(to_spirv(llvm_text(module, target)), log)


def spirv_text(module: ModuleOp, target: str) -> str:
    """The same module of SPIR-V as text; as `llvm_text`."""
    return to_assembly(llvm_text(module, target))
