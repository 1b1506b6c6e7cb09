"""Blocks of a device: nothing is packed without need; kernels mean what they did."""

import ml_dtypes
import numpy as np
import pytest
from blocked_kernels import kernels
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from meaning import CHECKS, same_meaning
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import xetl
from xetl import xetile
from xetl.dialects.parser import parse_module
from xetl.dialects.text import read_module
from xetl.errors import LaunchError
from xetl.frontend import build_module
from xetl.language.dtypes import BY_NAME
from xetl.language.signature import ArrayParam, Signature
from xetl.transforms.choose_inner_blocks import ChooseInnerBlocksPass
from xetl.transforms.diagnostics import collect_remarks
from xetl.transforms.stages import StageError, check_stage
from xetl.xetile import f32

DEVICES = ("pvc", "bmg")
PACKS = ("xetile.tile_pack", "xetile.tile_unpack")


def passes(device="pvc"):
    return [ChooseInnerBlocksPass(device)]


def is_blocked(name: str, module: ModuleOp) -> None:
    """After the passes the stage holds, and the text is read as it is printed."""
    if name:
        check_stage(module, "xetile-blocked")
        assert str(parse_module(str(module))) == str(module)


def built(kernel, subgroups, **arrays):
    """The module of a Python kernel; ``A="f16"`` is an array of rank 2."""
    params = [ArrayParam(name, BY_NAME[d], 2, 1) for name, d in arrays.items()]
    function = kernel.function if hasattr(kernel, "function") else kernel
    return build_module(function, Signature(tuple(params)), subgroups=subgroups)


def blocked(module: ModuleOp | str, device="pvc") -> ModuleOp:
    if isinstance(module, str):
        module = read_module(module)
    for each in passes(device):
        each.apply(Context(), module)
    module.verify()
    check_stage(module, "xetile-blocked")
    return module


def ops(module, *names):
    return [op for op in module.walk() if op.name in names]


def whole(*shape, dtype=np.float32):
    rng = np.random.default_rng(sum(shape))
    return rng.integers(-4, 5, shape).astype(dtype)


# Kernels ----------------------------------------------------------------------------


def gemm(A, B, C):
    """Two by two subgroups, each 32 by 32 of C; ragged at the edges."""
    me = xetile.subgroup_id()
    m = xetile.program_id(0) * 64 + (me // 2) * 32
    n = xetile.program_id(1) * 64 + (me % 2) * 32
    a = xetile.init_tile(A, [m, 0], (32, 32))
    b = xetile.init_tile(B, [0, n], (32, 32))
    acc = xetile.zeros((32, 32), f32)
    for _ in range(0, A.shape[1], 32):
        xetile.prefetch_tile(a)
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, 32])
        b = xetile.update_tile_offset(b, [32, 0])
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (32, 32)))


def attention(Q, K, V, OUT):
    """Scores, their softmax and the sum of values, for 16 rows a subgroup."""
    row = xetile.subgroup_id() * 16
    q = xetile.load_tile(xetile.init_tile(Q, [row, 0], (16, 32)))
    top = xetile.full((16, 1), -1e30, f32)
    total = xetile.zeros((16, 1), f32)
    acc = xetile.zeros((16, 32), f32)
    for start in range(0, K.shape[0], 32):
        k = xetile.load_tile(xetile.init_tile(K, [start, 0], (32, 32)))
        v = xetile.load_tile(xetile.init_tile(V, [start, 0], (32, 32)))
        s = xetile.tile_mma(q, k.T)
        new = xetile.maximum(top, s.max(1, keepdims=True))
        p = xetile.exp(s - new)
        old = xetile.exp(top - new)
        total = total * old + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p.to(Q.dtype), v, acc * old)
        top = new
    out = xetile.init_tile(OUT, [row, 0], (16, 32))
    xetile.store_tile(acc / total, out)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("out", [np.float32, np.float16])
def test_gemm_packs_nothing(device, dtype, out):
    name = np.dtype(dtype).name.replace("bfloat", "bf").replace("float", "f")
    wide = np.dtype(out).name.replace("float", "f")
    module = built(gemm, (2, 2), A=name, B=name, C=wide)
    assert not ops(blocked(module.clone(), device), *PACKS)
    a, b = whole(70, 100, dtype=dtype), whole(100, 90, dtype=dtype)
    c = np.zeros((70, 90), out)
    truth = [None, None, a.astype(np.float64) @ b.astype(np.float64)]
    same_meaning(
        module, (2, 2), [a, b, c], passes(device), truth=truth, look=is_blocked
    )


def test_attention_packs_nothing_in_its_loop():
    module = built(attention, (2, 1), Q="f16", K="f16", V="f16", OUT="f32")
    result = blocked(module.clone())
    (loop,) = ops(result, "scf.for")
    assert not ops(loop, *PACKS)
    # The columns of running maxima and sums are in blocks of 8 rows.
    assert [str(r.type) for r in loop.results if "x1x8x1xf32" in str(r.type)]
    q, k, v = (
        np.random.default_rng(n).standard_normal((n, 32)).astype(np.float16)
        for n in (30, 64, 64)
    )
    out = np.zeros((30, 32), np.float32)
    # What a sum of exponentials loses depends on its order: blocks are summed first.
    s = q.astype(np.float64) @ k.astype(np.float64).T
    p = np.exp(s - s.max(1, keepdims=True))
    wanted = p / p.sum(1, keepdims=True) @ v.astype(np.float64)
    # p is rounded to f16 before the second product: 2 ** -11 of at most 1.
    same_meaning(
        module,
        (1,),
        [q, k, v, out],
        passes(),
        truth=[None, None, None, wanted],
        tolerance=2e-3,
        look=is_blocked,
    )


# Any kernel -------------------------------------------------------------------------


any_kernel = given(kernel=kernels(), device=st.sampled_from(DEVICES))


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@any_kernel
def test_any_kernel_keeps_its_meaning(kernel, device):
    text, arrays = kernel
    same_meaning(text, (1,), arrays, passes(device), look=is_blocked)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@any_kernel
def test_many_kernels_keep_their_meaning(kernel, device):
    text, arrays = kernel
    same_meaning(text, (1,), arrays, passes(device), look=is_blocked)


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(kernel=kernels())
def test_the_cpu_runs_what_is_blocked(kernel):
    text, arrays = kernel
    wanted = same_meaning(text, (1,), arrays, (), checks=CHECKS)
    found = [array.copy() for array in arrays]
    launched = xetl.load_mlir(str(blocked(text)))["k"]
    launched[(1, 1, 1), (1, 1, 1)](*found, backend="cpu")
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other)


PARTS = """
gpu.module @m { gpu.func @k(%m: memref<32x64xf32>, %n: memref<32x64xf32>) kernel
    attributes {xetile.level = "subgroup", xetile.subgroups = array<i64: 1, 1>} {
  %t = xetile.init_tile %m[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
  %v = xetile.load_tile %t : !xetile.tile<32x64xf32> -> vector<32x64xf32>
  %p = vector.extract_strided_slice %v
      {offsets = [16, 32], sizes = [16, 32], strides = [1, 1]}
      : vector<32x64xf32> to vector<16x32xf32>
  %w = vector.insert_strided_slice %p, %v {offsets = [8, 16], strides = [1, 1]}
      : vector<16x32xf32> into vector<32x64xf32>
  %u = xetile.init_tile %n[0, 0] : memref<32x64xf32> -> !xetile.tile<32x64xf32>
  xetile.store_tile %w, %u : vector<32x64xf32>, !xetile.tile<32x64xf32>
  gpu.return
} }"""


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_parts_of_whole_blocks_need_no_packing(backend):
    module = blocked(PARTS)
    assert not ops(module, *PACKS)
    m, n = whole(32, 64), np.zeros((32, 64), np.float32)
    kernel = xetl.load_mlir(str(module))["k"]
    kernel[(1, 1, 1), (1, 1, 1)](m, n, backend=backend)
    m[8:24, 16:48] = m[16:, 32:].copy()
    assert np.array_equal(n, m)


# The stage, errors and remarks --------------------------------------------------------


def given_blocks(A):
    tile = xetile.init_tile(A, [0, 0], (32, 32), inner_blocks=[16, 8])
    xetile.store_tile(xetile.load_tile(tile), tile)


def test_given_blocks_that_cannot_be_moved_are_chosen_anew_and_that_is_said():
    with collect_remarks() as remarks:
        text = str(blocked(built(given_blocks, (1, 1), A="f16")))
    assert "inner_blocks = [16, 8]" not in text
    assert "inner_blocks = [8, 32]" in text
    told = [each for each in remarks if "pvc has no blocks (16, 8) of f16" in each.text]
    first = given_blocks.__code__.co_firstlineno
    assert {each.line for each in told} == {first + 2}
    assert any("16 or 32 columns" in each.text for each in told)


def test_an_unknown_device():
    with pytest.raises(LaunchError, match="no device called `dg2`"):
        ChooseInnerBlocksPass("dg2").apply(Context(), ModuleOp([]))


def column(A):
    tile = xetile.init_tile(A, [0, 0], (32, 1))
    xetile.store_tile(xetile.load_tile(tile) + 1.0, tile)


def test_what_is_left_whole_is_said_at_its_line():
    with collect_remarks() as remarks:
        blocked(built(column, (1, 1), A="f32"))
    line = column.__code__.co_firstlineno + 2
    assert {(each.line, each.topic) for each in remarks} == {(line, "blocks")}
    assert "divides 32x1 of f32" in remarks[0].text


def stored(blocks: str, vector: str, device: str) -> ModuleOp:
    """A store of 16 by 16 elements in some blocks."""
    tile = f"!xetile.tile<16x16xf32{blocks}>"
    module = parse_module(f"""builtin.module attributes {{{device}}} {{
    func.func @f(%m: memref<16x16xf32>, %v: vector<{vector}xf32>) {{
      %t = xetile.init_tile %m[0, 0] : memref<16x16xf32> -> {tile}
      xetile.store_tile %v, %t : vector<{vector}xf32>, {tile}
      return
    }}
    }}""")
    module.verify()
    return module


def inner(rows: int, columns: int) -> str:
    return f", #xetile.tile_attr<inner_blocks = [{rows}, {columns}]>"


PVC = 'xetile.device = "pvc"'


@pytest.mark.parametrize(
    ("blocks", "vector", "device", "problem"),
    [
        (inner(16, 16), "1x1x16x16", PVC, "which pvc cannot move"),
        ("", "16x16", PVC, "has a tile without inner_blocks"),
        (inner(8, 16), "2x1x8x16", "", "no `xetile.device`"),
    ],
)
def test_the_stage_sees_what_is_not_legal(blocks, vector, device, problem):
    check_stage(stored(inner(8, 16), "2x1x8x16", PVC), "xetile-blocked")
    with pytest.raises(StageError, match=problem):
        check_stage(stored(blocks, vector, device), "xetile-blocked")
