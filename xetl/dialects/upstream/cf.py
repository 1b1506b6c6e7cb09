"""Branches between blocks, used by modules from text.  Source: MLIR, `cf` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Block, Dialect, SSAValue
from xdsl.irdl import operand_def, prop_def, successor_def, var_operand_def
from xdsl.traits import IsTerminator

from ..base import check
from ..operation import XetlOp, operations_of


def _check_successor(block: Block, operands: Sequence[SSAValue]) -> None:
    expected = [argument.type for argument in block.args]
    found = [operand.type for operand in operands]
    check(expected == found, "the block takes {}, but is given {}", expected, found)


class BrOp(XetlOp, name="cf.br", traits=[IsTerminator()]):
    """Branch to a block."""

    dest_operands = var_operand_def()
    dest = successor_def()

    assembly_format = (
        "$dest (`(` $dest_operands^ `:` type($dest_operands) `)`)? attr-dict"
    )

    def verify_(self) -> None:
        _check_successor(self.dest, self.dest_operands)


class CondBrOp(XetlOp, name="cf.cond_br", traits=[IsTerminator()]):
    """Branch to one of two blocks."""

    condition = operand_def(i1)
    true_operands = false_operands = var_operand_def()
    true_dest = false_dest = successor_def()

    assembly_format = (
        "$condition `,` $true_dest (`(` $true_operands^ `:` type($true_operands) "
        "`)`)? `,` $false_dest (`(` $false_operands^ `:` type($false_operands) "
        "`)`)? attr-dict"
    )

    def verify_(self) -> None:
        _check_successor(self.true_dest, self.true_operands)
        _check_successor(self.false_dest, self.false_operands)


class AssertOp(XetlOp, name="cf.assert"):
    """Stop the program with a message if the argument is false."""

    arg = operand_def(i1)
    msg = prop_def(StringAttr)

    assembly_format = "$arg `,` $msg attr-dict"


Cf = Dialect("cf", operations_of(__name__))
