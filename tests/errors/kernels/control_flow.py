"""Loops and branches, and what they leave behind: X06xx."""

from xetl import xetile
from xetl.xetile import constexpr, f16, f32


def wrong_set_on_one_path(X: "f32 2", n: "i64"):
    if n > 3:
        v = xetile.zeros((4, 4), f32)
    # CARET: v
    # CHECK: = note: the `if` at line 8 sets `v` on one path only
    w = v + 1  # ERROR: X0601 `v` may have no usable value here


def wrong_kinds_on_paths(X: "f32 2", n: "i64"):
    if n > 3:
        v = xetile.zeros((4, 4), f32)
    else:
        v = xetile.zeros((4, 8), f32)
    # CHECK: = note: after the `if` at line 16 it is f32 (4, 4) (set at line 17) or f32 (4, 8) (set at line 19)
    w = v + 1  # ERROR: X0601 `v` may have no usable value here


def wrong_set_in_loop(X: "f32 2", n: "i64"):
    for i in range(n):
        v = i
    # CHECK: = note: only the loop at line 25 sets `v`, and it may run no times
    w = v + 1  # ERROR: X0601 `v` may have no usable value here


def wrong_counter_after_loop(X: "f32 2", n: "i64"):
    for i in range(n):
        pass
    w = i + 1  # ERROR: X0601 `i` may have no usable value here


def wrong_dtype_change(X: "f32 2"):
    acc = xetile.zeros((4, 4), f16)
    for i in range(4):
        # CARET: acc = acc + xetile.zeros((4, 4), f32)
        # CHECK: here it becomes f32 (4, 4)
        # CHECK: = note: before the loop `acc` is f16 (4, 4) (set at line 38)
        acc = acc + xetile.zeros((4, 4), f32)  # ERROR: X0602 the loop changes `acc` from f16 (4, 4) to f32 (4, 4)


def wrong_shape_change(X: "f32 2"):
    acc = xetile.zeros((1, 4), f32)
    for i in range(4):
        acc += xetile.zeros((4, 4), f32)  # ERROR: X0602 the loop changes `acc` from f32 (1, 4) to f32 (4, 4)


def wrong_int_becomes_float(X: "f32 2"):
    total = 0
    for i in range(4):
        # CHECK: = help: start with a float: `total = 0.0`
        total = total + 0.5  # ERROR: X0602 the loop changes `total` from an int to a float


def wrong_change_used_after_loop(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    for i in range(4):
        v = xetile.zeros((4, 4), f16)  # ERROR: X0602 the loop changes `v` from f32 (4, 4) to f16 (4, 4)
    w = v + 1


def wrong_none_in_loop(X: "f32 2"):
    acc = None
    for i in range(4):
        acc = xetile.zeros((4, 4), f32)  # ERROR: X0602 the loop changes `acc` from the constant None to f32 (4, 4)


def wrong_ternary(X: "f32 2", n: "i64"):
    v = xetile.zeros((4, 4), f32)
    w = v if n > 3 else 0.0  # ERROR: X0602 this is f32 (4, 4) or a float, as the run decides


def wrong_step(X: "f32 2"):
    # CARET: 0
    for i in range(0, 8, 0):  # ERROR: X0604 the step of `range` is 0
        pass


def wrong_static_step(X: "f32 2"):
    for i in xetile.static_range(0, 8, 0):  # ERROR: X0604 the step of `static_range` is 0
        pass


def wrong_unrolled(X: "f32 2"):
    for i in xetile.static_range(100000):  # ERROR: X0605 this loop would be unrolled 100000 times
        pass


def wrong_static_assert_at_run_time(X: "f32 2", n: "i64"):
    xetile.static_assert(n > 3, "n")  # ERROR: X0606 the condition of `static_assert` is known at run time only


def wrong_static_assert(X: "f32 2", BM: constexpr = 4):
    # CARET: BM > 4
    xetile.static_assert(BM > 4, "BM is too small")  # ERROR: X0607 assertion failed: BM is too small


def wrong_subgroup_id(X: "f32 2"):
    i = xetile.subgroup_id()  # ERROR: X0608 `subgroup_id` has a meaning in subgroup-level kernels only
