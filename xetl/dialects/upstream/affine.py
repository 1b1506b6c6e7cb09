"""Affine functions of index values.  Source: MLIR, `affine` dialect.

Kernels use only these operations of the dialect, not its loops and accesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import prop_def, result_def, var_operand_def

from ..base import (
    Value,
    check,
    parse_attributes,
    parse_optional_operands,
    print_attributes,
    resolve_indices,
    write,
)
from ..operation import Common, PureOp, operations_of

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


class _AffineOp(PureOp):
    """``op #map(dimensions)[symbols]``."""

    map_operands = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType)

    def __init__(
        self, map_: AffineMapAttr, operands: Sequence[Value], **common: Unpack[Common]
    ) -> None:
        super().__init__(operands, map=map_, **common)

    @property
    def dimensions(self) -> Sequence[SSAValue]:
        """The operands for d0, d1, ... of the map."""
        return self.map_operands[: self.map.data.num_dims]

    @property
    def symbols(self) -> Sequence[SSAValue]:
        """The operands for s0, s1, ... of the map."""
        return self.map_operands[self.map.data.num_dims :]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``#map(%i)[%n]``."""
        position = parser.pos
        map_ = parser.parse_attribute()
        if not isinstance(map_, AffineMapAttr):
            parser.raise_error(f"expected an affine map, found {map_}", position)
        values = [
            *parse_optional_operands(parser, parser.Delimiter.PAREN),
            *parse_optional_operands(parser, parser.Delimiter.SQUARE),
        ]
        _, attributes = parse_attributes(parser, cls)
        return cls(map_, resolve_indices(parser, values), attributes=attributes)

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.map, [*self.dimensions])
        if self.symbols:
            with printer.in_square_brackets():
                printer.print_list(self.symbols, printer.print_ssa_value)
        print_attributes(printer, self, ("map",))

    def verify_(self) -> None:
        map_ = self.map.data
        expected = map_.num_dims + map_.num_symbols
        found = len(self.map_operands)
        check(expected == found, "the map takes {} operands, found {}", expected, found)
        check(bool(map_.results), "the map needs a result")


class ApplyOp(_AffineOp, name="affine.apply"):
    """Compute the one result of a map."""

    def verify_(self) -> None:
        super().verify_()
        found = len(self.map.data.results)
        check(found == 1, "the map of affine.apply has one result, found {}", found)


class MinOp(_AffineOp, name="affine.min"):
    """Compute the smallest result of a map."""


class MaxOp(_AffineOp, name="affine.max"):
    """Compute the largest result of a map."""


Affine = Dialect("affine", operations_of(__name__))
