"""Operations that find (or make) a micro-kernel: an i64, its address.

``xsmm.brgemm.dispatch [m, n, k, lda, ldb, ldc, stride_a, stride_b] flags = (vnni_b)
data_type = bf16``.  Sizes and strides in elements, row-major.  Dispatching has no
effect but the time it takes, so it may move anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, i64
from xdsl.ir import Attribute
from xdsl.irdl import (
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import ints_of
from xetl.dialects.operation import XetlOp
from xetl_cpu.xsmm.flags import (
    BINARY_FLAGS,
    BINARY_KINDS,
    DATA_TYPES,
    GEMM_FLAGS,
    UNARY_FLAGS,
    UNARY_KINDS,
)

GEMM_SIZES = ("m", "n", "k", "lda", "ldb", "ldc")
BRGEMM_SIZES = (*GEMM_SIZES, "stride_a", "stride_b")


def names_attribute(names: Sequence[str]) -> ArrayAttr[StringAttr]:
    """Names of flags as an attribute."""
    return ArrayAttr([StringAttr(name) for name in names])


class DispatchOp(XetlOp):
    """What all dispatches share: sizes, flags and a data type.

    ``SIZES`` names the numbers, ``FLAGS`` the lists of flags with their tables,
    ``KINDS`` what stands in front (or, fused, behind) of the numbers.
    """

    SIZES: ClassVar[tuple[str, ...]] = ()
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {"flags": GEMM_FLAGS}
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {}

    sizes = prop_def(DenseArrayBase)
    data_type = prop_def(StringAttr)
    flags = prop_def(ArrayAttr[StringAttr])
    kernel = result_def(i64)
    traits = traits_def(Pure())

    def __init__(
        self,
        sizes: Sequence[int],
        data_type: str,
        flags: Sequence[str] = ("none",),
        **others: Attribute,
    ) -> None:
        super().__init__(
            result_types=[i64],
            properties={
                "sizes": DenseArrayBase.from_list(i64, list(sizes)),
                "data_type": StringAttr(data_type),
                "flags": names_attribute(flags),
                **others,
            },
        )

    def size_list(self) -> tuple[int, ...]:
        """The numbers, in the order of ``SIZES``."""
        return ints_of(self.sizes)

    def names_of(self, name: str) -> tuple[str, ...]:
        """The flags of one list."""
        found: Any = self.properties[name]
        return tuple(one.data for one in found)

    def kind_of(self, name: str) -> str:
        """A kind's name."""
        found: Any = self.properties[name]
        return found.data

    def verify_(self) -> None:
        """Check that there are as many numbers as names, and all names are known."""
        if len(self.size_list()) != len(self.SIZES):
            raise VerifyException(
                f"`{self.name}` takes {len(self.SIZES)} numbers"
                f" ({', '.join(self.SIZES)}), found {len(self.size_list())}"
            )
        _check_name("data_type", self.data_type.data, DATA_TYPES)
        for name, table in self.FLAGS.items():
            for flag in self.names_of(name):
                _check_name(name, flag, table)
        for name, table in self.KINDS.items():
            _check_name(name, self.kind_of(name), table)

    @classmethod
    def parse(cls, parser: Parser) -> DispatchOp:
        """Parse what is printed."""
        given: dict[str, Attribute] = {}
        kinds = list(cls.KINDS)
        if len(kinds) == 1:
            given[kinds[0]] = StringAttr(parser.parse_identifier())
        square = parser.Delimiter.SQUARE
        sizes = parser.parse_comma_separated_list(square, parser.parse_integer)
        if len(kinds) > 1:
            found = parser.parse_comma_separated_list(square, parser.parse_identifier)
            if len(found) != len(kinds):
                parser.raise_error(f"expected {', '.join(kinds)}")
            given |= {name: StringAttr(one) for name, one in zip(kinds, found)}
        for name in cls.FLAGS:
            parser.parse_characters(name)
            parser.parse_punctuation("=")
            names = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_identifier
            )
            given[name] = names_attribute(names)
        parser.parse_characters("data_type")
        parser.parse_punctuation("=")
        data_type = parser.parse_identifier()
        op = cls.create(
            result_types=[i64],
            properties={
                "sizes": DenseArrayBase.from_list(i64, sizes),
                "data_type": StringAttr(data_type),
                **given,
            },
        )
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        """Print ``kind [sizes] flags = (names) data_type = name``."""
        kinds = [self.kind_of(name) for name in self.KINDS]
        sizes = f"[{', '.join(map(str, self.size_list()))}]"
        if len(kinds) == 1:
            printer.print_string(f" {kinds[0]} {sizes}")
        else:
            printer.print_string(f" {sizes}")
            printer.print_string(f" [{', '.join(kinds)}]" if kinds else "")
        for name in self.FLAGS:
            printer.print_string(f" {name} = ({', '.join(self.names_of(name))})")
        printer.print_string(f" data_type = {self.data_type.data}")
        printer.print_op_attributes(self.attributes)


def _check_name(what: str, name: str, table: Mapping[str, int]) -> None:
    if name not in table:
        raise VerifyException(f"{what} `{name}` is not one of {', '.join(table)}")


class GemmDispatchOp(DispatchOp, name="xsmm.gemm.dispatch"):
    """A kernel for one product."""

    SIZES = GEMM_SIZES


class BrgemmDispatchOp(DispatchOp, name="xsmm.brgemm.dispatch"):
    """A kernel for a batch of products that are summed."""

    SIZES = BRGEMM_SIZES


class TileConfigDispatchOp(DispatchOp, name="xsmm.IntelAMXtileConfig.dispatch"):
    """A kernel that sets AMX up (``no_reset_tileconfig``) or gives it back."""

    SIZES = BRGEMM_SIZES


class FusedBrgemmDispatchOp(DispatchOp, name="xsmm.fused_brgemm.dispatch"):
    """A BRGEMM followed by a binary and then a unary operation on C."""

    SIZES = BRGEMM_SIZES
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "flags": GEMM_FLAGS,
        "binary_flags": BINARY_FLAGS,
        "unary_flags": UNARY_FLAGS,
    }
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "binary_kind": BINARY_KINDS,
        "unary_kind": UNARY_KINDS,
    }

    binary_flags = prop_def(ArrayAttr[StringAttr])
    unary_flags = prop_def(ArrayAttr[StringAttr])
    binary_kind = prop_def(StringAttr)
    unary_kind = prop_def(StringAttr)


class UnaryDispatchOp(DispatchOp, name="xsmm.unary.dispatch"):
    """A kernel from one matrix to another."""

    SIZES = ("m", "n", "ldi", "ldo")
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {"flags": UNARY_FLAGS}
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {"kind": UNARY_KINDS}

    kind = prop_def(StringAttr)


class BinaryDispatchOp(DispatchOp, name="xsmm.binary.dispatch"):
    """A kernel from two matrices to a third."""

    SIZES = ("m", "n", "ldi_lhs", "ldi_rhs", "ldo")
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {"flags": BINARY_FLAGS}
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {"kind": BINARY_KINDS}

    kind = prop_def(StringAttr)
