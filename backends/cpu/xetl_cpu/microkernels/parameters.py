"""The parameters of products, whoever emits them."""

from dataclasses import dataclass
from typing import Any

from xetl_cpu.llvm import I1, I64, PTR, Builder, Value
from xetl_cpu.microkernels.blocking import Blocking

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

START_PARAMETERS: tuple[tuple[str, Any], ...] = (("accumulate", I1),)
"""Behind these, where the sums need not be added to what is in c."""

LATER_PARAMETERS: tuple[tuple[str, Any], ...] = (
    ("later", PTR),
    ("later_stride", I64),
    ("pieces", I64),
)
"""Behind these, what the program packs next: pieces of memory, ``later_stride`` bytes
apart; a null pointer if it packs nothing."""

OUTPUT_PARAMETERS: tuple[tuple[str, Any], ...] = (
    ("out", PTR),
    ("out_stride", I64),
    ("cols", I64),
)
"""Behind those, where the sums may go to the user's matrix."""

STREAMING_PARAMETERS: tuple[tuple[str, Any], ...] = (
    ("a", PTR),
    ("lda", I64),
    ("rows", I64),
    ("k", I64),
    ("b", PTR),
    ("ldb", I64),
    ("n", I64),
    ("c", PTR),
)
"""Of a product that reads B where it is."""


@dataclass
class Streamed:
    """The arguments of such a function, while it is written."""

    builder: Builder
    blocking: Blocking
    a: Value
    lda: Value
    rows: Value
    k: Value
    b: Value
    ldb: Value
    n: Value
    c: Value
