"""``xegpu_x``: the few operations that upstream's XeGPU lacks.

They print in MLIR's generic form, which `mlir-opt --allow-unregistered-dialect` takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, IndexType, StringAttr, VectorType, i1
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects.base import (
    Common,
    Value,
    XetlOp,
    check,
    dense_i64,
    ints_of,
    type_of,
    vector_type,
)
from xetl.dialects.combining import kind_fits, normalize_kind
from xetl.dialects.xetile import count_fields

Shape: TypeAlias = tuple[int, int]


@irdl_op_definition
class LaneBroadcastOp(XetlOp):
    """One column of a fragment, for all lanes: (h, 16) to (h, 1), column ``lane``.

    Products that the matrix unit has not take a column of A at a time.  Upstream
    would write a slice, whose place has to be constant.
    """

    name = "xegpu_x.lane_broadcast"

    source = operand_def(VectorType)
    lane = operand_def(IndexType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, source: Value, lane: Value, **common: Unpack[Common]) -> None:
        type_ = vector_type(source)
        shape = [*type_.get_shape()[:-1], 1]
        super().__init__(
            operands=[source, lane],
            result_types=[VectorType(type_.element_type, shape)],
            **common,
        )

    def verify_(self) -> None:
        """Check that one column is left."""
        source, result = vector_type(self.source), vector_type(self.result)
        expected = VectorType(source.element_type, [*source.get_shape()[:-1], 1])
        check(result == expected, f"one column of {source} is {expected}, not {result}")


@irdl_op_definition
class ScanOp(XetlOp):
    """Combine all columns of a fragment (h, 16) up to and with each one.

    Upstream's `vector.scan` is not lowered for subgroups.  Combines in the type of
    the elements; which are f32 where XeTile says so.
    """

    name = "xegpu_x.scan"

    source = operand_def(VectorType)
    kind = prop_def(StringAttr)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(self, kind: str, source: Value, **common: Unpack[Common]) -> None:
        super().__init__(
            operands=[source],
            result_types=[type_of(source)],
            properties={"kind": StringAttr(normalize_kind(kind))},
            **common,
        )

    def verify_(self) -> None:
        """Check kind and type."""
        element = vector_type(self.source).element_type
        check(
            kind_fits(self.kind.data, element),
            f"`{self.kind.data}` does not combine elements of {element}",
        )
        check(self.source.type == self.result.type, "a scan keeps the type")


def _text_properties(
    template: str, shapes: Sequence[Shape], unsigned: Sequence[int]
) -> dict[str, Attribute | None]:
    return {
        "template": StringAttr(template),
        "shapes": dense_i64([extent for shape in shapes for extent in shape]),
        "unsigned": dense_i64(unsigned) if unsigned else None,
    }


class _TextOp(XetlOp):
    """A text with fields, and what they show.

    A field is a scalar, one argument, or a value that was cut into fragments: these
    follow one another row by row.  ``shapes`` has two numbers a field, rows and columns
    of the whole value, and 0, 0 of a scalar; a value of rank 1 has 0 rows.
    """

    arguments = var_operand_def()
    template = prop_def(StringAttr)
    shapes = prop_def(DenseArrayBase)
    unsigned = opt_prop_def(DenseArrayBase)

    # Neither removed nor moved across other effects.
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @property
    def field_shapes(self) -> tuple[Shape, ...]:
        """Rows and columns of each field."""
        numbers = ints_of(self.shapes)
        return tuple(zip(numbers[::2], numbers[1::2]))

    def verify_(self) -> None:
        """Check that there is a shape for each field, and an argument at least."""
        wanted, found = count_fields(self.template.data), len(self.field_shapes)
        check(wanted == found, f"{self.template} has {wanted} fields, not {found}")
        check(len(self.arguments) >= found, "a field has no argument")
        scalars = all(shape == (0, 0) for shape in self.field_shapes)
        check(not scalars or len(self.arguments) == found, "a scalar is one argument")


@irdl_op_definition
class PrintOp(_TextOp):
    """`xetile.print` of scalars and fragments; `gpu.printf` knows no vectors."""

    name = "xegpu_x.print"

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
            properties=_text_properties(template, shapes, unsigned),
            **common,
        )


@irdl_op_definition
class AssertOp(_TextOp):
    """`xetile.assert`: upstream's `cf.assert` has a fixed text, and ends the device."""

    name = "xegpu_x.assert"

    condition = operand_def(i1)
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
            properties=_text_properties(template, shapes, unsigned),
            **common,
        )


XeGPUExtensions = Dialect("xegpu_x", [LaneBroadcastOp, ScanOp, PrintOp, AssertOp])
