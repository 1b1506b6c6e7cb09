"""``xegpu_x``: the few operations that upstream's XeGPU lacks.

They print in MLIR's generic form, which `mlir-opt --allow-unregistered-dialect` takes.
"""

from __future__ import annotations

from xdsl.dialects.builtin import I1
from xdsl.ir import Dialect
from xdsl.irdl import operand_def, var_operand_def

from xetl_xegpu.simt.debug_ops import RecordOp


class PrintOp(RecordOp, name="xegpu_x.print"):
    """`xetile.print` of scalars and fragments: `gpu.printf` knows no vectors."""

    arguments = var_operand_def()


class AssertOp(RecordOp, name="xegpu_x.assert"):
    """`xetile.assert`: the text of `cf.assert` has no values in it."""

    condition = operand_def(I1)
    arguments = var_operand_def()


XeGPUExtensions = Dialect("xegpu_x", [PrintOp, AssertOp])
