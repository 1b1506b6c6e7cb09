"""Messages beside one another share the register that says which matrix they move."""

from __future__ import annotations

import re

import pytest

from tests.backends.xegpu.emit.block_kernels import DEVICE, SURFACE
from tests.backends.xegpu.emit.on_opencl import kernel, parsed
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from tests.backends.xegpu.spirv_tools import validate
from xetl_xegpu.emit.module import emit, llvm_text
from xetl_xegpu.offline.isa import count
from xetl_xegpu.offline.ocloc import compile_spirv

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)

BLOCK = "{bits = 32 : i64, rows = 8 : i64, columns = 16 : i64} : vector<8xi32>"
MOST = {"pvc": 52, "bmg": 40}
"""Instructions of four loads and four stores; each with its own: 79 and 64."""


def load(name: str, column: str, matrix: str = "%base") -> str:
    return f"{name} = simt.block_load {matrix}, %w, %h, %p, {column}, %y {BLOCK}"


def store(value: str, column: str, matrix: str = "%base") -> str:
    return f"simt.block_store {value}, {matrix}, %w, %h, %p, {column}, %y {BLOCK}"


def columns() -> list[str]:
    lines = ["%c0 = arith.constant 0 : i64", "%x0 = arith.addi %x, %c0 : i64"]
    for n in (1, 2, 3):
        lines.append(f"%c{n} = arith.constant {16 * n} : i64")
        lines.append(f"%x{n} = arith.addi %x, %c{n} : i64")
    return lines


def compiled(lines: list[str], target: str) -> str:
    text = kernel("k", f"{SURFACE}, %to: i64", "\n      ".join(columns() + lines))
    spirv = emit(parsed(text), target).spirv
    assert validate(spirv) is None
    return compile_spirv(spirv, target).assembly["k"]


@pytest.mark.parametrize("target", list(MOST))
def test_a_payload_for_each_matrix(target: str):
    lines = [load(f"%v{n}", f"%x{n}") for n in range(4)]
    lines += [store(f"%v{n}", f"%x{n}", "%to") for n in range(4)]
    found = count(compiled(lines, target))
    assert (found.block_loads, found.block_stores, found.calls) == (4, 4, 0)
    assert found.instructions <= MOST[target]


@pytest.mark.parametrize("target", list(MOST))
def test_loads_and_stores_of_one_array_stay_in_order(target: str):
    lines = [load("%a", "%x0"), store("%a", "%x1"), load("%b", "%x1")]
    lines += [store("%b", "%x2"), load("%c", "%x2"), store("%c", "%x0", "%to")]
    found = re.findall(r"(load|store)_block2d", compiled(lines, target))
    assert found == ["load", "store"] * 3


def test_places_at_no_constant_distance_are_set():
    lines = [load("%first", "%x2"), load("%a", "%x"), load("%b", "%y")]
    lines += [store("%a", "%y"), store("%b", "%x1")]
    text = kernel("k", f"{SURFACE}, %to: i64", "\n      ".join(columns() + lines))
    llvm = llvm_text(parsed(text), DEVICE.name)
    assert llvm.count('call spir_func ptr @"__builtin_IB_subgroup_create') == 1
    assert llvm.count('call spir_func void @"__builtin_IB_subgroup_set') == 2
