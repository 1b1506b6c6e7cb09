"""What LLVM's SPIR-V backend would end the process for is refused before."""

from __future__ import annotations

from typing import Any

import pytest

from xetl.codegen.types import BF16, F32, I1, I8, I32, ll
from xetl.devices import find_device
from xetl.errors import InternalError
from xetl_xegpu.emit import builtins
from xetl_xegpu.emit.emitter import declare
from xetl_xegpu.emit.spirv import check_module
from xetl_xegpu.simt import BlockShape


def function(*types: Any) -> tuple[Any, Any]:
    """An empty function with arguments, and where to write."""
    module = ll.Module("test")
    made = ll.Function(module, ll.FunctionType(ll.VoidType(), types), "f")
    return made, ll.IRBuilder(made.append_basic_block("entry"))


def vector(element: Any, count: int) -> Any:
    return ll.VectorType(element, count)


@pytest.mark.parametrize("count", [1, 5, 32, 64])
def test_lengths_of_vectors(count: int):
    made, b = function(vector(F32, count))
    b.fneg(made.args[0])
    with pytest.raises(InternalError, match="SPIR-V has no vector"):
        check_module(made.module)


@pytest.mark.parametrize("width", [4, 24, 128])
def test_widths_of_integers(width: int):
    made, b = function(ll.IntType(width))
    b.not_(made.args[0])
    with pytest.raises(InternalError, match="SPIR-V has no integer"):
        check_module(made.module)


def test_bfloat():
    made, b = function(F32)
    b.fptrunc(made.args[0], BF16)
    with pytest.raises(InternalError, match="the bits of a bf16 are an i16"):
        check_module(made.module)


@pytest.mark.parametrize("name", ["add", "mul", "shl"])
def test_arithmetic_of_booleans(name: str):
    made, b = function(I1)
    getattr(b, name)(made.args[0], made.args[0])
    with pytest.raises(InternalError, match=f"SPIR-V has no `{name}` of booleans"):
        check_module(made.module)


def test_conversions_of_booleans():
    made, b = function(vector(I1, 4), vector(I32, 4))
    b.trunc(made.args[1], vector(I1, 4))
    with pytest.raises(InternalError, match="no `trunc` to booleans"):
        check_module(made.module)
    made, b = function(vector(I1, 4))
    b.sitofp(made.args[0], vector(F32, 4))
    with pytest.raises(InternalError, match="no `sitofp` of booleans"):
        check_module(made.module)


def test_private_memory_is_an_array_of_the_entry():
    made, b = function()
    b.alloca(I32)
    with pytest.raises(InternalError, match="private memory is an array"):
        check_module(made.module)
    made, b = function()
    b.alloca(I32, 8)
    with pytest.raises(InternalError, match="private memory is an array"):
        check_module(made.module)
    made, b = function()
    b.branch(made.append_basic_block("next"))
    b.position_at_end(made.blocks[1])
    b.alloca(ll.ArrayType(I32, 8))
    with pytest.raises(InternalError, match="private memory is an array"):
        check_module(made.module)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("_Z3expd", "`_Z3expd` is no builtin function"),  # of another type
        ("_Z7expfooof", "`_Z7expfooof` is no builtin function"),
        ("llvm.maximum.f32", "SPIR-V has nothing for `llvm.maximum.f32`"),
    ],
)
def test_names_that_nobody_knows(name: str, message: str):
    builtins.function("exp", "double", "double")
    made, b = function(F32)
    other = ll.Function(made.module, ll.FunctionType(F32, [F32]), name)
    b.call(other, [made.args[0]])
    with pytest.raises(InternalError, match=message):
        check_module(made.module)


def test_extensions_that_are_not_enabled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("xetl_xegpu.emit.spirv.EXTENSIONS", ())
    made, b = function(F32, ll.PointerType(addrspace=1))
    b.atomic_rmw("fadd", made.args[1], made.args[0], "monotonic")
    with pytest.raises(InternalError, match="SPV_EXT_shader_atomic_float_add is not"):
        check_module(made.module)
    made, b = function(F32)
    declare(made.module, builtins.to_bf16(1))
    with pytest.raises(InternalError, match="SPV_INTEL_bfloat16_conversion is not"):
        check_module(made.module)
    made, b = function()
    arrive = "__spirv_ControlBarrierArriveINTEL"
    declare(made.module, builtins.function(arrive, "void", "int", "int", "int"))
    with pytest.raises(InternalError, match="SPV_INTEL_split_barrier is not"):
        check_module(made.module)


def test_a_fence_that_does_not_say_which_memory():
    made, b = function()
    b.fence("acq_rel", "workgroup")
    with pytest.raises(InternalError, match="does not say which memory"):
        check_module(made.module)


def test_what_is_fine_passes():
    made, b = function(vector(F32, 16), I8, ll.HalfType())
    b.alloca(ll.ArrayType(I32, 8))
    b.fneg(made.args[0])
    b.call(declare(made.module, builtins.function("exp", "float", "float")), [F32(1)])
    b.ret_void()
    check_module(made.module)


KNOWN_GOOD = {  # of MLIR 22's XeVM, or run or compiled before (docs/design/0005-xegpu)
    "load": [
        (
            BlockShape(16, 8, 16),
            "_Z41intel_sub_group_2d_block_read_16b_8r16x1cPU3AS1viiiDv2_iPt",
        ),
        (
            BlockShape(16, 32, 16, 2),
            "_Z42intel_sub_group_2d_block_read_16b_32r16x2cPU3AS1viiiDv2_iPt",
        ),
        (
            BlockShape(16, 32, 16, 1, "transform"),
            "_Z52intel_sub_group_2d_block_read_transform_16b_32r16x1cPU3AS1viiiDv2_iPj",
        ),
    ],
    "store": [
        (
            BlockShape(32, 8, 16),
            "_Z42intel_sub_group_2d_block_write_32b_8r16x1cPU3AS1viiiDv2_iPj",
        ),
    ],
    "prefetch": [
        (
            BlockShape(16, 8, 16),
            "_Z45intel_sub_group_2d_block_prefetch_16b_8r16x1cPU3AS1viiiDv2_i",
        ),
    ],
}
PRODUCTS = {
    ("bf16", "bf16", "f32", 8): "_Z40intel_sub_group_bf16_bf16_matrix_mad_k16"
    "Dv8_sDv8_iDv8_f",
    ("f16", "f16", "f16", 8): "_Z38intel_sub_group_f16_f16_matrix_mad_k16"
    "Dv8_sDv8_iDv8_Dh",
    ("i8", "i8", "i32", 8): "_Z36intel_sub_group_i8_i8_matrix_mad_k32Dv8_sDv8_iS0_",
    ("u8", "i8", "i32", 8): "_Z36intel_sub_group_u8_i8_matrix_mad_k32Dv8_tDv8_iS0_",
    ("bf16", "bf16", "bf16", 8): "_Z40intel_sub_group_bf16_bf16_matrix_mad_k16"
    "Dv8_sDv8_iS_",
    ("tf32", "tf32", "f32", 8): "_Z39intel_sub_group_tf32_tf32_matrix_mad_k8"
    "Dv4_fDv8_fS0_",
    ("bf16", "bf16", "f32", 1): "_Z40intel_sub_group_bf16_bf16_matrix_mad_k16sDv8_if",
}


def test_symbols_are_those_that_compilers_know():
    device = find_device("pvc")
    for access, cases in KNOWN_GOOD.items():
        for shape, symbol in cases:
            assert builtins.block_message(device, access, shape).symbol == symbol
    for arguments, symbol in PRODUCTS.items():
        assert builtins.matrix_mad(device, *arguments).symbol == symbol
    plain = builtins.function("barrier", "void", "uint")
    assert plain.symbol == "_Z7barrierj"
    assert builtins.function("get_sub_group_id", "uint").symbol.endswith("idv")
    assert builtins.to_bf16(1).symbol == "_Z32intel_convert_bfloat16_as_ushortf"


@pytest.mark.parametrize(
    "shape",
    [
        BlockShape(16, 3, 16),
        BlockShape(16, 8, 16, 4),
        BlockShape(16, 8, 24),
        BlockShape(16, 64, 16),
        BlockShape(32, 8, 32),
        BlockShape(16, 16, 8, 1, "transpose"),
        BlockShape(32, 8, 16, 1, "transform"),
        BlockShape(16, 8, 32),  # the hardware has it, but which lane holds what?
    ],
)
def test_blocks_that_no_message_moves(shape: BlockShape):
    with pytest.raises(InternalError, match=r"has no|is not known"):
        builtins.block_message(find_device("pvc"), "load", shape)


@pytest.mark.parametrize(
    "arguments",
    [
        ("f16", "bf16", "f32", 8),
        ("f16", "f16", "i32", 8),
        ("bf16", "bf16", "f32", 3),
        ("f32", "f32", "f32", 8),
    ],
)
def test_products_that_there_are_not(arguments: tuple[str, str, str, int]):
    with pytest.raises(InternalError, match="has no product"):
        builtins.matrix_mad(find_device("pvc"), *arguments)


def test_functions_that_opencl_has_not():
    with pytest.raises(InternalError, match="OpenCL C has no function `exq`"):
        builtins.function("exq", "float", "float")
