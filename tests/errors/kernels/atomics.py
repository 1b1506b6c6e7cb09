"""Wrong compares and swaps, and orders of atomics."""

from xetl import xetile
from xetl.xetile import f32, i32, zeros


def wrong_dtype_to_swap(X: "f16 2"):
    t = xetile.init_tile(X, [0, 0], (4, 16))
    # CARET: t
    # CHECK: = help: it exists for i32, u32, i64, u64, f32, f64
    old = xetile.atomic_cas(t, 0, 1)  # ERROR: X0312 there is no atomic compare and swap of f16


def wrong_shape_expected(X: "i32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 16))
    v = zeros((4, 8), i32)
    # CARET: v
    old = xetile.atomic_cas(t, v, 1)  # ERROR: X0208 `atomic_cas` cannot store (4, 8) to a tile of (4, 16)


def wrong_dtype_desired(X: "i32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 16))
    v = zeros((4, 16), f32)
    # CARET: v
    # CHECK: = help: convert the value: `.to(xetile.i32)`
    old = xetile.atomic_cas(t, 0, v)  # ERROR: X0311 `atomic_cas` cannot store f32 to a tile of i32


def wrong_swap_of_vector(X: "i32 2"):
    v = zeros((4, 16), i32)
    old = xetile.atomic_cas(v, 0, 1)  # ERROR: X0303 `tile` of `atomic_cas` must be a tile, not i32 (4, 16)


def wrong_order(X: "i32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 16))
    # CARET: sem="aquire"
    # CHECK: = help: did you mean `acquire`?
    old = xetile.atomic_cas(t, 0, 1, sem="aquire")  # ERROR: X0107 the constant 'aquire' is not a `sem` of `atomic_cas`


def wrong_scope(X: "i32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 16))
    # CHECK: = help: it is one of 'group', 'device', 'system'
    old = xetile.atomic_rmw_tile("add", 1, t, scope="gpu")  # ERROR: X0107 the constant 'gpu' is not a `scope` of `atomic_rmw_tile`


def wrong_order_of_run_time(X: "i32 2", n: "i64"):
    t = xetile.init_tile(X, [0, 0], (4, 16))
    old = xetile.atomic_rmw_tile("add", 1, t, sem=n)  # ERROR: X0203 `sem` of `atomic_rmw_tile` must be a string known when compiling
