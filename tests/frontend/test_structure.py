"""The IR of the two kernels every user writes first: structure, attributes, places."""

import pytest
from building import build, names, ops, signature
from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc

from xetl import xetile
from xetl.frontend import build_module
from xetl.language.signature import ArrayParam, ConstParam, Signature
from xetl.xetile import bf16, cdiv, constexpr, f32

WG_C = xetile.wg_map(sg_layout=[8, 4], sg_data=[32, 64])


def vector_add(X, Y, Z, BLOCK: constexpr = 1024):
    i = xetile.program_id(0) * BLOCK
    x = xetile.load_tile(xetile.init_tile(X, [i], (BLOCK,)))
    y = xetile.load_tile(xetile.init_tile(Y, [i], (BLOCK,)))
    xetile.store_tile(x + y, xetile.init_tile(Z, [i], (BLOCK,)))


@xetile.function
def gelu(v):
    return 0.5 * v * (1.0 + xetile.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))


@xetile.kernel(grid=lambda m: (cdiv(m.C.shape[0], m.BM), cdiv(m.C.shape[1], m.BN)))
def gemm(
    A,
    B,
    C,
    bias=None,
    EPILOGUE: constexpr = None,
    BM: constexpr = 256,
    BN: constexpr = 256,
    BK: constexpr = 32,
    WG: constexpr = WG_C,
):
    """C = A @ B, with a bias and an epilogue."""
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        xetile.prefetch_tile(xetile.update_tile_offset(a, [0, 3 * BK]))
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc, wg_map=WG)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    if bias is not None:
        acc = acc + xetile.load_tile(xetile.init_tile(bias, [n], (BN,)))
    if EPILOGUE is not None:
        acc = EPILOGUE(acc)
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


GEMM = {"A": "bf16 2", "B": "bf16 2", "C": "bf16 2"}


def test_vector_add():
    module = build(vector_add, X="f32 1", Y="f32 1", Z="f32 1")
    (function,) = ops(module, "gpu.func")
    assert [str(arg.type) for arg in function.body.block.args] == (
        ["memref<?xf32, strided<[1]>>"] * 3
    )
    assert str(function.attributes["xetile.level"]) == '"workgroup"'
    assert len(ops(module, "memref.extract_strided_metadata")) == 3
    tiles = ops(module, "xetile.init_tile")
    assert {str(op.result.type) for op in tiles} == {"!xetile.tile<1x1024xf32>"}
    assert tiles[0].mixed_offsets[0] == 0
    assert tiles[0].mixed_sizes[0] == 1
    assert names(module)[-2:] == ["xetile.store_tile", "gpu.return"]


def test_gemm_is_the_loop_it_says():
    module = build(gemm.fn, **GEMM)
    (loop,) = ops(module, "scf.for")
    assert [op.name for op in loop.body.block.ops] == [
        "xetile.update_tile_offset",
        "xetile.prefetch_tile",
        "xetile.load_tile",
        "xetile.load_tile",
        "xetile.tile_mma",
        "xetile.update_tile_offset",
        "xetile.update_tile_offset",
        "scf.yield",
    ]
    assert len(loop.results) == 3
    (mma,) = ops(module, "xetile.tile_mma")
    assert mma.wg_map.sg_layout == (8, 4)
    assert "tile_broadcast" not in str(module)


def test_gemm_with_bias_and_epilogue():
    module = build(gemm.fn, **GEMM, bias="f32 1", EPILOGUE=gelu)
    (spread,) = ops(module, "xetile.tile_broadcast")
    assert spread.dims == (0,)
    (tanh,) = ops(module, "math.tanh")
    location = tanh.location
    assert isinstance(location, CallSiteLoc)
    assert isinstance(location.caller, FileLineColLoc)


@pytest.mark.parametrize(
    ("layout", "order", "strides"),
    [("", (1, 0), "[?, 1]"), ("T", (0, 1), "[1, ?]"), ("S", (1, 0), "[?, ?]")],
)
def test_order_comes_from_the_strides(layout, order, strides):
    module = build(gemm.fn, **GEMM | {"B": f"bf16 2 {layout}"})
    function = ops(module, "gpu.func")[0]
    assert f"strided<{strides}>" in str(function.body.block.args[1].type)
    assert ops(module, "xetile.init_tile")[1].result.type.order == order


def test_aliases_are_passed_on():
    same = [ArrayParam(name, f32, 1, 0, alias=3) for name in "XY"]
    params = [*same, ArrayParam("Z", f32, 1, 0), ConstParam("BLOCK", 16)]
    module = build_module(vector_add, Signature(tuple(params)))
    assert "xetile.alias_groups = array<i64: 3, 3, -1>" in str(module)
    assert 'xetile.arg_names = ["X", "Y", "Z"]' in str(module)


def test_places_count_characters():
    def kernel(X):
        _ = ("é", xetile.zeros((4, 4), f32))

    (zeros,) = ops(build(kernel, X="f32 2"), "arith.constant")
    line = kernel.__code__.co_firstlineno + 1
    assert (zeros.location.line.data, zeros.location.column.data) == (line, 19)


def test_subgroup_level():
    def kernel(X):
        _ = xetile.subgroup_id()

    module = build_module(kernel, signature(kernel, X="f32 2"), subgroups=(2, 4))
    module.verify()
    assert 'xetile.level = "subgroup"' in str(module)
    assert "gpu.subgroup_id" in str(module)


def test_dtype_of_the_result():
    module = build(gemm.fn, **GEMM | {"C": "f32 2"})
    assert "arith.truncf" not in names(module)
    assert bf16.bits == 16
