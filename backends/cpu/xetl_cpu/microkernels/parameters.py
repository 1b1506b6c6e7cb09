"""The parameters of products, whoever emits them."""

from xetl.records import record
from xetl_cpu.llvm import I1, I64, PTR, Builder, Type, Value
from xetl_cpu.microkernels.blocking import Blocking

_BLOCK_GEMM: tuple[tuple[str, Type], ...] = (
    ("a", PTR),
    ("lda", I64),
    ("rows", I64),
    ("k", I64),
    ("b", PTR),
    ("panel_stride", I64),
    ("panels", I64),
    ("c", PTR),
    ("accumulate", I1),
    ("later", PTR),
    ("later_stride", I64),
    ("pieces", I64),
)

OUTPUT: tuple[tuple[str, Type], ...] = (
    ("out", PTR),
    ("out_stride", I64),
    ("cols", I64),
)


def block_gemm_parameters(out: str | None) -> tuple[tuple[str, Type], ...]:
    """Of `emit_block_gemm`, which explains them; ``out``: C may go elsewhere."""
    return _BLOCK_GEMM if out is None else _BLOCK_GEMM + OUTPUT


STREAMING_PARAMETERS: tuple[tuple[str, Type], ...] = (
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


@record()
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
