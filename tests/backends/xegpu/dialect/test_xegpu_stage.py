"""What may stand at stage `xegpu`, and that `mlir-opt` 22 takes it."""

import pytest
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32

from tests.backends.xegpu.dialect.test_xegpu_against_mlir_opt import MLIR_OPT, mlir_opt
from tests.backends.xegpu.dialect.test_xegpu_dialect import parse
from xetl.devices import find_device
from xetl.dialects.base import ints_of
from xetl.dialects.upstream import gpu
from xetl.transforms.stages import StageError, check_stage
from xetl_xegpu.dialect.stage import (
    SUBGROUP_SIZE,
    on_some_device,
    set_launch_facts,
    why_no_message,
)

KERNEL = """
gpu.module @m {{
  gpu.func @k(%A: memref<256x128xf16>, %i: index, %p: memref<1024xi8, 3>) kernel
      attributes {{known_block_size = array<i32: 64, 1, 1>,
                   intel_reqd_sub_group_size = 16 : i32}} {{
    %t = xegpu.create_nd_tdesc %A : memref<256x128xf16>
      -> !xegpu.tensor_desc<16x16xf16>
    %b = xegpu.load_nd %t[%i, %i] <{{packed}}>
      : !xegpu.tensor_desc<16x16xf16> -> vector<8x16x2xf16>
    {line}
    gpu.return
  }}
}}
"""


def test_a_kernel_of_messages_is_at_its_stage() -> None:
    check_stage(parse(KERNEL.format(line="")), "xegpu")


WRONG = {
    '"xegpu_x.print"() <{template = "a", shapes = []}> {xetile.x} : () -> ()': (
        "still carries `xetile.x`"
    ),
    "%v = xegpu.load_nd %t[%i, 0] : !xegpu.tensor_desc<16x16xf16>"
    " -> vector<16x16xf16>": "offsets that are values",
    "%v = xegpu.load_nd %t : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>": (
        "offsets that are values"
    ),
    "%u = xegpu.create_nd_tdesc %A[0, 0] : memref<256x128xf16>"
    " -> !xegpu.tensor_desc<16x16xf16>": "a descriptor has offsets",
    "%u = xegpu.create_nd_tdesc %A : memref<256x128xf16>"
    " -> !xegpu.tensor_desc<16x16xf16>\n"
    "xegpu.prefetch_nd %u[%i, %i] : !xegpu.tensor_desc<16x16xf16>\n"
    "%v = xegpu.load_nd %u[%i, %i] <{transpose = array<i64: 1, 0>}>"
    " : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>": "has no transpose",
    "%u = xegpu.create_nd_tdesc %A : memref<256x128xf16>"
    " -> !xegpu.tensor_desc<7x16xf16>\n"
    "%v = xegpu.load_nd %u[%i, %i] : !xegpu.tensor_desc<7x16xf16>"
    " -> vector<7x16xf16>": "has no load",
    "%u = xegpu.create_nd_tdesc %A : memref<256x128xf16>"
    " -> !xegpu.tensor_desc<8x32xf16, #xegpu.block_tdesc_attr<array_length = 2>>\n"
    "%v = xegpu.load_nd %u[%i, %i]"
    " : !xegpu.tensor_desc<8x32xf16, #xegpu.block_tdesc_attr<array_length = 2>>"
    " -> vector<2x8x32xf16>": "so many blocks",
    "%v = xegpu.load_nd %t[%i, %i]"
    " : !xegpu.tensor_desc<16x16xf16> -> vector<16x16xf16>\n"
    "xegpu.store_nd %v, %t[%i, %i] : vector<16x16xf16>,"
    " !xegpu.tensor_desc<16x16xf16>": "has no store",
    "%a = arith.constant dense<1.0> : vector<3x16xf16>\n"
    "%c = xegpu.dpas %a, %b : vector<3x16xf16>, vector<8x16x2xf16>"
    " -> vector<3x16xf32>": "has no product",
    "%a = arith.constant dense<1.0> : vector<8x16xf64>\n"
    "%c = arith.constant dense<1.0> : vector<16x16xf64>\n"
    "%d = xegpu.dpas %a, %c, %a : vector<8x16xf64>, vector<16x16xf64>,"
    " vector<8x16xf64> -> vector<8x16xf64>": "does not multiply f64",
    "%n = gpu.lane_id": "`gpu.lane_id` may not stand",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_may_not_stand_there(line: str) -> None:
    with pytest.raises(StageError) as caught:
        check_stage(parse(KERNEL.format(line=line)), "xegpu")
    assert WRONG[line] in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("known_block_size = array<i32: 64, 1, 1>,", ""),
        (", intel_reqd", ", other"),
        ("64, 1, 1", "8, 8, 1"),
        ("64, 1, 1", "40, 1, 1"),
    ],
)
def test_a_kernel_says_how_it_is_launched(old: str, new: str) -> None:
    text = " ".join(KERNEL.format(line="").split()).replace(old, new)
    with pytest.raises(StageError, match=r"launched|no row of subgroups"):
        check_stage(parse(text), "xegpu")


def test_facts_of_mlir_replace_ours() -> None:
    inside = "%c = arith.constant {xetile.bounds, note} 1 : index"
    text = f"gpu.module @m {{ gpu.func @k() kernel {{ {inside} gpu.return }} }}"
    module = parse(text)
    (kernel,) = (op for op in module.walk() if isinstance(op, gpu.FuncOp))
    kernel.attributes |= {"xetile.level": UnitAttr(), "xegpu.no_blocks": UnitAttr()}
    set_launch_facts(kernel, 512, 16)
    check_stage(module, "xegpu")
    assert ints_of(kernel.known_block_size) == (512, 1, 1)
    assert kernel.attributes[SUBGROUP_SIZE] == IntegerAttr(16, i32)
    assert kernel.is_kernel
    assert "xegpu.no_blocks" in kernel.attributes
    assert list(kernel.body.block.first_op.attributes) == ["note"]
    if MLIR_OPT is not None:
        assert module.is_structurally_equivalent(mlir_opt(module))


def test_devices_differ_in_what_they_load_packed() -> None:
    line = (
        "%u = xegpu.create_nd_tdesc %A : memref<256x128xf16>"
        " -> !xegpu.tensor_desc<16x32xf16>\n"
        "%v = xegpu.load_nd %u[%i, %i] <{packed}>"
        " : !xegpu.tensor_desc<16x32xf16> -> vector<8x32x2xf16>"
    )
    load = [op for op in parse(KERNEL.format(line=line)).walk() if "load" in op.name][1]
    assert why_no_message(load, find_device("bmg")) is None
    assert "`pvc` has no transform" in (why_no_message(load, find_device("pvc")) or "")
    assert on_some_device(load) is None
