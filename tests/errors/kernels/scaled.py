"""Wrong calls of `dot_scaled`, and floats of eight bits where they do not fit."""

from xetl import xetile
from xetl.xetile import bf16, dot_scaled, f8e4m3, f8e5m2, f32, u8, zeros


def wrong_format_name(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    # CARET: "e4m4"
    # CHECK: = help: did you mean `e4m3`?
    c = dot_scaled(a, None, "e4m4", b, None, "e4m3")  # ERROR: X0107 the constant 'e4m4' is not a format of `dot_scaled`


def wrong_format_kind(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    # CHECK: = help: formats are 'e4m3', 'e5m2', 'e2m1', 'bf16', 'f16'
    c = dot_scaled(a, None, 8, b, None, "e4m3")  # ERROR: X0107 the constant 8 is not a format of `dot_scaled`


def wrong_dtype_of_format(X: "f32 2"):
    a, b = zeros((8, 32), bf16), zeros((32, 16), f8e4m3)
    # CARET: a
    # CHECK: = help: convert it with `.to(...)`, or say another `a_format`
    c = dot_scaled(a, None, "e4m3", b, None, "e4m3")  # ERROR: X0314 `dot_scaled` takes e4m3 as f8e4m3 or u8 or i8, not as bf16


def wrong_rank_of_operand(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32,), f8e4m3)
    # CARET: b
    # CHECK: = help: make it a matrix with `v[None, :]` or `v[:, None]`
    c = dot_scaled(a, None, "e4m3", b, None, "e4m3")  # ERROR: X0210 `dot_scaled` multiplies matrices, not (32,)


def wrong_depth_of_packed(X: "f32 2"):
    a, b = zeros((8, 32), u8), zeros((32, 16), f8e4m3)
    # CARET: b
    # CHECK: = help: K of a (64) and of b (32) must agree; e2m1 has two numbers in a byte
    c = dot_scaled(a, None, "e2m1", b, None, "e4m3")  # ERROR: X0201 `dot_scaled` cannot multiply 64 numbers along K by 32


def wrong_dtype_of_scale(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    s = zeros((8, 1), f32)
    # CARET: s
    # CHECK: = help: a scale is the exponent of a power of two, and 127: 127 is 1.0
    c = dot_scaled(a, s, "e4m3", b, None, "e4m3")  # ERROR: X0314 `a_scale` of `dot_scaled` must be u8, not f32


def wrong_shape_of_scale(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    s = zeros((1, 16), u8)
    # CARET: s
    # CHECK: = help: it has a row for each column of b, and a column for each 32 numbers along K
    c = dot_scaled(a, None, "e4m3", b, s, "e4m3")  # ERROR: X0201 `b_scale` of `dot_scaled` must be (16, 1), not (1, 16)


def wrong_depth_of_scaled(X: "f32 2"):
    a, b = zeros((8, 48), f8e4m3), zeros((48, 16), f8e4m3)
    s = zeros((8, 1), u8)
    # CHECK: = help: take tiles of a multiple of 32 along K, or no scale
    c = dot_scaled(a, s, "e4m3", b, None, "e4m3")  # ERROR: X0201 `dot_scaled` scales blocks of 32 along K, and K is 48


def wrong_scale_kind(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    c = dot_scaled(a, 1, "e4m3", b, None, "e4m3")  # ERROR: X0303 `a_scale` of `dot_scaled` must be a vector, not the constant 1


def wrong_scaled_addend(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    c = zeros((16, 8), f32)
    # CARET: c
    d = dot_scaled(a, None, "e4m3", b, None, "e4m3", c)  # ERROR: X0201 `dot_scaled` gives (8, 16), but adds to (16, 8)


def wrong_scaled_addend_dtype(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    c = zeros((8, 16), bf16)
    d = dot_scaled(a, None, "e4m3", b, None, "e4m3", c)  # ERROR: X0314 `dot_scaled` accumulates in f32, but adds to bf16


def wrong_formats_together(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((8, 32), f8e5m2)
    # CARET: b
    # CHECK: = help: convert one of them with `.to(...)`
    c = a + b  # ERROR: X0302 f8e4m3 and f8e5m2 have no common dtype


def wrong_small_product(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f32)
    # CARET: b
    c = xetile.tile_mma(a, b)  # ERROR: X0314 `tile_mma` cannot multiply f8e4m3 by f32


def wrong_small_precision(X: "f32 2"):
    a, b = zeros((8, 32), f8e4m3), zeros((32, 16), f8e4m3)
    c = xetile.tile_mma(a, b, precision="tf32")  # ERROR: X0314 `precision="tf32"` is for f32 operands, not f8e4m3


def wrong_small_atomic(X: "f8e4m3 2"):
    t = xetile.init_tile(X, [0, 0], (8, 32))
    # CHECK: = help: atomics exist for
    c = xetile.atomic_rmw_tile("add", zeros((8, 32), f8e4m3), t)  # ERROR: X0312 there is no atomic `add` of f8e4m3


def wrong_small_bitcast(X: "f32 2"):
    a = zeros((8, 32), f8e4m3)
    c = a.to(xetile.i16, bitcast=True)  # ERROR: X0304 the bits of f8e4m3 are not those of i16
