"""``xegpu_x``: the few operations that upstream's XeGPU lacks.

They print in MLIR's generic form, which `mlir-opt --allow-unregistered-dialect` takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import Unpack
from xdsl.dialects.builtin import I1
from xdsl.ir import Dialect
from xdsl.irdl import operand_def, var_operand_def

from xetl.dialects.base import Value
from xetl.dialects.operation import Common
from xetl_xegpu.simt.debug_ops import RecordOp, Shape


class PrintOp(RecordOp, name="xegpu_x.print"):
    """`xetile.print` of scalars and fragments: `gpu.printf` knows no vectors."""

    arguments = var_operand_def()

    def __init__(
        self,
        template: str,
        arguments: Sequence[Value] = (),
        shapes: Sequence[Shape] = (),
        unsigned: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        properties = self.properties_of(template, shapes, unsigned)
        super().__init__(arguments, properties=properties, **common)


class AssertOp(RecordOp, name="xegpu_x.assert"):
    """`xetile.assert`: the text of `cf.assert` has no values in it."""

    condition = operand_def(I1)
    arguments = var_operand_def()

    def __init__(
        self,
        condition: Value,
        template: str,
        arguments: Sequence[Value] = (),
        shapes: Sequence[Shape] = (),
        unsigned: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        properties = self.properties_of(template, shapes, unsigned)
        super().__init__(condition, arguments, properties=properties, **common)


XeGPUExtensions = Dialect("xegpu_x", [PrintOp, AssertOp])
