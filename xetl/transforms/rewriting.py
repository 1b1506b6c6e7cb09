"""Greedy rewriting by rules, and replacement of types.

New operations get the location of the matched one. `retype` replaces types of values,
types inside of other types, and types in attributes.
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
"""Inserts the replacement of an operation and returns the new results, or returns None
to leave the operation."""


class _ByRules(RewritePattern):
    """Replaces operations by the results of their rules."""

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
    """Apply the rules to all operations inside ``op`` until none applies.

    Dead operations are not removed.

    Raises:
        LocatedVerifyException: a rule raised a VerifyException.
    """
    walker = PatternRewriteWalker(_ByRules(rules))
    for region in op.regions:
        walker.rewrite_region(region)


Retyping: TypeAlias = Callable[[Attribute], Attribute]
"""Returns the replacement of an attribute or a type, or the same one."""


def retyping(other: Callable[[Attribute], Attribute | None]) -> Retyping:
    """Return a memoised function that replaces attributes and types by ``other``.

    Nested ones, too; ``other`` returns None for those that it does not replace.
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
            # The same object if nothing changes: callers compare with `is`.
            known[attribute] = new = attribute if new == attribute else new
        return new

    return found


def retype(op: Operation, to: Retyping) -> None:
    """Replace types in the attributes of an operation and of the values it defines."""
    for value in defined_by(op):
        new = to(value.type)
        if new is not value.type:
            Rewriter.replace_value_with_new_type(value, new)
    for holder in (op.properties, op.attributes):
        for name, attribute in holder.items():
            holder[name] = to(attribute)
