"""Advice for names of Triton, NumPy and torch that the language does not have.

"Did you mean" looks into these tables before it compares spellings.
"""

from __future__ import annotations

INSTEAD: dict[str, str] = {
    # The same operation under another name.
    **dict.fromkeys(("load", "take"), "load_tile, or `X[i]`, 0 where `i` is outside"),
    **dict.fromkeys(
        ("store", "scatter"), "store_tile, or `X[i] = v`, which stores inside only"
    ),
    **dict.fromkeys(("dot", "matmul", "mm", "bmm", "einsum"), "tile_mma, or `a @ b`"),
    **dict.fromkeys(("trans", "transpose", "permute"), "tile_transpose, or `.T`"),
    **dict.fromkeys(("broadcast_to", "expand"), "tile_broadcast"),
    **dict.fromkeys(("make_block_ptr", "make_tensor_descriptor"), "init_tile"),
    "advance": "update_tile_offset",
    **dict.fromkeys(("amax", "nanmax"), "max"),
    **dict.fromkeys(("amin", "nanmin"), "min"),
    "fmax": "maximum",
    "fmin": "minimum",
    "sqrt_rn": "sqrt",
    **dict.fromkeys(("absolute", "fabs"), "abs"),
    "rint": "round",
    "nansum": "sum",
    "take_along_axis": "gather",
    **dict.fromkeys(("concatenate", "concat", "hstack", "vstack"), "cat"),
    "stack": "join",
    **dict.fromkeys(("arctan", "arctan2"), "atan, or atan2"),
    "arcsin": "asin",
    "arccos": "acos",
    **dict.fromkeys(("popc", "bitwise_count"), "popcount"),
    **dict.fromkeys(("random", "uniform"), "rand"),
    "normal": "randn",
    "bincount": "histogram",
    **dict.fromkeys(("logical_or", "reduce_or"), "any, or `a | b`"),
    **dict.fromkeys(("logical_and", "reduce_and"), "all, or `a & b`"),
    **dict.fromkeys(
        ("view", "bitcast"),
        "Vector: `v.to(dtype, bitcast=True)` for the bits, `v.reshape(shape)`",
    ),
    **dict.fromkeys(("debug_barrier", "syncthreads"), "barrier"),
    "clip": "clamp",
    **dict.fromkeys(("masked_fill", "select"), "where"),
    **dict.fromkeys(("block_id", "blockIdx"), "program_id"),
    "print": "device_print",
    **dict.fromkeys(("compare_exchange", "compare_and_swap"), "atomic_cas"),
}
"""For each name, the operation of the language that does the same."""

MISSING: dict[str, str] = {
    **{
        f"atomic_{kind}": f'write `xetile.atomic_rmw_tile("{kind}", v, tile)`'
        ", `tile` made by xetile.init_tile(X, [i])"
        for kind in ("add", "max", "min", "and", "or", "xor", "xchg")
    },
    "atomic_sub": 'write `xetile.atomic_rmw_tile("add", -v, tile)`',
    "unique": "sort, and compare neighbours",
    **dict.fromkeys(
        ("empty", "empty_like"), "use xetile.zeros, or xetile.slm for shared memory"
    ),
    **dict.fromkeys(("pow", "power", "square"), "write `x ** y`"),
    **dict.fromkeys(
        ("add", "subtract", "multiply", "divide", "negative", "mod", "remainder"),
        "write an operator: `x * y`, say",
    ),
    **dict.fromkeys(
        ("astype", "type", "cast", "float", "half", "double", "int", "long", "bool"),
        "convert with `.to(dtype)`",
    ),
    **dict.fromkeys(("copy", "clone"), "leave it out: a vector never changes"),
    **dict.fromkeys(("ones", "ones_like"), "write `xetile.full(shape, 1.0, dtype)`"),
    **dict.fromkeys(
        ("eye", "tril", "triu"),
        "write `xetile.where(i[:, None] >= i[None, :], v, 0)`, `i` of xetile.arange",
    ),
    "relu": "write `xetile.maximum(v, 0)`",
    "silu": "write `v * xetile.sigmoid(v)`",
    "gelu": "write `0.5 * v * (1 + xetile.erf(v / 2**0.5))`",
    "sign": "write `(v > 0).to(xetile.i32) - (v < 0).to(xetile.i32)`",
    "isfinite": "write `abs(v) < xetile.inf`",
    "logical_not": "write `~mask`",
    **dict.fromkeys(("std", "var"), "sum the squares of `v - mean`"),
    "zeros_like": "write `xetile.zeros(v.shape, v.dtype)`",
    "full_like": "write `xetile.full(v.shape, value, v.dtype)`",
    **dict.fromkeys(("fdiv", "div_rn"), "write `x / y`"),
    "softmax": "write `e / e.sum(1, keepdims=True)`, where `e` is "
    "`xetile.exp(v - v.max(1, keepdims=True))`",
    "xor_sum": 'use xetile.tile_reduce("xor", v, axis)',
    "linspace": "multiply xetile.arange",
    "mean": "write `v.sum(axis) / n`, n the number of elements that count",
    **dict.fromkeys(
        ("ravel", "flatten"),
        "write `xetile.reshape(v, (n,))`, n the number of elements",
    ),
    **dict.fromkeys(("expand_dims", "unsqueeze"), "write `v[:, None]` or `v[None, :]`"),
    "squeeze": "write `xetile.reshape(v, (n,))`, or reduce with keepdims=False",
    **dict.fromkeys(
        ("prange", "grid", "get_global_id"),
        "the programs of a grid run at once: xetile.program_id(0) is the number of one",
    ),
    "range": "write `range(...)`, or xetile.static_range(...) to unroll",
    **dict.fromkeys(
        ("math", "libdevice", "extra"), "xetile has the functions: xetile.exp, say"
    ),
    "swizzle2d": "compute with xetile.program_id",
    **dict.fromkeys(
        ("max_contiguous", "max_constancy"), "leave it out: a tile is contiguous"
    ),
}
"""For each operation that the language does not have, what to write instead."""

OF_ARRAYS: dict[str, str] = {
    **dict.fromkeys(("size", "numel"), "multiply the sizes: `X.shape[0]`, ..."),
    **dict.fromkeys(("itemsize", "element_size"), "write `X.dtype.itemsize`"),
    **dict.fromkeys(("view", "flatten", "ravel"), "write `X.reshape(...)`"),
    **dict.fromkeys(("fill", "fill_"), "write `xetile.store_tile(0, tile)`"),
    **dict.fromkeys(("copy", "clone", "copy_"), "load a tile, and store it"),
    "strides": "write `X.stride(dim)`",
    "data_ptr": "tiles reach memory: xetile.init_tile(X, offsets, shape)",
}
"""For each attribute that arrays have elsewhere, what to write instead."""

PARAMETERS: dict[str, str] = {
    "other": "padding",
    "mask": "leave it out at the edges of an array, where a tile loads `padding` and "
    "stores nothing; elsewhere take load_gather or store_scatter",
    "boundary_check": "leave it out: what is outside of the array is never touched",
    "padding_option": "padding",
    **dict.fromkeys(("dim", "dims"), "axis"),
    "combine_fn": "combine",
    "input": "v",
    "dtype": "leave it out, and convert with `.to(dtype)`",
    "step": "write `start + step * xetile.arange(n)`",
    "input_precision": "precision",
    "allow_tf32": 'write `precision="tf32"`; without it, f32 is IEEE',
    "out_dtype": "leave it out, and convert the result with `.to(dtype)`",
}
"""For each name of a parameter in other languages, our parameter or what to do."""

MODULES: dict[str, str] = {
    **dict.fromkeys(("tl", "triton"), "the language is `from xetl import xetile`"),
    **dict.fromkeys(("np", "numpy"), "`import numpy` at the top of the module"),
    "cuda": "the language is `from xetl import xetile`; a program of the grid has the "
    "number xetile.program_id(0), and computes a vector, not one element",
    "xt": "the language is `from xetl import xetile`",
}
"""For each name of a module that was not imported, what to import."""


def advice_on_parameter(name: str, known: list[str]) -> str | None:
    """Return what to write for a parameter that other languages call ``name``.

    Return None if the name is unknown. ``known`` are the parameters of the operation.

    Return None if the name is unknown.
    """
    instead = PARAMETERS.get(name)
    if instead in known:
        return f"use `{instead}`"
    return instead if instead and " " in instead else None


def advice_on(name: str, known: list[str]) -> str | None:
    """Return what to write for an operation that other languages call ``name``.

    Return None if the name is unknown. ``known`` are the names of the language.

    Return None if the name is unknown.
    """
    if name in known:
        return f"use xetile.{name}"
    instead = INSTEAD.get(name)
    if instead is None:
        return MISSING.get(name)
    return f"use xetile.{instead}" if instead.split(",")[0] in known else instead
