"""From a lowered module to machine code: emit, optimise a little, assemble, flatten."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from xetl.errors import InternalError
from xetl.imports import import_whole
from xetl_cpu.emit import fibers, packed_memory, parallel
from xetl_cpu.emit.kernel import emit_kernel
from xetl_cpu.targets import Target, target_machine

_BINDING = "llvmlite.binding"


def llvm_text(module: ModuleOp, target: Target) -> str:
    """The LLVM IR as emitted."""
    table = parallel.TABLE | fibers.TABLE | packed_memory.TABLE
    return str(emit_kernel(module, target, table))


def optimised(text: str, target: Target) -> Any:
    """Parse and run the few passes that matter.

    The loops are already what we want, so LLVM's vectorisers and unrollers are left
    out: they would only cost time (measured: 45 ms more for a micro-kernel).
    """
    binding: Any = import_whole(_BINDING)
    machine = target_machine(target)
    try:
        module = binding.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refuses the code: {error}") from None
    options = binding.create_pipeline_tuning_options(speed_level=1)
    builder = binding.create_pass_builder(machine, options)
    passes = binding.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, builder)
    return module


def assemble(text: str, target: Target) -> bytes:
    """The relocatable object."""
    return target_machine(target).emit_object(optimised(text, target))


def assembly(text: str, target: Target) -> str:
    """The machine code as text."""
    return target_machine(target).emit_assembly(optimised(text, target))
