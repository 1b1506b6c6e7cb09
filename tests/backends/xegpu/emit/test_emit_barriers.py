"""Barriers, their halves and fences: what is emitted, and what opencl:cpu does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.xegpu.emit.on_opencl import Program, kernel, parsed
from xetl.errors import InternalError
from xetl_xegpu.emit.module import emit, llvm_text

LANES = 64
REVERSED = f"""
      %sg = simt.subgroup_id
      %c16 = arith.constant 16 : i32
      %first = arith.muli %sg, %c16 : i32
      %here = arith.addi %first, %lane : i32
      %here64 = arith.extui %here : i32 to i64
      %last = arith.constant {LANES - 1} : i64
      %there = arith.subi %last, %here64 : i64
      %size = arith.constant 8 : i64
      %mine = arith.muli %here64, %size : i64
      %other = arith.muli %there, %size : i64
      %slm = simt.local_base 0
      %write = arith.addi %slm, %mine : i64
      %read = arith.addi %slm, %other : i64
      %to = arith.addi %out, %mine : i64
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %turns = arith.constant 5 : i64
      scf.for %turn = %zero to %turns step %one : i64 {{
        %v = arith.addi %here64, %turn : i64
        simt.store %v, %write, %on {{space = "local"}} : i64
        simt.barrier_arrive
        %w = arith.muli %v, %turn : i64
        simt.barrier_wait
        %found = simt.load %read, %on, %zero {{space = "local"}} : i64
        simt.barrier_arrive
        %sum = arith.addi %found, %w : i64
        simt.barrier_wait
        simt.store %sum, %to, %on : i64
      }}"""


def test_halves_are_a_barrier_where_there_are_none():
    out = np.zeros(LANES, np.int64)
    text = kernel("k", "%out: i64", REVERSED, lanes=LANES, slm=8 * LANES)
    Program(text)("k", out, lanes=LANES)
    here = np.arange(LANES)
    np.testing.assert_array_equal(out, here[::-1] + 4 + (here + 4) * 4)


WORKGROUP, DEVICE = 2, 1
ACQUIRE, RELEASE, LOCAL, GLOBAL = 2, 4, 0x100, 0x200
ARRIVE = "_Z33__spirv_ControlBarrierArriveINTELiii"
WAIT = "_Z31__spirv_ControlBarrierWaitINTELiii"
FENCE = "_Z21__spirv_MemoryBarrierii"


def emitted(body: str) -> str:
    text = llvm_text(parsed(kernel("k", "%p: i64", body, lanes=LANES)), "pvc")
    return text.replace('"', "")


def test_halves_release_and_acquire_all_memory():
    text = emitted("simt.barrier_arrive\nsimt.barrier_wait")
    memory = LOCAL | GLOBAL
    assert f"@{ARRIVE}(i32 2, i32 2, i32 {RELEASE | memory})" in text
    assert f"@{WAIT}(i32 2, i32 2, i32 {ACQUIRE | memory})" in text


@pytest.mark.parametrize(
    ("fence", "scope", "memory"),
    [
        ('"workgroup"', WORKGROUP, LOCAL | GLOBAL),
        ('"device"', DEVICE, LOCAL | GLOBAL),
        ('"workgroup" {memory = "local"}', WORKGROUP, LOCAL),
        ('"device" {memory = "local"}', DEVICE, LOCAL),
        ('"workgroup" {memory = "global"}', WORKGROUP, GLOBAL),
        ('"device" {memory = "global"}', DEVICE, GLOBAL),
    ],
)
def test_a_fence_says_which_memory(fence: str, scope: int, memory: int):
    both = 8  # acquire and release
    text = emitted(f"simt.fence {fence}")
    assert f"@{FENCE}(i32 {scope}, i32 {both | memory})" in text


def test_a_named_barrier_is_made_once_and_orders_both_kinds_of_memory():
    text = emitted("simt.named_barrier 3 of 2\nsimt.named_barrier 3 of 2")
    lines = [line.strip() for line in text.splitlines() if "call" in line]
    made = [line for line in lines if "@_Z18named_barrier_initi(i32 2)" in line]
    assert len(made) == 1
    met = "@_Z24work_group_named_barrierPU3AS314__namedBarrierj("
    at = [n for n, line in enumerate(lines) if met in line]
    assert len(at) == 2
    assert all(f"@{FENCE}(i32 2, i32 776)" in lines[n - 1] for n in at)


def test_no_emulation_lets_some_subgroups_meet():
    module = parsed(kernel("k", "%p: i64", "simt.named_barrier 1 of 2", lanes=LANES))
    with pytest.raises(InternalError, match="lets some subgroups meet"):
        emit(module, "opencl")


OF_SUBGROUP, OF_ALL = "@_Z17sub_group_barrierj(", "@_Z7barrierj("


@pytest.mark.parametrize(
    ("lanes", "target", "called"),
    [(16, "opencl", OF_SUBGROUP), (LANES, "opencl", OF_ALL), (16, "pvc", OF_ALL)],
)
def test_the_only_subgroup_meets_itself(lanes: int, target: str, called: str):
    """A barrier of all is where opencl:cpu 2026.2 ends on values of a loop before."""
    text = kernel("k", "%p: i64", "simt.barrier", lanes=lanes)
    met = [
        line
        for line in llvm_text(parsed(text), target).splitlines()
        if "barrier" in line and "call" in line
    ]
    assert len(met) == 1
    assert called in met[0].replace('"', "")
