"""Undefined values.  Source: MLIR, `ub` dialect."""

from __future__ import annotations

from xdsl.ir import Attribute, Dialect
from xdsl.irdl import opt_prop_def, result_def

from ..operation import PureOp, operations_of


class PoisonOp(PureOp, name="ub.poison"):
    """An undefined value, which must not be used."""

    value = opt_prop_def(Attribute)
    result = result_def()

    assembly_format = "attr-dict `:` type($result)"


Ub = Dialect("ub", operations_of(__name__))
