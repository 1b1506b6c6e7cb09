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


def wrong_endless(X: "f32 2"):
    # CARET: True
    # CHECK: = help: leave it with `break` or `return`
    while True:  # ERROR: X0610 this loop never ends
        pass


def wrong_continue_forever(X: "f32 2", n: "i64"):
    while 1:  # ERROR: X0610 this loop never ends
        if n > 3:
            continue


def wrong_change_in_while(X: "f32 2", n: "i64"):
    acc = xetile.zeros((4, 4), f16)
    while n > 0:
        n = n - 1
        acc = acc + xetile.zeros((4, 4), f32)  # ERROR: X0602 the loop changes `acc` from f16 (4, 4) to f32 (4, 4)


def wrong_change_in_test(X: "f32 2", n: "i64"):
    m = 0
    while (m := n * 0.5) > 3:  # ERROR: X0602 the loop changes `m` from an int to a float
        n = n - 1


def wrong_set_in_while(X: "f32 2", n: "i64"):
    while n > 0:
        n, v = n - 1, n
    # CHECK: only the loop at line 133 sets `v`
    w = v + 1  # ERROR: X0601 `v` may have no usable value here


def wrong_set_before_break(X: "f32 2", n: "i64"):
    for i in range(n):
        if i == 3:
            found = i
            break
    w = found + 1  # ERROR: X0601 `found` may have no usable value here


def wrong_value_of_kernel(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: = help: store results with xetile.store_tile
    return v  # ERROR: X0611 a kernel returns nothing, but this is f32 (4, 4)


def wrong_returns(X: "f32 2", n: "i64"):
    def pick(k):
        if k > 3:
            return xetile.zeros((4, 4), f32)
        # CARET: return xetile.zeros((8, 4), f32)
        return xetile.zeros((8, 4), f32)  # ERROR: X0609 `pick` gives f32 (8, 4) here, but f32 (4, 4) at line 156

    v = pick(n)


def wrong_returns_sometimes(X: "f32 2", n: "i64"):
    def pick(k):
        if k > 3:
            return k + 1  # ERROR: X0609 `pick` gives an int here, but nothing on another path

    v = pick(n)


def wrong_returned_view(X: "f32 3", n: "i64"):
    def pick(k):
        if k > 3:
            return X[k]
        return X[0]  # ERROR: X0609 `return` of an array of f32, rank 2 inside a branch or loop of the run

    v = pick(n)


def wrong_order_on_a_path(X: "f32 2", Y: "f32 2 T", n: "i64"):
    if n > 2:
        t = xetile.init_tile(X, [0, 0], (4, 4))
    else:
        t = xetile.init_tile(Y, [0, 0], (4, 4))
    # CHECK: or a column-major tile of f32 (4, 4)
    v = xetile.load_tile(t)  # ERROR: X0601 `t` may have no usable value here


def wrong_memory_in_a_loop(X: "f32 2", n: "i64"):
    s = xetile.slm((4, 4), f32)
    t = xetile.init_tile(X, [0, 0], (4, 4))
    for i in range(n):
        v = xetile.load_tile(t)
        t = xetile.init_tile(s, [0, 0], (4, 4))  # ERROR: X0602 the loop changes `t` from a tile of f32 (4, 4) to a tile of f32 (4, 4) in shared memory


def wrong_map_in_a_loop(X: "f32 2", n: "i64"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    for i in range(n):
        v = xetile.load_tile(t)
        t = xetile.init_tile(X, [0, 0], (4, 4), wg_map=xetile.wg_map([1, 1], [4, 4]))  # ERROR: X0602 the loop changes `t` from a tile of f32 (4, 4) to a tile of f32 (4, 4) with wg_map([1, 1], [4, 4])


def wrong_break_outside(X: "f32 2"):
    # Python itself refuses `break` outside of loops; in helpers, too.
    for i in range(4):
        def inner(k):
            return missing + k  # ERROR: X0101 `missing` is not defined

        if inner(i) > 2:
            break


def wrong_walrus_in_branch(X: "f32 2", n: "i64"):
    v = (m := n + 1) if n > 3 else 0
    w = m + 1  # ERROR: X0601 `m` may have no usable value here


def wrong_vector_condition_of_while(X: "f32 2"):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (4, 4)))
    # CARET: v > 3
    while v > 3:  # ERROR: X0308 a vector has no truth value
        v = v + 1


def wrong_while_else(X: "f32 2", n: "i64"):
    while n > 3:
        n = n - 1
    else:
        n = 4  # ERROR: X0402 `else` of a loop is not part of the kernel language


def wrong_vectors_and(X: "f32 2", n: "i64"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: combine masks with `&`, `|`, `~`
    w = n > 3 and v > 2  # ERROR: X0308 a vector has no truth value


def wrong_start_with_none(X: "f32 2", n: "i64"):
    acc = None
    for _ in range(n):
        v = xetile.zeros((4, 4), f32)
        # CHECK: = help: start with a value: `acc = xetile.zeros(shape, dtype)`, say
        acc = v if acc is None else acc + v  # ERROR: X0602 the loop changes `acc` from the constant None to f32 (4, 4)


def wrong_list_that_grows(X: "f32 1", n: "i64"):
    found = []
    for i in range(n):
        # CHECK: = help: a list keeps its length in a loop, unless xetile.static_range unrolls it
        found = [*found, X[i]]  # ERROR: X0602 the loop changes `found` from () to (a float)


def wrong_array_that_a_loop_changes(X: "f32 1", Y: "f32 1", n: "i64"):
    Z = X
    for _ in range(n):
        # CHECK: = help: only numbers, vectors and tiles change in a loop, unless xetile.static_range unrolls it
        Z = Y  # ERROR: X0602 the loop changes `Z` from the array `X` to the array `Y`


def wrong_choice_of_a_function(X: "f32 1", n: "i64"):
    # CHECK: = help: the run chooses numbers, vectors and tiles: use each in a branch of an `if`
    f = xetile.exp if n > 2 else xetile.log  # ERROR: X0602 this is the operation `exp` or the operation `log`, as the run decides


def wrong_first_of_a_loop(X: "f32 1", n: "i64"):
    for i in range(n):
        if i == 0:
            first = X[i]
        else:
            # CARET: first
            # CHECK: = help: set `first` before the loop or the `if`
            first = first + X[i]  # ERROR: X0101 `first` is not defined here


def wrong_index_of_a_tuple(X: "f32 1", n: "i64"):
    pair = X[0], X[1]
    for i in range(2):
        # CARET: i
        # CHECK: = help: loop over xetile.static_range, choose with `if`, or pass an array as an argument
        X[i] = pair[i]  # ERROR: X0305 an index of a tuple must be known when compiling


def wrong_constant_of_the_run(X: "f32 1", n: "i64"):
    # CHECK: = help: leave `constexpr` out, or pass it to the kernel as one
    N: xetile.constexpr = n  # ERROR: X0606 this `constexpr` is known at run time only
