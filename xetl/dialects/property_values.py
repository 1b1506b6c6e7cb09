"""Attributes of properties, made of the Python values that constructors take.

A number becomes an ``i64`` (or of the type that the definition fixes), a text a
`StringAttr`, True a `UnitAttr`, a list a dense array or an array of texts; any other
class of attribute is called with the value.  ``makers`` of a class statement override
that by the name of the property, ``WORDS`` turns a word into its number.
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

Maker: TypeAlias = Callable[[Any], "Attribute | None"]

Defaults: TypeAlias = Callable[[Mapping[str, Attribute]], dict[str, Attribute]]
"""From the types of operands and results, by name, to properties that texts and callers
leave out; ``DEFAULTS`` of an operation."""

MAKERS: dict[type[IRDLOperation], Mapping[str, Maker]] = {}
"""What class statements say, by the names of properties."""


def default_properties(
    op_type: type[IRDLOperation], types: Sequence[Sequence[Attribute] | None]
) -> dict[str, Attribute]:
    """The properties that follow from the types of all operands, then results."""
    make: Defaults | None = getattr(op_type, "DEFAULTS", None)
    if make is None:
        return {}
    definition = op_type.get_irdl_definition()
    names = [name for name, _ in (*definition.operands, *definition.results)]
    return make({name: each[0] for name, each in zip(names, types) if each})


def maker_of(op_type: type[IRDLOperation], name: str, definition: PropertyDef) -> Maker:
    """The function from a value to the attribute of a property, or to None.

    An optional property is left out where its value is None, False or empty, or is its
    default.
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
        return IntegerAttr(int(given), cast(IntegerType, type_))

    return number


def _flag(_: bool) -> Attribute:
    return UnitAttr()


def _array(values: Sequence[str | Attribute]) -> Attribute:
    return ArrayAttr([StringAttr(v) if isinstance(v, str) else v for v in values])


_MAKERS: dict[type[Attribute], Maker] = {
    **{UnitAttr: _flag, DenseArrayBase: dense_i64, ArrayAttr: _array}
}
