"""How many registers a kernel is said to need."""

import pytest

from xetl.devices import find_device
from xetl.dialects.parser import make_context, parse_module
from xetl.transforms.diagnostics import collect_remarks
from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import register_file, registers_needed

DEVICE = find_device("pvc")


def kernel(body: str, subgroups: int = 1) -> simt.FuncOp:
    text = f"""
    simt.func @k(%base: i64, %n: i64, %on: i1) attributes {{
        work_group = array<i64: {16 * subgroups}, 1, 1>, subgroup_size = 16,
        slm_bytes = 0}} {{
      %zero = arith.constant dense<0.0> : vector<8xf32>
      %z = arith.constant 0.0 : f32
      %i0 = arith.constant 0 : i64
      %i1 = arith.constant 1 : i64
      {body}
      simt.return
    }}"""
    module = parse_module(text, "test", make_context([simt.SIMT]))
    module.verify()
    (found,) = module.ops
    assert isinstance(found, simt.FuncOp)
    return found


def load(name: str) -> str:
    """A number of a lane: one register, as f32 of 16 lanes are 64 bytes."""
    return f"{name} = simt.load %base, %on, %z : f32"


def test_what_all_lanes_share_is_free() -> None:
    assert registers_needed(kernel("%x = arith.addi %n, %n : i64"), DEVICE) == 0
    sums = "%x = vector.broadcast %z : f32 to vector<8xf32>"
    assert registers_needed(kernel(sums), DEVICE) == 0


def test_values_count_from_where_they_are_made_to_their_last_use() -> None:
    one_after_the_other = f"""
      {load("%a")}
      simt.store %a, %base, %on : f32
      {load("%b")}
      simt.store %b, %base, %on : f32"""
    assert registers_needed(kernel(one_after_the_other), DEVICE) == 1
    at_once = f"""
      {load("%a")}
      {load("%b")}
      simt.store %a, %base, %on : f32
      simt.store %b, %base, %on : f32"""
    assert registers_needed(kernel(at_once), DEVICE) == 2


def test_vectors_and_narrow_numbers_count_their_bytes() -> None:
    wide = f"""
      {load("%a")}
      %v = vector.broadcast %a : f32 to vector<8xf32>
      %h = arith.truncf %v : vector<8xf32> to vector<8xbf16>
      %e = vector.extract %h[0] : bf16 from vector<8xbf16>
      simt.store %e, %base, %on : bf16"""
    # The vector of f32, 8 registers, is not needed any more where that of bf16 is.
    assert registers_needed(kernel(wide), DEVICE) == 8


def test_a_loop_keeps_what_it_uses() -> None:
    loop = f"""
      {load("%a")}
      %r = scf.for %i = %i0 to %n step %i1 iter_args(%acc = %zero)
          -> (vector<8xf32>) : i64 {{
        {load("%b")}
        %v = vector.broadcast %b : f32 to vector<8xf32>
        %s = arith.addf %acc, %v : vector<8xf32>
        simt.store %a, %base, %on : f32
        scf.yield %s : vector<8xf32>
      }}
      %e = vector.extract %r[0] : f32 from vector<8xf32>
      simt.store %e, %base, %on : f32"""
    assert registers_needed(kernel(loop), DEVICE) == 1 + 8 + 8


def many(count: int) -> str:
    loads = [load(f"%a{i}") for i in range(count)]
    stores = [f"simt.store %a{i}, %base, %on : f32" for i in range(count)]
    return "\n".join([*loads, *stores])


@pytest.mark.parametrize(
    ("count", "subgroups", "registers"),
    [(100, 1, 128), (112, 1, 128), (113, 1, 256), (113, 32, 256), (113, 33, 128)],
)
def test_the_large_file_is_taken_where_the_small_one_would_spill(
    count: int, subgroups: int, registers: int
) -> None:
    assert register_file(kernel(many(count), subgroups), DEVICE) == registers


def test_explain_hears_of_it() -> None:
    with collect_remarks() as remarks:
        register_file(kernel(many(10)), DEVICE)
        assert not remarks
        register_file(kernel(many(130)), DEVICE)
        register_file(kernel(many(300)), DEVICE)
    assert [each.topic for each in remarks] == ["registers"] * 2
    assert "each thread gets 256" in remarks[0].text
    assert "goes to memory" in remarks[1].text
    assert "goes to memory" not in remarks[0].text
