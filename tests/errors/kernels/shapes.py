"""Shapes, ranks and extents that do not fit: X02xx."""

from xetl import xetile
from xetl.xetile import bf16, constexpr, f32, i32


def wrong_mma_k(A: "bf16 2", B: "bf16 2"):
    n = xetile.program_id(1) * 128
    a = xetile.init_tile(A, [0, 0], (32, 64))
    b = xetile.init_tile(B, [0, n], (32, 128))
    acc = xetile.zeros((32, 128), f32)
    for k in range(0, A.shape[1], 32):
        # CARET: xetile.load_tile(b)
        # CHECK: ^ bf16 (32, 128), but the left tile has 64 columns
        # CHECK: = note: `b` was made at line 10 by init_tile(B, [0, n], (32, 128))
        # CHECK: = help: K of a (64) and of b (32) must agree
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)  # ERROR: X0201 `tile_mma` cannot multiply (32, 64) by (32, 128)


def wrong_mma_c(A: "bf16 2", B: "bf16 2"):
    a = xetile.zeros((32, 64), bf16)
    b = xetile.zeros((64, 128), bf16)
    # CARET: c
    c = xetile.zeros((32, 64), f32)
    acc = xetile.tile_mma(a, b, c)  # ERROR: X0201 `tile_mma` gives (32, 128), but adds to (32, 64)


def wrong_matmul_k(A: "bf16 2"):
    a = xetile.zeros((32, 64), bf16)
    # CARET: a
    # CHECK: = help: K of a (64) and of a (32) must agree
    acc = a @ a  # ERROR: X0201 `@` cannot multiply (32, 64) by (32, 64)


def wrong_broadcast(X: "f32 2"):
    a = xetile.zeros((32, 64), f32)
    b = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 64)))
    # CARET: b
    # CHECK: f32 (16, 64), but the other side is (32, 64)
    # CHECK: init_tile(X, [0, 0], (16, 64))
    c = a + b  # ERROR: X0202 `+` cannot broadcast (32, 64) with (16, 64)


def wrong_rank_one_broadcast(X: "f32 2"):
    a = xetile.zeros((32, 64), f32)
    c = a * xetile.zeros(32)  # ERROR: X0202 `*` cannot broadcast (32, 64) with (32,)


def wrong_where_shapes(X: "f32 2"):
    a = xetile.zeros((32, 64), f32)
    m = xetile.arange(16) > 3
    c = xetile.where(m, a, 0.0)  # ERROR: X0202 `where` cannot broadcast (32, 64) with (16,)


def wrong_tile_broadcast(X: "f32 2"):
    a = xetile.zeros((32, 2), f32)
    c = xetile.tile_broadcast(a, [1], (32, 64))  # ERROR: X0202 `tile_broadcast` cannot repeat (32, 2) along [1] to (32, 64)


def wrong_runtime_shape(X: "f32 2", n: "i64"):
    # CARET: (n, 4)
    # CHECK: = help: pass it to the kernel as `constexpr`
    a = xetile.zeros((n, 4), f32)  # ERROR: X0203 `shape` of `zeros` must be ints known when compiling


def wrong_runtime_arange(X: "f32 2"):
    a = xetile.arange(X.shape[0])  # ERROR: X0203 `start` of `arange` must be an int known when compiling


def wrong_empty_shape(X: "f32 2"):
    a = xetile.zeros((0, 4), f32)  # ERROR: X0204 `shape` of `zeros` must be one or two positive extents


def wrong_rank_of_shape(X: "f32 2"):
    a = xetile.zeros((2, 2, 4), f32)  # ERROR: X0204 `shape` of `zeros` must be one or two positive extents
    # CHECK: write (4, 4): leading dimensions are more rows


def wrong_axis(X: "f32 2"):
    a = xetile.zeros((2, 4), f32)
    # CARET: 2
    # CHECK: = help: dims run from 0 to 1, or from -2 to -1
    b = a.sum(2)  # ERROR: X0205 dimension 2 does not exist: the operand of `sum` has rank 2


def wrong_grid_axis(X: "f32 2"):
    i = xetile.program_id(3)  # ERROR: X0205 a grid has the axes 0, 1 and 2, not 3


def wrong_dimension_of_array(X: "f32 2"):
    n = X.shape[2]  # ERROR: X0205 `X.shape` has no element 2


def wrong_rank_of_base(X: "f32 3"):
    # CARET: X
    # CHECK: = help: select a matrix first: X[i]
    t = xetile.init_tile(X, [0, 0], (4, 4))  # ERROR: X0206 `X` has rank 3: a tile lies in a matrix


def wrong_number_of_indices(X: "f32 2"):
    t = X[0, 0, 0]  # ERROR: X0206 `X` has rank 2, but 3 indices are given


def wrong_scatter_base(X: "f32 2"):
    i = xetile.arange(4)
    t = xetile.init_tile(X, i)  # ERROR: X0206 `X` has rank 2, but 1 index is given


def wrong_number_of_offsets(X: "f32 2"):
    # CARET: [0]
    t = xetile.init_tile(X, [0], (4, 4))  # ERROR: X0207 `X` needs 2 offsets, not 1


def wrong_number_of_moves(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 4))
    u = xetile.update_tile_offset(t, [0, 4, 0])  # ERROR: X0207 a tile of (4, 4) needs 2 offsets, not 3


def wrong_store_shape(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (4, 8))
    v = xetile.zeros((8, 4), f32)
    # CARET: v
    # CHECK: = note: `t` was made at line 120 by init_tile(X, [0, 0], (4, 8))
    xetile.store_tile(v, t)  # ERROR: X0208 `store_tile` cannot store (8, 4) to a tile of (4, 8)


def wrong_reshape(X: "f32 2"):
    v = xetile.zeros((8, 4), f32)
    w = v.reshape(5, 7)  # ERROR: X0209 (8, 4) cannot be reshaped to (5, 7)


def wrong_mma_rank(X: "f32 2"):
    v = xetile.zeros((8,), f32)
    w = xetile.tile_mma(v, v)  # ERROR: X0210 `tile_mma` multiplies matrices, not (8,)


def wrong_constexpr_missing(X: "f32 2", BM: "i64"):
    t = xetile.init_tile(X, [0, 0], (BM, BM))  # ERROR: X0203 `shape` of `init_tile` must be ints known when compiling


def wrong_shape_left_out(X: "f32 2", BM: constexpr = 4):
    t = xetile.init_tile(X, [0, BM])  # ERROR: X0204 `init_tile` misses its argument `shape`


def wrong_slm(X: "f32 2"):
    a = xetile.slm((256, 512), f32)
    # CARET: (512, 512)
    # CHECK: (512, 512) of f32, 4 bytes each
    b = xetile.slm((512, 512), f32)  # ERROR: X0211 `slm` asks for 1048576 bytes beside 524288 bytes of other arrays, but 1048576 are allowed


def wrong_blocks(X: "f32 2"):
    v = xetile.zeros((16, 16), f32)
    # CARET: [3, 8]
    w = xetile.tile_pack(v, [3, 8])  # ERROR: X0204 blocks of (3, 8) do not divide (16, 16)


def wrong_inner_blocks(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (16, 16), inner_blocks=[8])  # ERROR: X0204 `inner_blocks` of `init_tile` must be two positive extents


def wrong_blocked_operand(X: "f32 2"):
    v = xetile.tile_pack(xetile.zeros((16, 16), f32), [8, 8])
    # CARET: v
    # CHECK: = help: unpack it first: xetile.tile_unpack(v)
    w = v + 1  # ERROR: X0210 `+` does not take a blocked vector


def wrong_blocked_function(X: "f32 2"):
    v = xetile.tile_pack(xetile.zeros((16, 16), f32), [8, 8])
    w = xetile.exp(v)  # ERROR: X0210 `exp` does not take a blocked vector


def wrong_blocked_sum(X: "f32 2"):
    v = xetile.tile_pack(xetile.zeros((16, 16), f32), [8, 8])
    w = v.sum(0)  # ERROR: X0210 `sum` does not take a blocked vector


def wrong_blocked_transpose(X: "f32 2"):
    v = xetile.tile_pack(xetile.zeros((16, 16), f32), [8, 8])
    w = v.T  # ERROR: X0210 `.T` swaps the axes of a matrix, not of (2, 2, 8, 8)


def wrong_unpack(X: "f32 2"):
    v = xetile.tile_unpack(xetile.zeros((16, 16), f32))  # ERROR: X0210 `tile_unpack` takes a blocked vector, not f32 (16, 16)


def wrong_half_packed_mma(X: "f16 2"):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
    w = xetile.tile_mma(xetile.tile_pack(v, [8, 8]), v)  # ERROR: X0210 `tile_mma` cannot multiply a blocked vector by one that is not


def wrong_blocks_of_mma(X: "f16 2"):
    v = xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16)))
    # CHECK: K of a (2 blocks of 8) and of b (4 blocks of 4) must agree
    w = xetile.tile_mma(xetile.tile_pack(v, [8, 8]), xetile.tile_pack(v, [4, 8]))  # ERROR: X0201 `tile_mma` cannot multiply (2, 2, 8, 8) by (4, 2, 4, 8)


def wrong_blocked_accumulator(X: "f16 2"):
    v = xetile.tile_pack(xetile.load_tile(xetile.init_tile(X, [0, 0], (16, 16))), [8, 8])
    # CHECK: xetile.zeros((16, 16), f32), packed alike
    w = xetile.tile_mma(v, v, xetile.zeros((16, 16)))  # ERROR: X0201 `tile_mma` gives (2, 2, 8, 8), but adds to (16, 16)


def wrong_store_of_sums(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (8, 1))
    v = xetile.zeros((8, 4), f32)
    # CARET: v.sum(1)
    # CHECK: = help: add the dimension of 1 by `[:, None]`; sums and other reductions
    xetile.store_tile(v.sum(1), t)  # ERROR: X0208 `store_tile` cannot store (8,) to a tile of (8, 1)


def wrong_store_of_a_row(X: "f32 2"):
    # CHECK: = help: add the dimension of 1 by `[None, :]`
    xetile.store_tile(xetile.zeros((8,)), xetile.init_tile(X, [0, 0], (1, 8)))  # ERROR: X0208 `store_tile` cannot store (8,) to a tile of (1, 8)


def wrong_store_of_blocked(X: "f32 2"):
    t = xetile.init_tile(X, [0, 0], (16, 16), inner_blocks=[8, 8])
    xetile.store_tile(xetile.zeros((16, 16), f32), t)  # ERROR: X0208 `store_tile` cannot store (16, 16) to a tile of (2, 2, 8, 8)


def wrong_gather_axis(X: "f32 2"):
    i = xetile.arange(4)
    xetile.gather(xetile.zeros((4,)), i, 1)  # ERROR: X0607 `gather` of rank 1: axis 1


def wrong_gather_extent(X: "f32 2"):
    i = xetile.zeros((4, 8), i32)
    xetile.gather(xetile.zeros((2, 8)), i, 1)  # ERROR: X0607 `gather` along 1: the other extents of value and index differ


def wrong_cat(X: "f32 2"):
    xetile.cat(xetile.zeros((2, 8)), xetile.zeros((2, 4)), 0)  # ERROR: X0607 `cat` along 0: the other extents differ


def wrong_join(X: "f32 2"):
    xetile.join(xetile.zeros((8,)), xetile.zeros((4,)))  # ERROR: X0607 `join`: the shapes differ


def wrong_topk(X: "f32 2"):
    xetile.topk(xetile.zeros((8,)), 9)  # ERROR: X0607 `topk`: k is 9, not 1 to 8


def wrong_sort_axis(X: "f32 2"):
    xetile.sort(xetile.zeros((8,)), 1)  # ERROR: X0607 a vector of rank 1: axis 1


def wrong_reshape_by_negative_extents(X: "f32 2"):
    v = xetile.zeros((8, 4), f32)
    v.reshape(-4, -8)  # ERROR: X0209 (8, 4) cannot be reshaped to (-4, -8)
    # CHECK: one extent may be -1: what is left


def wrong_reshape_of_what_is_left(X: "f32 2"):
    v = xetile.zeros((8, 4), f32)
    v.reshape(3, -1)  # ERROR: X0209 (8, 4) cannot be reshaped to (3, -1)


def wrong_cat_of_a_tuple(X: "f32 2"):
    v = xetile.zeros((8,))
    # CHECK: = help: pass vectors one by one; xetile.arange makes a vector of numbers
    xetile.cat((v, v), 0)  # ERROR: X0303 `a` of `cat` must be a vector, not a tuple of 2


def wrong_size_of_grid(X: "f32 2"):
    # CHECK: = help: make one size of several, and take it apart with `//` and `%`
    n = xetile.num_programs(3)  # ERROR: X0205 a grid has the axes 0, 1 and 2, not 3
