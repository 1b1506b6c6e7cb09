"""Each blocked form is the plain operation on the value that the blocks stand for."""

import numpy as np
import pytest
from op_harness import evaluate

from tests.run_module import run_module
from xetl.dialects.parser import parse_module
from xetl_reference.tiles import pack, unpack

RNG = np.random.default_rng(5)
BLOCKS = [(1, 16), (4, 8), (8, 16), (8, 1)]


def numbers(*shape, dtype="f4"):
    return RNG.integers(-9, 10, shape).astype(dtype)


def packed(value, blocks):
    outer = [extent // block for extent, block in zip(value.shape, blocks)]
    return pack(value, [*outer, *blocks])


@pytest.mark.parametrize("blocks", BLOCKS)
def test_transpose(blocks):
    x = numbers(16, 32)
    source = packed(x, blocks)
    text = "xetile.tile_transpose {0}, [1, 0, 3, 2] : {t0} -> {r}"
    shape = packed(x.T, blocks[::-1]).shape
    assert (unpack(evaluate(text, source, shape=shape)) == x.T).all()


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("dim", [0, 1])
def test_reduce_and_broadcast(blocks, dim):
    x = numbers(16, 32)
    source = packed(x, blocks)
    sums = x.sum(dim, keepdims=True)
    blocked_sums = packed(sums, [1 if d == dim else b for d, b in enumerate(blocks)])
    dims = f"[{dim}, {dim + 2}]"
    text = f"xetile.tile_reduce <add>, {{0}} {dims} : {{t0}} -> {{r}}"
    assert (unpack(evaluate(text, source, shape=blocked_sums.shape)) == sums).all()
    text = f"xetile.tile_broadcast {{0}} {dims} : {{t0}} -> {{r}}"
    found = evaluate(text, blocked_sums, shape=source.shape)
    assert (unpack(found) == np.broadcast_to(sums, x.shape)).all()


@pytest.mark.parametrize("blocks", BLOCKS)
def test_elementwise(blocks):
    x, y = numbers(16, 32), numbers(16, 32)
    found = evaluate("arith.mulf {0}, {1} : {t0}", packed(x, blocks), packed(y, blocks))
    assert (unpack(found) == x * y).all()


@pytest.mark.parametrize("blocks", BLOCKS)
def test_padding_and_atomics_at_the_edge(blocks):
    """A tile that sticks out: padded on load, not touched by an atomic."""
    x, new = numbers(11, 30), numbers(16, 32)
    mask = numbers(16, 32) > 0
    shapes = "x".join(map(str, packed(new, blocks).shape))
    vector, bits = f"vector<{shapes}xf32>", f"vector<{shapes}xi1>"
    tile = (
        "!xetile.tile<16x32xf32, "
        f"#xetile.tile_attr<inner_blocks = [{blocks[0]}, {blocks[1]}]>>"
    )
    plain = "!xetile.tile<16x32xf32>"
    combined = f"%m : {vector}, {tile}, {bits} -> {vector}"
    pack_op = f"{{inner_blocks = array<i64: {blocks[0]}, {blocks[1]}>}}"
    module = parse_module(f"""
    func.func @f(%x: memref<11x30xf32>, %new: memref<16x32xf32>,
                 %mask: memref<16x32xi1>, %out: memref<16x32xf32>,
                 %old: memref<16x32xf32>) {{
      %c0 = arith.constant 0 : index
      %t = xetile.init_tile %x[2, -1] : memref<11x30xf32> -> {tile}
      %v = xetile.load_tile %t {{padding = -7.0 : f32}} : {tile} -> {vector}
      %o = xetile.init_tile %out[0, 0] : memref<16x32xf32> -> {tile}
      xetile.store_tile %v, %o : {vector}, {tile}
      %n = xetile.init_tile %new[0, 0] : memref<16x32xf32> -> {tile}
      %d = xetile.load_tile %n : {tile} -> {vector}
      %f = vector.load %mask[%c0, %c0] : memref<16x32xi1>, vector<16x32xi1>
      %m = xetile.tile_pack %f {pack_op} : vector<16x32xi1> -> {bits}
      %p = xetile.atomic_rmw_tile <add> %d, %t, {combined}
      %u = xetile.tile_unpack %p {pack_op} : {vector} -> vector<16x32xf32>
      %q = xetile.init_tile %old[0, 0] : memref<16x32xf32> -> {plain}
      xetile.store_tile %u, %q : vector<16x32xf32>, {plain}
      return
    }}""")
    out, old, before = np.zeros_like(new), np.zeros_like(new), x.copy()
    run_module(module, (1,), [x, new, mask, out, old])
    assert (out[:9, 1:31] == before[2:]).all()
    inside = np.zeros((16, 32), bool)
    inside[:9, 1:31] = True
    assert (out[~inside] == -7).all()
    hit = inside & mask
    wanted = before.copy()
    wanted[2:] += np.where(hit, new, 0)[:9, 1:31]
    assert (x == wanted).all()
    assert (old == np.where(hit, np.where(inside, out, 0), 0)).all()
