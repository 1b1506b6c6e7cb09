"""The parameters of a block GEMM, whoever emits it."""

from typing import Any

from xetl_cpu.llvm import I64, PTR

BLOCK_GEMM_PARAMETERS: tuple[tuple[str, Any], ...] = (
    ("a", PTR),
    ("lda", I64),
    ("rows", I64),
    ("k", I64),
    ("b", PTR),
    ("panel_stride", I64),
    ("panels", I64),
    ("c", PTR),
)
