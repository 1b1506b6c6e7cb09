"""`breakpoint()` in a kernel: where it stops, and what a debugger sees there."""

import inspect
import io
import pdb
import sys

import numpy as np
import pytest

from xetl import xetile
from xetl.errors import NameLookupError
from xetl.xetile import constexpr


@xetile.function
def twice(v):
    k = 3
    breakpoint()
    return v * (k - 1)


@xetile.kernel
def kernel(X, OUT, s, N: constexpr = 4):
    i = xetile.program_id(0)
    tile = xetile.init_tile(X, [i, 0], (1, N))
    v = xetile.load_tile(tile)
    for _ in range(2):
        v = v + s
        line = xetile.arange(N).to(xetile.u8) - 1  # noqa: F841
        breakpoint()
    xetile.store_tile(twice(v), xetile.init_tile(OUT, [i, 0], (1, N)))


def arrays():
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    return x, np.zeros_like(x)


@pytest.fixture
def stops(monkeypatch):
    found = []

    def hook():
        found.append(sys._getframe(1))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return found


def test_variables_are_seen_where_it_stops(stops):
    x, out = arrays()
    kernel.interpret(x, out, 1.5, grid=2)
    np.testing.assert_array_equal(out, 2 * (x + 3))
    first, second, inner = stops[:3]
    assert len(stops) == 6
    assert [frame.f_code.co_name for frame in stops[:3]] == [
        "kernel",
        "kernel",
        "twice",
    ]
    _, start = inspect.getsourcelines(kernel.fn)
    assert first.f_code.co_filename == __file__
    assert inspect.getframeinfo(first).lineno == start + 8
    seen = first.f_locals
    assert (seen["i"], seen["s"], seen["N"]) == (0, 1.5, 4)
    np.testing.assert_array_equal(seen["v"], x[:1] + 1.5)
    np.testing.assert_array_equal(second.f_locals["v"], x[:1] + 3)
    np.testing.assert_array_equal(seen["X"], x)
    assert seen["line"].tolist() == [255, 0, 1, 2]
    assert seen["tile"].offsets == (0, 0)
    np.testing.assert_array_equal(seen["tile"].values, x[:1])
    assert "tile (1, 4)" in repr(seen["tile"])
    assert inner.f_locals["k"] == 3
    with pytest.raises(ValueError, match="read-only"):
        seen["v"][0, 0] = 1


def test_compiled_kernels_go_on_and_say_so(stops):
    x, out = arrays()
    kernel[2](x, out, 1.5, backend="cpu")
    np.testing.assert_array_equal(out, 2 * (x + 3))
    assert not stops
    report = str(kernel.explain(x, out, 1.5, backend="cpu"))
    assert "breakpoint: ignored in compiled code" in report


def test_launches_on_the_interpreter_stop(stops):
    kernel[2](*arrays(), 1.5, backend="reference")
    assert len(stops) == 6


def test_scatter_tiles_and_subgroups(stops):
    @xetile.kernel(subgroups=[2, 1])
    def scatter(X):
        me = xetile.subgroup_id()
        tile = xetile.init_tile(X, xetile.arange(4) + me)
        v = xetile.load_gather(tile)
        breakpoint()
        xetile.device_print("{}", v)

    scatter.interpret(np.arange(8, dtype=np.int32), grid=1)
    assert [frame.f_locals["me"] for frame in stops] == [0, 1]
    assert stops[1].f_locals["tile"].offsets.ravel().tolist() == [1, 2, 3, 4]
    assert "scatter tile" in repr(stops[1].f_locals["tile"])


def test_what_a_debugger_sees_is_no_access(stops):
    @xetile.kernel
    def kernel(OUT):
        tile = xetile.init_tile(xetile.slm((4, 4), xetile.f32), [0, 0], (4, 4))
        breakpoint()
        xetile.store_tile(xetile.full((4, 4), 1.0, xetile.f32), tile)
        xetile.store_tile(xetile.load_tile(tile), xetile.init_tile(OUT, [0, 0], (4, 4)))

    out = np.zeros((4, 4), np.float32)
    kernel.interpret(out, grid=1)
    assert out.all()
    assert np.isnan(stops[0].f_locals["tile"].values).all()


def test_pdb_shows_the_users_line(monkeypatch):
    typed, shown = io.StringIO("p v.sum()\nw\nq\n"), io.StringIO()

    def hook():
        debugger = pdb.Pdb(stdin=typed, stdout=shown, nosigint=True, readrc=False)
        debugger.set_trace(sys._getframe(1))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    trace = sys.gettrace()
    x, out = arrays()
    with pytest.raises(pdb.bdb.BdbQuit):
        kernel.interpret(x, out, 1.0, grid=1)
    sys.settrace(trace)
    assert not out.any()
    assert "10.0" in shown.getvalue()
    assert "test_breakpoints.py" in shown.getvalue()
    assert "-> breakpoint()" in shown.getvalue()


def test_it_takes_no_arguments():
    @xetile.kernel
    def wrong(X):
        breakpoint(X)

    with pytest.raises(NameLookupError, match="takes no arguments"):
        wrong.interpret(np.ones(1, np.float32), grid=1)
