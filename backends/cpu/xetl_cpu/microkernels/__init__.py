"""The inner loops we generate ourselves: GEMM of one block, and the packing for it.

``choose_blocking`` decides, the ``emit_*`` functions add one function each to an
``llvmlite.ir.Module``.  What they emit calls nothing outside the module.
"""

from xetl_cpu.microkernels.blocking import CALLED_K, DTYPES, Blocking, choose_blocking
from xetl_cpu.microkernels.gemm import emit_block_gemm
from xetl_cpu.microkernels.packing import emit_pack

__all__ = [
    "CALLED_K",
    "DTYPES",
    "Blocking",
    "choose_blocking",
    "emit_block_gemm",
    "emit_pack",
]
