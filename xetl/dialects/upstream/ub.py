"""Values that nobody looks at.  Source: MLIR, `ub` dialect."""

from __future__ import annotations

from typing_extensions import Unpack
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import irdl_op_definition, opt_prop_def, result_def, traits_def
from xdsl.traits import Pure

from ..operation import Common, XetlOp


@irdl_op_definition
class PoisonOp(XetlOp):
    """Any value."""

    name = "ub.poison"

    value = opt_prop_def(Attribute)
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute, **common: Unpack[Common]) -> None:
        super().__init__(result_types=[result_type], **common)


Ub = Dialect("ub", [PoisonOp])
