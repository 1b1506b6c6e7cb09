"""Allocations of memory and accesses; `memref_views` has the operations on views.

Source: MLIR, `memref` dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from xdsl import traits
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Dialect, TypeAttribute
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from .. import base
from ..memref_layout import has_static_layout
from ..operation import XetlOp, operations_of
from ..traits import READS_AND_WRITES
from ..type_rules import like
from . import memref_views as views
from .memref_views import *

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


class _IndexedOp(XetlOp):
    """An access to the element of ``memref`` at ``indices``."""

    memref = operand_def(builtin.MemRefType)
    indices = var_operand_def(builtin.IndexType)

    def verify_(self) -> None:
        rank, given = base.memref_type(self.memref).get_num_dims(), len(self.indices)
        base.check(rank == given, "expected {} indices, found {}", rank, given)


class LoadOp(_IndexedOp, name="memref.load", traits=[traits.MemoryReadEffect()]):
    """Read one element."""

    nontemporal = alignment = opt_prop_def(builtin.IntegerAttr)
    result = result_def(like("memref", base.element_of))

    assembly_format = "$memref custom<Indices>($indices) attr-dict `:` type($memref)"


class StoreOp(_IndexedOp, name="memref.store", traits=[traits.MemoryWriteEffect()]):
    """Write one element."""

    value = operand_def(like("memref", base.element_of))
    nontemporal = alignment = opt_prop_def(builtin.IntegerAttr)

    assembly_format = (
        "$value `,` $memref custom<Indices>($indices) attr-dict `:` type($memref)"
    )


class PrefetchOp(_IndexedOp, name="memref.prefetch", traits=READS_AND_WRITES):
    """Prefetch the cache line of an element; locality 3 keeps it in all caches."""

    isWrite = prop_def(builtin.IntegerAttr[builtin.I1])  # noqa: N815 - MLIR's name
    localityHint = prop_def(builtin.IntegerAttr[builtin.I32])  # noqa: N815 - MLIR's name
    isDataCache = prop_def(builtin.IntegerAttr[builtin.I1])  # noqa: N815 - MLIR's name

    assembly_format = (
        "$memref custom<Indices>($indices) `,` custom<Access>($isWrite) `,` `locality` "
        "`<` $localityHint `>` `,` custom<Cache>($isDataCache) attr-dict `:` "
        "type($memref)"
    )

    def verify_(self) -> None:
        super().verify_()
        found = self.localityHint.value.data
        base.check(0 <= found <= 3, "locality is 0, 1, 2 or 3, found {}", found)


class _AllocLike(XetlOp, traits=[traits.MemoryAllocEffect()]):
    dynamic_sizes = symbol_operands = var_operand_def(builtin.IndexType)
    alignment = opt_prop_def(builtin.IntegerAttr)
    result = result_def(builtin.MemRefType)

    assembly_format = (
        "`` `(` $dynamic_sizes `)` (`` `[` $symbol_operands^ `]`)? attr-dict `:` "
        "type($result)"
    )

    def verify_(self) -> None:
        needed = self.result.type.get_shape().count(builtin.DYNAMIC_INDEX)
        found = len(self.dynamic_sizes)
        base.check(
            needed == found, "expected {} dynamic sizes, found {}", needed, found
        )
        bytes_ = 1 if self.alignment is None else self.alignment.value.data
        if not (bytes_ > 0 and bytes_ & (bytes_ - 1) == 0):
            raise VerifyException(f"an alignment is a power of 2, found {bytes_}")


class AllocOp(_AllocLike, name="memref.alloc"):
    """Allocate memory, which lives until it is freed."""


class AllocaOp(_AllocLike, name="memref.alloca"):
    """Allocate memory, which lives until the function returns."""


class DeallocOp(XetlOp, name="memref.dealloc", traits=[traits.MemoryFreeEffect()]):
    """Free the memory of a memref.alloc."""

    memref = operand_def(builtin.MemRefType)

    assembly_format = "$memref attr-dict `:` type($memref)"


class CopyOp(XetlOp, name="memref.copy", traits=READS_AND_WRITES):
    """Copy all elements; source and target must not overlap."""

    source = target = operand_def(builtin.MemRefType)

    assembly_format = (
        "$source `,` $target attr-dict `:` type($source) `to` type($target)"
    )


class DimOp(XetlOp, name="memref.dim", traits=[traits.Pure()]):
    """The extent of a dimension."""

    source = operand_def(builtin.MemRefType)
    index = operand_def(builtin.IndexType)
    result = result_def(builtin.IndexType)

    assembly_format = "attr-dict $source `,` $index `:` type($source)"


# In the order of MLIR 22's enum, because the attribute holds the number of a kind.
ATOMIC_KINDS = (
    *("addf", "addi", "andi", "assign", "maximumf", "maxnumf", "maxs", "maxu"),
    *("minimumf", "minnumf", "mins", "minu", "mulf", "muli", "ori", "xori"),
)


def _atomic_kind(kind: str) -> Attribute:
    return builtin.IntegerAttr(ATOMIC_KINDS.index(kind), builtin.i64)


class AtomicRmwOp(
    _IndexedOp,
    name="memref.atomic_rmw",
    makers={"kind": _atomic_kind},
    traits=READS_AND_WRITES,
):
    """Combine one element with a value atomically, and return the old element."""

    kind = prop_def(builtin.IntegerAttr | builtin.StringAttr)
    value = operand_def(like("memref", base.element_of))
    result = result_def(like("value"))

    WORDS = ATOMIC_KINDS

    assembly_format = (
        "custom<Enumerated>($kind) $value `,` $memref custom<Indices>($indices) "
        "attr-dict `:` `(` type($value) `,` type($memref) `)` `->` type($result)"
    )

    @property
    def kind_name(self) -> str:
        """The combining kind, one of ATOMIC_KINDS."""
        if isinstance(self.kind, builtin.StringAttr):
            return self.kind.data
        return ATOMIC_KINDS[self.kind.value.data]


_HIDDEN_OF_GLOBAL = ("sym_name", "sym_visibility", "constant", "type", "initial_value")


class GlobalOp(XetlOp, name="memref.global", traits=[traits.SymbolOpInterface()]):
    """Memory with a name; a global without an initial value is a declaration."""

    sym_name = prop_def(builtin.SymbolNameConstraint())
    sym_visibility = opt_prop_def(builtin.StringAttr)
    type = prop_def(TypeAttribute)
    initial_value = opt_prop_def(Attribute)
    constant = opt_prop_def(builtin.UnitAttr)
    alignment = opt_prop_def(builtin.IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``"private" constant @name : memref = dense<...> {alignment = 8}``."""
        properties: dict[str, Attribute] = {}
        visibility = parser.parse_optional_str_literal()
        if visibility is not None:
            properties["sym_visibility"] = builtin.StringAttr(visibility)
        if parser.parse_optional_keyword("constant"):
            properties["constant"] = builtin.UnitAttr()
        properties["sym_name"] = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type_ = properties["type"] = parser.parse_type()
        if parser.parse_optional_punctuation("="):
            if parser.parse_optional_keyword("uninitialized"):
                properties["initial_value"] = builtin.UnitAttr()
            else:
                properties["initial_value"] = _parse_value(parser, type_)
        found, attributes = base.parse_attributes(parser, cls)
        return cls.create(properties=properties | found, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.sym_visibility is not None:
            printer.print_string(f'"{self.sym_visibility.data}" ')
        if self.constant is not None:
            printer.print_string("constant ")
        printer.print_symbol_name(self.sym_name.data)
        base.write(printer, " : ", self.type)
        value = self.initial_value
        if isinstance(value, builtin.UnitAttr):
            base.write(printer, " = uninitialized")
        elif value is not None:
            base.write(printer, " = ", str(value).rpartition(" : ")[0])
        base.print_attributes(printer, self, _HIDDEN_OF_GLOBAL)

    def verify_(self) -> None:
        type_, value = self.type, self.initial_value
        fits = base.is_memref(type_) and has_static_layout(type_)
        base.check(fits, "a global has a memref type of static shape, found {}", type_)
        if base.is_memref(type_) and base.is_dense(value):
            expected = _filled(type_)
            if value.type != expected:
                raise VerifyException(f"the value is {value.type}, expected {expected}")


def _parse_value(parser: Parser, type_: Attribute) -> Attribute:
    """Parse ``dense<...>``; its type is a tensor of the memref's shape."""
    if not base.is_memref(type_):
        parser.raise_error(f"expected a memref type, found {type_}")
    parser.parse_keyword("dense")
    return parser.parse_dense_int_or_fp_elements_attr(_filled(type_))  # pyright: ignore[reportArgumentType] (the elements are checked by it)


def _filled(type_: builtin.MemRefType[Attribute]) -> builtin.TensorType[Attribute]:
    """Return the type of an initial value: a tensor of the memref's shape."""
    return builtin.TensorType(type_.element_type, type_.get_shape())


class GetGlobalOp(XetlOp, name="memref.get_global", traits=[traits.Pure()]):
    """Return the memory of the global ``name``."""

    symbol = prop_def(builtin.FlatSymbolRefAttrConstr, prop_name="name")
    result = result_def(builtin.MemRefType)

    assembly_format = "$name `:` type($result) attr-dict"


MemRef = Dialect("memref", operations_of(views, __name__))
