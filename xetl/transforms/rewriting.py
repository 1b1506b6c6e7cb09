"""Greedy rewriting in which new operations keep the place of the matched one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import UnknownLoc
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


class _Located(RewritePattern):
    """Try patterns in order; what the first that fires creates is located."""

    def __init__(self, patterns: Sequence[RewritePattern]) -> None:
        self._patterns = patterns

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        """Apply the first pattern that changes something."""
        location = op.location
        created: list[Operation] = []
        handlers = rewriter.operation_insertion_handler
        handlers.append(created.append)
        try:
            for pattern in self._patterns:
                pattern.match_and_rewrite(op, rewriter)
                if rewriter.has_done_action:
                    break
        finally:
            # The list belongs to the walker: a handler left in it would give later
            # operations the location of this one.
            handlers.remove(created.append)
        for new in created:
            for inner in new.walk():
                if isinstance(inner.location, UnknownLoc):
                    inner.location = location


def apply_patterns(op: Operation, *patterns: RewritePattern) -> bool:
    """Rewrite everything inside ``op`` until no pattern fires; whether any did.

    Nothing is removed but what the patterns remove.
    """
    walker = PatternRewriteWalker(_Located(patterns))
    changed = False
    for region in op.regions:
        changed |= walker.rewrite_region(region)
    return changed


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


def apply_rules(op: Operation, rules: Mapping[type[Operation], Rule]) -> bool:
    """Replace all operations inside ``op`` that have rules, until none has one.

    Raises:
        LocatedVerifyException: a rule raised a VerifyException.
    """
    return apply_patterns(op, _ByRules(rules))
