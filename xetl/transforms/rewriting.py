"""Greedy rewriting in which new operations keep the place of the matched one.

Other types, wherever they stand: of values, inside of other types, in attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from xetl.analysis.axes import defined_by
from xetl.dialects.base import Values
from xetl.dialects.verify import LocatedVerifyException
from xetl.ir.builder import Builder

Rule: TypeAlias = Callable[[Builder, Any], Values | None]
"""Inserts what replaces an operation and gives its results; None: it stays."""


class _ByRules(RewritePattern):
    """Replace operations by what their rules build."""

    def __init__(self, rules: Mapping[type[Operation], Rule]) -> None:
        self._rules = rules

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        rule = self._rules.get(type(op))
        if rule is None:
            return
        build = Builder(InsertPoint.before(op), op.location, rewriter)
        try:
            values = rule(build, op)
        except VerifyException as error:
            raise LocatedVerifyException(op, str(error)) from None
        if values is not None:
            rewriter.replace(op, [], list(values))


def apply_rules(op: Operation, rules: Mapping[type[Operation], Rule]) -> None:
    """Replace all operations inside ``op`` that have rules, until none has one.

    Nothing else is removed.

    Raises:
        LocatedVerifyException: a rule raised a VerifyException.
    """
    walker = PatternRewriteWalker(_ByRules(rules))
    for region in op.regions:
        walker.rewrite_region(region)


Retyping: TypeAlias = Callable[[Attribute], Attribute]
"""From an attribute or a type to the one in its place."""


def retyping(other: Callable[[Attribute], Attribute | None]) -> Retyping:
    """Replace what ``other`` gives something for, also inside of attributes and types.

    It remembers what it was asked.
    """
    known: dict[Attribute, Attribute] = {}

    def inside(attribute: Attribute) -> Attribute:
        if isinstance(attribute, ArrayAttr):
            items = cast("ArrayAttr[Attribute]", attribute).data
            return ArrayAttr([found(each) for each in items])
        if isinstance(attribute, DictionaryAttr):
            return DictionaryAttr({k: found(v) for k, v in attribute.data.items()})
        if isinstance(attribute, ParametrizedAttribute):
            new = [found(each) for each in attribute.parameters]
            if any(one is not old for one, old in zip(new, attribute.parameters)):
                return type(attribute).new(new)
        return attribute

    def found(attribute: Attribute) -> Attribute:
        new = known.get(attribute)
        if new is None:
            new = other(attribute)
            new = inside(attribute) if new is None else new
            # Itself where nothing changes: what is equal need not be built again.
            known[attribute] = new = attribute if new == attribute else new
        return new

    return found


def retype(op: Operation, to: Retyping) -> None:
    """Give an operation, and the values it defines, other types."""
    for value in defined_by(op):
        new = to(value.type)
        if new is not value.type:
            Rewriter.replace_value_with_new_type(value, new)
    for holder in (op.properties, op.attributes):
        for name, attribute in holder.items():
            holder[name] = to(attribute)
