"""Fences in text modules: read, printed, wrong words refused with their place."""

from __future__ import annotations

import pytest

import xetl
from xetl.dialects.upstream.xegpu import FenceOp
from xetl.errors import IRError

TEXT = """
gpu.module @m {{
  gpu.func @k(%a: memref<8xf32>) kernel
      attributes {{known_block_size = array<i32: 1, 1, 1>}} {{
    xegpu.fence memory_kind = {}, fence_scope = {}
    gpu.return
  }}
}}
"""


@pytest.mark.parametrize("kind", ["global", "slm"])
@pytest.mark.parametrize("scope", ["workgroup", "gpu"])
def test_words_are_read_and_printed(kind: str, scope: str):
    module, _ = xetl.load_mlir(TEXT.format(kind, scope))["k"].for_any_arguments()
    (fence,) = [op for op in module.walk() if isinstance(op, FenceOp)]
    assert (fence.memory_kind.word, fence.fence_scope.word) == (kind, scope)
    assert f"xegpu.fence memory_kind = {kind}, fence_scope = {scope}" in str(module)


@pytest.mark.parametrize(
    ("kind", "scope", "message"),
    [
        ("local", "gpu", "`local` is not one of global, slm"),
        ("slm", "device", "`device` is not one of workgroup, gpu"),
    ],
)
def test_other_words_are_refused_with_their_line(kind: str, scope: str, message: str):
    with pytest.raises(IRError, match=message) as caught:
        xetl.load_mlir(TEXT.format(kind, scope))
    assert "<text>:5:" in str(caught.value)
