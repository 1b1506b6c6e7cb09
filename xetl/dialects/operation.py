"""The base of our operation classes. A class statement defines an operation.

::

    class LoadOp(XetlOp, name="memref.load", traits=[MemoryReadEffect()]):
        '''One element of memory.'''

        memref = operand_def(MemRefType)
        indices = var_operand_def(IndexType)
        result = result_def(like("memref", element_of))

        assembly_format = (
            "$memref custom<Indices>($indices) attr-dict `:` "
            "type($memref)"
        )

A class with a ``name`` is defined as by `irdl_op_definition`. Its constructor takes
positional arguments: operands, then the result types that cannot be inferred (see
`type_rules`), then properties and regions, each in the order of their definition.
If base classes define some of the operands, all have the order of the text. Other
operands and properties are given by name, as are ``attributes=`` and ``location=``
(docs/design/0001-seams.md, section 3). Operands that are left out are absent, regions
that are left out are empty. A property may be given as a Python value (see
`property_values`), a `MixedList` as integers and values.

If several operands are variadic, the property `operandSegmentSizes` holds the number of
values of each, as in MLIR.

Operations that differ only by their names are rows of a table; see `row`.
"""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import ModuleType, new_class
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypedDict, TypeVar, cast

from xdsl import irdl
from xdsl.dialects.builtin import DenseArrayBase, LocationAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl.operations import BeforeVariadicSingleAccessor, VarIRConstruct
from xdsl.traits import Commutative, OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from xetl.imports import import_whole
from xetl.locks import ForkSafeLock

from .base import MixedList, Value, mixed_lists, split_indices
from .property_values import MAKERS, Defaults, Maker, default_properties, maker_of
from .type_rules import Types, infer_types, plan_types, rule_of, type_problem

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer

Operand: TypeAlias = Value | Sequence[Value | int] | None
Given: TypeAlias = Operand | Attribute | Sequence[Attribute] | Region | int | str
Lists: TypeAlias = Sequence[str] | Sequence[Sequence[int]]


SEGMENTS = irdl.AttrSizedOperandSegments.attribute_name
FORMATS: dict[type[irdl.IRDLOperation], str] = {}
"""The assembly format of each class; a class without one uses that of its base."""


class Common(TypedDict, total=False):
    """Keyword arguments of all our constructors."""

    attributes: Mapping[str, Attribute | None] | None
    location: LocationAttr | None


class _Plain(ABCMeta):
    """A metaclass without registered subclasses: `isinstance` runs no Python code."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class XetlOp(irdl.IRDLOperation, metaclass=_Plain):
    """Base of our operations."""

    irdl_options = (irdl.ParsePropInAttrDict(),)
    DEFAULTS: ClassVar[Defaults | None] = None

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        traits: Sequence[OpTrait] = (),
        makers: Mapping[str, Maker] | None = None,
        **others: Any,
    ) -> None:
        """Define the operation ``name``.

        Args:
            name: the name of the operation; None for a base class.
            traits: the traits of the operation, besides those of its bases.
            makers: functions that make properties of Python values; see
                `property_values`.
        """
        super().__init_subclass__(**others)
        if makers is not None:
            MAKERS[cls] = makers
        if cls.assembly_format is not None:
            FORMATS[cls] = cls.assembly_format
            cls.assembly_format = None  # or xDSL would compile it here
            for method, by_format in _BY_FORMAT.items():
                setattr(cls, method, by_format)
        for constant in [each for each in vars(cls) if each.isupper()]:
            cls.__annotations__.setdefault(constant, ClassVar)
        if traits:
            cls.traits = irdl.traits_def(*traits)
        if name is not None:
            cls.name = name
            _define_later(cls)

    def __init__(
        self,
        *given: Given | Lists,
        operands: Sequence[Operand] | None = None,
        result_types: Sequence[Attribute | Sequence[Attribute] | None] | None = None,
        properties: Mapping[str, Attribute | None] | None = None,
        regions: Sequence[Region | Sequence[Region] | None] = (),
        successors: Sequence[Block | Sequence[Block] | None] = (),
        attributes: Mapping[str, Attribute | None] | None = None,
        location: LocationAttr | None = None,
        **named: object,
    ) -> None:
        """Build from operands and types; see the module's docstring."""
        # Does the same as xDSL's constructor, which takes three times as long.
        facts = _facts_of(type(self))
        types: Sequence[Any] = ()
        others: Sequence[Any] = ()
        if operands is None:
            operands, types, others = facts.split(given)
        known = {k: v for k, v in (properties or {}).items() if v is not None}
        if others or facts.region_count > len(regions):
            regions = facts.take_others(others, regions, known)
        if named:
            operands = facts.take_named(operands, named, known)
        if facts.lists:
            operands, known = facts.split_lists(operands, known)
        groups = facts.values(operands)
        if result_types is None:
            result_types = facts.result_types(groups, types, known)
        if self.DEFAULTS is not None:
            found = [[each.type for each in group] for group in groups]
            found += [flatten([each], Attribute) for each in result_types]
            known = default_properties(type(self), found) | known
        if facts.has_segments:
            sizes = [len(group) for group in groups]
            known[SEGMENTS] = DenseArrayBase.from_list(i32, sizes)
        Operation.__init__(
            self,
            operands=[value for group in groups for value in group],
            result_types=flatten(result_types, Attribute),
            properties=known,
            attributes={k: v for k, v in (attributes or {}).items() if v is not None},
            location=location,
            regions=flatten(regions, Region),
            successors=flatten(successors, Block),
        )


class PureOp(XetlOp, traits=[Pure()]):
    """Base of operations without effects, which may run at any place."""


_DEFINING = ForkSafeLock()


def _define_later(cls: type[XetlOp]) -> None:
    """Let xDSL define an operation when its definition is first needed.

    A kernel uses a fifth of all operations; defining one takes 0.2 ms.
    """
    made: dict[str, Any] = {}

    def define(_: type[XetlOp]) -> irdl.OpDef:
        with _DEFINING.held():
            if not made:
                definition = irdl.OpDef.from_pyrdl(cls)
                _order_operands(definition, cls)
                _count_segments(definition)
                _verify_more(definition, mixed_lists(cls))
                before = getattr(cls, "verify_", None)
                found = irdl.get_accessors_from_op_def(definition, before)
                found = {name: _quick(each) for name, each in found.items()}
                # Set last, so that the other members exist even after a Ctrl-C.
                found["get_irdl_definition"] = found.pop("get_irdl_definition")
                # All at once: xDSL fails on a class that has only some of these.
                made.update(found)
            for name, each in made.items():
                setattr(cls, name, each)
        return cls.get_irdl_definition()

    setattr(cls, "get_irdl_definition", classmethod(define))  # noqa: B010 (a method)


class _Operand(BeforeVariadicSingleAccessor):
    """Reads an operand: some 100 times for each operation of a kernel."""

    def __get__(self, obj: Any, objtype: Any = None) -> Any:
        return obj._operands[self.idx]  # xDSL's way takes 1 us


def _quick(found: Any) -> Any:
    """Return the same accessor, or a quicker one of an operand."""
    is_plain = type(found) is BeforeVariadicSingleAccessor
    is_operand = is_plain and found.construct is VarIRConstruct.OPERAND
    return _Operand(found.construct, found.idx) if is_operand else found


def _order_operands(definition: irdl.OpDef, cls: type[XetlOp]) -> None:
    """Give operands of base classes, which come last, their places in the text."""
    if all(name in vars(cls) for name, _ in definition.operands):
        return
    text = next((FORMATS[each] for each in cls.__mro__ if each in FORMATS), "")
    names = re.findall(r"\$(\w+)", text)
    definition.operands.sort(
        key=lambda each: names.index(each[0]) if each[0] in names else -1
    )


def _verify_more(definition: irdl.OpDef, lists: Sequence[MixedList]) -> None:
    """Let a definition also verify mixed lists and inferred types, equal ones once."""
    # By the identities of attributes, which the table keeps alive.
    known: dict[tuple[str | int, ...], tuple[Attribute, ...]] = {}
    others = definition.regions or definition.successors or definition.attributes

    def verify(op: irdl.IRDLOperation) -> None:
        values, properties = (*op.operands, *op.results), op.properties
        facts = (*(each.type for each in values), *properties.values())
        key = (len(op.results), *properties, *map(id, facts))
        if key in known:
            for trait in definition.traits:
                trait.verify(op)
            return
        irdl.OpDef.verify(definition, op)
        for each in lists:
            each.check(op)
        problem = type_problem(op)
        if problem is not None:
            raise VerifyException(problem)
        if not others and len(known) < 1024:
            known[key] = facts

    setattr(definition, "verify", verify)  # noqa: B010 (a method)


def _count_segments(definition: irdl.OpDef) -> None:
    """Add the property of segment sizes if several operands are variadic."""
    if sum(isinstance(each, irdl.VariadicDef) for _, each in definition.operands) > 1:
        definition.options.append(irdl.AttrSizedOperandSegments(as_property=True))
        definition.properties[SEGMENTS] = irdl.PropertyDef(
            irdl.BaseAttr(DenseArrayBase)
        )


OpT = TypeVar("OpT", bound=XetlOp)


def row(base: type[OpT], name: str, text: str, *, commutes: bool = False) -> type[OpT]:
    """Define an operation that differs from others by its name: a row of a table.

    ``AddfOp = row(FloatBinaryOp, "arith.addf", "Sum.")`` is short for the statement
    ``class AddfOp(FloatBinaryOp, name="arith.addf")`` with a docstring.

    Args:
        base: the class that defines operands, results, text and checks.
        name: the name of the operation; the name of the class is made of its words.
        commutes: whether the operation is commutative.
    """
    words = name.partition(".")[2].replace(".", "_").split("_")
    module = sys._getframe(1).f_globals["__name__"]  # pyright: ignore[reportPrivateUsage]
    return cast(
        "type[OpT]",
        new_class(
            "".join(word.capitalize() for word in words) + "Op",
            (base,),
            {"name": name, "traits": [Commutative()] if commutes else []},
            lambda body: body.update(__doc__=text, __module__=module),
        ),
    )


_T = TypeVar("_T")


def flatten(groups: Iterable[_T | Sequence[_T] | None], kind: type[_T]) -> list[_T]:
    """Return all objects of class ``kind`` in groups: one, several or None."""
    found: list[_T] = []
    for group in groups:
        if isinstance(group, kind):
            found.append(group)
        elif group is not None:
            found += cast(Sequence[_T], group)
    return found


def _format_of(op_type: type[XetlOp]) -> Any:
    # Imported late: a kernel that is no text needs none of it.
    return import_whole("xetl.dialects.assembly").format_of(op_type)


@classmethod
def _parse_by_format(cls: type[XetlOp], parser: Parser) -> XetlOp:
    return _format_of(cls).parse(parser, cls)


def _print_by_format(self: XetlOp, printer: Printer) -> None:
    _format_of(type(self)).print(printer, self)


_BY_FORMAT = {"parse": _parse_by_format, "print": _print_by_format}


class _Facts:
    """The data of a definition that the constructor needs, gathered once."""

    def __init__(self, op_type: type[XetlOp]) -> None:
        definition = op_type.get_irdl_definition()
        self._name = op_type.name
        operands = [name for name, _ in definition.operands]
        results = [name for name, _ in definition.results]
        self._operand_count = len(operands)
        self._is_single = [
            not isinstance(each, irdl.VariadicDef) for _, each in definition.operands
        ]
        self.has_segments = SEGMENTS in definition.properties
        self._operands = {name: index for index, name in enumerate(operands)}
        self._makers = {
            accessor: (name, maker_of(op_type, accessor, definition.properties[name]))
            for accessor, (name, kind) in definition.accessor_names.items()
            if kind == "property"
        }
        self.lists = {self._operands[x.values]: x for x in mixed_lists(op_type)}
        constants = {each.static for each in self.lists.values()}
        self._positional = [
            each for each in self._makers.values() if each[0] not in constants
        ]
        self._always = {
            name
            for name, each in definition.properties.items()
            if not isinstance(each, irdl.OptionalDef)
        }
        self._given = [
            index
            for index, (_, each) in enumerate(definition.results)
            if rule_of(each.constr) is None
        ]
        kinds = [each for _, each in definition.regions]
        self.region_count = sum(not isinstance(x, irdl.VariadicDef) for x in kinds)
        known = [*operands, *(results[index] for index in self._given)]
        self._steps = plan_types(op_type, known)
        self._result_count = len(results)

    def split(
        self, given: Sequence[Any]
    ) -> tuple[Sequence[Operand], Sequence[Attribute], Sequence[Any]]:
        """Split arguments into operands (None if left out), types, and all others."""
        count = self._operand_count
        for index, each in enumerate(given[:count]):
            if isinstance(each, Attribute | Region):
                count = index
                break
        end = count + len(self._given)
        values, types, others = given[:count], given[count:end], given[end:]
        missing = self._operand_count - len(values)
        values = (*values, *[None] * missing) if missing else values
        return values, types, others

    def take_others(
        self, others: Sequence[Any], regions: Sequence[Any], known: dict[str, Attribute]
    ) -> Sequence[Region | Sequence[Region] | None]:
        """Return all regions, empty if left out; add properties to ``known``."""
        found, rest = list(regions), iter(self._positional)
        for each in others:
            if isinstance(each, Region):
                found.append(each)
                continue
            key, make = next(rest, ("", None))
            if make is None and each is not None:
                raise TypeError(f"`{self._name}`: too many arguments, {each}")
            made = make(each) if make is not None else None
            if made is not None:
                known[key] = made
        return [*found, *(Region() for _ in range(self.region_count - len(found)))]

    def values(self, operands: Sequence[Operand]) -> list[Sequence[SSAValue]]:
        """Return the values of each operand of the definition."""
        groups = [_values_of(each) for each in operands]
        fits = len(groups) == self._operand_count and not any(
            is_single and len(group) != 1
            for is_single, group in zip(self._is_single, groups)
        )
        if not fits:
            found = [len(group) for group in groups]
            raise ValueError(f"`{self._name}`: wrong number of operands, {found}")
        return groups

    def result_types(
        self,
        operands: Sequence[Sequence[SSAValue]],
        given: Sequence[Any],
        properties: Mapping[str, Attribute],
    ) -> Sequence[Sequence[Attribute]]:
        """Return the types of all results; ``given`` are the types without a rule."""
        if len(given) != len(self._given):
            found = f"expected {len(self._given)} types, found {len(given)}"
            raise TypeError(f"`{self._name}`: {found}")
        results: Types = [None] * self._result_count
        for index, each in zip(self._given, given):
            results[index] = [each] if isinstance(each, Attribute) else each
        if self._steps:
            types: Types = [[value.type for value in group] for group in operands]
            infer_types(self._steps, types, results, (), properties)
        return [each or () for each in results]

    def take_named(
        self,
        operands: Sequence[Operand],
        named: Mapping[str, Any],
        known: dict[str, Attribute],
    ) -> Sequence[Operand]:
        """Return the operands with the named ones; add properties to ``known``."""
        found = list(operands)
        for name, value in named.items():
            index = self._operands.get(name)
            if index is not None:
                found[index] = value
                continue
            if name not in self._makers:
                raise TypeError(f"`{self._name}`: `{name}` cannot be {value}")
            key, make = self._makers[name]
            made = make(value)
            if made is not None:
                known[key] = made
        return found

    def split_lists(
        self, operands: Sequence[Operand], known: dict[str, Attribute]
    ) -> tuple[Sequence[Operand], dict[str, Attribute]]:
        """Split each `MixedList` into operands and a property of its constants."""
        found, constants = list(operands), dict[str, Attribute]()
        for index, each in self.lists.items():
            given = cast("Sequence[int | Value]", found[index] or ())
            is_wanted = bool(given) or each.static in self._always
            if is_wanted and each.static not in known:
                found[index], constants[each.static] = split_indices(given)
        return found, constants | known


_facts_of = cache(_Facts)


def _values_of(operand: Operand) -> Sequence[SSAValue]:
    if isinstance(operand, SSAValue):
        return (operand,)
    if operand is None:
        return ()
    if isinstance(operand, Operation):
        return (SSAValue.get(operand),)
    return [SSAValue.get(each) for each in cast("Sequence[Value]", operand)]


def operations_of(*modules: str | ModuleType) -> list[type[Operation]]:
    """Return the operations that modules define, in source order."""
    found: list[type[Operation]] = []
    for each in modules:
        module = each if isinstance(each, ModuleType) else sys.modules[each]
        for value in vars(module).values():
            if not isinstance(value, type) or value.__module__ != module.__name__:
                continue
            # `issubclass` of an abstract class would check all its subclasses.
            if XetlOp in value.__mro__ and "name" in vars(value):
                found.append(cast("type[XetlOp]", value))
    return found
