"""Addresses, the operands of calls of C functions.  Source: MLIR, `llvm` dialect.

xDSL has the whole dialect, but its import takes longer than compiling a small kernel.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, operand_def, result_def

from ..operation import PureOp, operations_of


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """``!llvm.ptr``: an address."""

    name = "llvm.ptr"


class IntToPtrOp(PureOp, name="llvm.inttoptr"):
    """Convert an integer to an address."""

    source = operand_def(IntegerType)
    result = result_def(PointerType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"


Llvm = Dialect("llvm", operations_of(__name__), [PointerType])
