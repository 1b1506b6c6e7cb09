"""Promises to the compiler, which the interpreter holds to, and hints for caches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.page import matrix
from xetl import xetile
from xetl.errors import XetlError
from xetl.xetile import constexpr

ALL = pytest.mark.parametrize("backend", ["reference", "cpu", "xegpu"])
COMPILED = pytest.mark.parametrize("backend", ["cpu", "xegpu"])


@xetile.kernel(grid=1)
def promised(X, Y, n: int):
    xetile.assume(n > 0)
    xetile.assume(n < 100 and X.shape[0] > 0)
    start = xetile.multiple_of(n, 8)
    v = xetile.load_tile(xetile.init_tile(X, [start, 0], (8, 16)))
    xetile.assume(v >= 0)
    v = xetile.multiple_of(v, 3)
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (8, 16)))


@ALL
def test_a_promise_that_is_kept(backend: str) -> None:
    x = 3 * np.arange(32 * 16, dtype=np.int32).reshape(32, 16)
    y = np.zeros((8, 16), np.int32)
    promised(x, y, 16, backend=backend)
    np.testing.assert_array_equal(y, x[16:24])


@pytest.mark.parametrize(
    ("n", "add", "text"),
    [
        (-8, 0, "assume(n > 0)"),
        (104, 0, "assume(n < 100 and X.shape[0] > 0)"),
        (9, 0, "multiple_of(n, 8)"),
        (8, 1, "multiple_of(v, 3)"),
        (8, -999, "assume(v >= 0)"),
    ],
)
def test_the_interpreter_holds_to_it(n: int, add: int, text: str) -> None:
    x = 3 * np.arange(32 * 16, dtype=np.int32).reshape(32, 16) + np.int32(add)
    with pytest.raises(XetlError) as error:
        promised(x, np.zeros((8, 16), np.int32), n, backend="reference")
    assert f"broken promise: {text}" in str(error.value)


@xetile.kernel(grid=1)
def power(X, Y):
    x = xetile.load_tile(xetile.init_tile(X, [0], (16,)))
    y = xetile.exp2(x, nonpositive=True)
    xetile.store_tile(y, xetile.init_tile(Y, [0], (16,)))


@ALL
def test_numbers_that_are_0_or_less_as_promised(backend: str) -> None:
    x, y = -np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    x[3] = np.nan
    power(x, y, backend=backend)
    np.testing.assert_allclose(y, np.exp2(x), rtol=1e-6)


def test_the_interpreter_holds_to_that_too() -> None:
    x = np.full(16, 65, np.float32)
    with pytest.raises(XetlError, match=r"broken promise: exp2") as error:
        power.interpret(x, np.zeros_like(x))
    assert "nonpositive=True" in str(error.value)


@COMPILED
def test_a_promise_costs_nothing(backend: str) -> None:
    text = promised.ir("xetile", "i32[M,16] i32[8,16] i64", backend=backend)
    for word in ("xetile.assert", "tile_reduce", "remsi", "remui"):
        assert word not in text


@COMPILED
def test_a_broken_promise_rounds_down(backend: str) -> None:
    x = 3 * np.arange(32 * 16, dtype=np.int32).reshape(32, 16)
    y = np.zeros((8, 16), np.int32)
    promised(x, y, 21, backend=backend)
    np.testing.assert_array_equal(y, x[16:24])


@xetile.kernel(grid=1)
def hinted(X, Y, CACHE: constexpr = "", EVICT: constexpr = ""):
    tile = xetile.init_tile(X, [0, 0], (8, 16))
    v = xetile.load_tile(tile, cache=CACHE, evict=EVICT)
    xetile.store_tile(v, xetile.init_tile(Y, [0, 0], (8, 16)))


HINTS = {
    (".ca", ""): ("cached", "cached"),
    (".cg", ""): ("uncached", "cached"),
    (".cs", ""): ("streaming", "cached"),
    (".cv", ""): ("uncached", "uncached"),
    ("", "evict_first"): ("streaming", "cached"),
    ("", "evict_last"): ("cached", "cached"),
    (".ca", "evict_first"): ("streaming", "cached"),
    (".cg", "evict_first"): ("uncached", "cached"),
    (".cg", "evict_last"): ("uncached", "cached"),
}


@pytest.mark.parametrize(("cache", "evict"), HINTS)
def test_hints_reach_the_messages(cache: str, evict: str) -> None:
    given = {"CACHE": cache, "EVICT": evict, "backend": "xegpu", "target": "pvc"}
    l1, l3 = HINTS[cache, evict]
    text = hinted.ir("xegpu", "f32[M,N] f32[M,N]", **given)
    assert f"l1_hint = #xegpu.cache_hint<{l1}>" in text
    assert f"l3_hint = #xegpu.cache_hint<{l3}>" in text
    assert "left out" not in str(hinted.explain("f32[M,N] f32[M,N]", **given))
    assert "CacheControlLoadINTEL" in hinted.ir("spirv", "f32[M,N] f32[M,N]", **given)


@pytest.mark.parametrize("evict", ["", "evict_normal"])
def test_by_default_there_are_none(evict: str) -> None:
    text = hinted.ir("xetile", "f32[M,N] f32[M,N]", EVICT=evict, backend="cpu")
    assert "_hint" not in text


@ALL
@pytest.mark.parametrize(("cache", "evict"), [(".cg", ""), ("", "evict_first")])
def test_hints_change_no_value(cache: str, evict: str, backend: str) -> None:
    x, y = matrix("f32", (8, 16)), np.zeros((8, 16), np.float32)
    hinted(x, y, cache, evict, backend=backend)
    np.testing.assert_array_equal(y, x)


def test_explain_says_that_the_cpu_has_no_hints() -> None:
    x = matrix("f32", (8, 16))
    report = str(hinted.explain(x, x.copy(), ".cg", backend="cpu"))
    assert "caches: hints are for GPUs" in report
