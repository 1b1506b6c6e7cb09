"""A module at the ``lanes`` stage as LLVM IR and as SPIR-V.

The tables of the core emit plain arithmetic and control flow. The tables of this
package emit `simt`, and operations that SPIR-V handles differently from LLVM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from xetl.codegen import arith, math, scf, vector
from xetl.codegen.division import check_divisions
from xetl.codegen.emitter import EmitTable
from xetl.codegen.types import I8, I32, I64, Module, Value, ll, llvm_type
from xetl.devices import Device, find_device
from xetl.errors import InternalError
from xetl.settings import config
from xetl_xegpu.emit import (
    arith_math,
    assembly,
    block_io,
    log,
    memory,
    payloads,
    workgroup,
)
from xetl_xegpu.emit.builtins import subgroup_check
from xetl_xegpu.emit.emitter import KernelEmitter, shared_array
from xetl_xegpu.emit.emulation import define_builtins
from xetl_xegpu.emit.llvm_spirv import TRIPLE
from xetl_xegpu.emit.log import entry_of, log_operations, room_of
from xetl_xegpu.emit.scalars import ScalarBuilder
from xetl_xegpu.emit.spirv import (
    check_module,
    mend_zero_extensions,
    to_assembly,
    to_spirv,
)
from xetl_xegpu.simt import SPILLS, FuncOp


@dataclass(frozen=True, slots=True)
class Emitted:
    """The result of the emission of a module.

    Attributes:
        spirv: all its kernels, for a driver of OpenCL or Level Zero.
        log: its prints and assertions, and the messages that are checked, for
            `xetl.runtime.log.read_records`.
    """

    spirv: bytes
    log: list[dict[str, Any]]


def llvm_text(module: ModuleOp, target: str) -> str:
    """Return the checked LLVM IR of a module at the ``lanes`` stage.

    Args:
        module: its kernels are `simt.func`.
        target: a name of `xetl.devices`; for emulated targets Intel's builtins are
            defined in the module.

    Raises:
        InternalError: it needs something that the target, or SPIR-V, lacks.
    """
    device = find_device(target)
    numbers = {op: n for n, op in enumerate(log_operations(module, device))}
    llvm = emit_module(module, device, numbers)
    room = room_of(module)
    define_builtins(llvm, emulates_intel=device.emulated, sums=config.dpas, room=room)
    mend_zero_extensions(llvm)
    check_module(llvm)
    return text_of(llvm)


def emit(module: ModuleOp, target: str) -> Emitted:
    """Return the SPIR-V of a module at the ``lanes`` stage; see `llvm_text`."""
    log = [entry_of(op) for op in log_operations(module, find_device(target))]
    return Emitted(assembly.in_module(to_spirv(llvm_text(module, target))), log)


def spirv_text(module: ModuleOp, target: str) -> str:
    """Return the module of SPIR-V as text; see `llvm_text`."""
    return assembly.in_text(to_assembly(llvm_text(module, target)))


def new_module() -> Module:
    """Return a module in which ``a * b + c`` may be fused, as in the language."""
    module = ll.Module("xetl")
    module.triple = TRIPLE
    module.add_named_metadata("opencl.enable.FP_CONTRACT")
    return module


def emit_module(
    module: ModuleOp, device: Device, log_ids: dict[Operation, int]
) -> Module:
    """Return the LLVM module of all kernels of a module at the ``lanes`` stage."""
    llvm = new_module()
    for op in module.walk():
        if isinstance(op, FuncOp):
            _emit_kernel(llvm, op, device, log_ids)
    check_divisions(llvm)
    return llvm


def _emit_kernel(
    llvm: Module, op: FuncOp, device: Device, log_ids: dict[Operation, int]
) -> None:
    arguments, subgroup = op.body.block.args, op.subgroup_size.value.data
    types = [llvm_type(argument.type) for argument in arguments]
    kernel = ll.Function(llvm, ll.FunctionType(ll.VoidType(), types), op.sym_name.data)
    kernel.calling_convention = "spir_kernel"
    kernel.attributes.add("nounwind")
    for name, numbers in (
        ("reqd_work_group_size", op.lanes),
        ("intel_reqd_sub_group_size", (subgroup,)),
    ):
        kernel.set_metadata(name, llvm.add_metadata([*map(I32, numbers)]))
    size = op.slm_bytes.value.data
    slm = shared_array(llvm, f"{op.sym_name.data}.slm", I8, size) if size else None
    entry = kernel.append_basic_block("entry")
    builder = ScalarBuilder(entry) if device.emulated else ll.IRBuilder(entry)
    em = KernelEmitter(
        llvm,
        builder,
        TABLE,
        _no_function,
        lower_bf16=False,
        device=device,
        entry=builder.block,
        slm=slm,
        slm_bytes=size,
        status=kernel.args[-1] if types and types[-1] == I64 else None,
        log_ids=log_ids,
        is_alone=prod(op.lanes) == subgroup,
    )
    for argument, value in zip(arguments, kernel.args):
        em.set(argument, value)
    if op in log_ids:
        em.call(subgroup_check(), [em.status_words(), I32(log_ids[op])])
    workgroup.begin(em, op)
    em.spills = SPILLS in op.attributes
    em.pointed = payloads.op_with_pointer(em, op)
    em.emit_block(op.body.block)
    if isinstance(builder, ScalarBuilder):
        builder.finish()


def _no_function(name: str, element: object, lanes: int) -> Value:
    raise InternalError(f"`{name}` is no builtin")


def text_of(module: Module) -> str:
    """Return the text of a module in LLVM's syntax.

    llvmlite prints a comma between two attachments of a function, which is an error.
    """
    head = re.compile(r"^(define .*?)((?:,? ![a-z_]+ !\d+)+)$", re.MULTILINE)

    def without_commas(match: re.Match[str]) -> str:
        return match[1] + match[2].replace(",", "")

    return head.sub(without_commas, str(module))


TABLE: EmitTable = {
    **arith.TABLE,
    **math.TABLE,
    **scf.TABLE,
    **vector.TABLE,
    **assembly.TABLE,
    **arith_math.TABLE,
    **block_io.TABLE,
    **memory.TABLE,
    **workgroup.TABLE,
    **log.TABLE,
}
