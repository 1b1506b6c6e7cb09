"""Vectors in blocks: what packs them, and what takes them."""

import numpy as np
import pytest
from building import build, ops
from programs import BACKENDS

from xetl import xetile
from xetl.frontend.arguments import OPERATIONS
from xetl.language import ops as language_ops
from xetl.language.operation import body_of
from xetl.language.values import Vector


@xetile.kernel(grid=1)
def blocked_gemm(A, B, OUT, SUMS):
    a = xetile.init_tile(A, [0, 0], (16, 32), inner_blocks=[8, 16])
    b = xetile.load_tile(xetile.init_tile(B, [0, 0], (32, 24)))
    packed = xetile.load_tile(a)
    xetile.static_assert(packed.shape == (2, 2, 8, 16) and packed.ndim == 4)
    acc = xetile.tile_mma(packed, xetile.tile_pack(b, [16, 8]))
    xetile.static_assert(acc.shape == (2, 3, 8, 8))
    acc = xetile.tile_mma(packed, xetile.tile_pack(b, inner_blocks=[16, 8]), acc)
    out = xetile.init_tile(OUT, [0, 0], (16, 24), inner_blocks=[8, 8])
    xetile.store_tile(acc, out)
    rows = xetile.tile_reduce("add", acc, [1, 3])
    xetile.static_assert(rows.shape == (2, 1, 8, 1))
    rows = xetile.tile_broadcast(rows, [1, 3], (2, 3, 8, 8))
    xetile.store_tile(
        xetile.tile_unpack(rows), xetile.init_tile(SUMS, [0, 0], (16, 24))
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_product_of_blocks(backend):
    rng = np.random.default_rng(1)
    A, B = (rng.integers(-4, 5, s).astype(np.float32) for s in ((15, 32), (32, 24)))
    out, sums = np.zeros((15, 24), np.float32), np.zeros((16, 24), np.float32)
    blocked_gemm(A, B, out, sums, backend=backend)
    np.testing.assert_array_equal(out, 2 * A @ B)
    expected = np.repeat((2 * A @ B).sum(1, keepdims=True), 24, 1)
    np.testing.assert_array_equal(sums[:15], expected)


def test_the_blocks_stand_in_the_tile_type():
    def kernel(X):
        t = xetile.init_tile(X, [0, 0], (16, 16), inner_blocks=(4, 8))
        t = xetile.update_tile_offset(t, [16, 0])
        xetile.store_tile(xetile.load_tile(t), t)

    module = build(kernel, X="f32 2")
    (load,) = ops(module, "xetile.load_tile")
    assert str(load.result.type) == "vector<4x2x4x8xf32>"


def test_every_operation_has_a_meaning():
    named = {name: getattr(language_ops, name) for name in language_ops.__all__}
    declared = {name for name, value in named.items() if callable(value)}
    of_others = {name for name in declared if body_of(named[name])}
    assert declared - of_others <= OPERATIONS.keys()
    methods = {n for n in vars(Vector) if not n.startswith("_")} - {"T"}
    methods -= set(Vector.__annotations__)
    known = {m for m in methods if m in OPERATIONS or body_of(getattr(Vector, m))}
    assert methods - known == {"to"}
