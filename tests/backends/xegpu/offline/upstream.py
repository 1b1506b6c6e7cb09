"""Our XeGPU through MLIR's own lowering, and run on opencl:cpu with our emulation.

MLIR 22 lowers a part of what we print, so a module is made plainer first: shapes of
arrays are constants, and the right side of a product is loaded as it lies, a block at
a time (it packs it itself).  What it makes is LLVM IR that calls the builtins our own
code calls.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    VectorType,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tests.example_kernels import Scalar, signature_of
from xetl.backend import find_backend
from xetl.codegen.types import ll
from xetl.compiler import build
from xetl.devices import find_device
from xetl.dialects.upstream import arith, gpu, memref, vector
from xetl.pipeline import lower
from xetl_xegpu import dialect as xegpu
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit import spirv as _spirv
from xetl_xegpu.emit.emitter import declare
from xetl_xegpu.emit.emulation import define_builtins
from xetl_xegpu.emit.module import text_of
from xetl_xegpu.launch import devices
from xetl_xegpu.simt import BlockShape

MLIR_OPT = shutil.which("mlir-opt-22")
PIPELINE = (
    "--gpu-lower-to-xevm-pipeline="
    "xegpu-op-level=subgroup zebin-chip=pvc binary-format=llvm"
)
PVC = find_device("pvc")


def upstream_result(
    kernel: Any, args: Sequence[Any], constants: Sequence[int], grid: Sequence[int]
) -> list[Any]:
    """What the arrays hold after the kernel, lowered by MLIR, has run."""
    module = plain_module(kernel, args, constants)
    (function,) = (op for op in module.walk() if isinstance(op, gpu.FuncOp))
    text = linked(lower_upstream(str(module)))
    return run(to_spirv(text), function, args, grid)


# What MLIR takes --------------------------------------------------------------------


def plain_module(
    kernel: Any, args: Sequence[Any], constants: Sequence[int]
) -> ModuleOp:
    """The kernel at stage `xegpu` as MLIR 22 lowers it, without its unaligned twin."""
    signature = signature_of(kernel, [*args, *constants])
    backend = find_backend("xegpu")
    steps = lower(build(kernel, signature, backend, "pvc"), backend, "pvc")
    module = next(step.module for step in steps if step.stage == "xegpu")
    for op in list(module.walk()):
        if "xegpu.no_blocks" in op.attributes:
            op.detach()
    for op in list(module.walk()):
        if isinstance(op, gpu.FuncOp):
            make_static(op, args)
        if isinstance(op, xegpu.LoadNdOp) and op.is_packed:
            for load in one_by_one(op):
                del load.properties["packed"]
                unpack(load.value)
    module.verify()
    return module


def make_static(kernel: gpu.FuncOp, args: Sequence[Any]) -> None:
    """Make the shapes of the arrays a part of the types of the arguments."""
    for argument, array in zip(kernel.body.block.args, args):
        if not isinstance(array, np.ndarray):
            continue
        assert array.flags.c_contiguous
        for use in list(argument.uses):
            if isinstance(use.operation, memref.ExtractStridedMetadataOp):
                _replace_by_numbers(use.operation, array)
        type_ = MemRefType(argument.type.element_type, array.shape)
        Rewriter.replace_value_with_new_type(argument, type_)
    inputs = [argument.type for argument in kernel.body.block.args]
    kernel.properties["function_type"] = FunctionType.from_lists(inputs, [])


def _replace_by_numbers(op: memref.ExtractStridedMetadataOp, array: Any) -> None:
    steps = [stride // array.itemsize for stride in array.strides]
    for result, number in zip(op.results[1:], [0, *array.shape, *steps]):
        constant = arith.ConstantOp(IntegerAttr(number, IndexType()))
        op.parent_block().insert_op_before(constant, op)
        result.replace_all_uses_with(constant.results[0])
    Rewriter.erase_op(op)


def one_by_one(load: xegpu.LoadNdOp) -> list[xegpu.LoadNdOp]:
    """Load blocks that stand side by side each by itself."""
    block = load.tensor_desc.type
    if block.array_length == 1:
        return [load]
    tdesc = load.tensor_desc.owner.clone()
    type_ = xegpu.TensorDescType(block.shape, block.element_type)
    Rewriter.replace_value_with_new_type(tdesc.result, type_)
    load.parent_block().insert_op_before(tdesc, load)
    row, column = load.mixed_offsets
    found = []
    for use in list(load.value.uses):
        (number,) = use.operation.position
        step = arith.ConstantOp(IntegerAttr(number * block.shape[1], IndexType()))
        place = arith.AddiOp(column, step.result)
        new = xegpu.LoadNdOp(tdesc.result, [row, place.result], packed=load.is_packed)
        load.parent_block().insert_ops_before([step, place, new], load)
        use.operation.results[0].replace_all_uses_with(new.value)
        Rewriter.erase_op(use.operation)
        found.append(new)
    Rewriter.erase_op(load)
    return found


def unpack(value: SSAValue) -> None:
    """Make ``K/f x n x f`` a plain ``K x n``, and so all that is cut out of it."""
    *before, rows, columns, factor = value.type.get_shape()
    plain = VectorType(value.type.element_type, [*before, rows * factor, columns])
    value = Rewriter.replace_value_with_new_type(value, plain)
    for use in list(value.uses):
        op = use.operation
        if isinstance(op, vector.ExtractStridedSliceOp):
            for name, scale in (("offsets", factor), ("sizes", factor), ("strides", 1)):
                first, second = [n.value.data for n in op.properties[name]][:2]
                numbers = [IntegerAttr(n, i64) for n in (first * scale, second)]
                op.properties[name] = ArrayAttr(numbers)
        elif not isinstance(op, vector.ExtractOp):
            assert isinstance(op, xegpu.DpasOp)
            continue
        unpack(op.results[0])


# What MLIR makes of it --------------------------------------------------------------


def lower_upstream(text: str) -> bytes:
    """LLVM bitcode of a module's kernel."""
    assert MLIR_OPT is not None
    command = [MLIR_OPT, "-", PIPELINE]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r'offload = "(.*)"', done.stdout)
    assert found is not None
    return _unescape(found[1])


def _unescape(text: str) -> bytes:
    r"""The bytes of a string attribute: ``\\`` and ``\0A`` in it."""
    pieces = re.findall(r"\\(\\|[0-9A-F]{2})|([^\\]+)", text)
    return b"".join(
        plain.encode() if plain else (b"\\" if code == "\\" else bytes.fromhex(code))
        for code, plain in pieces
    )


def linked(bitcode: bytes) -> str:
    """LLVM IR with the builtins of Intel's defined as our emulation has them."""
    module = llvm.parse_bitcode(bitcode)
    emulation = ll.Module("emulation")
    for function in module.functions:
        if function.is_declaration and "intel" in function.name:
            declare(emulation, builtin_called(function.name))
    define_builtins(emulation, emulates_intel=True)
    module.link_in(llvm.parse_assembly(text_of(emulation)))
    # SPIR-V for OpenCL has no bfloat; here it is only moved, which an i16 is, too.
    return str(module).replace("bfloat", "i16")


_MODES = {"read": "plain", "read_transform": "transform", "read_transpose": "transpose"}
_BLOCK = re.compile(r"sub_group_2d_block_([a-z_]+)_(\d+)b_(\d+)r(\d+)x(\d+)c")
_PRODUCT = re.compile(r"sub_group_([a-z0-9]+)_([a-z0-9]+)_matrix_mad_k\d+")


def builtin_called(symbol: str) -> builtins.Builtin:
    """The builtin of a symbol that MLIR calls; it must be the one we would call."""
    if found := _BLOCK.search(symbol):
        kind, sizes = found[1], [int(size) for size in found.groups()[1:]]
        shape = BlockShape(*sizes, mode=_MODES.get(kind, "plain"))
        access = {"write": "store", "prefetch": "prefetch"}.get(kind, "load")
        builtin = builtins.block_message(PVC, access, shape)
        assert builtin.symbol == symbol
        return builtin
    found = _PRODUCT.search(symbol)
    assert found is not None, symbol
    sums = PVC.matrix.results[found[1]]
    made = [
        builtins.matrix_mad(PVC, found[1], found[2], acc, rows)
        for acc in sums
        for rows in PVC.matrix.rows
    ]
    return next(each for each in made if each.symbol == symbol)


def to_spirv(text: str) -> bytes:
    """SPIR-V of LLVM IR, made in another process: LLVM ends it where it cannot."""
    return _spirv.emit_elsewhere(text, as_text=False)


# Running it -------------------------------------------------------------------------


def run(
    spirv: bytes, kernel: gpu.FuncOp, args: Sequence[Any], grid: Sequence[int]
) -> list[Any]:
    """Launch a kernel with the arguments that MLIR gives it; the arrays after it."""
    devices.set_up()
    dpctl = import_module("dpctl")
    program, memory = import_module("dpctl.program"), import_module("dpctl.memory")
    queue = dpctl.SyclQueue("opencl:cpu", property="in_order")
    built = program.create_program_from_spirv(queue, spirv, "")
    places = [
        _copied(memory, queue, arg) if isinstance(arg, np.ndarray) else None
        for arg in args
    ]
    values: list[Any] = []
    for arg, place in zip(args, places):
        values += [_number(arg)] if place is None else _described(arg, place)
    lanes = kernel.known_block_size.get_values()[0]
    x, y, z = (*grid, 1, 1)[:3]
    made = built.get_sycl_kernel(kernel.sym_name.data)
    queue.submit(made, values, [z, y, x * lanes], [1, 1, lanes]).wait()
    return [
        place.copy_to_host().view(arg.dtype)[: arg.size].reshape(arg.shape)
        for arg, place in zip(args, places)
        if place is not None
    ]


def _copied(memory: Any, queue: Any, array: Any) -> Any:
    place = memory.MemoryUSMShared(array.nbytes, alignment=64, queue=queue)
    place.copy_from_host(array.view(np.uint8).reshape(-1))
    return place


def _described(array: Any, place: Any) -> list[Any]:
    """A memref: address twice, offset, sizes, strides."""
    steps = [stride // array.itemsize for stride in array.strides]
    return [place, place, *map(ctypes.c_int64, (0, *array.shape, *steps))]


def _number(value: Any) -> Any:
    assert isinstance(value, Scalar)
    return {"f64": ctypes.c_double, "i64": ctypes.c_int64}[value.kind](value.value)
