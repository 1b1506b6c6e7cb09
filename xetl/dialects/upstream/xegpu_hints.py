"""The few `xegpu` operations that XeTile modules from text contain.

Named barriers let subgroups of a workgroup wait for one another; a compile hint does
nothing.  The rest of `xegpu` belongs to its backend.  Source: MLIR, `xegpu` dialect.
"""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import Value, parse_attributes, print_attributes
from ..operation import Common, XetlOp
from .xegpu_fence import FenceOp, FenceScopeAttr, MemorySpaceAttr


@irdl_attr_definition
class NbarrierType(ParametrizedAttribute, TypeAttribute):
    """``!xegpu.nbarrier``."""

    name = "xegpu.nbarrier"


class _EffectOp(XetlOp):
    # Not memory, but neither may be removed, merged or moved.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class AllocNbarrierOp(_EffectOp):
    """How many named barriers the kernel uses."""

    name = "xegpu.alloc_nbarrier"

    nbarrier_num = prop_def(IntegerAttr)

    def __init__(self, count: int, **common: Unpack[Common]) -> None:
        super().__init__(properties={"nbarrier_num": IntegerAttr(count, i64)}, **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``8``."""
        count = parser.parse_integer()
        _, attributes = parse_attributes(parser, cls)
        return cls(count, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``8``."""
        printer.print_string(f" {self.nbarrier_num.value.data}")
        print_attributes(printer, self, ("nbarrier_num",))


@irdl_op_definition
class InitNbarrierOp(_EffectOp):
    """A named barrier for a number of subgroups."""

    name = "xegpu.init_nbarrier"

    nbarrier_id = operand_def()
    participant_thread_num = operand_def()
    result = result_def(NbarrierType)

    assembly_format = (
        "$nbarrier_id `,` $participant_thread_num attr-dict `:` type($nbarrier_id) "
        "`,` type($participant_thread_num) `->` type($result)"
    )

    def __init__(self, id_: Value, count: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[id_, count], result_types=[NbarrierType()], **common)


@irdl_op_definition
class NbarrierArriveOp(_EffectOp):
    """Say that this subgroup has arrived."""

    name = "xegpu.nbarrier_arrive"

    nbarrier = operand_def(NbarrierType)

    assembly_format = "$nbarrier attr-dict `:` type($nbarrier)"

    def __init__(self, nbarrier: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[nbarrier], **common)


@irdl_op_definition
class NbarrierWaitOp(_EffectOp):
    """Wait until all participants have arrived."""

    name = "xegpu.nbarrier_wait"

    nbarrier = operand_def(NbarrierType)

    assembly_format = "$nbarrier attr-dict `:` type($nbarrier)"

    def __init__(self, nbarrier: Value, **common: Unpack[Common]) -> None:
        super().__init__(operands=[nbarrier], **common)


@irdl_op_definition
class CompileHintOp(_EffectOp):
    """Nothing: keeps a compiler from moving code."""

    name = "xegpu.compile_hint"

    assembly_format = "attr-dict"

    def __init__(self, **common: Unpack[Common]) -> None:
        super().__init__(**common)


XeGPUHints = Dialect(
    "xegpu",
    [
        *(AllocNbarrierOp, InitNbarrierOp, NbarrierArriveOp, NbarrierWaitOp),
        *(CompileHintOp, FenceOp),
    ],
    [NbarrierType, MemorySpaceAttr, FenceScopeAttr],
)
