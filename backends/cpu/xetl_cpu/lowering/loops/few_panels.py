"""How much of k a product on tiles does at once where B has few panels.

A is read once then, and need not stay in a cache: whole rows are better than pieces of
them (4096 x 4096 by 16 in bf16 on silicon: 355 to 415 GFLOP/s by pieces of 1,024 and
2,048 bytes, 430 to 450 by rows; by 32 590 to 720, and 730 to 850).
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from xetl.dialects.base import Index
from xetl.ir.builder import Builder
from xetl_cpu.lowering.loops.state import Factor
from xetl_cpu.microkernels.blocking import FEW_PANELS, Blocking


def of_few_panels(
    build: Builder, blocking: Blocking, a: Factor, extents: tuple[Index, Index, Index]
) -> tuple[SSAValue, Index]:
    """Whether few panels meet A where it lies, and how much of k they do then.

    What is left of a step is copied, as is A where it ends before the tile does: copies
    have room for less. ``extents``: rows, k, cols.
    """
    rows, k, cols = extents
    facts = [
        build.compare("sle", cols, FEW_PANELS * blocking.nr),
        build.compare("sge", a.rows, build.maximum(rows, blocking.least_rows)),
        build.compare("sge", a.cols, k),
        build.compare("sge", k, blocking.k_step),
        build.compare("sle", build.times(k, cols), blocking.long_run),
    ]
    return build.both(*facts), build.minus(k, build.remainder(k, blocking.k_step))
