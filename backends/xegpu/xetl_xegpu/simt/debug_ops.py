"""Records for the host: lines to print, and checks that failed.

A record goes to the status words that a kernel gets as its last argument; see
`xetl_xegpu.emit.log`.  The values of a record are numbers, the same in every lane, or
matrices spread over the lanes as docs/design/0005-xegpu.md says: as their fragments,
row of fragments by row of fragments.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import Unpack
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

from xetl.dialects.base import Value, check, dense_i64, ints_of
from xetl.dialects.operation import Common, XetlOp
from xetl.dialects.xetile.debug_ops import count_fields

Shape = Sequence[int] | None
"""Of a printed value: None for a number, else one or two sizes."""


class RecordOp(XetlOp):
    """What records have in common: a text, and values for its fields.

    Attributes:
        shapes: of each field: ``[]`` for a number, ``[n]`` or ``[rows, columns]``.
        unsigned: the fields whose integers have no sign.
    """

    template = prop_def(StringAttr)
    shapes = prop_def(ArrayAttr[DenseArrayBase])
    unsigned = opt_prop_def(DenseArrayBase)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def properties_of(
        template: str, shapes: Sequence[Shape], unsigned: Sequence[int]
    ) -> dict[str, Attribute | None]:
        """What is written as properties."""
        return {
            "template": StringAttr(template),
            "shapes": ArrayAttr([dense_i64(shape or ()) for shape in shapes]),
            "unsigned": dense_i64(unsigned) if unsigned else None,
        }

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
