"""`X.reshape(...)` in a kernel: a view, as NumPy has it where it needs no copy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from xetl import xetile
from xetl.errors import CompileError, LaunchError
from xetl.xetile import cdiv, constexpr, f32

OPTIMISED = pytest.param("xegpu", marks=pytest.mark.optimised)
"""The driver forms no subgroups of kernels with assertions otherwise."""
ALL = pytest.mark.parametrize("backend", ["reference", "cpu", OPTIMISED])


@xetile.kernel
def doubled(X, rows, cols):
    tile = xetile.init_tile(X.reshape(rows, cols), [0, 0], (8, 32))
    xetile.store_tile(xetile.load_tile(tile) * 2, tile)


@xetile.kernel(grid=1)
def second(X, Y):
    matrix = xetile.reshape(X, (2, -1, 4))[1]
    xetile.store_tile(
        xetile.load_tile(xetile.init_tile(matrix, [0, 0], (8, 4))),
        xetile.init_tile(Y, [0, 0], (8, 4)),
    )


@ALL
def test_sizes_of_the_run(backend: str) -> None:
    for rows, cols in ((-1, 10), (6, -1), (2, 30), (60, 1), (1, 60)):
        x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
        wanted = x.copy().reshape(rows, cols)
        wanted[:8, :32] *= 2
        doubled[1](x, rows, cols, backend=backend)
        np.testing.assert_array_equal(x.reshape(rows, cols), wanted)


@ALL
def test_a_row_with_a_step_keeps_it(backend: str) -> None:
    x, y = np.arange(48, dtype=np.float32)[::2], np.ones((8, 4), np.float32)
    second(x, y, backend=backend)
    np.testing.assert_array_equal(y[:3], x.reshape(2, -1, 4)[1])
    assert not y[3:].any()


@settings(max_examples=60)
@given(
    shape=st.tuples(*[st.sampled_from([0, 1, 2, 3, 5])] * 3),
    steps=st.tuples(*[st.sampled_from([1, 1, 2, -1])] * 3),
    rows=st.sampled_from([-1, 0, 1, 3, 6]),
    cols=st.sampled_from([-1, 0, 1, 3, 5, 6]),
)
def test_as_numpy_or_refused(shape, steps, rows, cols) -> None:
    """What is contiguous works as in NumPy; else it does, or no memory changes."""
    assume((rows, cols) not in ((-1, -1), (-1, 0), (0, -1)))
    room = np.arange(1, 8 * np.prod(shape) + 1, dtype=np.float32)
    room = room.reshape([2 * n for n in shape])
    x = room[tuple(slice(None, None, step) for step in steps)][
        tuple(slice(n) for n in shape)
    ]
    if set(steps) == {1}:
        x = np.ascontiguousarray(x)
    before, wanted = room.copy(), x.copy()
    try:
        doubled[1](x, rows, cols, backend="cpu")
    except (CompileError, LaunchError):
        np.testing.assert_array_equal(room, before)
        if set(steps) == {1}:
            with pytest.raises(ValueError, match="reshape"):
                wanted.reshape(rows, cols)
        return
    wanted.reshape(rows, cols)[:8, :32] *= 2
    np.testing.assert_array_equal(x, wanted)


@ALL
def test_what_is_not_contiguous_is_refused(backend: str) -> None:
    x = np.ones((3, 8), np.float32)[:, :4]
    with pytest.raises(LaunchError, match=r"X.reshape: another number of elements, or"):
        doubled[1](x, -1, 4, backend=backend)
    with pytest.raises(LaunchError, match=r"X.reshape: another number"):
        doubled[1](np.ones((3, 4), np.float32), -1, 5, backend=backend)
    with pytest.raises(LaunchError, match=r"X.reshape: another number"):
        doubled[1](np.ones((3, 4), np.float32), -3, -4, backend=backend)


@xetile.kernel(grid=1)
def turned(X, SHAPE: constexpr):
    xetile.load_tile(xetile.init_tile(X.T.reshape(SHAPE), [0], (8,)))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (6, "`X.T` of rank 2 cannot be reshaped to rank 1"),
        ((-1, -1), "one extent at most can be -1"),
        (-2, "an extent cannot be -2"),
        (2.5, "an extent must be an int"),
    ],
)
def test_refused_when_compiling(shape, text: str) -> None:
    with pytest.raises(CompileError, match=text):
        turned(np.ones((2, 3), np.float32), shape)


@xetile.kernel(grid=lambda m: cdiv(m.C.shape[0], 32))
def product(A, B, C, BK: constexpr = 32):
    m = xetile.program_id(0) * 32
    a = xetile.init_tile(A.reshape(-1, B.shape[0]), [m, 0], (32, BK))
    b = xetile.init_tile(B, [0, 0], (BK, 64))
    acc = xetile.zeros((32, 64), f32)
    for _ in range(0, B.shape[0], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    xetile.store_tile(acc, xetile.init_tile(C, [m, 0], (32, 64)))


def test_products_are_raised() -> None:
    """A linear layer on (batch, length, width) without a reshape on the host."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 25, 96), np.float32)
    b, c = rng.standard_normal((96, 50), np.float32), np.zeros((100, 50), np.float32)
    product(a, b, c)
    np.testing.assert_allclose(c, a.reshape(100, 96) @ b, rtol=1e-4, atol=1e-4)
    assert "is one batch-reduce GEMM" in str(product.explain(a, b, c))
