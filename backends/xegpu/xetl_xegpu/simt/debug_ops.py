"""Records for the host: lines to print, and checks that failed.

A record goes to the status words that a kernel gets as its last argument; see
`xetl_xegpu.emit.log`.  The values of a record are numbers, the same in every lane, or
matrices spread over the lanes as docs/design/0005-xegpu.md says: as their fragments,
row of fragments by row of fragments.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I1, ArrayAttr, DenseArrayBase, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from xetl.dialects.base import check, dense_i64, ints_of
from xetl.dialects.operation import XetlOp
from xetl.dialects.xetile.debug_ops import count_fields

Shape = Sequence[int] | None
"""Of a printed value: None for a number, else one or two sizes."""


def _shapes(shapes: Sequence[Shape]) -> Attribute:
    return ArrayAttr([dense_i64(shape or ()) for shape in shapes])


class RecordOp(XetlOp, makers={"shapes": _shapes}):
    """What records have in common: a text, and values for its fields.

    Attributes:
        shapes: of each field: ``[]`` for a number, ``[n]`` or ``[rows, columns]``.
        unsigned: the fields whose integers have no sign.
    """

    template = prop_def(StringAttr)
    shapes = prop_def(ArrayAttr[DenseArrayBase])
    unsigned = opt_prop_def(DenseArrayBase)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def field_shapes(self) -> list[tuple[int, ...]]:
        """The shape of each field; ``()`` for a number."""
        return [ints_of(shape) for shape in self.shapes.data]

    def verify_(self) -> None:
        """Check that there is a value for each field."""
        shapes = self.field_shapes()
        wanted, found = count_fields(self.template.data), len(shapes)
        check(wanted == found, "{} has {} fields, not {}", self.template, wanted, found)
        for shape in shapes:
            fits = len(shape) <= 2 and all(size > 0 for size in shape)
            check(fits, "a value has one or two sizes, found {}", shape)


class PrintOp(RecordOp, name="simt.print"):
    """Print a line; one subgroup of a program does."""

    arguments = var_operand_def()
    assembly_format = "$template (`(` $arguments^ `:` type($arguments) `)`)? attr-dict"


class AssertOp(RecordOp, name="simt.assert"):
    """Unless ``condition``, the same in every lane, holds: a record and the end.

    The workgroup ends: the subgroup at once, or all of them at the next barrier.  The
    launch then fails with the text and the location of the operation.
    """

    condition = operand_def(I1)
    arguments = var_operand_def()
    assembly_format = (
        "$condition `,` $template (`(` $arguments^ `:` type($arguments) `)`)? attr-dict"
    )
