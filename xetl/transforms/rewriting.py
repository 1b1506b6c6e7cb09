"""Greedy rewriting in which new operations keep the place of the matched one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.verify import LocatedVerifyException
from xetl.ir.builder import Builder

Values: TypeAlias = Sequence[SSAValue]
"""What replaces the results of an operation."""
Rule: TypeAlias = Callable[[Builder, Any], Values | None]
"""Inserts what replaces an operation; None: the operation stays."""


class _ByRules(RewritePattern):
    """Replace operations by what their rules build."""

    def __init__(self, rules: Mapping[type[Operation], Rule]) -> None:
        self._rules = rules

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Replace ``op`` if there is a rule for it."""
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
