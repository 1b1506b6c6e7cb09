"""Sums up to each element."""

from __future__ import annotations

from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.irdl import prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from ..base import Value, check, dense_i64, ints_of, type_of
from ..combining import kind_fits, normalize_kind
from ..operation import Common
from . import value_syntax as syntax
from .value_ops import ValueOp


class TileScanOp(ValueOp, name="xetile.tile_scan"):
    """Combine all elements up to and with each one along ``dim``; rank 2.

    f16 and bf16 combine in f32, and each result is rounded once; integers wrap.  The
    order of the sums is not specified.  Source: MLIR, `vector.scan` (inclusive, from
    the neutral element).
    """

    kind = prop_def(StringAttr)
    scan_dims = prop_def(DenseArrayBase)

    def __init__(
        self, kind: str, source: Value, dim: int, **common: Unpack[Common]
    ) -> None:
        name, dims = StringAttr(normalize_kind(kind)), dense_i64([dim])
        type_ = type_of(source)
        super().__init__(source, type_, kind=name, scan_dims=dims, **common)

    @property
    def dim(self) -> int:
        """The dimension that is scanned."""
        return ints_of(self.scan_dims)[0]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``<add>, %v [1] : vector -> vector``."""
        kind = syntax.parse_reduction_kind(parser)
        return syntax.parse_with_dims(parser, cls, "scan_dims", kind)

    def print(self, printer: Printer) -> None:
        """Print ``<add>, %v [1] : vector -> vector``."""
        printer.print_string(f" <{self.kind.data}>,")
        syntax.print_with_dims(printer, self, "scan_dims", " ")

    def verify_(self) -> None:
        """Check kind, dimension and result."""
        source = self.source_type
        check(
            len(source.get_shape()) == 2,
            f"tile_scan takes a vector of rank 2, found {source}",
        )
        dims = ints_of(self.scan_dims)
        check(dims in ((0,), (1,)), f"the dimension is 0 or 1, found {list(dims)}")
        check(
            kind_fits(self.kind.data, source.element_type),
            f"`{self.kind.data}` does not combine elements of {source.element_type}",
        )
        check(source == self.result.type, "tile_scan keeps the type")
        self.verify_maps()
