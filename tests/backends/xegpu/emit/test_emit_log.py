"""Prints and assertions: records that the host makes text of."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.backends.xegpu.emit.on_opencl import Program, i64, kernel
from xetl.errors import LaunchError
from xetl.runtime.log import read_records, show

MATRIX = """
      %f = arith.sitofp %lane : i32 to f32
      %g = arith.truncf %f : f32 to bf16
      %one = arith.constant 1.0 : f32
      %h = arith.addf %f, %one : f32
      %rows = vector.from_elements %f, %h, %f, %h, %f, %h, %f, %h : vector<8xf32>
      %x = simt.group_id x
      %s = arith.sitofp %x : i64 to f64
      %big = arith.cmpi sgt, %x, %limit : i64"""


def records(program: Program) -> list[str]:
    return [each.text for each in read_records(program.status.ctypes.data, program.log)]


def test_numbers_and_matrices_are_printed_as_python_has_them():
    printed = """
      simt.print "{} {:.2f} {} {}"(%x, %s, %big, %lane : i64, f64, i1, i32) {
        shapes = [array<i64>, array<i64>, array<i64>, array<i64: 5>],
        unsigned = array<i64: 0>}
      simt.print "{}|{}"(%rows, %h, %g, %g : vector<8xf32>, f32, bf16, bf16) {
        shapes = [array<i64: 9, 3>, array<i64: 20>]}
      simt.print "done" {shapes = []}"""
    program = Program(kernel("k", "%limit: i64", MATRIX + printed))
    program("k", i64(0), groups=2)
    row = np.arange(3, dtype=np.float32)
    rows = np.stack([row + (r % 2) for r in range(8)] + [row + 1])
    half = np.concatenate([np.arange(16), np.arange(4)]).astype(bfloat16)
    lanes = np.arange(5, dtype=np.int32)
    found = records(program)
    for x in range(2):
        assert found[3 * x : 3 * x + 3] == [
            f"{x} {x:.2f} {x > 0} {lanes}",
            f"{rows}|{half}",
            "done",
        ]


def test_a_column_is_the_same_in_every_lane():
    body = """
      %a = arith.constant dense<[1.0, 2.0]> : vector<2xf32>
      %b = arith.constant 3.0 : f32
      simt.print "{}"(%a, %b : vector<2xf32>, f32) {shapes = [array<i64: 3, 1>]}"""
    program = Program(kernel("k", "%n: i64", body))
    program("k", i64(0))
    assert records(program) == [str(np.array([[1.0], [2.0], [3.0]], np.float32))]


@pytest.mark.optimised  # the driver forms no subgroups of it otherwise
def test_a_failed_assertion_ends_the_program():
    body = """
      %x = simt.group_id x
      %c8 = arith.constant 8 : i64
      %offset = arith.muli %x, %c8 : i64
      %to = arith.addi %out, %offset : i64
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      simt.store %one, %to, %on : i64
      %fine = arith.cmpi ne, %x, %limit : i64
      simt.assert %fine, "x is {}"(%x : i64) {shapes = [array<i64>]}
      simt.store %two, %to, %on : i64"""
    program = Program(kernel("k", "%out: i64, %limit: i64", body))
    out = np.zeros(4, np.int64)
    program("k", out, i64(2), groups=4)
    np.testing.assert_array_equal(out, [2, 2, 1, 2])
    with pytest.raises(LaunchError, match="assertion failed: x is 2"):
        show(read_records(program.status.ctypes.data, program.log))
    program("k", out, i64(9), groups=4)
    assert records(program) == []


def test_a_full_log_leaves_records_out(capfd: pytest.CaptureFixture[str]):
    body = """
      %zero = arith.constant 0 : i64
      %step = arith.constant 1 : i64
      scf.for %i = %zero to %n step %step : i64 {
        simt.print "{}"(%i : i64) {shapes = [array<i64>]}
      }"""
    program = Program(kernel("k", "%n: i64", body))
    program("k", i64(30000))
    found = records(program)
    assert found == [str(n) for n in range(len(found))]
    assert 20000 < len(found) < 30000
    assert "the log of prints is full" in capfd.readouterr().err
