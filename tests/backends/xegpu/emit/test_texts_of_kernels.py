"""The text of `ir("spirv")` is the module: kernels of `xetl.ops`, all targets."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.backends.xegpu.emit.test_spirv import knows_extensions
from tests.backends.xegpu.spirv_tools import find_spirv_tool, says_the_same, validate
from xetl import xetile
from xetl.ops.attention.kernel import attention
from xetl.ops.products.int4_products import int4_product
from xetl.ops.products.product import gelu, product
from xetl.ops.products.scaled_products import scaled_product
from xetl.ops.rows.normalization import norm_folded_rows, norm_rows
from xetl.ops.rows.softmaxes import softmax_rows
from xetl.runtime.kernel import Kernel
from xetl.xetile import bf16, f32, i32
from xetl_xegpu.emit import module as emission
from xetl_xegpu.offline.ocloc import SETUP

WIDE = xetile.wg_map(sg_layout=[1, 4], sg_data=[8, 256])
BLOCK = xetile.wg_map(sg_layout=[1, 1], sg_data=[64, 16])
ROWS = {"ACC": f32, "WIDTH": 1024, "ROWS": 8, "MAP": WIDE, "IS_FULL": True}
FOLDED = {"ACC": f32, "SHAPE": (64, 16), "MAP": BLOCK, "EACH": 2, "PITCH": 64}
HEADS = {"HEADS": 1, "SHARE": 1, "LEFT": None, "RIGHT": 0, "NEGATIVE": False}
KERNELS: dict[str, tuple[Kernel, str, dict[str, Any]]] = {
    "softmax": (softmax_rows, "f32[M,N] f32[M,N]", ROWS),
    "norm": (
        norm_rows,
        "f32[M,N] f32[N] f32[N] f32[M,N] f32",
        {**ROWS, "CENTERED": True},
    ),
    "norm of folded rows": (
        norm_folded_rows,
        "f32[M,16] f32[64,16] f32[64,16] f32[M,16] f32",
        {**FOLDED, "CENTERED": True},
    ),
    "product": (
        product,
        "bf16[M,K] bf16[K,N] bf16[M,N] None None None",
        {"BIAS_DIM": 1, "B_IS_TURNED": False, "ACC": f32, "ACTIVATION": gelu}
        | {"BM": 64, "BN": 64, "BK": 32},
    ),
    "A transposed": (
        product,
        "bf16[M,K] bf16[N,K] bf16[M,N] None None None",
        {"BIAS_DIM": 1, "B_IS_TURNED": True, "ACC": f32, "ACTIVATION": None}
        | {"BM": 64, "BN": 64, "BK": 32},
    ),
    "product of bytes": (
        scaled_product,
        "i8[M,K] i8[K,N] f32[M] f32[N] None bf16[M,N]",
        {"SUMS": i32, "IS_ONE": (False, False), "BM": 64, "BN": 64, "BK": 64},
    ),
    "weights of four bits": (
        int4_product,
        "bf16[M,4096] u8[2048,N] bf16[32,N] bf16[32,N] None bf16[M,N]",
        {"ACC": f32, "FACTORS": bf16, "HALF": 64, "BM": 16, "BN": 64, "STEP": 16},
    ),
    "attention": (
        attention,
        f"{'bf16[S,64] ' * 3}None bf16[S,64] {'None ' * 5}f32 f32 f32",
        {**HEADS, "ACC": f32, "BM": 64, "BN": 64, "D": 64, "E": 64},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", ["pvc", "bmg", "cri", "opencl"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_text_is_the_module(
    name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both kernels of it: with block messages, and for any memory."""
    assembler = find_spirv_tool("spirv-as")
    if assembler is None or not knows_extensions(assembler):
        pytest.skip(f"there is no spirv-as of 2024 or later: {SETUP}")
    real, seen = emission.spirv_text, list[str]()

    def compared(module: ModuleOp, target: str) -> str:
        spirv = emission.emit(module, target).spirv
        text = real(module, target)
        assert validate(spirv) is None
        assert says_the_same(text, spirv)
        seen.append(text)
        return text

    monkeypatch.setattr(emission, "spirv_text", compared)
    kernel, types, constants = KERNELS[name]
    shown = kernel.ir("spirv", types, backend="xegpu", target=target, **constants)
    assert [shown.strip()] == [text.strip() for text in seen]
