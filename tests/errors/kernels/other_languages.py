"""What those write who come from Triton or NumPy."""

import numpy as np

from xetl import xetile

TABLE = np.arange(4)
NOTHING = None


@xetile.kernel
def launched(X):
    pass


def wrong_kernel_call(X: "f32 2"):
    launched(X)  # ERROR: X0103 `launched` is a kernel: only the host launches it
    # CARET: launched
    # CHECK: @xetile.function


def wrong_unique(X: "f32 2"):
    xetile.unique(X)  # ERROR: X0102 `xetile` has no attribute `unique`
    # CHECK: sort, and compare neighbours


def wrong_take_along_axis(X: "f32 2"):
    xetile.take_along_axis(X)  # ERROR: X0102 `xetile` has no attribute `take_along_axis`
    # CHECK: use xetile.gather


def wrong_compare_and_swap(X: "f32 2"):
    xetile.compare_exchange(X)  # ERROR: X0102 `xetile` has no attribute `compare_exchange`
    # CHECK: use xetile.atomic_cas


def wrong_dot(X: "f32 2"):
    xetile.dot(X, X)  # ERROR: X0102 `xetile` has no attribute `dot`
    # CHECK: use xetile.tile_mma, or `a @ b`


def wrong_load(X: "f32 2"):
    xetile.load(X)  # ERROR: X0102 `xetile` has no attribute `load`
    # CHECK: use xetile.load_tile


def wrong_module(X: "f32 2"):
    tl.load(X)  # ERROR: X0101 `tl` is not defined
    # CHECK: from xetl import xetile


def wrong_function_of_numpy(X: "f32 2"):
    np.concatenate(X)  # ERROR: X0106 `np.concatenate` is a function of the host
    # CHECK: use xetile.cat


def wrong_array_outside(X: "f32 2"):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 8)))
    v + TABLE  # ERROR: X0303 an operand of `+` must be a vector or a number, not a Python object of type ndarray
    # CARET: TABLE
    # CHECK: pass it to the kernel as an argument


def wrong_none(X: "f32 2"):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 8)))
    v + NOTHING  # ERROR: X0303 an operand of `+` must be a vector or a number, not the constant None
    # CARET: NOTHING
    # CHECK: test `is None` first


def wrong_float_offset(X: "f32 2"):
    xetile.init_tile(X, [0, 1.5], (8, 8))  # ERROR: X0305 `offsets` of `init_tile` must hold ints
    # CARET: 1.5
    # CHECK: `//` divides to an int


def wrong_mask_shape(X: "f32 1"):
    tile = xetile.init_tile(X, xetile.arange(16))
    xetile.load_gather(tile, xetile.arange(8) > 3)  # ERROR: X0208 the mask has shape (8,), the tile (16,)
    # CARET: xetile.arange(8) > 3
    # CHECK: compare the indices


def wrong_number_for_an_array(X: "f32 2", dst: "i64"):
    xetile.zeros((8, 8), dst.dtype)  # ERROR: X0102 `dst` has no attribute `dtype`
    # CHECK: pass an array


def wrong_range_of_triton(X: "f32 2"):
    for i in xetile.range(0, 4, num_stages=2):  # ERROR: X0102 `xetile` has no attribute `range`
        X[i, 0] = 1.0
    # CHECK: write `range(...)`, or xetile.static_range(...) to unroll


def wrong_module_of_functions(X: "f32 2"):
    xetile.math.exp(X[0, 0])  # ERROR: X0102 `xetile` has no attribute `math`
    # CHECK: xetile has the functions: xetile.exp, say


def wrong_format_of_old(X: "f32 1", n: "i64"):
    print("%d" % n)  # ERROR: X0303 an operand of `%` must be a vector or a number, not the constant '%d'
    # CHECK: = help: texts are f-strings: f'{n:d}'


def wrong_format_method(X: "f32 1", n: "i64"):
    print("{:d}".format(n))  # ERROR: X0106 `"{:d}".format` is a function of the host
    # CHECK: = help: texts are f-strings: f'{n:d}'


def wrong_ones(X: "f32 2"):
    v = xetile.ones((8, 8))  # ERROR: X0102 `xetile` has no attribute `ones`
    # CHECK: write `xetile.full(shape, 1.0, dtype)`


def wrong_relu(X: "f32 2"):
    v = xetile.relu(X)  # ERROR: X0102 `xetile` has no attribute `relu`
    # CHECK: write `xetile.maximum(v, 0)`


def wrong_function_for_an_operator(X: "f32 2"):
    v = xetile.multiply(X[0, 0], 2)  # ERROR: X0102 `xetile` has no attribute `multiply`
    # CHECK: write an operator: `x * y`, say


def wrong_cast(X: "f32 2"):
    v = xetile.cast(X[0, 0], xetile.i32)  # ERROR: X0102 `xetile` has no attribute `cast`
    # CHECK: convert with `.to(dtype)`


def wrong_bounds_of_range(X: "f32 2"):
    for i in range(X[0, 0]):  # ERROR: X0305 bounds of `range` must be ints
        X[i, 0] = 1.0
    # CARET: X[0, 0]
    # CHECK: convert with `int(...)`


def wrong_method(X: "f32 2"):
    xetile.zeros((8, 8)).exp()  # ERROR: X0102 `xetile.zeros((8, 8))`, f32 (8, 8), has no attribute `exp`
    # CHECK: use xetile.exp


def wrong_method_of_numpy(X: "f32 2"):
    xetile.zeros((8, 8)).mean(0)  # ERROR: X0102 `xetile.zeros((8, 8))`, f32 (8, 8), has no attribute `mean`
    # CHECK: write `v.sum(axis) / n`


def wrong_other(X: "f32 2"):
    xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 8)), other=1.0)  # ERROR: X0104 `load_tile` has no parameter `other`
    # CHECK: use `padding`


def wrong_mask_of_a_tile(X: "f32 2"):
    m = xetile.arange(8) < 3
    xetile.load_tile(xetile.init_tile(X, [0, 0], (8, 8)), mask=m)  # ERROR: X0104 `load_tile` has no parameter `mask`
    # CHECK: leave it out at the edges of an array


def wrong_dim(X: "f32 2"):
    xetile.sum(xetile.zeros((8, 8)), dim=0)  # ERROR: X0104 `sum` has no parameter `dim`
    # CHECK: use `axis`


def wrong_element_of_a_vector(X: "f32 2"):
    v = xetile.zeros((8,))
    v[0] = 1.0  # ERROR: X0404 only names and elements of arrays can be assigned to in a kernel
    # CHECK: of a vector make a new one: xetile.where(mask, new, v)


def wrong_offset_of_rand(X: "f32 2"):
    xetile.rand(7, 3)  # ERROR: X0303 `offsets` of `rand` must be a vector, not the constant 3
    # CHECK: xetile.full(shape, value, dtype) makes a vector of a number


def wrong_slice_for_a_vector(X: "f32 2"):
    X[0, 0:8] * 2  # ERROR: X0303 an operand of `*` must be a vector or a number, not an array of f32, rank 1
    # CARET: X[0, 0:8]
    # CHECK: load its elements: `X[i]`, `i` a vector such as xetile.arange(n), or


def wrong_slice_beside_a_vector(X: "f32 3"):
    X[0, :, xetile.arange(8)]  # ERROR: X0305 an index of `X[...]` must be an int
    # CARET: xetile.arange(8)
    # CHECK: give a vector or a number for each dim, `X[i[:, None], j[None, :]]`


def wrong_dots(X: "f32 3"):
    X[..., xetile.arange(8)]  # ERROR: X0305 indices must be integers, not a Python object of type ellipsis
    # CHECK: write an index for each dim: a number or a vector


def wrong_third_dim(X: "f32 2"):
    xetile.arange(8)[:, None, None]  # ERROR: X0407 `[:, None, None]` makes a vector of rank 3
    # CHECK: a vector has rank 1 or 2: write a loop over the third dim


def wrong_number_that_becomes_a_vector(X: "f32 1", n: "i64"):
    acc = 0
    for k in range(n):
        acc += X[k + xetile.arange(8)]  # ERROR: X0602 the loop changes `acc` from an int to f32 (8,)
    # CHECK: start with a vector: `acc = xetile.full((8,), 0, xetile.f32)`


def wrong_sum_of_a_wider_dtype(X: "f16 1", n: "i64"):
    acc = xetile.zeros((8,), X.dtype)
    for k in range(n):
        acc += X[k + xetile.arange(8)].to(xetile.f32)  # ERROR: X0602 the loop changes `acc` from f16 (8,) to f32 (8,)
    # CHECK: start with f32, or convert what is added with `.to(xetile.f16)`


def wrong_loop_of_numba(X: "f32 1"):
    for i in xetile.prange(8):  # ERROR: X0102 `xetile` has no attribute `prange`
        X[i] = 1.0
    # CHECK: xetile.program_id(0) is the number of one


def wrong_thread_of_numba(X: "f32 1"):
    X[cuda.grid(1)] = 1.0  # ERROR: X0101 `cuda` is not defined
    # CHECK: xetile.program_id(0), and computes a vector, not one element


def wrong_option_of_dot(X: "f32 2"):
    v = xetile.zeros((8, 8))
    xetile.tile_mma(v, v, allow_tf32=False)  # ERROR: X0104 `tile_mma` has no parameter `allow_tf32`
    # CHECK: write `precision="tf32"`


def wrong_atomic(X: "f32 1"):
    xetile.atomic_xor(X[0], 1)  # ERROR: X0102 `xetile` has no attribute `atomic_xor`
    # CHECK: write `xetile.atomic_rmw_tile("xor", v, tile)`


def wrong_tile_of_one_element(X: "f32 1"):
    xetile.init_tile(X, [0])  # ERROR: X0204 `init_tile` misses its argument `shape`
    # CHECK: the shape of one element is `(1,)`


def wrong_index_of_a_table(X: "f32 1"):
    X[0] = TABLE[xetile.arange(4)]  # ERROR: X0305 an index of `TABLE` must be known when compiling
    # CHECK: pass an array as an argument


def wrong_step_of_arange(X: "f32 1"):
    xetile.arange(0, 8, step=2)  # ERROR: X0104 `arange` has no parameter `step`
    # CHECK: write `start + step * xetile.arange(n)`


def wrong_dtype_of_sum(X: "f32 1"):
    xetile.sum(X[xetile.arange(8)], dtype=xetile.f64)  # ERROR: X0104 `sum` has no parameter `dtype`
    # CHECK: convert with `.to(dtype)`
