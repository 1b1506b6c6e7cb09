"""Kernels that would take all memory or all day to compile."""

import math

from xetl import xetile
from xetl.xetile import f32


def wrong_power(X: "f32 2"):
    n = 9**9**9  # ERROR: X0316 the result of `**` is too large to compute when compiling
    # CHECK: at most 65536 bits or items are allowed
    # CHECK: XETL_MAX_CONSTANT_SIZE
    xetile.static_print(n)


def wrong_shift(X: "f32 2"):
    n = 1 << 10**9  # ERROR: X0316 the result of `<<` is too large to compute when compiling
    xetile.static_print(n)


def wrong_text(X: "f32 2"):
    text = "x" * 10**10  # ERROR: X0316 the result of `*` is too large to compute when compiling
    xetile.static_print(text)


def wrong_product_of_texts(X: "f32 2"):
    text = "x" * "y"  # ERROR: X0307 `*` of constants failed: can't multiply sequence
    xetile.static_print(text)


def wrong_list(X: "f32 2"):
    items = [0] * 10**9  # ERROR: X0316 the result of `*` is too large to compute when compiling
    xetile.static_print(items)


def wrong_tuple_of_run_time_values(X: "f32 2", n: "i64"):
    items = (n, n) * 10**9  # ERROR: X0316 the result of `*` is too large to compute when compiling
    xetile.static_print(items)


def wrong_factorial(X: "f32 2"):
    n = math.factorial(10**9)  # ERROR: X0316 the result of `factorial` is too large to compute when compiling
    xetile.static_print(n)


def wrong_padding_of_bytes(X: "i8 2"):
    # CARET: padding=-2**31
    # CHECK: = help: load zeros and choose with xetile.where, in a wider dtype
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)), padding=-2**31)  # ERROR: X0305 the padding -2147483648 does not fit i8


def wrong_padding(X: "f32 2"):
    xetile.static_print(f"{1:>10000000000}")  # ERROR: X0316 the result of this format is too large to compute when compiling


def wrong_squares(X: "f32 2"):
    n = 3
    for _ in xetile.static_range(100):
        n = n * n  # ERROR: X0316 the result of `*` is too large to compute when compiling
    xetile.static_print(n)


def wrong_tile(X: "f32 2"):
    v = xetile.zeros((1 << 20, 1 << 20), f32)  # ERROR: X0212 1048576 x 1048576 elements are too many for a tile
    # CHECK: at most 16777216 are allowed
    # CHECK: XETL_MAX_TILE_ELEMENTS
    xetile.static_print(v)


def wrong_outer_product(X: "f32 2"):
    line = xetile.arange(1 << 20)
    v = line[:, None] + line[None, :]  # ERROR: X0212 1048576 x 1048576 elements are too many for a tile
    xetile.static_print(v)


def wrong_tile_of_an_array(X: "f32 2"):
    xetile.prefetch_tile(xetile.init_tile(X, [0, 0], (1 << 16, 1 << 16)))  # ERROR: X0212 65536 x 65536 elements are too many for a tile


def wrong_nested_unrolling(X: "f32 2"):
    for _ in xetile.static_range(1000):
        for _ in xetile.static_range(1000):  # ERROR: X0605 loops are unrolled, up to this one, 5000 times
            # CARET: xetile.static_range(1000)
            # CHECK: at most 4096 times are allowed in a kernel
            # CHECK: XETL_MAX_UNROLLED
            pass


@xetile.function
def level0(v):
    return v + 1


def wrong_tree_of_calls(X: "f32 2"):
    v = xetile.zeros((4,), f32)
    v = v + level0(v)
    v = many(many(many(many(v))))
    xetile.static_print(v)


@xetile.function
def many(v):
    a, b = few(few(v)), few(few(v))
    return few(few(a + b)) + few(few(a - b))


@xetile.function
def few(v):
    return some(some(some(some(v)))) + some(some(some(some(v))))


@xetile.function
def some(v):
    return last(last(last(last(v)))) + last(last(last(last(v))))  # ERROR(wrong_tree_of_calls): X0605 calls are inlined, up to this one, 4097 times


@xetile.function
def last(v):
    return level0(level0(v)) + level0(level0(v))


@xetile.function
def ping(v):
    return pong(v) + 1


@xetile.function
def pong(v):
    return ping(v)  # ERROR(wrong_recursion_of_two): X0406 `ping` calls itself without end: calls are inlined
    # CARET: ping(v)
    # CHECK: `ping` calls `pong` calls `ping`


def wrong_recursion_of_two(X: "f32 2"):
    ping(xetile.zeros((4,), f32))


def wrong_offset(X: "f32 2"):
    # CHECK: = note: an integer of 100 bits, where a number of the run has 64
    t = xetile.init_tile(X, [10**30, 0], (4, 4))  # ERROR: X0317 a constant is too large for a number of the run
    xetile.store_tile(xetile.zeros((4, 4)), t)


def wrong_sum(X: "f32 2"):
    n = xetile.program_id(0) + 2**64  # ERROR: X0317 a constant is too large for a number of the run
    X[n, 0] = 1.0


def wrong_slice(X: "f32 2"):
    X[2**64:, :][0, 0] = 1.0  # ERROR: X0317 a constant is too large for a number of the run


def wrong_step(X: "f32 2"):
    for i in range(0, 4, 2**63):  # ERROR: X0317 a constant is too large for a number of the run
        X[i, 0] = 1.0


def wrong_unrolling(X: "f32 2"):
    for _ in xetile.static_range(10**30):  # ERROR: X0317 a constant is too large for a number of the run
        X[0, 0] = 1.0


def wrong_integer(X: "f32 2"):
    n = xetile.i64(math.nan)  # ERROR: X0317 a constant is too large for a number of the run
    X[n, 0] = 1.0


def wrong_number(X: "f32 2"):
    X[0, 0] = xetile.f64(10**400)  # ERROR: X0317 a constant is too large for a number of the run


def wrong_float(X: "f32 2"):
    X[0, 0] = float("x")  # ERROR: X0307 `float` failed: could not convert string to float: 'x'


def wrong_strides(P: "i64", n: "i64"):
    # CARET: base_strides=[n, 0]
    tile = xetile.init_tile(P, [0, 0], (4, 4), dtype=f32, base_shape=[n, n], base_strides=[n, 0])  # ERROR: X0503 a tile at an address needs a stride of 1
    xetile.store_tile(xetile.zeros((4, 4)), tile)
