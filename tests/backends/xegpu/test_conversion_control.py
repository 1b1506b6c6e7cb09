"""What loops and branches carry: fragments, tiles that move, tiles of any matrix."""

import numpy as np
import pytest
from converting import array, converted, function, run

T = "!xetile.tile<8x16xf32>"
V = "vector<8x16xf32>"
M = "memref<64x64xf32>"
SETUP = """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
"""
ARRAYS = ", ".join(array(name, (64, 64), "f32") for name in "XY")


def numbers() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).integers(-9, 10, (64, 64)).astype(np.float32)
    return x, np.zeros_like(x)


@pytest.mark.parametrize("blocks", [True, False])
def test_a_loop_carries_only_the_offset_that_changes(blocks: bool) -> None:
    kernel = function(
        ARRAYS,
        SETUP,
        f"""
        %a = xetile.init_tile %X[8, 0] : {M} -> {T}
        %z = arith.constant dense<0.0> : {V}
        %r:2 = scf.for %i = %c0 to %c4 step %c1
            iter_args(%t = %a, %s = %z) -> ({T}, {V}) {{
          %v = xetile.load_tile %t : {T} -> {V}
          %n = arith.addf %s, %v : {V}
          %u = xetile.update_tile_offset %t, [0, 16] : {T}
          scf.yield %u, %n : {T}, {V}
        }}
        %b = xetile.init_tile %Y[0, 0] : {M} -> {T}
        xetile.store_tile %r#1, %b : {V}, {T}
        """,
    )
    if blocks:
        assert "-> (index, vector<8x16xf32>)" in str(converted(kernel))
    x, y = numbers()
    run(kernel, x, y, blocks=blocks)
    np.testing.assert_array_equal(y[:8, :16], x[8:16].reshape(8, 4, 16).sum(1))


def test_a_tile_of_one_matrix_or_another() -> None:
    """Nothing says which, so address and strides are carried, and lanes move it."""
    kernel = function(
        f"{ARRAYS}, {array('Z', (64, 64), 'f32')}, %n: i64",
        SETUP,
        f"""
        %one = arith.constant 1 : i64
        %which = arith.cmpi eq, %n, %one : i64
        %t = scf.if %which -> ({T}) {{
          %a = xetile.init_tile %X[8, 16] : {M} -> {T}
          scf.yield %a : {T}
        }} else {{
          %b = xetile.init_tile %Y[0, 48] : {M} -> {T}
          scf.yield %b : {T}
        }}
        %v = xetile.load_tile %t : {T} -> {V}
        %o = xetile.init_tile %Z[0, 0] : {M} -> {T}
        xetile.store_tile %v, %o : {V}, {T}
        """,
    )
    x, _ = numbers()
    y, z = x * 10, np.zeros_like(x)
    assert "xegpu.block_arguments = array<i64: 2>" in str(converted(kernel))
    for number, wanted in ((1, x[8:16, 16:32]), (0, y[:8, 48:])):
        run(kernel, x, y, z, number)
        np.testing.assert_array_equal(z[:8, :16], wanted)


def test_a_while_loop_ends_by_what_it_carries() -> None:
    kernel = function(
        ARRAYS,
        SETUP,
        f"""
        %a = xetile.init_tile %X[0, 0] : {M} -> {T}
        %limit = arith.constant 1.0e+01 : f32
        %z = arith.constant dense<1.0> : {V}
        %r:2 = scf.while (%v = %z, %t = %a) : ({V}, {T}) -> ({V}, {T}) {{
          %e = vector.extract %v[0, 0] : f32 from {V}
          %go = arith.cmpf olt, %e, %limit : f32
          scf.condition(%go) %v, %t : {V}, {T}
        }} do {{
        ^bb0(%v: {V}, %t: {T}):
          %w = arith.addf %v, %v : {V}
          %u = xetile.update_tile_offset %t, [8, 0] : {T}
          scf.yield %w, %u : {V}, {T}
        }}
        %l = xetile.load_tile %r#1 : {T} -> {V}
        %s = arith.addf %l, %r#0 : {V}
        %b = xetile.init_tile %Y[0, 0] : {M} -> {T}
        xetile.store_tile %s, %b : {V}, {T}
        """,
    )
    x, y = numbers()
    run(kernel, x, y)
    np.testing.assert_array_equal(y[:8, :16], x[32:40, :16] + 16)


def test_a_parallel_loop_reduces() -> None:
    kernel = function(
        ARRAYS,
        SETUP,
        f"""
        %z = arith.constant dense<0.0> : {V}
        %r = scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c4) step (%c1, %c1)
            init (%z) -> {V} {{
          %c16 = arith.constant 16 : index
          %c8 = arith.constant 8 : index
          %row = arith.muli %i, %c8 : index
          %column = arith.muli %j, %c16 : index
          %a = xetile.init_tile %X[%row, %column] : {M} -> {T}
          %v = xetile.load_tile %a : {T} -> {V}
          scf.reduce(%v : {V}) {{
          ^bb0(%l: {V}, %m: {V}):
            %s = arith.addf %l, %m : {V}
            scf.reduce.return %s : {V}
          }}
        }}
        %b = xetile.init_tile %Y[0, 0] : {M} -> {T}
        xetile.store_tile %r, %b : {V}, {T}
        """,
    )
    x, y = numbers()
    run(kernel, x, y)
    blocks = x[:32].reshape(4, 8, 4, 16)
    np.testing.assert_array_equal(y[:8, :16], blocks.sum((0, 2)))


def test_what_each_turn_would_compute_anew_leaves_the_loop() -> None:
    kernel = function(
        ARRAYS,
        SETUP,
        f"""
        %x = gpu.block_id x
        scf.for %i = %c0 to %c4 step %c1 {{
          %c8 = arith.constant 8 : index
          %row = arith.muli %x, %c8 : index
          %a = xetile.init_tile %X[%row, 0] : {M} -> {T}
          %v = xetile.load_tile %a : {T} -> {V}
          %b = xetile.init_tile %Y[%row, 0] : {M} -> {T}
          xetile.store_tile %v, %b : {V}, {T}
        }}
        """,
    )
    (_, body) = str(converted(kernel)).split("scf.for")
    inside = [line.strip() for line in body.splitlines()[1:4]]
    assert "load_nd" in inside[0]
    assert "store_nd" in inside[1]
    assert inside[2] == "}"
