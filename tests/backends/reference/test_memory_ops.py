# ruff: noqa: E501 - a line of IR is a line
"""`memref` and the memory operations of `vector`, on modules given as text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.run_module import run_module
from xetl.dialects.parser import parse_module
from xetl.errors import InternalError

few = settings(max_examples=30)


def run(arguments, body, *arrays, extra=None):
    """Run a function of one block; %c0 .. %c4 are constants."""
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(5))
    text = f"func.func @f({arguments}) {{\n{constants}\n{body}\nfunc.return\n}}"
    run_module(parse_module(text, "test"), (), arrays, extra)


ANY = "memref<?x?xf32, strided<[?, ?]>>"


def test_element_load_and_store_with_any_strides():
    whole = np.arange(60, dtype=np.float32).reshape(6, 10)
    body = f"""
      %v = memref.load %x[%c1, %c2] : {ANY}
      memref.store %v, %x[%c0, %c3] : {ANY}"""
    for view in (whole, whole.T, whole[::2, ::-3], whole[::-1]):
        wanted = view.copy()
        wanted[0, 3 if view.shape[1] > 3 else 0] = view[1, 2]
        if view.shape[1] > 3:
            run(f"%x: {ANY}", body, view)
            assert (view == wanted).all()


def test_views():
    x = np.arange(48, dtype=np.float32).reshape(6, 8)
    out = np.zeros(8, np.float32)
    body = f"""
      %s = memref.subview %x[1, %c2] [4, %c3] [1, 2] : {ANY} to {ANY}
      %t = memref.transpose %s (d0, d1) -> (d1, d0) : {ANY} to {ANY}
      %r = memref.subview %t[2, 0] [1, 4] [1, 1] : {ANY} to memref<4xf32, strided<[?], offset: ?>>
      %k = memref.cast %r : memref<4xf32, strided<[?], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
      %n = memref.dim %k, %c0 : memref<?xf32, strided<[?], offset: ?>>
      %b, %o, %s0, %s1, %t0, %t1 = memref.extract_strided_metadata %t : {ANY} -> memref<f32>, index, index, index, index, index
      scf.for %i = %c0 to %n step %c1 {{
        %v = memref.load %k[%i] : memref<?xf32, strided<[?], offset: ?>>
        memref.store %v, %out[%i] : memref<8xf32>
      }}
      %again = memref.reinterpret_cast %t to offset: [%o], sizes: [%s0, %s1], strides: [%t0, %t1] : {ANY} to {ANY}
      %v = memref.load %again[%c2, %c1] : {ANY}
      memref.store %v, %out[%c4] : memref<8xf32>"""
    run(f"%x: {ANY}, %out: memref<8xf32>", body, x, out)
    wanted = x[1:5, 2:8:2].T
    assert out[:4].tolist() == wanted[2].tolist()
    assert out[4] == wanted[2, 1]


def test_allocations_start_as_nan_and_can_be_viewed():
    out = np.zeros(4, np.float32)
    body = """
      %a = memref.alloc(%c3) : memref<?xf32>
      %v = memref.load %a[%c2] : memref<?xf32>
      memref.store %v, %out[%c0] : memref<4xf32>
      %bytes = memref.alloca() : memref<64xi8>
      %m = memref.view %bytes[%c4][%c3] : memref<64xi8> to memref<?x2xf32>
      %one = arith.constant 1.5 : f32
      memref.store %one, %m[%c2, %c1] : memref<?x2xf32>
      %w = memref.load %m[%c2, %c1] : memref<?x2xf32>
      memref.store %w, %out[%c1] : memref<4xf32>
      memref.dealloc %a : memref<?xf32>
      %d = memref.alloc() : memref<4xf32>
      memref.copy %out, %d : memref<4xf32> to memref<4xf32>
      %old = memref.atomic_rmw addf %one, %d[%c1] : (f32, memref<4xf32>) -> f32
      memref.store %old, %out[%c2] : memref<4xf32>
      %new = memref.load %d[%c1] : memref<4xf32>
      memref.store %new, %out[%c3] : memref<4xf32>"""
    run("%out: memref<4xf32>", body, out)
    assert np.isnan(out[0])
    assert out[1:].tolist() == [1.5, 1.5, 3.0]


@pytest.mark.parametrize("at", [-1, 10])
def test_an_access_outside_is_reported(at):
    x = np.zeros(30, np.float32)[10:20]
    text = """func.func @f(%x: memref<?xf32>, %i: index) {
      %v = memref.load %x[%i] : memref<?xf32>
      func.return }"""
    with pytest.raises(InternalError, match="leaves its memory"):
        run_module(parse_module(text, "test"), (), [x, at])


def test_memory_of_the_caller_that_is_readonly_stays():
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    body = """%v = arith.constant 1.0 : f32
      memref.store %v, %x[%c0] : memref<4xf32>"""
    with pytest.raises(ValueError, match="read-only"):
        run("%x: memref<4xf32>", body, x)


# Vectors ----------------------------------------------------------------------------


@few
@given(n=st.integers(1, 40), at=st.integers(-20, 45), seed=st.integers(0, 99))
def test_masked_accesses(n, at, seed):
    """Masked-off elements are not touched, wherever they are."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n).astype(np.float32)
    lanes = at + np.arange(16)
    mask = (lanes >= 0) & (lanes < n) & (rng.random(16) < 0.7)
    out = np.zeros(16, np.float32)
    text = """func.func @f(%x: memref<?xf32>, %at: index, %m: memref<16xi1>, %out: memref<16xf32>) {
      %c0 = arith.constant 0 : index
      %mask = vector.load %m[%c0] : memref<16xi1>, vector<16xi1>
      %other = arith.constant dense<9.0> : vector<16xf32>
      %v = vector.maskedload %x[%at], %mask, %other : memref<?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      vector.store %v, %out[%c0] : memref<16xf32>, vector<16xf32>
      %w = arith.addf %v, %v : vector<16xf32>
      vector.maskedstore %x[%at], %mask, %w : memref<?xf32>, vector<16xi1>, vector<16xf32>
      func.return }"""
    before = x.copy()
    run_module(parse_module(text, "test"), (), [x, at, mask, out])
    inside = np.clip(lanes, 0, n - 1)
    assert (out == np.where(mask, before[inside], 9)).all()
    wanted = before.copy()
    wanted[lanes[mask]] *= 2
    assert (x == wanted).all()


@few
@given(
    n=st.integers(1, 40), step=st.sampled_from([1, 2, -1, -3]), seed=st.integers(0, 99)
)
def test_gather_and_scatter(n, step, seed):
    rng = np.random.default_rng(seed)
    x = np.arange(3 * n, dtype=np.float32)[::step]
    n = len(x)
    index = rng.permutation(n)[:16].astype(np.int32)
    index = np.concatenate([index, np.full(16 - len(index), 10**6, np.int32)])
    mask = (index < n) & (rng.random(16) < 0.7)
    out = np.zeros(16, np.float32)
    text = """func.func @f(%x: memref<?xf32, strided<[?]>>, %i: memref<16xi32>, %m: memref<16xi1>, %out: memref<16xf32>) {
      %c0 = arith.constant 0 : index
      %mask = vector.load %m[%c0] : memref<16xi1>, vector<16xi1>
      %index = vector.load %i[%c0] : memref<16xi32>, vector<16xi32>
      %other = arith.constant dense<9.0> : vector<16xf32>
      %v = vector.gather %x[%c0] [%index], %mask, %other : memref<?xf32, strided<[?]>>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      vector.store %v, %out[%c0] : memref<16xf32>, vector<16xf32>
      %w = arith.negf %v : vector<16xf32>
      vector.scatter %x[%c0] [%index], %mask, %w : memref<?xf32, strided<[?]>>, vector<16xi32>, vector<16xi1>, vector<16xf32>
      func.return }"""
    before = x.copy()
    run_module(parse_module(text, "test"), (), [x, index, mask, out])
    wanted = np.full(16, 9, np.float32)
    wanted[mask] = before[index[mask]]
    assert (out == wanted).all()
    before[index[mask]] *= -1
    assert (x == before).all()


@few
@given(
    m=st.integers(1, 9), n=st.integers(1, 9), i=st.integers(-3, 9), j=st.integers(-3, 9)
)
def test_transfers(m, n, i, j):
    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    out = np.full((12, 13), -1, np.float32)
    text = """func.func @f(%x: memref<?x?xf32>, %i: index, %j: index, %out: memref<12x13xf32>) {
      %c0 = arith.constant 0 : index
      %pad = arith.constant 7.0 : f32
      %v = vector.transfer_read %x[%i, %j], %pad : memref<?x?xf32>, vector<4x5xf32>
      vector.transfer_write %v, %out[%i, %j] : vector<4x5xf32>, memref<12x13xf32>
      func.return }"""
    if i < 0 or j < 0:
        return
    run_module(parse_module(text, "test"), (), [x, i, j, out])
    part = np.full((4, 5), 7, np.float32)
    inside = x[i : i + 4, j : j + 5]
    part[: inside.shape[0], : inside.shape[1]] = inside
    wanted = np.full((20, 20), -1, np.float32)
    wanted[i : i + 4, j : j + 5] = part
    assert (out == wanted[:12, :13]).all()
