"""Convert the Python values that constructors take to attributes of properties.

A number becomes an ``i64`` (or the type that the definition fixes), a string a
`StringAttr`, True a `UnitAttr`, a list a dense array or an array of strings. Any other
attribute class is called with the value. ``makers`` of a class statement override this
for a property, and ``WORDS`` turns a word into its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    OptionalDef,
    ParamAttrConstraint,
    PropertyDef,
    VerificationContext,
)

from .base import dense_i64
from .literals import integer_attr

Maker: TypeAlias = Callable[[Any], "Attribute | None"]

Defaults: TypeAlias = Callable[[Mapping[str, Attribute]], dict[str, Attribute]]
"""Computes the properties that texts and callers leave out, from the types of operands
and results by name; ``DEFAULTS`` of an operation."""

MAKERS: dict[type[IRDLOperation], Mapping[str, Maker]] = {}
"""The ``makers`` of each class statement, by the name of the property."""


def default_properties(
    op_type: type[IRDLOperation], types: Sequence[Sequence[Attribute] | None]
) -> dict[str, Attribute]:
    """Return the properties that follow from the types of operands and results."""
    make: Defaults | None = getattr(op_type, "DEFAULTS", None)
    if make is None:
        return {}
    definition = op_type.get_irdl_definition()
    names = [name for name, _ in (*definition.operands, *definition.results)]
    return make({name: each[0] for name, each in zip(names, types) if each})


def maker_of(op_type: type[IRDLOperation], name: str, definition: PropertyDef) -> Maker:
    """Return the function that makes the attribute of a property from a value.

    The function returns None for an optional property whose value is None, False, empty
    or its default: the property is then left out.
    """
    given = (MAKERS[each].get(name) for each in op_type.mro() if each in MAKERS)
    make = next(given, None) or _maker_of(op_type, definition)
    default, is_optional = definition.default_value, isinstance(definition, OptionalDef)

    def attribute_of(value: Any) -> Attribute | None:
        if is_optional and (value is None or value is False or value in ((), [])):
            return None
        made = value if isinstance(value, Attribute) else make(value)
        return None if is_optional and made == default else made

    return attribute_of


def _maker_of(op_type: type[IRDLOperation], definition: PropertyDef) -> Maker:
    constraint = definition.constr
    found = tuple(constraint.get_bases() or ())
    base = found[0] if len(found) == 1 else Attribute
    if base is not IntegerAttr:
        return _MAKERS[base] if base in _MAKERS else cast(Maker, base)
    type_: Attribute = i64
    if isinstance(constraint, ParamAttrConstraint):
        of_type = constraint.param_constrs[1]
        if of_type.can_infer(set()):
            type_ = of_type.infer(VerificationContext())
    words: Sequence[str] = getattr(op_type, "WORDS", ())

    def number(value: int | str) -> Attribute:
        given = words.index(value) if isinstance(value, str) else value
        return integer_attr(int(given), cast(IntegerType, type_))

    return number


def _array(values: Sequence[str | Attribute]) -> Attribute:
    return ArrayAttr([StringAttr(v) if isinstance(v, str) else v for v in values])


_MAKERS: dict[type[Attribute], Maker] = {
    UnitAttr: lambda _: UnitAttr(),
    DenseArrayBase: dense_i64,
    ArrayAttr: _array,
}
