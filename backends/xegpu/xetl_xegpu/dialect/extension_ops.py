"""``xegpu_x``: the few operations that upstream's XeGPU lacks.

They print in MLIR's generic form, which `mlir-opt --allow-unregistered-dialect` takes.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import Unpack
from xdsl.dialects.builtin import I1
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, var_operand_def

from xetl.dialects.base import Value
from xetl.dialects.operation import Common
from xetl_xegpu.simt.debug_ops import RecordOp, Shape


@irdl_op_definition
class PrintOp(RecordOp):
    """`xetile.print` of scalars and fragments: `gpu.printf` knows no vectors."""

    name = "xegpu_x.print"

    arguments = var_operand_def()

    def __init__(
        self,
        template: str,
        arguments: Sequence[Value] = (),
        shapes: Sequence[Shape] = (),
        unsigned: Sequence[int] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(
            operands=[arguments],
            properties=self.properties_of(template, shapes, unsigned),
            **common,
        )


@irdl_op_definition
class AssertOp(RecordOp):
    """`xetile.assert`: the text of `cf.assert` has no values in it."""

    name = "xegpu_x.assert"

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
        super().__init__(
            operands=[condition, arguments],
            properties=self.properties_of(template, shapes, unsigned),
            **common,
        )


XeGPUExtensions = Dialect("xegpu_x", [PrintOp, AssertOp])
