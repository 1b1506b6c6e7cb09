"""Elements of arrays and vectors by numbers and by vectors of indices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import NUMPY, computed, matrix
from xetl import xetile
from xetl.errors import CheckError
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])


@xetile.kernel(grid=1)
def gathers(X, R, C, OUT, MASKED):
    rows = xetile.load_tile(xetile.init_tile(R, [0], (8,)))
    cols = xetile.load_tile(xetile.init_tile(C, [0], (4,)))
    xetile.store_tile(X[rows[:, None], cols], xetile.init_tile(OUT, [0, 0], (8, 4)))
    tile = xetile.init_tile(X, [rows[:, None], cols[None, :]])
    chosen = xetile.load_gather(tile, mask=(rows < 5)[:, None], padding=-1)
    xetile.store_tile(chosen, xetile.init_tile(MASKED, [0, 0], (8, 4)))


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.ascontiguousarray(x.T).T,
    "backwards": lambda x: x[::-1, ::-1],
    "strided": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}


@ALL
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gather_from_a_matrix(layout: str, backend: str) -> None:
    """Outside are zeros, whatever the strides; masks broadcast."""
    x = LAYOUTS[layout](matrix("f32", (9, 11)))
    rows = np.array([0, 3, 8, 9, -1, 2, 2, 1], np.int32)
    cols = np.array([10, 0, 11, 5], np.int64)
    out, masked = np.zeros((2, 8, 4), np.float32)
    gathers(x, rows, cols, out, masked, backend=backend)
    inside = ((rows >= 0) & (rows < 9))[:, None] & ((cols >= 0) & (cols < 11))
    expected = np.where(inside, x[rows[:, None] % 9, cols % 11], 0)
    np.testing.assert_array_equal(out, expected)
    expected[~inside] = -1
    np.testing.assert_array_equal(masked, np.where((rows < 5)[:, None], expected, -1))


@xetile.kernel(grid=1)
def of_rank_three(X, OUT, n: int):
    i = xetile.arange(4)
    X[1, i[:, None], i[None, :] + n] = X[0, i[None, :], i[:, None]] * 2.0
    xetile.store_tile(X[i, i, i], xetile.init_tile(OUT, [0], (4,)))


@ALL
def test_of_rank_three(backend: str) -> None:
    x, out = np.arange(5 * 4 * 6.0).reshape(5, 4, 6), np.zeros(4)
    expected = x.copy()
    expected[1, :, 3:] = 2 * x[0, :3, :4].T
    of_rank_three(x, out, 3, backend=backend)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(out, expected[range(4), range(4), range(4)])


@xetile.kernel(grid=1)
def of_a_matrix_of_values(X, OUT, n: int):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (6, 8)))
    OUT[0] = v[2, 3]
    OUT[1] = v[-1, n]
    OUT[2] = v[1:, 2:5][3, 0]
    xetile.store_tile(v[0][3, None], xetile.init_tile(OUT, [3], (1,)))


@ALL
def test_an_element_of_a_matrix_of_values(backend: str) -> None:
    x, out = matrix("f32", (6, 8)), np.zeros(4, np.float32)
    of_a_matrix_of_values(x, out, 7, backend=backend)
    np.testing.assert_array_equal(out, [x[2, 3], x[-1, 7], x[4, 2], x[0, 3]])


@xetile.kernel(grid=lambda m: m.X.shape[0])
def stores(X, SUMS, COUNT, n: int):
    row = xetile.program_id(0)
    v = xetile.load_tile(xetile.init_tile(X, [row, 0], (1, 16)))
    SUMS[row] = v.sum()
    if row == n:
        COUNT[0, 1] = row
        COUNT[0, 1] += 5
        COUNT[1, 0] = COUNT[0, 1] * 2
        COUNT[7, 7] = 1
    xetile.store_tile(n, xetile.init_tile(COUNT, [2, 0], (1, 2)))


@ALL
def test_numbers_are_stored(backend: str) -> None:
    """What lies outside is dropped; a number fills a tile."""
    x, sums, count = matrix("f32", (6, 16)), np.zeros(6), np.zeros((3, 2), np.int32)
    stores(x, sums, count, 4, backend=backend)
    np.testing.assert_allclose(sums, x.sum(1), rtol=1e-5)
    np.testing.assert_array_equal(count, [[0, 9], [18, 0], [4, 4]])


@ALL
@pytest.mark.parametrize("dtype", ["i1", "i8", "u64", "f16", "f32"])
def test_parts_of_a_matrix(dtype: str, backend: str) -> None:
    a = matrix(dtype, (5, 16))
    parts = lambda a, b: xetile.cat(a[:3, 2:9], a[-2:, :7], 0)
    found = computed(parts, a, a, dtype, backend, columns=7)
    np.testing.assert_array_equal(found, np.concatenate([a[:3, 2:9], a[3:, :7]]))


@ALL
@pytest.mark.parametrize("dtype", ["i1", "i16", "u32", "f32"])
def test_an_element_of_a_row(dtype: str, backend: str) -> None:
    a = matrix(dtype, (1, 16))
    place = np.argmax(a[0]) if dtype != "f32" else 3
    found = computed(
        lambda a, b: xetile.full((1, 16), a[0][int(place)], a.dtype),
        a,
        a,
        dtype,
        backend,
    )
    np.testing.assert_array_equal(found, np.full((1, 16), a[0, place]))


@xetile.kernel(grid=1)
def at_run_time(X, OUT, n: int):
    v = xetile.load_tile(xetile.init_tile(X, [0], (5,)))
    OUT[0] = v[n]


@ALL
@pytest.mark.parametrize("place", [0, 4, 5, -1, 2**32 + 3])
@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_an_element_outside_of_a_row_is_0(dtype: str, place: int, backend: str) -> None:
    x = np.arange(1, 6).astype(NUMPY[dtype])
    out = np.full(1, 7, x.dtype)
    at_run_time(x, out, place, backend=backend)
    assert out[0] == (x[place] if 0 <= place < 5 else 0)


@xetile.kernel(grid=1)
def parts_at_run_time(X, OUT, n: int, m: int):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (5, 7)))
    OUT[0, xetile.arange(7)] = v[n]
    OUT[1, xetile.arange(4)] = v[1:, n]
    OUT[2, xetile.arange(5)] = v[n, 2:]
    if v[n, m]:
        OUT[3, 0] = v[n, m]
    OUT[4, xetile.arange(7)] = v[n][None, :][0, :]


@ALL
@pytest.mark.parametrize(("n", "m"), [(0, 6), (4, 3), (5, 0), (-1, 2), (2, 9)])
@pytest.mark.parametrize("dtype", ["i1", "f32", "bf16", "u8"])
def test_parts_of_a_matrix_at_run_time(
    dtype: str, n: int, m: int, backend: str
) -> None:
    x = (np.arange(35) % 9).astype(NUMPY[dtype]).reshape(5, 7)
    out = np.full((5, 7), 99).astype(x.dtype)
    expected, around = out.copy(), np.zeros((40, 40), x.dtype)
    around[:5, :7] = x
    expected[[0, 4]] = around[n, :7]
    expected[1, :4], expected[2, :5] = around[1:5, n], around[n, 2:7]
    expected[3, 0] = around[n, m] or expected[3, 0]
    parts_at_run_time(x, out, n, m, backend=backend)
    np.testing.assert_array_equal(out, expected)


def test_interpret_names_what_is_outside() -> None:
    x, out = np.zeros((4, 4), np.float32), np.zeros((8, 4), np.float32)
    rows = np.full(8, 5, np.int32)
    with pytest.raises(CheckError) as caught:
        gathers.interpret(x, rows, np.zeros(4, np.int32), out, out.copy(), check="oob")
    said = "uses index (5, 0) of `X`, whose dimension 0 has size 4"
    assert said in str(caught.value)
    assert (caught.value.array, caught.value.index) == ("X", (5, 0))


@xetile.kernel(grid=1)
def picks(X, ROWS, Y, BATCH: constexpr):
    rows = xetile.load_tile(xetile.init_tile(ROWS, [0], (4,)))
    X[BATCH, rows[:, None], xetile.arange(8)[None, :]] = 1.0
    v = X[rows, 0, xetile.arange(4)]
    xetile.store_tile(v, xetile.init_tile(Y, [0], (4,)))


@pytest.mark.parametrize(
    ("batch", "rows", "said", "index"),
    [
        (1, [0, 2, -1, 0], "dimension 1 has size 3", (1, -1, 0)),
        (2, [0, 0, 0, 0], "dimension 0 has size 2", (2, 0, 0)),
        (1, [0, 1, 0, 2], "dimension 0 has size 2", (2, 0, 3)),
        (1, [0, 1, 0, 1], None, None),
    ],
)
def test_interpret_names_each_index_of_a_gather(
    batch: int, rows: list[int], said: str | None, index: object
) -> None:
    x, y = np.zeros((2, 3, 8), np.float32), np.zeros(4, np.float32)
    given = (x, np.array(rows, np.int32), y)
    if said is None:
        picks.interpret(*given, BATCH=batch)
        assert (x[1, :2] == 1).all()
        return
    with pytest.raises(CheckError) as caught:
        picks.interpret(*given, BATCH=batch)
    assert f"uses index {index} of `X`, whose {said}" in caught.value.message
    assert caught.value.index == index
    assert not x.any()


@xetile.kernel(grid=1)
def ragged_rows(X, ROWS, Y, FIRST: constexpr):
    columns = xetile.arange(8) + FIRST
    rows = xetile.load_tile(xetile.init_tile(ROWS, [0], (2,)))
    Y[xetile.arange(2)[:, None], columns] = X[rows[:, None], columns]


def test_a_run_of_indices_may_go_over_an_edge_as_a_tile_may() -> None:
    x, y = np.arange(15, dtype=np.float32).reshape(3, 5), np.zeros((2, 5), np.float32)
    rows = np.array([2, 0], np.int32)
    ragged_rows.interpret(x, rows, y, FIRST=-1)
    assert (y == x[rows]).all()
    rows[1] = 3  # chosen by memory: where columns are inside it is reported
    with pytest.raises(CheckError) as caught:
        ragged_rows.interpret(x, rows, y, FIRST=0)
    assert caught.value.index == (3, 0)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_full_is_f32_as_zeros_is(backend: str) -> None:
    half = lambda a, b: xetile.full(a.shape, 0.5)
    a = np.zeros((2, 8), np.float32)
    assert (computed(half, a, a, "f32", backend) == 0.5).all()


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_print_shows_values(backend: str, capfd: pytest.CaptureFixture[str]) -> None:
    prints(np.arange(4.0), backend=backend)
    assert capfd.readouterr().out.startswith("sum 6.0 of [0")


@xetile.kernel(grid=1)
def prints(X):
    v = xetile.load_tile(xetile.init_tile(X, [0], (4,)))
    print("sum", v.sum(), f"of {v}")


@xetile.kernel(grid=1)
def beside(A, SHARED, GLOBAL, BACK):
    a = xetile.load_tile(xetile.init_tile(A, [0, 0], (5, 13)))
    memory = xetile.slm((5, 26), xetile.f32)
    xetile.store_tile(a * 2, xetile.init_tile(memory, [0, 13], (5, 13)))
    xetile.store_tile(a, xetile.init_tile(memory, [0, 0], (5, 13)))
    xetile.barrier()
    both = xetile.load_tile(xetile.init_tile(memory, [0, 0], (5, 26)))
    xetile.store_tile(both, xetile.init_tile(SHARED, [0, 0], (5, 26)))
    xetile.store_tile(a * 2, xetile.init_tile(GLOBAL, [0, 13], (5, 13)))
    xetile.store_tile(a, xetile.init_tile(GLOBAL, [0, 0], (5, 13)))
    xetile.barrier()
    both = xetile.load_tile(xetile.init_tile(GLOBAL, [0, 3], (5, 23)))
    xetile.store_tile(both, xetile.init_tile(BACK, [0, 0], (5, 23)))


@ALL
def test_lanes_of_one_subgroup_read_what_others_wrote(backend: str) -> None:
    """A subgroup alone waits for nobody, but a barrier orders what its lanes do."""
    a = matrix("f32", (5, 13))
    shared, memory = np.zeros((2, 5, 26), np.float32)
    back = np.zeros((5, 23), np.float32)
    beside(a, shared, memory, back, backend=backend)
    expected = np.concatenate([a, 2 * a], 1)
    np.testing.assert_array_equal(shared, expected)
    np.testing.assert_array_equal(memory, expected)
    np.testing.assert_array_equal(back, expected[:, 3:])


@xetile.kernel(grid=lambda a: a.R.shape[0])
def copies_rows(X, R, OUT, first: int, TAIL: xetile.constexpr):
    i, cols = xetile.program_id(0), xetile.arange(40)
    if TAIL:
        OUT[i, cols] = X[R[i], cols + first]
    else:
        rows = xetile.load_tile(xetile.init_tile(R, [0], (4,)))
        OUT[rows[:, None] * 0 + xetile.arange(4)[:, None], cols] = X[
            rows[:, None], first + cols[None, :]
        ]


@ALL
@pytest.mark.parametrize("tail", [True, False])
@pytest.mark.parametrize(
    ("layout", "first"),
    [*((layout, 3) for layout in LAYOUTS), ("rows", 0), ("rows", -5), ("rows", 60)],
)
def test_neighbours(layout: str, first: int, tail: bool, backend: str) -> None:
    """Elements beside one another: the columns of some rows, those outside are 0."""
    x = LAYOUTS[layout](matrix("f32", (9, 37)))
    rows = np.array([3, 8, 9, -1], np.int64)
    out = np.full((4, 39), -7, np.float32)
    copies_rows(x, rows, out, first, tail, backend=backend)
    cols = np.arange(39) + first
    inside = ((rows >= 0) & (rows < 9))[:, None] & ((cols >= 0) & (cols < 37))
    np.testing.assert_array_equal(
        out, np.where(inside, x[rows[:, None] % 9, cols % 37], 0)
    )


@xetile.kernel(grid=lambda a: a.R.shape[0])
def sums_of_rows(X, R, OUT, SUMS, N: xetile.constexpr):
    i, columns = xetile.program_id(0), xetile.arange(N)
    v = X[R[i], columns]
    OUT[i, columns] = v
    SUMS[i] = v.sum(0)


@ALL
@pytest.mark.parametrize("width", [3, 16, 37, 64, 80])
def test_rows_as_wide_as_they_are(width: int, backend: str) -> None:
    """Without masks to where a row ends, of which some are outside of the array."""
    x = np.arange(9.0 * width, dtype=np.float32).reshape(9, width)
    rows = np.array([3, 8, 9, 0, -1], np.int64)
    out, sums = np.full((6, width + 2), -7, np.float32), np.full(5, -7, np.float32)
    sums_of_rows(x, rows, out[:4, :width], sums, 80, backend=backend)
    expected = np.where(((rows >= 0) & (rows < 9))[:, None], x[rows % 9], 0)
    np.testing.assert_array_equal(out[:4, :width], expected[:4])
    assert (out[4:] == -7).all()
    assert (out[:, width:] == -7).all()
    np.testing.assert_array_equal(sums, expected.sum(1))


def test_neighbours_are_loaded_at_once_on_cpu() -> None:
    types = "f32[M,N] i64[R] f32[R,N] i64"
    for tail in (True, False):
        text = copies_rows.ir("loops", types, target="avx2", TAIL=tail)
        assert "vector.maskedload" in text
        assert "vector.gather" not in text
        assert "vector.scatter" not in text
    types = "f32[M,N] i64[R] f32[P,Q] f32[R]"
    text = sums_of_rows.ir("loops", types, target="avx2", N=80)
    assert "vector.load" in text
    assert "vector.store" in text


BOUNDS = [(1, 4), (-3, -1), (0, 99), (3, 2), (-99, 2)]


@xetile.kernel(grid=1)
def parts(X, Y, Z, first: int, last: int, A: xetile.constexpr, B: xetile.constexpr):
    whole = xetile.init_tile(X[first:last, A:B], [0, 0], (8, 8))
    xetile.store_tile(xetile.load_tile(whole), xetile.init_tile(Y, [0, 0], (8, 8)))
    back = xetile.init_tile(X[last:first:-2, 1:], [0, 0], (8, 8))
    xetile.store_tile(xetile.load_tile(back), xetile.init_tile(Y, [8, 0], (8, 8)))
    Z[2:, 1:, 3][0, 0] = X[A:B][1:, :][0, 2]


def padded(part: np.ndarray) -> np.ndarray:
    out = np.zeros((8, 8), np.float32)
    out[: part.shape[0], : part.shape[1]] = part[:8, :8]
    return out


@ALL
@pytest.mark.parametrize(("first", "last"), BOUNDS)
@pytest.mark.parametrize(("a", "b"), [BOUNDS[0], BOUNDS[1], BOUNDS[3]])
def test_slices_of_arrays(first: int, last: int, a: int, b: int, backend: str) -> None:
    x, y = matrix("f32", (6, 7)), np.empty((16, 8), np.float32)
    z = np.zeros((4, 5, 6), np.float32)
    parts(x, y, z, first, last, a, b, backend=backend)
    np.testing.assert_array_equal(y[:8], padded(x[first:last, a:b]))
    np.testing.assert_array_equal(y[8:], padded(x[last:first:-2, 1:]))
    rest = x[a:b][1:]
    assert z[2, 1, 3] == (rest[0, 2] if len(rest) else 0)
    assert np.count_nonzero(z) == (z[2, 1, 3] != 0)


@xetile.function
def next_place(Next):
    place = Next[0]
    Next[0] = place + 1
    return place


@xetile.kernel(grid=1)
def adds_to_places(Next, Y):
    for _ in range(3):
        Y[next_place(Next), 0] += 2.0
        Y[next_place(Next)][1] += 3.0


@ALL
def test_places_that_are_added_to_are_computed_once(backend: str) -> None:
    """As Python does: `Y[f()] += v` calls `f` once."""
    following, y = np.zeros(1, np.int32), np.ones((7, 2), np.float32)
    adds_to_places(following, y, backend=backend)
    assert following == 6
    assert y.tolist() == [[3, 1], [1, 4], [3, 1], [1, 4], [3, 1], [1, 4], [1, 1]]
