"""Dtypes and kinds of values that do not fit: X03xx."""

from xetl import xetile
from xetl.xetile import bf16, f16, f32, i32, i64, u64


def wrong_dtype(X: "f32 2"):
    v = xetile.zeros((4, 4), 32)  # ERROR: X0301 `dtype` of `zeros` must be a dtype


def wrong_halves(X: "f32 2"):
    a, b = xetile.zeros((4, 4), f16), xetile.zeros((4, 4), bf16)
    # CARET: b
    # CHECK: = help: convert one of them with `.to(...)`
    c = a + b  # ERROR: X0302 f16 and bf16 have no common dtype


def wrong_u64(X: "f32 2"):
    a, b = xetile.zeros((4, 4), u64), xetile.zeros((4, 4), i64)
    c = a * b  # ERROR: X0302 u64 and i64 have no common dtype


def wrong_mask_with_number(X: "f32 2"):
    m = xetile.arange(4) > 2
    c = m + xetile.arange(4)  # ERROR: X0302 i1 and i32 have no common dtype


def wrong_mask_with_scalar(X: "f32 2"):
    m = xetile.arange(4) > 2
    c = m * 2  # ERROR: X0302 `*` cannot join i1 and the constant 2


def wrong_tile_as_vector(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    # CARET: t
    # CHECK: = note: `t` was made at line 34 by init_tile(X, [0, 0], (4, 4))
    # CHECK: = help: load it first: xetile.load_tile(...)
    v = t + 1  # ERROR: X0303 an operand of `+` must be a vector or a number, not a tile of f32 (4, 4)


def wrong_tile_in_math(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    v = xetile.exp(t)  # ERROR: X0303 an operand of `exp` must be a vector or a number, not a tile of f32 (4, 4)


def wrong_vector_as_tile(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CHECK: = help: it was loaded already: pass the tile made by xetile.init_tile
    w = xetile.load_tile(v)  # ERROR: X0303 `tile` of `load_tile` must be a tile, not f32 (4, 4)


def wrong_array_as_tile(X: "f32 2"):
    # CHECK: = help: make a tile of it: xetile.init_tile(array, offsets, shape)
    w = xetile.load_tile(X)  # ERROR: X0303 `tile` of `load_tile` must be a tile, not an array of f32, rank 2


def wrong_store_to_array(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    xetile.store_tile(v, X)  # ERROR: X0303 `tile` of `store_tile` must be a tile, not an array of f32, rank 2


def wrong_operator_on_floats(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    w = v & v  # ERROR: X0304 `&` is not defined on f32


def wrong_shift(X: "f32 2"):
    v = xetile.arange(4)
    w = v << 32  # ERROR: X0304 `<<` by 32 is not defined on i32


def wrong_shift_of_a_number(X: "f32 2"):
    n = xetile.program_id(0) >> -1  # ERROR: X0304 `>>` by -1 is not defined on i64


def wrong_product_of_mask(X: "f32 2"):
    m = xetile.arange(4) > 2
    w = m.prod()  # ERROR: X0304 `mul` of i1 has no meaning


def wrong_offset_type(X: "f32 2"):
    t = xetile.init_tile(X, [0, 1.5], (4, 4))  # ERROR: X0305 `offsets` of `init_tile` must hold ints


def wrong_range_bound(X: "f32 2"):
    # CARET: 2.5
    for i in range(2.5):  # ERROR: X0305 bounds of `range` must be ints
        pass


def wrong_sort_of_tile(X: "f32 1"):
    t = xetile.init_tile(X, xetile.arange(4))
    v = xetile.load_tile(t)  # ERROR: X0306 `tile` of `load_tile` must be a plain tile


def wrong_constant_division(X: "f32 1"):
    v = 1 // 0  # ERROR: X0307 `//` of constants failed


def wrong_truth_of_vector(X: "f32 1"):
    v = xetile.zeros((4, 4), f32)
    # CARET: v > 0
    if v > 0:  # ERROR: X0308 a vector has no truth value: i1 (4, 4)
        v = -v


def wrong_unpacking(X: "f32 2"):
    a, b, c = X.shape  # ERROR: X0309 a tuple of 2 cannot be unpacked into 3 names


def wrong_call_of_dtype(X: "f32 2"):
    # CHECK: = help: load it first: xetile.load_tile(...)
    a = i32(xetile.init_tile(X, [0, 0], (4, 4)))  # ERROR: X0303 the argument of `i32` must be a number, not a tile of f32 (4, 4)


def wrong_bitcast(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CARET: xetile.i64
    # CHECK: = help: bitcast needs dtypes of one width; without it `.to` converts
    v.to(xetile.i64, bitcast=True)  # ERROR: X0304 the bits of f32 are not those of i64


def wrong_bits_of_floats(X: "f32 2"):
    # CHECK: convert first: `.to(xetile.i32)`
    xetile.popcount(xetile.zeros((4,)))  # ERROR: X0304 `popcount` is defined on integers, not on f32


def wrong_float_in_int_tile(X: "i32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    xetile.store_tile(0.5, t)  # ERROR: X0311 a float does not fit into an element of i32


def wrong_combine(X: "f32 1"):
    xetile.reduce(xetile.zeros((8,)), 0, lambda a, b: a > b)  # ERROR: X0607 `combine` makes i1 of f32: convert its result


def wrong_store_dtype(X: "bf16 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    v = xetile.zeros((4, 4), f32)
    # CARET: v
    # CHECK: = help: convert the value: `.to(xetile.bf16)`
    xetile.store_tile(v, t)  # ERROR: X0311 `store_tile` cannot store f32 to a tile of bf16


def wrong_atomic_dtype(X: "f16 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    v = xetile.zeros((4, 4), f16)
    xetile.atomic_rmw_tile("max", v, t)  # ERROR: X0312 there is no atomic `max` of f16


def wrong_mma_dtypes(X: "f16 2"):
    a, b = xetile.zeros((4, 4), f16), xetile.zeros((4, 4), f32)
    # CARET: b
    c = xetile.tile_mma(a, b)  # ERROR: X0314 `tile_mma` cannot multiply f16 by f32


def wrong_mma_accumulator(X: "f16 2"):
    a, c = xetile.zeros((4, 4), f16), xetile.zeros((4, 4), f16)
    c = xetile.tile_mma(a, a, c)  # ERROR: X0314 `tile_mma` accumulates in f32, but adds to f16


def wrong_number_as_vector(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    # CHECK: = help: xetile.full(shape, value, dtype) makes a vector of a number
    xetile.tile_mma(0.0, xetile.load_tile(t))  # ERROR: X0303 `a` of `tile_mma` must be a vector, not the constant 0.0


def wrong_print_count(X: "f32 2", n: "i64"):
    # CARET: "n = {}, m = {}"
    xetile.device_print("n = {}, m = {}", n)  # ERROR: X0315 the text has 2 fields `{}`, but 1 value is given


def wrong_print_field(X: "f32 2", n: "i64"):
    xetile.device_print("n = {n}", n)  # ERROR: X0315 this text has a field that is not `{}`


def wrong_print_value(X: "f32 2"):
    # CARET: X
    xetile.device_print("X = {}", X)  # ERROR: X0303 a value of `device_print` must be a vector or a number, not an array of f32, rank 2


def wrong_print_text(X: "f32 2", n: "i64"):
    xetile.device_print(n)  # ERROR: X0303 `fmt` of `device_print` must be a text, not an int


def wrong_print_format(X: "f32 2"):
    v = xetile.zeros((4, 4))
    xetile.device_print(f"v = {v:.3f}")  # ERROR: X0315 f32 (4, 4) is printed as it is: only numbers take a format


def wrong_print_format_of_a_tuple(X: "f32 2"):
    print(f"{X.shape:>9}")  # ERROR: X0315 a tuple of 2 is printed as it is: only numbers take a format


def wrong_print_format_in_a_text(X: "f32 2"):
    v = xetile.zeros((4, 4))
    # CARET: v
    xetile.device_print("v = {:.3f}", v)  # ERROR: X0315 f32 (4, 4) cannot be printed so: only numbers take a format


def wrong_format_of_a_kind(X: "f32 2", n: "i64"):
    # CARET: X[0, 0]
    xetile.device_print("x = {:d}", X[0, 0])  # ERROR: X0315 a float cannot be printed so: Unknown format code 'd'


def wrong_format_in_print(X: "f32 2", n: "i64"):
    print(f"n = {n:q}")  # ERROR: X0315 an int cannot be printed so: Unknown format code 'q'


def wrong_format_of_the_run(X: "f32 2", n: "i64"):
    print(f"x = {X[0, 0]:{n}}")  # ERROR: X0315 this format is known at run time only


def wrong_assert_of_vector(X: "f32 2"):
    v = xetile.zeros((4, 4))
    assert v + 1, "v"  # ERROR: X0308 a vector has no truth value


def wrong_assert_always(X: "f32 2", n: "i64"):
    assert X.ndim == 3, f"rank {X.ndim} of {n}"  # ERROR: X0607 assertion failed: rank 2 of an int


def wrong_choice_of_arrays(X: "f32 2", Y: "f32 2", n: "i64"):
    # CHECK: = help: choose the tiles, or what is loaded from them
    Z = X if n > 3 else Y  # ERROR: X0602 the run cannot choose between the arrays `X` and `Y`


def wrong_sum_of_vector(X: "f32 2"):
    # CHECK: = help: use xetile.sum(v, axis)
    s = sum(xetile.zeros((4, 4)))  # ERROR: X0303 `sum` of Python takes a tuple, not f32 (4, 4)


def wrong_round_of_vector(X: "f32 2"):
    s = round(xetile.zeros((4, 4)))  # ERROR: X0303 `round` of Python takes numbers, not f32 (4, 4)


def wrong_zip(X: "f32 2", n: "i64"):
    for a, b in zip((1, 2), n):  # ERROR: X0303 an argument of `zip` must be a tuple, not an int
        pass


def wrong_star(X: "f32 2"):
    a, b, *c, d = X.shape  # ERROR: X0309 a tuple of 2 cannot be unpacked into 4 names


def wrong_tf32_vector(X: "f32 2"):
    # CHECK: = help: say `precision="tf32"` at tile_mma
    v = xetile.zeros((4, 4), xetile.tf32)  # ERROR: X0313 tf32 is not a dtype of vectors


def wrong_bound_of_a_slice(X: "f32 2"):
    v = X[0:1.5]  # ERROR: X0305 a bound of a slice must be an int


def wrong_step_of_a_slice(X: "f32 2", n: "i64"):
    v = X[::n]  # ERROR: X0305 the step of a slice is a number known when compiling


def wrong_step_along_the_contiguous_dim(X: "f32 2"):
    v = X[:, ::2]  # ERROR: X0305 `X` is contiguous along this dim: it takes no step


def wrong_count_of_slices(X: "f32 2"):
    v = X[1:, 2:, 3:]  # ERROR: X0206 `X` has rank 2, but 3 indices are given


def wrong_number_of_bins(X: "i32 1", n: "i64"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    # CARET: 2.5
    h = xetile.histogram(v, 2.5)  # ERROR: X0305 `bins` of `histogram` must be an int


def wrong_seed(X: "i32 1"):
    # CARET: 0.5
    # CHECK: is the constant 0.5
    v = xetile.rand(0.5, xetile.arange(8))  # ERROR: X0305 `seed` of `rand` must be an int


def wrong_count_of_the_run(X: "f32 1", n: "i64"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    # CARET: xetile.topk(v, n)
    # CHECK: = help: pass them to the kernel as `constexpr`
    best, at = xetile.topk(v, n)  # ERROR: X0606 `topk` takes numbers known when compiling


def wrong_axis_of_the_run(X: "f32 1", n: "i64"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    # CARET: xetile.sort(v, n)
    w = xetile.sort(v, n)  # ERROR: X0606 `sort` takes numbers known when compiling


def wrong_function_of_a_scan(X: "f32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    # CARET: xetile.associative_scan(v, 0, lambda a: a)
    w = xetile.associative_scan(v, 0, lambda a: a)  # ERROR: X0105 `lambda` takes 1 positional argument, but 2 are given


def wrong_text_for_a_function(X: "f32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    # CHECK: = help: give a function: `lambda a, b: a + b`, say
    w = xetile.reduce(v, 0, "add")  # ERROR: X0310 the constant 'add' cannot be called


def wrong_offsets_of_a_vector(X: "f32 1"):
    # CARET: xetile.arange(4)
    # CHECK: = help: without a shape, init_tile(X, indices) has an element for each
    t = xetile.init_tile(X, [xetile.arange(4)], (4,))  # ERROR: X0305 `offsets` of `init_tile` must hold ints


def wrong_array_to_sort(X: "f32 1"):
    # CARET: X
    # CHECK: = help: load its elements: `X[i]`
    v = xetile.sort(X)  # ERROR: X0303 `v` of `sort` must be a vector, not an array of f32, rank 1


def wrong_floats_to_count(X: "f32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    h = xetile.histogram(v, 4)  # ERROR: X0607 `histogram` counts integers, not f32


def wrong_bins(X: "i32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    h = xetile.histogram(v, 0)  # ERROR: X0607 `histogram` of 0 bins


def wrong_indices_of_gather(X: "f32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    w = xetile.gather(v, v, 0)  # ERROR: X0607 `gather`: indices are integers, not f32


def wrong_dtype_of_rand(X: "f32 1"):
    v = xetile.rand(7, xetile.arange(8), dtype=xetile.i32)  # ERROR: X0607 random numbers of a float dtype, not i32


def wrong_axis_of_argmax(X: "f32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    # CARET: 1
    # CHECK: = help: dims run from 0 to 0, or from -1 to -1
    at = v.argmax(1)  # ERROR: X0205 dimension 1 does not exist: the operand of `argmax` has rank 1


def wrong_axis_of_cumsum(X: "f32 1"):
    v = xetile.load_tile(xetile.init_tile(X, [0], (8,)))
    s = xetile.cumsum(v, 1)  # ERROR: X0205 dimension 1 does not exist: the operand of `cumsum` has rank 1


def wrong_flag_of_the_run(X: "f32 2", n: "i64"):
    v = xetile.zeros((4, 4), f32)
    # CARET: keepdims=n > 3
    w = v.sum(0, keepdims=n > 3)  # ERROR: X0203 `keepdims` of `sum` must be a bool known when compiling


def wrong_flag_that_is_a_text(X: "f32 2"):
    v = xetile.zeros((4, 4), f32)
    # CARET: approximate="yes"
    w = xetile.exp2(v, approximate="yes")  # ERROR: X0305 `approximate` of `exp2` must be True or False


def wrong_division_by_nothing(X: "f32 2"):
    n = xetile.cdiv(3, 0)  # ERROR: X0307 `//` of constants failed
