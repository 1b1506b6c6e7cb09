"""What every region of `scf` ends in.  Source: MLIR, `scf` dialect."""

from __future__ import annotations

from typing_extensions import Unpack
from xdsl.irdl import traits_def, var_operand_def
from xdsl.traits import IsTerminator, Pure

from ..base import Value
from ..operation import Common, XetlOp


class YieldOp(XetlOp, name="scf.yield"):
    """The values a region gives to its loop or conditional."""

    arguments = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, *arguments: Value, **common: Unpack[Common]) -> None:
        super().__init__(arguments, **common)
