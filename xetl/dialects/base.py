"""What operations share: types of values, checks, lists, attribute dictionaries.

Its tests of xDSL's generic types can be followed by type checkers: `isinstance` leaves
their parameters unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast, overload

from typing_extensions import TypeIs
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer

Value: TypeAlias = SSAValue | Operation
Values: TypeAlias = Sequence[SSAValue]
Index: TypeAlias = int | SSAValue
Indices: TypeAlias = Sequence[Index]
Part: TypeAlias = (
    str | int | SSAValue | Attribute | tuple["Part", ...] | Sequence["Part"]
)
"""What `write` prints: a tuple is several parts, any other sequence a list."""


def type_of(value: Value) -> Attribute:
    """The type of a value, or of the only result of an operation."""
    return SSAValue.get(value).type


def element_type(type_: Attribute) -> Attribute:
    """The element type of a vector, any other type itself."""
    return type_.element_type if is_vector(type_) else type_


def is_tf32(type_: Attribute) -> bool:
    """Whether elements are f32 of which products see 10 bits of fraction."""
    return isinstance(element_type(type_), builtin.FloatTF32Type)


def element_of(type_: Attribute) -> Attribute:
    """The element type of a memref; a TypeError if it is none."""
    if not is_memref(type_):
        raise TypeError(f"expected a memref, found {type_}")
    return type_.element_type


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """The shape of a vector or memref; of anything else ``()``."""
    if isinstance(type_, builtin.VectorType | builtin.MemRefType):
        return type_.get_shape()
    return ()


def with_element(type_: Attribute, element: Attribute) -> Attribute:
    """``type_`` with its element type replaced; a scalar is replaced as a whole."""
    if is_vector(type_):
        return builtin.VectorType(element, type_.shape, type_.scalable_dims)
    return element


@lru_cache(maxsize=1024)
def row_type(element: Attribute, lanes: int) -> builtin.VectorType[Attribute]:
    """The vector of so many elements: one object, for xDSL takes 50 us to make it."""
    return builtin.VectorType(element, [lanes])


def vector_type(value: Value) -> builtin.VectorType[Attribute]:
    """The vector type of ``value``; a TypeError if it is none."""
    found = type_of(value)
    if not is_vector(found):
        raise TypeError(f"expected a vector, found {found}")
    return found


def memref_type(value: Value) -> builtin.MemRefType[Attribute]:
    """The memref type of ``value``; a TypeError if it is none."""
    found = type_of(value)
    if not is_memref(found):
        raise TypeError(f"expected a memref, found {found}")
    return found


def check(condition: bool, message: str, *values: object) -> None:
    """Raise a VerifyException with ``message`` unless ``condition``.

    Args:
        condition: what must hold.
        message: what does not; with ``values``, its ``{}`` in their order: where a
            check is frequent, text of types that are right costs more than all else.

    A long message stands in a line before; what fits no line is an ``if`` that raises.
    """
    if not condition:
        raise VerifyException(message.format(*values) if values else message)


# Lists that mix constants and values ------------------------------------------------


def split_indices(
    indices: Sequence[int | Value],
) -> tuple[list[SSAValue], builtin.DenseArrayBase]:
    """Split ``[8, %i]`` as MLIR keeps it: values, and constants with gaps for them."""
    values = [SSAValue.get(i) for i in indices if not isinstance(i, int)]
    static = [i if isinstance(i, int) else builtin.DYNAMIC_INDEX for i in indices]
    return values, builtin.DenseArrayBase.from_list(builtin.i64, static)


def mix_indices(static: Attribute, values: Iterable[SSAValue]) -> tuple[Index, ...]:
    """Undo ``split_indices``."""
    rest = iter(values)
    return tuple(
        next(rest) if i == builtin.DYNAMIC_INDEX else i for i in ints_of(static)
    )


def int_array(values: Iterable[int]) -> builtin.ArrayAttr[builtin.IntegerAttr]:
    """``[1, 2]``: an array of integer attributes."""
    return builtin.ArrayAttr(
        [builtin.IntegerAttr(value, builtin.i64) for value in values]
    )


def ints_of(attribute: Attribute | None) -> tuple[int, ...]:
    """The integers of a dense array, ``()`` for None."""
    if attribute is None:
        return ()
    if not isinstance(attribute, builtin.DenseArrayBase):
        raise TypeError(f"expected a dense array, found {attribute}")
    return tuple(int(i) for i in attribute.get_values())


def dense_i64(values: Iterable[int]) -> builtin.DenseArrayBase:
    """``array<i64: ...>``."""
    return builtin.DenseArrayBase.from_list(builtin.i64, tuple(values))


def check_indices(name: str, static: Attribute, values: Sequence[SSAValue]) -> None:
    """Check that a mixed list has a value for each of its gaps."""
    gaps = ints_of(static).count(builtin.DYNAMIC_INDEX)
    if gaps != len(values):
        problem = f"{name}: {len(values)} values are given for {gaps} dynamic positions"
        raise VerifyException(problem)


class MixedList(property):
    """``mixed_sizes = MixedList("sizes", "static_sizes")``: constants as int.

    The constructor of the operation takes the list and splits it; where the property is
    optional, an empty list is none.  `XetlOp.verify_lists` checks it.
    """

    def __init__(self, values: str, static: str, name: str | None = None) -> None:
        """Mix two fields; ``name``, that of the values if absent, is for messages."""
        super().__init__(self._mixed)
        self.values, self.static, self.name = values, static, name or values

    @overload
    def __get__(self, instance: None, owner: type, /) -> property: ...
    @overload
    def __get__(
        self, instance: object, owner: type | None = None, /
    ) -> tuple[Index, ...]: ...
    def __get__(self, instance: Any, owner: type | None = None, /) -> Any:
        """The list of an operation."""
        return self if instance is None else self._mixed(instance)

    def _mixed(self, op: Any) -> tuple[Index, ...]:
        static = op.properties.get(self.static)
        return () if static is None else mix_indices(static, getattr(op, self.values))

    def check(self, op: Any) -> None:
        """Check that the list has a value for each of its gaps."""
        static, values = op.properties.get(self.static), getattr(op, self.values)
        if static is not None:
            check_indices(self.name, static, values)
        elif values:
            given = f"{len(values)} values are given"
            raise VerifyException(f"{self.name}: {given} without their places")


class ParsedIndices(NamedTuple):
    """A mixed list as read: operands whose type is not known yet."""

    values: list[UnresolvedOperand]
    static: builtin.DenseArrayBase


def parse_indices(
    parser: Parser, delimiter: Parser.Delimiter | None = None
) -> ParsedIndices:
    """Parse ``[8, %i]``."""
    values: list[UnresolvedOperand] = []
    static: list[int] = []

    def parse_one() -> None:
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            static.append(parser.parse_integer(allow_boolean=False))
        else:
            values.append(operand)
            static.append(builtin.DYNAMIC_INDEX)

    parser.parse_comma_separated_list(delimiter or parser.Delimiter.SQUARE, parse_one)
    return ParsedIndices(values, builtin.DenseArrayBase.from_list(builtin.i64, static))


def print_indices(
    printer: Printer, static: Attribute, values: Iterable[SSAValue]
) -> None:
    """Print ``[8, %i]``."""
    with printer.in_square_brackets():
        found = mix_indices(static, values)
        printer.print_list(found, lambda each: write(printer, each))


def write(printer: Printer, *parts: Part) -> None:
    """Print one part behind the other, of a list with commas and in parentheses."""
    for part in parts:
        if isinstance(part, str | int):
            printer.print_string(str(part))
        elif isinstance(part, SSAValue):
            printer.print_ssa_value(part)
        elif isinstance(part, Attribute):
            printer.print_attribute(part)
        elif isinstance(part, tuple):
            write(printer, *part)
        else:
            with printer.in_parens():
                printer.print_list(part, lambda each: write(printer, each))


# The text form ----------------------------------------------------------------------


def parse_attributes(
    parser: Parser, op_type: type[IRDLOperation]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Parse an optional attribute dictionary into (properties, attributes).

    MLIR prints properties in either place: ``<{...}>`` or the plain dictionary.
    """
    properties = parser.parse_optional_properties_dict()
    found = parser.parse_optional_attr_dict()
    known = op_type.get_irdl_definition().properties
    attributes = {k: v for k, v in found.items() if k not in known}
    properties |= {k: v for k, v in found.items() if k in known}
    return properties, attributes


def print_attributes(
    printer: Printer, op: Operation, elided: Iterable[str] = ()
) -> None:
    """Print properties and attributes as one dictionary, but for ``elided``."""
    printer.print_op_attributes(
        op.properties | op.attributes, reserved_attr_names=elided
    )


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parse ``%a, %b``, one at least."""
    return parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )


def parse_optional_operands(
    parser: Parser, delimiter: Parser.Delimiter
) -> list[UnresolvedOperand]:
    """Parse ``[%i, %j]`` or ``(%i, %j)``; an absent list is empty."""
    return (
        parser.parse_optional_comma_separated_list(
            delimiter, parser.parse_unresolved_operand
        )
        or []
    )


def resolve_indices(
    parser: Parser, operands: Iterable[UnresolvedOperand]
) -> list[SSAValue]:
    """Resolve operands that are all ``index``."""
    return [parser.resolve_operand(o, builtin.IndexType()) for o in operands]


Vector: TypeAlias = builtin.VectorType[Attribute]
MemRef: TypeAlias = builtin.MemRefType[Attribute]
AnyInteger: TypeAlias = builtin.IntegerAttr[builtin.IntegerType | builtin.IndexType]
Dense: TypeAlias = builtin.DenseIntOrFPElementsAttr[
    builtin.IntegerType | builtin.IndexType | builtin.AnyFloat
]


def is_vector(found: object) -> TypeIs[Vector]:
    """Whether this is a vector type."""
    return isinstance(found, builtin.VectorType)


def is_memref(found: object) -> TypeIs[MemRef]:
    """Whether this is a memref type of known rank."""
    return isinstance(found, builtin.MemRefType)


def is_integer_attr(found: object) -> TypeIs[AnyInteger]:
    """Whether this is an integer or index constant."""
    return isinstance(found, builtin.IntegerAttr)


def is_dense(found: object) -> TypeIs[Dense]:
    """Whether this is a dense constant."""
    return isinstance(found, builtin.DenseIntOrFPElementsAttr)


def is_array(found: object) -> TypeIs[builtin.ArrayAttr[Attribute]]:
    """Whether this is an array attribute."""
    return isinstance(found, builtin.ArrayAttr)


def integer_width(found: object) -> int | None:
    """Bits of an integer type; None for anything else, index too."""
    return found.bitwidth if isinstance(found, builtin.IntegerType) else None


_T = TypeVar("_T", bound=Operation)


def operations_in(root: Operation | Region | Block, *kinds: type[_T]) -> list[_T]:
    """All operations of these classes, ``root`` among them, in the order of the text.

    The list is made at once: what a pass changes meanwhile does not count. Passes look
    so often that it shows: no generator for each level of nesting, as xDSL's `walk`.
    """
    found: list[_T] = []
    wanted: dict[type, bool] = {}

    def visit(op: Operation | None) -> None:
        while op is not None:  # xDSL's iterator is an object with a method more
            cls = type(op)
            is_wanted = wanted.get(cls)
            if is_wanted is None:
                is_wanted = wanted[cls] = issubclass(cls, kinds)
            if is_wanted:
                found.append(cast("_T", op))
            for region in op.regions:
                for block in region.blocks:
                    visit(block.first_op)
            op = op.next_op if op is not root else None

    if isinstance(root, Operation):
        visit(root)
    else:
        for block in (root,) if isinstance(root, Block) else root.blocks:
            visit(block.first_op)
    return found


def around(op: Operation, *kinds: type[_T]) -> Iterator[_T]:
    """``op`` and what it stands in, innermost first: those of these classes."""
    found: Operation | None = op
    while found is not None:
        if isinstance(found, kinds):
            yield found
        found = found.parent_op()


_KEEP_THE_NUMBER = ("arith.index_cast", "arith.extsi", "index.casts")
"""Casts of signed integers to wider ones; of constants no other can be met."""


def constant_index(value: SSAValue | int) -> int | None:
    """The number of a constant, of whatever dialect; None if it is not constant."""
    if isinstance(value, int):
        return value
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in _KEEP_THE_NUMBER:
        owner = owner.operands[0].owner
    properties = getattr(owner, "properties", {})
    attribute = properties.get("value")
    return attribute.value.data if is_integer_attr(attribute) else None


def known(value: Index) -> Index:
    """The number of a constant, anything else as it is."""
    number = constant_index(value)
    return value if number is None else number
