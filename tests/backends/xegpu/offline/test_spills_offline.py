"""Softmax and attention as users write them keep everything in registers."""

import ml_dtypes
import numpy as np
import pytest

from tests.backends.xegpu.offline.compiling import compiled, lanes_of
from tests.backends.xegpu.offline.hand_made import HAS_OCLOC, REASON
from xetl import xetile
from xetl.ops.attention.blocks import DEVICE_KEYS
from xetl.ops.attention.kernel import attention as ready_made
from xetl.ops.products.product import gelu, product
from xetl.ops.rows.normalization import norm_folded_rows, norm_rows
from xetl.ops.rows.softmaxes import softmax_folded_rows, softmax_rows
from xetl.xetile import constexpr, f32
from xetl_xegpu.launch.staging import copy_rows
from xetl_xegpu.offline.isa import count, loops

pytestmark = pytest.mark.skipif(not HAS_OCLOC, reason=REASON)
BF16 = ml_dtypes.bfloat16
REST = " ".join([*["None"] * 5, "f32 f32 f32"])
"""What `xetl.ops` gives its attention behind the result: no options, three factors."""


def window(is_causal: bool) -> dict[str, int | None]:
    """Of one head: all keys, or those up to its own."""
    return {"HEADS": 1, "SHARE": 1, "LEFT": None, "RIGHT": 0 if is_causal else None}


def softmax(X, Y, BM: constexpr = 4, N: constexpr = 256):
    row = xetile.program_id(0) * BM
    x = xetile.load_tile(xetile.init_tile(X, [row, 0], (BM, N)), padding=-xetile.inf)
    e = xetile.exp(x - x.max(1, keepdims=True))
    xetile.store_tile(
        e / e.sum(1, keepdims=True), xetile.init_tile(Y, [row, 0], (BM, N))
    )


def attention(Q, K, V, OUT, BM: constexpr = 16, BN: constexpr = 16, D: constexpr = 64):
    row = xetile.program_id(0) * BM
    q = xetile.load_tile(xetile.init_tile(Q, [row, 0], (BM, D)))
    k = xetile.init_tile(K.T, [0, 0], (D, BN))
    v = xetile.init_tile(V, [0, 0], (BN, D))
    m, s = xetile.full((BM, 1), -xetile.inf, f32), xetile.zeros((BM, 1), f32)
    acc = xetile.zeros((BM, D), f32)
    for _ in range(0, K.shape[0], BN):
        p = xetile.tile_mma(q, xetile.load_tile(k)) * 0.125
        new = xetile.maximum(m, p.max(1, keepdims=True))
        p, old = xetile.exp(p - new), xetile.exp(m - new)
        s = s * old + p.sum(1, keepdims=True)
        acc = xetile.tile_mma(p.to(V.dtype), xetile.load_tile(v), acc * old)
        m = new
        k = xetile.update_tile_offset(k, [0, BN])
        v = xetile.update_tile_offset(v, [BN, 0])
    xetile.store_tile(acc / s, xetile.init_tile(OUT, [row, 0], (BM, D)))


@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_softmax(target: str) -> None:
    module = lanes_of(softmax, [np.zeros((64, 256), np.float32)] * 2, target)
    seen = compiled(module, target)["softmax"]
    assert seen.facts.spill_bytes == 0
    assert seen.found == seen.planned


@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_attention(target: str) -> None:
    arrays = [np.zeros((64, 64), BF16) for _ in range(3)]
    args = [*arrays, np.zeros((64, 64), np.float32)]
    seen = compiled(lanes_of(attention, args, target), target)["attention"]
    assert seen.facts.spill_bytes == 0
    assert seen.found == seen.planned
    assert seen.found.dpas == 16 * 16 * 64 // (8 * 16 * 16) * 2


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize(
    ("rows", "dtype", "causal"),
    [(16, "bf16", True), (64, "bf16", True), (64, "f16", False)],
)
@pytest.mark.parametrize(
    ("depth", "most"), [(64, {"pvc": 695, "bmg": 625}), (128, {"pvc": 605, "bmg": 470})]
)
def test_the_ready_made_attention(
    target: str, rows: int, dtype: str, causal: bool, depth: int, most: dict[str, int]
) -> None:
    """`xetl.ops.scaled_dot_product_attention` on a device: its block of keys.

    A subgroup owns 16 rows (8 with heads of 128): nothing goes through shared memory.
    """
    matrix = f"{dtype}[S,{depth}]"
    matrices = f"{matrix} {matrix} {matrix} None {matrix}"
    constants = window(causal) | {"NEGATIVE": False, "ACC": f32}
    constants |= {"BM": rows, "BN": DEVICE_KEYS[16], "D": depth, "E": depth}
    options = {"backend": "xegpu", "target": target, **constants}
    text = ready_made.ir("asm", f"{matrices} {REST}", **options)
    fast = text.split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    step = loops(fast)[0]
    assert step.dpas == 64
    assert step.instructions <= most[target]
    assert not any(word in name for name in step.names for word in ("slm", "signal"))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "depth"), [("pvc", 80), ("bmg", 96)])
def test_attention_with_heads_between_64_and_128(target: str, depth: int) -> None:
    """The kernel for any memory, too; 16 rows a subgroup, as with 64, would spill."""
    types = " ".join([*[f"f16[S,{depth}]"] * 3, "None", f"f16[S,{depth}]", REST])
    constants = window(True) | {"NEGATIVE": False, "ACC": f32, "BM": 64, "BN": 64}
    options = {"backend": "xegpu", "target": target, "D": depth, "E": depth}
    text = ready_made.ir("asm", types, **constants, **options)
    assert text.count(" 0 bytes spilled") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "depth", "most"),
    [("pvc", 40, 775), ("pvc", 80, 450), ("bmg", 40, 725), ("bmg", 80, 363)],
)
def test_attention_with_heads_that_begin_anywhere(target, depth: int, most) -> None:
    """Heads of 80 and 160 bytes: the loop has next to nothing more than of aligned.

    Aligned: 773, 443, 724, 360.
    """
    types = " ".join([*[f"bf16[S,{depth}]"] * 3, "None", f"bf16[S,{depth}]", REST])
    constants = window(True) | {"NEGATIVE": False, "ACC": f32, "BM": 128, "BN": 64}
    options = {"backend": "xegpu", "target": target, "D": depth, "E": depth}
    assert ", -64" in ready_made.ir("llvm", types, **constants, **options)
    text = ready_made.ir("asm", types, **constants, **options)
    fast = text.split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    assert max(loops(fast), key=lambda each: each.dpas).instructions <= most


BLOCK = xetile.wg_map(sg_layout=[1, 1], sg_data=[64, 16])
WIDE = xetile.wg_map(sg_layout=[1, 4], sg_data=[8, 256])
FOLDED = {"ACC": f32, "SHAPE": (64, 16), "MAP": BLOCK, "EACH": 2, "PITCH": 64}
GAPS = {**FOLDED, "PITCH": 80}
EIGHT = {"ACC": f32, "WIDTH": 1024, "ROWS": 8, "MAP": WIDE, "IS_FULL": True}
PARTLY = {**EIGHT, "IS_FULL": False}
NORM_FOLDED = "f32[M,16] f32[64,16] f32[64,16] f32[M,16] f32"
NORM = "f32[M,N] f32[N] f32[N] f32[M,N] f32"


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize(
    ("kernel", "types", "elements", "most", "constants"),
    [
        (softmax_folded_rows, "f32[M,16] f32[M,16]", 2048, (8, 8), FOLDED),
        (norm_folded_rows, NORM_FOLDED, 2048, (8, 8), {**FOLDED, "CENTERED": True}),
        (softmax_rows, "f32[M,N] f32[M,N]", 8192, (9.3, 8), EIGHT),
        (norm_rows, NORM, 8192, (9.6, 8), {**EIGHT, "CENTERED": True}),
        (softmax_folded_rows, "f32[M,16] f32[M,16]", 2048, (8, 8), GAPS),
        (norm_folded_rows, NORM_FOLDED, 2048, (8, 8), {**GAPS, "CENTERED": True}),
        (softmax_rows, "f32[M,N] f32[M,N]", 8192, (12.8, 11.2), PARTLY),
        (norm_rows, NORM, 8192, (11.3, 9.7), {**PARTLY, "CENTERED": True}),
    ],
)
def test_rows(kernel, types: str, elements: int, most, constants, target: str) -> None:
    """As `xetl.ops` launches them on a GPU: instructions an element, of 1024 columns.

    Rows that are multiples of 64 bytes apart are folded, of others a program has eight.
    """
    facts = kernel.stats(types, backend="xegpu", target=target, **constants)
    assert facts.spill_bytes == 0
    found = facts.instructions * facts.subgroups * 16 / elements
    assert found <= most[target == "bmg"]


HALVES = {**FOLDED, "SHAPE": (32, 32)}
HALVES["MAP"] = xetile.wg_map(sg_layout=[1, 1], sg_data=[32, 32])
NORM_HALVES = "bf16[M,32] bf16[32,32] bf16[32,32] bf16[M,32] f32"


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize(
    ("kernel", "types", "constants"),
    [
        (softmax_folded_rows, "f32[M,16] f32[M,16]", FOLDED),
        (norm_folded_rows, NORM_FOLDED, {**FOLDED, "CENTERED": True}),
        (norm_folded_rows, NORM_HALVES, {**HALVES, "CENTERED": True}),
        (norm_rows, NORM, {**EIGHT, "CENTERED": True}),
        (norm_rows, NORM, {"ACC": f32, "WIDTH": 8192, "CENTERED": True}),
    ],
)
def test_rows_of_any_memory(kernel, types: str, constants, target: str) -> None:
    """No message fits: lanes move elements, and still keep all in registers.

    All but one register where three blocks of 32 x 32 halves are loaded, on pvc.
    """
    text = kernel.ir("asm", types, backend="xegpu", target=target, **constants)
    heads = [line for line in text.splitlines() if "bytes spilled" in line]
    assert len(heads) == 2
    assert " 0 bytes spilled" in heads[0]
    spilled = 64 if (types, target) == (NORM_HALVES, "pvc") else 0
    assert f" {spilled} bytes spilled" in heads[1]


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("rows", [1, 8, 16])
def test_products_of_few_rows(target: str, rows: int) -> None:
    """As a model needs them that makes one word after the other."""
    constants = {"BIAS_DIM": 1, "B_IS_TURNED": False, "ACC": f32, "ACTIVATION": None}
    constants |= {"BM": rows, "BN": 32, "BK": 32}
    types = "bf16[M,4096] bf16[4096,4096] bf16[M,4096] None None None"
    text = product.ir("asm", types, backend="xegpu", target=target, **constants)
    fast = text.split("\n// ")[0]
    assert " 0 bytes spilled" in fast.splitlines()[0]
    step = max(loops(fast), key=lambda each: each.dpas)
    assert (step.dpas, step.calls) == (max(1, rows // 8) * 4, 0)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize(
    ("dtype", "is_causal"),
    [("bf16", False), ("bf16", True), ("f16", True), ("f32", False), ("f32", True)],
)
def test_attention_of_any_memory(dtype: str, is_causal, depth: int, target) -> None:
    """Programs of `xetl.ops`: 128 queries, and the keys of a block on a device."""
    types = " ".join([*[f"{dtype}[S,{depth}]"] * 3, "None", f"{dtype}[S,{depth}]"])
    constants = window(is_causal) | {"NEGATIVE": False, "ACC": f32, "D": depth}
    constants |= {
        "E": depth,
        "BM": 128,
        "BN": DEVICE_KEYS[32 if dtype == "f32" else 16],
    }
    options = {"backend": "xegpu", "target": target, **constants}
    text = ready_made.ir("asm", f"{types} {REST}", **options)
    assert text.count(" 0 bytes spilled") == 2


@pytest.mark.parametrize(("target", "most"), [("pvc", 1500), ("bmg", 1000)])
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_products_of_any_memory(dtype: str, is_turned, target: str, most: int) -> None:
    """32 x 64 of C a subgroup, the most that fits; 192 loads of 16 elements a step."""
    constants = {"BIAS_DIM": 1, "B_IS_TURNED": is_turned, "ACC": f32, "BK": 32}
    constants |= {"ACTIVATION": None, "BM": 256, "BN": 256}
    b = f"{dtype}[N,K]" if is_turned else f"{dtype}[K,N]"
    types = f"{dtype}[M,K] {b} {dtype}[M,N] None None None"
    text = product.ir("asm", types, backend="xegpu", target=target, **constants)
    by_lanes = text.split("\n// ")[1]
    assert " 0 bytes spilled" in by_lanes.splitlines()[0]
    if dtype == "bf16":
        step = max(loops(by_lanes), key=lambda each: each.dpas)
        assert step.dpas == 32
        assert step.instructions <= most


@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_gelu_behind_a_product(target: str) -> None:
    """The error function of f32 is arithmetic: it reads no table in memory."""
    constants = {"BIAS_DIM": 1, "B_IS_TURNED": False, "ACC": f32, "ACTIVATION": gelu}
    constants |= {"BM": 128, "BN": 128, "BK": 32}
    types = "bf16[M,K] bf16[K,N] bf16[M,N] None None None"
    text = product.ir("asm", types, backend="xegpu", target=target, **constants)
    fast, by_lanes = text.split("\n// ")
    assert all(" 0 bytes spilled" in x.splitlines()[0] for x in (fast, by_lanes))
    found = count(fast)
    # Of 128 elements of a lane, of 8 subgroups; the order of programs takes 40 in all.
    assert found.instructions / 128 <= 30
    assert found.names["send load"] < 8


def gemm_gelu(A, B, C, BM: constexpr = 64, BN: constexpr = 64, BK: constexpr = 32):
    m, n = xetile.program_id(0) * BM, xetile.program_id(1) * BN
    a = xetile.init_tile(A, [m, 0], (BM, BK))
    b = xetile.init_tile(B, [0, n], (BK, BN))
    acc = xetile.zeros((BM, BN), f32)
    for _ in range(0, A.shape[1], BK):
        acc = xetile.tile_mma(xetile.load_tile(a), xetile.load_tile(b), acc)
        a = xetile.update_tile_offset(a, [0, BK])
        b = xetile.update_tile_offset(b, [BK, 0])
    acc = 0.5 * acc * (1.0 + xetile.erf(0.70710678 * acc))
    xetile.store_tile(acc.to(C.dtype), xetile.init_tile(C, [m, n], (BM, BN)))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pvc", "bmg"])
def test_a_long_epilogue(target: str) -> None:
    """One part of C after the other, not one operation after the other."""
    arrays = [np.zeros((64, 64), BF16) for _ in range(3)]
    seen = compiled(lanes_of(gemm_gelu, arrays, target), target)["gemm_gelu"]
    assert seen.facts.spill_bytes == 0


@pytest.mark.parametrize("target", ["pvc", "bmg"])
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_copies_that_set_rows_apart(target: str, size: int) -> None:
    """256 elements a step: what it costs to launch with rows of any pitch."""
    text = copy_rows(size, 1).ir("asm", *[64] * 6, backend="xegpu", target=target)
    step = max(loops(text), key=lambda each: each.instructions)
    assert step.instructions <= 115
    assert step.calls == 0
