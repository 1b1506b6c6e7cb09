"""LLVM IR of a lowered kernel: ``i64 xetl_kernel(i64* slots)``.

The slots are those of docs/design/0001-seams.md, section 4.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

from xdsl.dialects.builtin import Float64Type, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation

from xetl.analysis.lane_order import of_any_order
from xetl.codegen import arith, math, memref, scf, vector
from xetl.codegen.arith import scalar_constant
from xetl.codegen.division import check_divisions
from xetl.codegen.emitter import EmitTable, Strided, constant
from xetl.codegen.memref import refine, static_bytes, strided_at
from xetl.codegen.types import (
    F32,
    F64,
    I1,
    I8,
    I64,
    PTR,
    Type,
    Value,
    byte_width,
    ll,
    llvm_type,
    memory_type,
)
from xetl.dialects.base import integer_width, is_memref, memref_type, operations_in
from xetl.dialects.upstream import func, gpu
from xetl.dialects.upstream import math as math_ops
from xetl.dialects.upstream import memref as memref_ops
from xetl.dialects.upstream.elementwise import FastMathFlag, FastMathFlagsAttr
from xetl.dialects.upstream.llvm import IntToPtrOp, PointerType
from xetl.dialects.upstream.xegpu import FenceOp
from xetl.dialects.xsmm import TileConfigDispatchOp, TileConfigOp
from xetl.errors import InternalError
from xetl.imports import import_whole, late
from xetl_cpu import dialect
from xetl_cpu.emit.emitter import KernelEmitter
from xetl_cpu.launch import FIRST_ARGUMENT, GRID, WORKSPACE
from xetl_cpu.llvm import VOID, Builder, declare, define, leave_as_it_is
from xetl_cpu.targets import Target

_emit_math = late("xetl_cpu.vector_math", "emit_math")

KERNEL = "xetl_kernel"
_LINE = 64
_SLACK = 8 * _LINE
STACK_BYTES = 1 << 16

MOST_INLINED = 64
"""Calls of an elementary function in a kernel, at most, that are inlined: each takes
LLVM some 10 ms."""


def emit_kernel(module: ModuleOp, target: Target, table: EmitTable) -> ll.Module:
    """Return the LLVM module of the only function of a module at the ``loops`` stage.

    ``table``: emission rules for the operations of a whole launch.
    """
    function = kernel_of(module)
    llvm = ll.Module("xetl")

    calls = Counter[Value]()

    def functions(name: str, element: Any, lanes: int) -> Value:
        dtype = {F32: "f32", F64: "f64"}[element]
        made = _emit_math(llvm, target, name, dtype, lanes)
        calls[made] += 1
        if calls[made] > MOST_INLINED:
            made.attributes.discard("alwaysinline")
            made.attributes.add("noinline")
        return made

    # Without masks, code that computes with bf16 fills a register with it (`lanes_of`).
    split = 0 if target.has_masks else target.vector_bytes // 2
    kernel = define(llvm, KERNEL, I64, [("slots", PTR)])
    kernel.linkage = ""
    leave_as_it_is(kernel)
    log_ids: dict[Operation, int] = {
        op: number for number, op in enumerate(operations_in(module, dialect.LogOp))
    }
    em = KernelEmitter(
        llvm,
        Builder(kernel.append_basic_block("entry")),
        {**_TABLE, **table},
        functions,
        target.has_bf16_dot,
        split,
        of_any_order(function, split) if split else frozenset(),
        target=target,
        slots=kernel.args[0],
        used=constant(import_whole("xetl.runtime.log").LOG_BYTES if log_ids else 0),
        log_ids=log_ids,
        scratch_bytes=_scratch_bytes(function),
    )
    _bind_arguments(em, function)
    em.emit_block(function.body.block)
    check_divisions(llvm)
    return llvm


def kernel_of(module: ModuleOp) -> func.FuncOp:
    """Return the only function with a body; others are C functions that it calls."""
    functions = operations_in(module, func.FuncOp)
    (kernel,) = [one for one in functions if one.body.blocks]
    return kernel


def _scratch_bytes(function: func.FuncOp) -> int:
    """Return the bytes of per-thread scratch: every buffer has its own cache lines.

    A reduction may read some vectors behind the end of the last buffer.
    """
    fibers = operations_in(function, dialect.FibersOp)
    more = sum(room_for(op) - buffer_bytes(op) for op in fibers)
    return buffer_bytes(function) + more


def buffer_bytes(inside: Operation) -> int:
    """Return the bytes of all buffers in an operation, and some behind them."""
    return _SLACK + sum(
        lines(static_bytes(memref_type(op.results[0])))
        for op in operations_in(inside, memref_ops.AllocaOp)
    )


def room_for(op: dialect.FibersOp) -> int:
    """Return the bytes of the scratch, the stacks and the switchboard of fibers."""
    return op.fibers() * (buffer_bytes(op) + STACK_BYTES) + lines(8 * op.fibers() + 16)


def lines(count: int) -> int:
    """Round bytes up to whole cache lines."""
    return -(-count // _LINE) * _LINE


def bytes_of(b: Builder, count: Value | int, width: int) -> Value:
    """Return the bytes of ``count`` elements, rounded up to whole cache lines."""
    raw = b.mul(count, width)
    return b.and_(b.add(raw, _LINE - 1), -_LINE)


def _bind_arguments(em: KernelEmitter, function: func.FuncOp) -> None:
    """Bind the arguments of the IR function to slots; the last three are the grid."""
    *arguments, x, y, z = function.body.block.args
    for axis, value in enumerate((x, y, z)):
        em.set(value, em.slot(GRID + axis))
    slot = FIRST_ARGUMENT
    for argument in arguments:
        slot = _bind_argument(em, argument, slot)


def _bind_argument(em: KernelEmitter, argument: BlockArgument, slot: int) -> int:
    type_ = argument.type
    if is_memref(type_):
        rank = len(type_.get_shape())
        sizes = tuple(em.slot(slot + 1 + d) for d in range(rank))
        strides = tuple(em.slot(slot + 1 + rank + d) for d in range(rank))
        base = Strided(em.slot(slot, PTR), sizes, strides, type_.element_type)
        em.set(argument, refine(base, type_))
        return slot + 1 + 2 * rank
    value = em.slot(slot, F64 if isinstance(type_, Float64Type) else I64)
    if integer_width(type_) == 1:
        value = em.builder.trunc(value, I1)
    em.set(argument, value)
    return slot + 1


def _alloc(em: KernelEmitter, op: memref_ops.AllocOp) -> None:
    """Take memory of the launch: the next lines of the workspace."""
    if em.is_checked:
        raise InternalError("memory is reserved after its size was checked")
    b = em.builder
    (count,) = em.all(op.operands)
    element = memref_type(op.results[0]).element_type
    address = b.gep(em.slot(WORKSPACE, PTR), [em.used], source_etype=I8)
    em.used = b.add(em.used, bytes_of(b, count, byte_width(element)))
    em.set(op.results[0], Strided(address, (count,), (constant(1),), element))


def _alloca(em: KernelEmitter, op: memref_ops.AllocaOp) -> None:
    """Take the next lines of this thread's scratch."""
    type_ = memref_type(op.results[0])
    address = em.builder.gep(em.scratch, [constant(em.scratch_used)], source_etype=I8)
    em.scratch_used += lines(static_bytes(type_))
    em.set(op.results[0], strided_at(address, type_))


def _view_address(em: KernelEmitter, op: dialect.ViewAddressOp) -> None:
    """Make a view of the user's address; constants of the type replace operands."""
    address = em.builder.inttoptr(em.get(op.address), PTR)
    sizes, strides = tuple(em.all(op.sizes)), tuple(em.all(op.strides))
    type_ = memref_type(op.result)
    view = Strided(address, sizes, strides, type_.element_type)
    em.set(op.result, refine(view, type_))


def _hidden(em: KernelEmitter, op: dialect.HiddenOp) -> None:
    type_ = ll.FunctionType(I64, [I64])
    numbers = [em.get(op.number)]
    em.set(op.result, em.builder.asm(type_, "", "=r,0", numbers, side_effect=False))


def _constant_memory(em: KernelEmitter, op: dialect.ConstantMemoryOp) -> None:
    """Put data beside the code."""
    type_ = memref_type(op.result)
    name = em.module.get_unique_name("xetl_constant")
    numbers = [scalar_constant(type_.element_type, v) for v in op.value.get_values()]
    count = prod(type_.get_shape())
    numbers = numbers * count if len(numbers) == 1 else numbers
    stored = [ll.Constant(memory_type(type_.element_type), n.constant) for n in numbers]
    data = ll.Constant(ll.ArrayType(memory_type(type_.element_type), count), stored)
    memory = ll.GlobalVariable(em.module, data.type, name)
    memory.initializer, memory.align = data, _LINE
    memory.global_constant, memory.linkage = True, "internal"
    memory.type = PTR  # llvmlite would compare what it points to
    em.set(op.result, strided_at(memory, type_))


def _compare_and_swap(em: KernelEmitter, op: dialect.CompareAndSwapOp) -> None:
    """Emit a compare-and-swap; floats are passed as their bits."""
    b, type_ = em.builder, em.get(op.value).type
    bits = ll.IntType(8 * byte_width(op.value.type))
    address = em.element_address(em.strided(op.memref), em.all(op.indices))
    expected, value = (b.bitcast(em.get(v), bits) for v in (op.expected, op.value))
    found = b.cmpxchg(address, expected, value, "monotonic", "monotonic")
    em.set(op.result, b.bitcast(b.extract_value(found, 0), type_))


def _barrier(em: KernelEmitter, op: gpu.BarrierOp) -> None:
    """Empty the vector registers: a program is one thread, which need not wait.

    Constants of the loops before it would else stay in registers that the loops behind
    it need for their sums.
    """
    every = ",".join(f"~{{xmm{n}}}" for n in range(em.target.vector_registers))
    type_ = ll.FunctionType(VOID, [])
    em.builder.asm(type_, "", every, [], side_effect=True)


def _c_type(type_: Attribute) -> Type:
    return PTR if isinstance(type_, PointerType) else llvm_type(type_)


def _call(em: KernelEmitter, op: func.CallOp) -> None:
    name = op.callee.root_reference.data
    result = _c_type(op.results[0].type) if op.results else VOID
    types = [_c_type(value.type) for value in op.operands]
    function = declare(em.module, name, result, types)
    called = em.builder.call(function, em.all(op.operands))
    if op.results:
        em.set(op.results[0], called)


_OF_MICRO_KERNELS = (
    dialect.PackOp,
    dialect.BlockGemmOp,
    dialect.SkinnyGemmOp,
    TileConfigDispatchOp,
    TileConfigOp,
    dialect.ThreadTilesOp,
)


def _micro_kernel(em: KernelEmitter, op: Operation) -> object:
    # Imported late: most kernels have no products.
    calls: Any = import_whole("xetl_cpu.emit.micro_kernel_calls")
    return calls.TABLE[type(op)](em, op)


def _exp2(em: KernelEmitter, op: math_ops.Exp2Op) -> object:
    flags: FastMathFlagsAttr | None = op.fastmath
    is_approximate = flags is not None and FastMathFlag.AFN in flags.data
    # AVX-512 gains nothing by it.
    is_low = op.nonpositive is not None and not em.target.has_masks
    name = f"exp2{'_nonpositive' * is_low}{'_approximate' * is_approximate}"
    return math.function(name)(em, op)


_TABLE: EmitTable = {
    **arith.TABLE,
    **math.TABLE,
    math_ops.Exp2Op: _exp2,
    **scf.TABLE,
    **vector.TABLE,
    **memref.TABLE,
    **dict.fromkeys(_OF_MICRO_KERNELS, _micro_kernel),
    func.CallOp: _call,
    IntToPtrOp: lambda em, op: em.builder.inttoptr(em.get(op.source), PTR),
    memref_ops.AllocOp: _alloc,
    memref_ops.AllocaOp: _alloca,
    dialect.ViewAddressOp: _view_address,
    dialect.HiddenOp: _hidden,
    dialect.ConstantMemoryOp: _constant_memory,
    dialect.LogOp: late("xetl_cpu.emit.log", "emit_log"),
    func.ReturnOp: lambda em, _: em.builder.ret(0),
    dialect.CompareAndSwapOp: _compare_and_swap,
    # For LLVM: the processor itself keeps loads and stores in order.
    FenceOp: lambda em, _: em.builder.fence("acq_rel"),
    gpu.BarrierOp: _barrier,
}
