"""Masks: true for the first rows, columns, ...  Source: MLIR, `vector` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, IndexType, VectorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..base import (
    Value,
    check,
    dense_i64,
    ints_of,
    parse_attributes,
    parse_indices,
    parse_operands,
    print_attributes,
    resolve_indices,
)
from ..operation import Common, XetlOp
from . import vector_syntax as syntax


def _check_mask_type(type_: VectorType[Attribute], bounds: int) -> None:
    check(
        type_.element_type == i1 and type_.get_num_dims() == bounds,
        f"expected a vector of i1 of rank {bounds}, found {type_}",
    )


@irdl_op_definition
class CreateMaskOp(XetlOp):
    """True where each coordinate is below its bound; bounds may be out of range."""

    name = "vector.create_mask"

    bounds = var_operand_def(IndexType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self, bounds: Sequence[Value], result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(operands=[bounds], result_types=[result_type], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%a, %b : vector``."""
        bounds = resolve_indices(parser, parse_operands(parser))
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        return cls(bounds, parser.parse_type(), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``%a, %b : vector``."""
        printer.print_string(" ")
        printer.print_list(self.bounds, printer.print_ssa_value)
        print_attributes(printer, self)
        syntax.print_types(printer, [self.result.type])

    def verify_(self) -> None:
        """Check that there is a bound for each dimension."""
        _check_mask_type(self.result.type, len(self.bounds))


@irdl_op_definition
class ConstantMaskOp(XetlOp):
    """True where each coordinate is below its constant bound."""

    name = "vector.constant_mask"

    mask_dim_sizes = prop_def(DenseArrayBase)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self, bounds: Sequence[int], result_type: Attribute, **common: Unpack[Common]
    ) -> None:
        super().__init__(
            result_types=[result_type],
            properties={"mask_dim_sizes": dense_i64(bounds)},
            **common,
        )

    @property
    def bounds(self) -> tuple[int, ...]:
        """The bounds."""
        return ints_of(self.mask_dim_sizes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``[3, 2] : vector``."""
        bounds = ints_of(parse_indices(parser).static)
        _, attributes = parse_attributes(parser, cls)
        parser.parse_punctuation(":")
        return cls(bounds, parser.parse_type(), attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``[3, 2] : vector``."""
        printer.print_string(f" {list(self.bounds)}")
        print_attributes(printer, self, ("mask_dim_sizes",))
        syntax.print_types(printer, [self.result.type])

    def verify_(self) -> None:
        """Check that there is a bound for each dimension."""
        _check_mask_type(self.result.type, len(self.bounds))


MASK_OPS = (CreateMaskOp, ConstantMaskOp)
