"""The parameters of products, whoever emits them."""

from xetl.records import record
from xetl_cpu.llvm import Builder, Type, Value, parameters
from xetl_cpu.microkernels.blocking import Blocking

_BLOCK_GEMM = parameters(
    "ptr a, i64 lda, i64 rows, i64 k, ptr b, i64 panel_stride, i64 panels, ptr c, "
    "i1 accumulate, ptr later, i64 later_stride, i64 pieces"
)
OUTPUT = parameters("ptr out, i64 out_stride, i64 cols")


def block_gemm_parameters(out: str | None) -> tuple[tuple[str, Type], ...]:
    """Of `emit_block_gemm`, which explains them; ``out``: C may go elsewhere."""
    return _BLOCK_GEMM if out is None else _BLOCK_GEMM + OUTPUT


STREAMING_PARAMETERS = parameters(
    "ptr a, i64 lda, i64 rows, i64 k, ptr b, i64 ldb, i64 n, ptr c"
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
