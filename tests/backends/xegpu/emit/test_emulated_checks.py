"""What hardware would refuse, or do wrong in silence, is a record of the log."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.xegpu.emit.on_opencl import Program, i64, kernel
from xetl.runtime.log import read_records
from xetl_xegpu.limits import REFUSED_WORDS

LOCAL = 'space = "local"'
LOAD = f"""
      %v = simt.load %place, %on, %zero {{{LOCAL}}} : i32"""
MASKED = f"""
      %v = simt.load %place, %off, %zero {{{LOCAL}}} : i32"""
STORE = f"""
      simt.store %zero, %place, %on {{{LOCAL}}} : i32
      %v = arith.constant 0 : i32"""
ATOMIC = f"""
      %v = simt.atomic "add" %zero, %place, %on {{{LOCAL}}} : i32"""


def text(body: str) -> str:
    """Lane l accesses the word at ``%at`` + 4 l of 128 bytes."""
    return kernel(
        "k",
        "%out: i64, %at: i64",
        f"""
      %four = arith.constant 4 : i64
      %off = arith.constant false
      %zero = arith.constant 0 : i32
      %far = arith.muli %wide, %four : i64
      %slm = simt.local_base 0
      %begin = arith.addi %slm, %at : i64
      %place = arith.addi %begin, %far : i64{body}
      %mine = arith.addi %out, %far : i64
      simt.store %v, %mine, %on : i32""",
        slm=128,
    )


def told(body: str, at: int) -> list[str]:
    program, out = Program(text(body)), np.zeros(16, np.int32)
    program("k", out, i64(at))
    status = program.status.ctypes.data
    return [each.text for each in read_records(status, program.log, REFUSED_WORDS)]


@pytest.mark.parametrize("body", [LOAD, STORE, ATOMIC])
@pytest.mark.parametrize("at", [0, 64])
def test_shared_memory_that_is_there(body: str, at: int) -> None:
    assert told(body, at) == []


@pytest.mark.parametrize("body", [LOAD, STORE, ATOMIC])
@pytest.mark.parametrize(("at", "bad"), [(68, 128), (-4, -4), (1 << 40, 1 << 40)])
def test_beyond_shared_memory(body: str, at: int, bad: int) -> None:
    whole = f"kernel `k` accesses i32 at byte {bad} of its shared memory of 128 bytes"
    assert any(each.startswith(whole) for each in told(body, at))


def test_between_two_words() -> None:
    assert told(LOAD, 2)[0].endswith("no multiple of the size of the element")


def test_lanes_that_are_masked_access_nothing() -> None:
    assert told(MASKED, 1 << 40) == []
