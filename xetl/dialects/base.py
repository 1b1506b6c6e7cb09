"""Helpers of all operations: types of values, checks, lists, attribute dictionaries.

The `is_...` functions test xDSL's generic types so that type checkers know their
parameters, which `isinstance` leaves unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from typing_extensions import TypeIs
from xdsl.dialects import builtin
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer

T = TypeVar("T")
Value: TypeAlias = SSAValue | Operation
Values: TypeAlias = Sequence[SSAValue]
Index: TypeAlias = int | SSAValue
Indices: TypeAlias = Sequence[Index]
Part: TypeAlias = (
    str | int | SSAValue | Attribute | tuple["Part", ...] | Sequence["Part"]
)
"""An argument of `write`: a tuple is several parts, any other sequence a list."""


def type_of(value: Value) -> Attribute:
    """Return the type of a value, or of the only result of an operation."""
    return SSAValue.get(value).type


def element_type(type_: Attribute) -> Attribute:
    """Return the element type of a vector; return any other type unchanged."""
    return type_.element_type if is_vector(type_) else type_


def is_tf32(type_: Attribute) -> bool:
    """Whether elements are tf32: f32 of which products use 10 bits of fraction."""
    return isinstance(element_type(type_), builtin.FloatTF32Type)


def element_of(type_: Attribute) -> Attribute:
    """Return the element type of a memref. Raise a TypeError for other types."""
    if not is_memref(type_):
        raise TypeError(f"expected a memref, found {type_}")
    return type_.element_type


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """Return the shape of a vector or memref; return ``()`` for other types."""
    if isinstance(type_, builtin.VectorType | builtin.MemRefType):
        return type_.get_shape()
    return ()


def reshaped(type_: Attribute, shape: Sequence[int]) -> builtin.VectorType[Attribute]:
    """Return a vector's type with another shape. Raise a TypeError for other types."""
    if not is_vector(type_):
        raise TypeError(f"expected a vector, found {type_}")
    return _vector_of(type_.element_type, tuple(shape))


def with_element(type_: Attribute, element: Attribute) -> Attribute:
    """Return ``type_`` with another element type; a scalar is replaced as a whole."""
    if is_vector(type_):
        return _vector_of(element, type_.get_shape(), type_.scalable_dims)
    return element


def row_type(element: Attribute, lanes: int) -> builtin.VectorType[Attribute]:
    """Return the type of a rank-1 vector."""
    return _vector_of(element, (lanes,))


# Made once each: xDSL takes 50 us for a vector's type.
@lru_cache(maxsize=4096)
def _vector_of(
    element: Attribute, shape: tuple[int, ...], *scalable: Any
) -> builtin.VectorType[Attribute]:
    return builtin.VectorType(element, shape, *scalable)


def vector_type(value: Value) -> builtin.VectorType[Attribute]:
    """Return the vector type of ``value``. Raise a TypeError for other types."""
    found = type_of(value)
    if not is_vector(found):
        raise TypeError(f"expected a vector, found {found}")
    return found


def memref_type(value: Value) -> builtin.MemRefType[Attribute]:
    """Return the memref type of ``value``. Raise a TypeError for other types."""
    found = type_of(value)
    if not is_memref(found):
        raise TypeError(f"expected a memref, found {found}")
    return found


def check(condition: bool, message: str, *values: object) -> None:
    """Raise a VerifyException with ``message`` unless ``condition``.

    Args:
        message: the problem, with a ``{}`` for each of ``values``. It is formatted
            only on failure: printing types costs more than all else in a check.
            Assign a long one to a name first.
    """
    if not condition:
        raise VerifyException(message.format(*values) if values else message)


# Lists that mix constants and values ------------------------------------------------


def split_indices(
    indices: Sequence[int | Value],
) -> tuple[list[SSAValue], builtin.DenseArrayBase]:
    """Split ``[8, %i]`` as MLIR does: values, and constants with gaps for values."""
    values = [SSAValue.get(i) for i in indices if not isinstance(i, int)]
    static = [i if isinstance(i, int) else builtin.DYNAMIC_INDEX for i in indices]
    return values, dense_i64(static)


def mix_indices(
    static: Attribute | None, values: Iterable[SSAValue]
) -> tuple[Index, ...]:
    """Undo ``split_indices``."""
    return fill_gaps(ints_of(static), values)


def fill_gaps(numbers: Iterable[int], values: Iterable[T]) -> tuple[int | T, ...]:
    """Return constants with a value for each gap, as in the shape of a type."""
    rest = iter(values)
    return tuple(next(rest) if n == builtin.DYNAMIC_INDEX else n for n in numbers)


def int_array(values: Iterable[int]) -> builtin.ArrayAttr[builtin.IntegerAttr]:
    """Return ``[1, 2]``: an array of integer attributes."""
    return builtin.ArrayAttr([builtin.IntegerAttr(n, builtin.i64) for n in values])


def ints_of(attribute: Attribute | None) -> tuple[int, ...]:
    """Return the integers of an array; return ``()`` for None."""
    if attribute is None:
        return ()
    if is_array(attribute):
        return tuple(each.value.data for each in attribute if is_integer_attr(each))
    if not isinstance(attribute, builtin.DenseArrayBase):
        raise TypeError(f"expected a dense array, found {attribute}")
    return tuple(int(i) for i in attribute.get_values())


def map_of_dims(dims: Sequence[int], rank: int) -> builtin.AffineMapAttr:
    """Return the map of ``rank`` dimensions whose results are ``dims``."""
    results = tuple(map(AffineDimExpr, dims))
    return builtin.AffineMapAttr(AffineMap(rank, 0, results))


def dims_of_map(attribute: builtin.AffineMapAttr) -> tuple[int, ...]:
    """Return the dimensions among the results of a map."""
    results = attribute.data.results
    return tuple(each.position for each in results if isinstance(each, AffineDimExpr))


class Read(property, Generic[T]):
    """A property of operations, whose type checkers know the type of."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type, /) -> property: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None, /) -> T: ...
        def __get__(self, instance: Any, owner: type | None = None, /) -> Any: ...


class Ints(Read[tuple[int, ...]]):
    """The integers of a property of an operation: ``dims = Ints("reduction_dims")``."""

    def __init__(
        self, name: str, read: Callable[[Any], tuple[int, ...]] = ints_of
    ) -> None:
        """Read the property, or the parameter, of this name."""
        super().__init__(lambda op: read(getattr(op, name)))


def dense_i64(values: Iterable[int]) -> builtin.DenseArrayBase:
    """Return ``array<i64: ...>``."""
    return builtin.DenseArrayBase.from_list(builtin.i64, tuple(values))


class MixedList(Read[tuple[Index, ...]]):
    """A list of values and constants (as int).

    Use: ``mixed_sizes = MixedList("sizes", "static_sizes")``. The constructor of the
    operation takes the list and splits it. If the property is optional, an empty list
    leaves it out. The verifier checks the list.
    """

    def __init__(self, values: str, static: str, name: str | None = None) -> None:
        """Mix two fields; messages use ``name``, by default the name of the values."""
        super().__init__(
            lambda op: mix_indices(op.properties.get(static), getattr(op, values))
        )
        self.values, self.static, self.name = values, static, name or values

    def check(self, op: Any) -> None:
        """Check that the list has a value for each of its gaps."""
        static, values = op.properties.get(self.static), getattr(op, self.values)
        gaps = ints_of(static).count(builtin.DYNAMIC_INDEX)
        if gaps != len(values):
            places = f"for {gaps} dynamic positions"
            places = "without their places" if static is None else places
            given = f"{len(values)} values are given"
            raise VerifyException(f"{self.name}: {given} {places}")


def mixed_lists(op_type: type) -> list[MixedList]:
    """Return the mixed lists of an operation class."""
    found = (each for cls in op_type.mro() for each in vars(cls).values())
    return [each for each in found if isinstance(each, MixedList)]


class ParsedIndices(NamedTuple):
    """A parsed mixed list, with operands whose type is not known yet."""

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
    return ParsedIndices(values, dense_i64(static))


def print_indices(
    printer: Printer, static: Attribute, values: Iterable[SSAValue]
) -> None:
    """Print ``[8, %i]``."""
    with printer.in_square_brackets():
        found = mix_indices(static, values)
        printer.print_list(found, lambda each: write(printer, each))


def write(printer: Printer, *parts: Part) -> None:
    """Print parts in order; print a list in parentheses, with commas."""
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

    MLIR prints properties as ``<{...}>`` or in the plain dictionary.
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
    """Print properties and attributes as one dictionary, without ``elided``."""
    printer.print_op_attributes(
        op.properties | op.attributes, reserved_attr_names=elided
    )


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """Parse ``%a, %b``, at least one operand."""
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


def is_number(type_: Attribute) -> bool:
    """Whether values of the type are scalar numbers."""
    return isinstance(type_, builtin.IntegerType | builtin.IndexType | builtin.AnyFloat)


# These classes have no subclasses, so `type(...) is` suffices. `isinstance` would call
# the metaclass of abstract classes for each negative answer: 2,000 times in a kernel.


def is_vector(found: object) -> TypeIs[Vector]:
    """Whether this is a vector type."""
    return type(found) is builtin.VectorType


def is_memref(found: object) -> TypeIs[MemRef]:
    """Whether this is a memref type of known rank."""
    return type(found) is builtin.MemRefType


def is_integer_attr(found: object) -> TypeIs[AnyInteger]:
    """Whether this is an integer or index constant."""
    return type(found) is builtin.IntegerAttr


def is_dense(found: object) -> TypeIs[Dense]:
    """Whether this is a dense constant."""
    return isinstance(found, builtin.DenseIntOrFPElementsAttr)


def is_array(found: object) -> TypeIs[builtin.ArrayAttr[Attribute]]:
    """Whether this is an array attribute."""
    return isinstance(found, builtin.ArrayAttr)


def integer_width(found: object) -> int | None:
    """Return the bits of an integer type. Return None for other types, also index."""
    return found.bitwidth if type(found) is builtin.IntegerType else None


_T = TypeVar("_T", bound=Operation)


def operations_in(root: Operation | Region | Block, *kinds: type[_T]) -> list[_T]:
    """Return all operations of these classes, with ``root``, in the order of the text.

    The list is made at once, so later changes of a pass do not affect it. Passes call
    this often: it uses no generator for each level of nesting, unlike xDSL's `walk`.
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
    """Yield ``op`` and its ancestors of these classes, innermost first."""
    found: Operation | None = op
    while found is not None:
        if isinstance(found, kinds):
            yield found
        found = found.parent_op()


_KEEP_THE_NUMBER = ("arith.index_cast", "arith.extsi", "index.casts")
"""Casts of signed integers to wider ones, which keep the number of a constant."""


def constant_index(value: SSAValue | int) -> int | None:
    """Return the number of a constant of any dialect. Return None for other values."""
    if isinstance(value, int):
        return value
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in _KEEP_THE_NUMBER:
        owner = owner.operands[0].owner
    properties = getattr(owner, "properties", {})
    attribute = properties.get("value")
    return attribute.value.data if is_integer_attr(attribute) else None


def known(value: Index) -> Index:
    """Return the number of a constant; return any other value unchanged."""
    number = constant_index(value)
    return value if number is None else number
