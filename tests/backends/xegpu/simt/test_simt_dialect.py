"""The text of `simt`: what is printed is read back, what is wrong is refused."""

from __future__ import annotations

import io

import pytest
from xdsl.ir import Operation
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.parser import make_context, parse_module
from xetl.transforms.stages import StageError, check_stage
from xetl_xegpu.simt import SIMT, BlockShape

KERNEL = """
simt.func @gemm(%a: i64, %b: i64, %m: i64, %status: i64) attributes {
    work_group = array<i64: 64, 1, 1>, subgroup_size = 16 : i64, slm_bytes = 1024 : i64
} {
  %on = arith.constant true
  %x = simt.group_id x
  %ny = simt.num_groups y
  %sg = simt.subgroup_id
  %lane = simt.lane_id
  %w = arith.constant 128 : i64
  %sg_y = arith.extui %sg : i32 to i64
  %a0, %a1 = simt.block_load %a, %w, %w, %w, %sg_y, %w {
      bits = 16, rows = 8, columns = 16, count = 2
  } : vector<8xi16>, vector<8xi16>
  %b0 = simt.block_load %b, %w, %w, %w, %w, %sg_y {
      bits = 16, rows = 16, columns = 16, mode = "transform"
  } : vector<8xi32>
  %t0 = simt.block_load %b, %w, %w, %w, %w, %sg_y {
      bits = 32, rows = 16, columns = 8, mode = "transpose"
  } : vector<8xi32>
  %row = simt.block_load %b, %w, %w, %w, %w, %sg_y {bits = 8, rows = 1, columns = 32}
      : i16
  simt.block_prefetch %b, %w, %w, %w, %w, %sg_y {bits = 16, rows = 32, columns = 32}
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %c = simt.dpas %a0, %b0, %zero {a_type = "bf16", b_type = "bf16"}
      : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>
  %bits = vector.bitcast %c : vector<8xf32> to vector<8xi32>
  simt.block_store %bits, %a, %w, %w, %w, %sg_y, %w {bits = 32, rows = 8, columns = 16}
      : vector<8xi32>
  %fill = arith.constant 0.0 : bf16
  %v = simt.load %a, %on, %fill : bf16
  %slm = simt.local_base 512
  simt.store %v, %slm, %on {space = "local"} : bf16
  %old = simt.atomic "add" %v, %a, %on : bf16
  %other = simt.shuffle %v, %lane : bf16
  %sum = simt.reduce "add" %c : vector<8xf32>
  %max = simt.reduce "maxui" %sg : i32
  %rows = simt.reduce_rows "add" %c : vector<8xf32>
  simt.barrier
  simt.fence "workgroup"
  simt.print "x = {}, {}" (%x, %sum, %v : i64, vector<8xf32>, bf16) {
      shapes = [array<i64>, array<i64: 9, 16>]
  }
  simt.assert %on, "never" {shapes = []}
  simt.return
}
"""


def parsed(text: str) -> Operation:
    return parse_module(text, "test", make_context([SIMT]))


def printed(module: Operation) -> str:
    stream = io.StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


def test_printed_text_is_read_back():
    module = parsed(KERNEL)
    module.verify()
    check_stage(module, "lanes")
    once = printed(module)
    assert printed(parsed(once)) == once


HEAD = "work_group = array<i64: 16, 1, 1>, subgroup_size = 16, slm_bytes = 0"


def in_kernel(body: str) -> str:
    arguments = "%p: i64, %n: i64, %on: i1, %x: f32"
    return f"""simt.func @k({arguments}) attributes {{{HEAD}}} {{
      {body}
      simt.return
    }}"""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "%v = simt.block_load %p, %n, %n, %n, %n, %n"
            " {bits = 16, rows = 8, columns = 16} : vector<4xi16>",
            "holds vector<8xi16> of 1 blocks of 8x16.*found vector<4xi16>",
        ),
        (
            "%v = simt.block_load %p, %n, %n, %n, %n, %n"
            " {bits = 16, rows = 1, columns = 8} : i16",
            "cannot share",
        ),
        (
            "%v = simt.block_load %p, %n, %n, %n, %n, %n"
            ' {bits = 16, rows = 8, columns = 16, mode = "vnni"} : vector<8xi16>',
            "`mode` is one of",
        ),
        (
            "%v = simt.block_load %p, %n, %n, %n, %n, %n step %n"
            " {bits = 16, rows = 8, columns = 16} : vector<8xi16>",
            "only `by_lanes` has a step",
        ),
        (
            "simt.block_prefetch %p, %n, %n, %n, %n, %n step %n"
            " {bits = 16, rows = 8, columns = 16}",
            "only `by_lanes` has a step",
        ),
        (
            "%a = arith.constant dense<0> : vector<8xi16>\n"
            "%b = arith.constant dense<0> : vector<8xi32>\n"
            "%c = arith.constant dense<0.0> : vector<8xf32>\n"
            '%d = simt.dpas %a, %b, %c {a_type = "i8", b_type = "u8"}'
            " : vector<8xi16>, vector<8xi32>, vector<8xf32> -> vector<8xf32>",
            "i8 @ u8 has no result of f32",
        ),
        ('%v = simt.atomic "and" %x, %p, %on : f32', "`and` does not combine f32"),
        ('%v = simt.reduce "assign" %x : f32', "`assign` is no kind"),
        ('%v = simt.reduce_rows "add" %x : f32', "combines vector<8xf32>, found f32"),
        ('simt.fence "subgroup"', "`scope` is one of"),
        ('simt.store %x, %p, %on {space = "slm"} : f32', "`space` is one of"),
        ('simt.print "{} {}" (%n : i64) {shapes = [array<i64>]}', "has 2 fields"),
    ],
)
def test_wrong_operations_are_refused(body: str, message: str):
    with pytest.raises(VerifyException, match=message):
        parsed(in_kernel(body)).verify()


def test_a_workgroup_is_whole_subgroups():
    text = in_kernel("").replace("16, 1, 1", "8, 2, 1")
    with pytest.raises(VerifyException, match="whole subgroups along x"):
        parsed(text).verify()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%v = arith.constant dense<0.0> : vector<32xf32>", "vectors have 2, 3, 4, 8"),
        ("%v = arith.constant dense<0.0> : vector<2x4xf32>", "vectors have 2, 3, 4, 8"),
        ("%v = arith.constant dense<0.0> : vector<1xf32>", "vectors have 2, 3, 4, 8"),
        ("%v = vector.step : vector<16xindex>", "`vector.step` may not stand"),
        ("%v = gpu.lane_id", "`gpu.lane_id` may not stand"),
    ],
)
def test_the_stage_holds_what_spirv_has(body: str, message: str):
    with pytest.raises(StageError, match=message):
        check_stage(parsed(in_kernel(body)), "lanes")


@pytest.mark.parametrize(
    ("shape", "items", "bits"),
    [
        (BlockShape(16, 8, 16), 8, 16),
        (BlockShape(16, 32, 16, 2), 64, 16),
        (BlockShape(8, 8, 32), 8, 16),
        (BlockShape(32, 8, 8), 4, 32),
        (BlockShape(64, 2, 8), 1, 64),
        (BlockShape(16, 32, 16, 2, "transform"), 32, 32),
        (BlockShape(8, 32, 16, 1, "transform"), 8, 32),
        (BlockShape(32, 16, 8, 1, "transpose"), 8, 32),
        (BlockShape(64, 1, 8), 0, 64),
    ],
)
def test_items_of_a_lane(shape: BlockShape, items: int, bits: int):
    assert (shape.items, shape.item_bits) == (items, bits)
