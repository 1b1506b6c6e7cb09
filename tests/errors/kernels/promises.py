"""Promises that cannot be kept, and hints that nobody knows."""

from xetl import xetile
from xetl.xetile import f32, zeros


def wrong_promise(X: "f32 2"):
    # CARET: X.dtype == xetile.f16
    xetile.assume(X.dtype == xetile.f16)  # ERROR: X0607 what is assumed never holds


def wrong_kind_of_promise(X: "f32 2"):
    # CARET: X
    xetile.assume(X)  # ERROR: X0303 a condition must be a number or a comparison, not an array of f32, rank 2


def wrong_factor(X: "f32 2", n: "i64"):
    # CARET: 0
    m = xetile.multiple_of(n, 0)  # ERROR: X0204 nothing is a multiple of 0


def wrong_factor_of_run_time(X: "f32 2", n: "i64"):
    # CHECK: = help: pass it to the kernel as `constexpr`
    m = xetile.multiple_of(n, n)  # ERROR: X0203 `n` of `multiple_of` must be an int known when compiling


def wrong_multiple(X: "f32 2"):
    # CARET: 12
    m = xetile.multiple_of(12, 8)  # ERROR: X0204 12 is no multiple of 8


def wrong_multiple_of_floats(X: "f32 2"):
    m = xetile.multiple_of(zeros((4, 4), f32), 8)  # ERROR: X0303 `v` of `multiple_of` must be a number, not f32 (4, 4)


def wrong_multiple_of_a_float(X: "f32 2", x: "f64"):
    m = xetile.multiple_of(x, 8)  # ERROR: X0303 `v` of `multiple_of` must be an int, not a float


def wrong_cache(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (8, 16))
    # CARET: cache=".cb"
    v = xetile.load_tile(t, cache=".cb")  # ERROR: X0107 the constant '.cb' is not a `cache` of `load_tile`


def wrong_eviction(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (8, 16))
    # CHECK: = help: did you mean `evict_first`?
    v = xetile.load_tile(t, evict="evict_frist")  # ERROR: X0107 the constant 'evict_frist' is not a `evict` of `load_tile`
