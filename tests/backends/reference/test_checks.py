"""What `kernel.interpret` finds: message and line; and that nothing was written."""

import inspect

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import CheckError, LaunchError
from xetl.xetile import constexpr, f32


def line_with(kernel, text):
    """The line of a kernel that has a text in it."""
    lines, first = inspect.getsourcelines(getattr(kernel, "fn", kernel))
    return first + next(i for i, line in enumerate(lines) if text in line)


def finding(kernel, *args, **options):
    """What is found; the arrays must be as they were."""
    before = [arg.copy() for arg in args if isinstance(arg, np.ndarray)]
    with pytest.raises(CheckError) as caught:
        kernel.interpret(*args, **options)
    after = [arg for arg in args if isinstance(arg, np.ndarray)]
    for old, new in zip(before, after):
        np.testing.assert_array_equal(old, new)
    error = caught.value
    assert error.file == __file__
    assert caught.traceback[-1].path.name == "test_checks.py"
    return error


# race -------------------------------------------------------------------------------


@xetile.kernel
def racy_column_sum(X, OUT, BM: constexpr = 16, BN: constexpr = 24):
    out = xetile.init_tile(OUT, [0, 0], (1, BN))
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * BM, 0], (BM, BN)))
    total = x.sum(0, keepdims=True) + xetile.load_tile(out)
    xetile.store_tile(total, out)


@xetile.kernel
def atomic_column_sum(X, OUT, BM: constexpr = 16, BN: constexpr = 24):
    out = xetile.init_tile(OUT, [0, 0], (1, BN))
    x = xetile.load_tile(xetile.init_tile(X, [xetile.program_id(0) * BM, 0], (BM, BN)))
    xetile.atomic_rmw_tile("add", x.sum(0, keepdims=True), out)


def sums(rows):
    return np.ones((rows, 24), np.float32), np.zeros((1, 24), np.float32)


def test_a_sum_without_atomics():
    error = finding(racy_column_sum, *sums(40), grid=3)
    assert error.code == "X0823"
    assert error.message == (
        "`OUT[0, 0]` is read by program (1, 0, 0), and was written by program (0, 0, 0)"
    )
    assert error.line == line_with(racy_column_sum, "total = ")
    assert error.source_line[error.column - 1 :] == "xetile.load_tile(out)"
    assert error.length == len("xetile.load_tile(out)")
    written = line_with(racy_column_sum, "store_tile(")
    assert error.notes == (f"written at line {written} by program (0, 0, 0)",)
    assert (error.array, error.index) == ("OUT", (0, 0))
    assert error.programs == ((0, 0, 0), (1, 0, 0))
    assert "atomic_rmw_tile" in error.help


def test_one_program_may_do_what_it_likes():
    x, out = sums(16)
    racy_column_sum.interpret(x, out, grid=1)
    assert (out == 16).all()


def test_a_sum_with_atomics():
    x, out = sums(40)
    atomic_column_sum.interpret(x, out, grid=3)
    assert (out == 40).all()


def test_a_race_is_not_found_unless_asked_for():
    x, out = sums(40)
    racy_column_sum.interpret(x, out, grid=3, check="oob,uninit")
    assert (out == 40).all()


@xetile.kernel
def read_and_write(X, FIRST: constexpr, SECOND: constexpr):
    i = xetile.program_id(0)
    one = xetile.init_tile(X, [0, 0], (1, 4))
    if i < 2:
        FIRST(one)
    else:
        SECOND(one)


@xetile.function
def read(tile):
    xetile.store_tile(xetile.load_tile(tile), xetile.update_tile_offset(tile, [9, 0]))


@xetile.function
def write(tile):
    xetile.store_tile(xetile.zeros((1, 4)), tile)


@xetile.function
def update(tile):
    xetile.atomic_rmw_tile("add", xetile.zeros((1, 4)), tile)


@pytest.mark.parametrize(
    ("first", "second", "programs"),
    [
        (read, write, (0, 2)),
        (write, write, (0, 1)),
        (update, read, (0, 2)),
        (read, update, (0, 2)),
        (update, write, (0, 2)),
        (read, read, None),
        (update, update, None),
    ],
)
def test_pairs(first, second, programs):
    x = np.zeros((3, 4), np.float32)
    if programs is None:
        read_and_write.interpret(x, first, second, grid=3)
        return
    error = finding(read_and_write, x, first, second, grid=3)
    assert error.programs == tuple((p, 0, 0) for p in programs)
    # An inlined function: its line, and the line that called it.
    assert error.frames[0].function == "read_and_write"


@xetile.kernel
def scattered(OUT, STEP, N: constexpr = 8):
    place = xetile.arange(N) * 2 + xetile.program_id(0) * STEP
    xetile.store_scatter(xetile.zeros((N,)), None, xetile.init_tile(OUT, place))


def test_scattered_elements():
    scattered.interpret(np.ones(40, np.float32), 1, grid=2)  # odd and even ones
    scattered.interpret(np.ones(40, np.float32), 16, grid=2)
    error = finding(scattered, np.ones(40, np.float32), 14, grid=2)
    assert (error.array, error.index) == ("OUT", (14,))


@xetile.kernel
def overlapping(OUT, BM: constexpr = 8):
    m = xetile.program_id(1) * (BM - 1)
    xetile.store_tile(xetile.zeros((BM, 4)), xetile.init_tile(OUT, [m, 0], (BM, 4)))


@pytest.mark.parametrize("turn", [lambda x: x, lambda x: x[::-1, ::-1], lambda x: x.T])
def test_the_index_is_that_of_the_array(turn):
    out = turn(np.ones((15, 15), np.float32))
    error = finding(overlapping, out, grid=(1, 2))
    assert error.index == (7, 0)
    assert error.programs == ((0, 0, 0), (0, 1, 0))


def test_the_very_same_view_given_twice():
    @xetile.kernel
    def shift(X, Y):
        i = xetile.program_id(0)
        x = xetile.load_tile(xetile.init_tile(X, [i + 1], (1,)))
        xetile.store_tile(x, xetile.init_tile(Y, [i], (1,)))

    x = np.arange(8, dtype=np.float32)
    error = finding(shift, x, x, grid=4)
    assert error.index == (1,)
    shift.interpret(x, x, grid=1)
    assert x[0] == 1


@xetile.kernel(subgroups=[2, 1])
def exchange(OUT, WAIT: constexpr):
    """Each of two subgroups stores a row and loads the other one's."""
    shared = xetile.slm((2, 16), f32)
    me = xetile.subgroup_id()
    mine = xetile.full((1, 16), 1.0, f32) * me
    xetile.store_tile(mine, xetile.init_tile(shared, [me, 0], (1, 16)))
    if WAIT:
        xetile.barrier()
    other = xetile.load_tile(xetile.init_tile(shared, [1 - me, 0], (1, 16)))
    row = xetile.program_id(0) * 2 + me
    xetile.store_tile(other, xetile.init_tile(OUT, [row, 0], (1, 16)))


def test_subgroups_without_a_barrier():
    error = finding(exchange, np.zeros((4, 16), np.float32), False, grid=2)
    # The first one cannot have found anything there.
    assert error.code == "X0822"
    out = np.zeros((4, 16), np.float32)
    error = finding(exchange, out, False, grid=2, check="race")
    # Subgroups take turns: the first one has read the other's row before it was there.
    assert error.message == (
        "element (1, 0) of the shared memory of line"
        f" {line_with(exchange, 'xetile.slm(')} is written by subgroup 1 of program"
        " (0, 0, 0), and was read by subgroup 0 of program (0, 0, 0)"
    )
    assert error.help == "separate them by xetile.barrier()"


def test_subgroups_with_a_barrier():
    out = np.zeros((4, 16), np.float32)
    exchange.interpret(out, True, grid=2)
    assert out[:, 0].tolist() == [1, 0, 1, 0]


def test_subgroups_of_one_program_write_an_array():
    @xetile.kernel(subgroups=[4, 1])
    def kernel(OUT):
        xetile.store_tile(xetile.zeros((1, 16)), xetile.init_tile(OUT, [0, 0], (1, 16)))

    error = finding(kernel, np.ones((1, 16), np.float32), grid=1)
    assert "subgroup 1" in error.message
    assert "subgroup 0" in error.message


def test_before_and_after_a_barrier():
    @xetile.kernel(subgroups=[2, 1])
    def kernel(OUT, LAST: constexpr):
        tile = xetile.init_tile(OUT, [0, 0], (1, 16))
        for step in range(4):
            if step % 2 == xetile.subgroup_id():
                xetile.store_tile(xetile.load_tile(tile) + 1.0, tile)
            if step < LAST:
                xetile.barrier()

    out = np.zeros((1, 16), np.float32)
    kernel.interpret(out, 4, grid=1)
    assert (out == 4).all()
    assert finding(kernel, np.zeros((1, 16), np.float32), 2, grid=1).code == "X0823"


# uninit -----------------------------------------------------------------------------


@xetile.kernel
def half_written(OUT, WIDTH: constexpr):
    shared = xetile.slm((8, 16), f32)
    left = xetile.init_tile(shared, [0, 0], (8, WIDTH))
    xetile.store_tile(xetile.zeros((8, WIDTH)), left)
    v = xetile.load_tile(xetile.init_tile(shared, [2, 0], (8, 16)))
    xetile.store_tile(v, xetile.init_tile(OUT, [0, 0], (8, 16)))


def test_shared_memory_is_read_before_it_is_written():
    error = finding(half_written, np.ones((8, 16), np.float32), 10, grid=2)
    assert error.code == "X0822"
    slm = line_with(half_written, "xetile.slm(")
    assert error.message == (
        f"`load_tile` reads element (2, 10) of the shared memory of line {slm} before"
        " anything was written there"
    )
    assert error.line == line_with(half_written, "v = ")
    assert error.programs == ((0, 0, 0),)


def test_all_of_it_is_written():
    out = np.ones((8, 16), np.float32)
    half_written.interpret(out, 16, grid=1)
    assert not out.any()
    half_written.interpret(out, 10, grid=2, check="oob")


# oob --------------------------------------------------------------------------------


@xetile.kernel
def gather(X, OUT, LIMIT, N: constexpr = 16):
    place = xetile.arange(N) + xetile.program_id(0) * N
    got = xetile.load_gather(xetile.init_tile(X, place), place < LIMIT)
    xetile.store_tile(got, xetile.init_tile(OUT, [xetile.program_id(0) * N], (N,)))


def test_an_index_of_a_gather():
    x, out = np.ones(20, np.float32), np.zeros(32, np.float32)
    error = finding(gather, x, out, 99, grid=2)
    assert error.code == "X0821"
    message = "`load_gather` uses index 20 of `X`, which has 20 elements there"
    assert error.message == message
    assert error.label == "element 4 of the tile"
    assert error.notes == ("in program (1, 0, 0)",)
    assert error.line == line_with(gather, "load_gather")
    gather.interpret(x, out, 20, grid=2)
    assert out.sum() == 20


@xetile.kernel
def gathers(X, OUT, steps, N: constexpr = 4):
    tile = xetile.init_tile(X, xetile.arange(N))
    total = xetile.zeros((N,))
    for _ in range(steps):
        total = total + xetile.load_gather(tile)
        tile = xetile.update_tile_offset(tile, xetile.full((N,), N, xetile.i32))
    xetile.store_tile(total, xetile.init_tile(OUT, [0], (N,)))


def test_an_index_of_a_tile_that_a_loop_carries():
    x, out = np.ones(20, np.float32), np.zeros(4, np.float32)
    error = finding(gathers, x, out, 6, grid=1)
    assert (error.code, error.line) == ("X0821", line_with(gathers, "load_gather"))
    gathers.interpret(x, out, 5, grid=1)
    assert out.tolist() == [5.0] * 4


@pytest.mark.parametrize("operation", ["store", "atomic"])
def test_an_index_of_a_scatter(operation):
    @xetile.kernel
    def store(X, SHIFT):
        tile = xetile.init_tile(X, xetile.arange(8) + SHIFT)
        xetile.store_scatter(xetile.zeros((8,)), None, tile)

    @xetile.kernel
    def atomic(X, SHIFT):
        tile = xetile.init_tile(X, xetile.arange(8) + SHIFT)
        xetile.atomic_rmw_tile("add", xetile.zeros((8,)), tile)

    kernel = {"store": store, "atomic": atomic}[operation]
    kernel.interpret(np.ones(8, np.float32), 0, grid=1)
    assert finding(kernel, np.ones(8, np.float32), -3, grid=1).index == (-3,)
    assert finding(kernel, np.ones(8, np.float32), 1, grid=1).index == (8,)


@pytest.mark.parametrize("dtype", ["i1", "i4", "u8"])
def test_values_that_a_histogram_does_not_count(dtype):
    """Its page says so: nothing of a kernel is wrong there."""

    @xetile.kernel
    def count(X, OUT):
        v = xetile.load_tile(xetile.init_tile(X, [0], (16,)), padding=200)
        counts = xetile.histogram(v, 200) + xetile.histogram(v, 200, v != 3)
        xetile.store_tile(counts, xetile.init_tile(OUT, [0], (200,)))

    x, out = np.arange(-2, 10).astype(dtype), np.zeros(200, np.int32)
    count.interpret(x, out, grid=1)
    assert out[:11].tolist() == [2, 2, 2, 1, *[2] * 6, 0]
    assert out[11:].sum() == 0


@xetile.function
def element(X, i, j):
    return X[i, j]


@xetile.kernel
def corner(X, OUT, i):
    v = element(X, 1, i) if i < 9 else 0.0
    xetile.store_tile(
        xetile.full((1, 1), v, f32), xetile.init_tile(OUT, [0, 0], (1, 1))
    )


def test_an_index_of_an_array():
    x, out = np.ones((4, 5), np.float32), np.zeros((1, 1), np.float32)
    error = finding(corner, x, out, 5, grid=1)
    message = "index 5 is outside of `X`, whose dimension 1 has size 5"
    assert (error.code, error.message) == ("X0821", message)
    assert error.line == line_with(element.fn, "return")
    assert error.function == "element"
    assert error.frames[0].line == line_with(corner, "v = ")
    assert finding(corner, x, out, -1, grid=1).help == "negative indices do not wrap"


def test_an_index_that_is_not_used_is_not_reported():
    x, out = np.ones((4, 5), np.float32), np.ones((1, 1), np.float32)
    corner.interpret(x, out, 9, grid=1)
    assert out[0, 0] == 0
    corner.interpret(x, out, 4, grid=1)
    assert out[0, 0] == 1


def test_an_index_of_a_batch():
    @xetile.kernel
    def first_row(X, OUT):
        i = xetile.program_id(2)
        row = xetile.load_tile(xetile.init_tile(X[i], [0, 0], (1, 4)))
        xetile.store_tile(row, xetile.init_tile(OUT, [i, 0], (1, 4)))

    error = finding(
        first_row,
        np.ones((3, 2, 4), np.float32),
        np.ones((4, 4), np.float32),
        grid=(1, 1, 4),
    )
    assert error.array == "X"
    assert error.programs == ((0, 0, 3),)


@xetile.kernel
def strided_loop(OUT, STEP):
    total = xetile.zeros((4,))
    for _ in range(0, 10, STEP):
        total = total + 1.0
    xetile.store_tile(total, xetile.init_tile(OUT, [0], (4,)))


@pytest.mark.parametrize("step", [0, -2])
def test_a_step_that_is_not_positive(step):
    error = finding(strided_loop, np.ones(4, np.float32), step, grid=1)
    message = f"the step of this `range` is {step}, so the loop runs no times"
    assert (error.code, error.message) == ("X0821", message)
    assert error.line == line_with(strided_loop, "for _")
    strided_loop.interpret(np.ones(4, np.float32), 3, grid=1)


def test_tiles_may_leave_their_matrix():
    @xetile.kernel
    def far_away(X, OUT, m, n):
        x = xetile.load_tile(xetile.init_tile(X, [m, n], (8, 8)), padding=3)
        xetile.store_tile(x, xetile.init_tile(OUT, [-m, -n], (8, 8)))

    x, out = np.ones((9, 9), np.float32), np.zeros((9, 9), np.float32)
    for place in [(-4, 5), (100, 0), (0, -100), (-8, 9)]:
        far_away.interpret(x, out, *place, grid=1)


# The call ---------------------------------------------------------------------------


def test_unknown_checks():
    x, out = sums(16)
    with pytest.raises(LaunchError, match="no check called `rase`") as found:
        atomic_column_sum.interpret(x, out, grid=1, check="oob,rase")
    assert found.value.code == "X0817"
    assert found.value.help == "did you mean `race`?"
    with pytest.raises(LaunchError, match="must be a text"):
        atomic_column_sum.interpret(x, out, grid=1, check=True)
    with pytest.raises(LaunchError, match="without a grid"):
        atomic_column_sum.interpret(x, out)
    with pytest.raises(LaunchError, match="not on `cpu`"):
        atomic_column_sum.interpret(x, out, grid=1, backend="cpu")


def test_grids_of_all_kinds():
    x, out = sums(40)
    atomic_column_sum.interpret(x, out, grid=(3,), check=" oob , race ")
    rows = lambda m: xetile.cdiv(m.X.shape[0], m.BM)
    atomic_column_sum.interpret(x, out, grid=rows, BM=8)
    xetile.kernel(grid=rows)(atomic_column_sum.fn).interpret(x, OUT=out, backend=None)
    assert (out == 120).all()


def test_nothing_around_a_view_is_written():
    whole = np.full((20, 20), 7, np.float32)
    overlapping.interpret(whole[3:11, 2:6], grid=1)
    assert not whole[3:11, 2:6].any()
    assert (whole == 7).sum() == 400 - 32


def test_a_failed_assertion_leaves_all_as_it_was():
    @xetile.kernel
    def kernel(X):
        xetile.store_tile(xetile.zeros((4,)), xetile.init_tile(X, [0], (4,)))
        assert xetile.program_id(0) < 1, "too many"

    x = np.ones(4, np.float32)
    with pytest.raises(LaunchError, match="too many") as found:
        kernel.interpret(x, grid=2, check="oob")
    assert found.value.line == line_with(kernel, "too many")
    assert x.all()


def test_prints_come_in_order_of_programs(capsys):
    @xetile.kernel
    def kernel(X):
        v = xetile.arange(3) + xetile.program_id(1)
        xetile.device_print("{} {}: {}", xetile.program_id(0), xetile.program_id(1), v)

    kernel.interpret(np.ones(1, np.float32), grid=(2, 2))
    lines = ["0 0: [0 1 2]", "1 0: [0 1 2]", "0 1: [1 2 3]", "1 1: [1 2 3]"]
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("dtype", ["f32", "f16", "u8", "i64", "i1"])
def test_prints_are_those_of_the_cpu(dtype, capfd):
    @xetile.kernel
    def kernel(X, s, to: constexpr):
        i = xetile.program_id(0)
        v = xetile.arange(5) - 2 + i
        w = v != 0 if to == xetile.i1 else v.to(to)
        xetile.device_print("{} {:.3f} {}", i, s, w)
        xetile.device_print(f"{i + 1}: {xetile.reshape(w, (5, 1))} {{}} {i > 0}")

    args = np.ones(1, np.float32), 0.3, getattr(xetile, dtype)
    kernel[3](*args, backend="cpu")
    compiled = capfd.readouterr().out
    kernel.interpret(*args, grid=3)
    assert capfd.readouterr().out == compiled
