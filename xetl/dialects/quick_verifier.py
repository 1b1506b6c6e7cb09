"""Check operations against their definitions faster than xDSL, with inferred types.

If the quick check fails, xDSL's verifier makes the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from xdsl import irdl
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from .base import MixedList
from .type_rules import type_problem


def install_quick_verifier(definition: irdl.OpDef, lists: Sequence[MixedList]) -> None:
    """Install a quick verifier that also checks mixed lists and inferred types."""
    check = quick_verifier(definition) or partial(irdl.OpDef.verify, definition)

    def verify(op: irdl.IRDLOperation) -> None:
        check(op)
        for each in lists:
            each.check(op)
        problem = type_problem(op)
        if problem is not None:
            raise VerifyException(problem)

    setattr(definition, "verify", verify)  # noqa: B010 (a method)


def quick_verifier(definition: irdl.OpDef) -> QuickVerifier | None:
    """Return a quick verifier for a definition.

    Return None if it has regions, successors or segments: xDSL verifies these.
    """
    places = [
        place
        for place, (_, each) in enumerate(definition.operands)
        if isinstance(each, irdl.VariadicDef)
    ]
    is_plain = not (
        definition.regions
        or definition.successors
        or len(places) > 1
        or any(isinstance(each, irdl.VariadicDef) for _, each in definition.results)
        or any(
            isinstance(each, irdl.AttrSizedOperandSegments)
            for each in definition.options
        )
    )
    return QuickVerifier(definition, *places) if is_plain else None


class QuickVerifier:
    """A replacement of `OpDef.verify` for one definition."""

    def __init__(self, definition: irdl.OpDef, variadic: int | None = None) -> None:
        self._definition = definition
        self._variadic = variadic
        self._operands = [each.constr for _, each in definition.operands]
        self._results = [each.constr for _, each in definition.results]
        self._has_optional = any(
            isinstance(each, irdl.OptionalDef) for _, each in definition.operands
        )
        self._traits: list[OpTrait] | None = None

    def __call__(self, op: Operation) -> None:
        """Check ``op``.

        Raises:
            VerifyException: what xDSL finds wrong.
        """
        try:
            is_right = self._is_right(op)
        except VerifyException:
            is_right = False
        if not is_right:
            irdl.OpDef.verify(self._definition, op)

    def _is_right(self, op: Operation) -> bool:
        groups = self._groups(op.operands)
        if groups is None or len(op.results) != len(self._results):
            return False
        if op.regions or op.successors:
            return False
        context = irdl.VerificationContext()
        for constraint, types in zip(self._operands, groups):
            constraint.verify(types, context)
        for constraint, result in zip(self._results, op.results):
            constraint.verify((result.type,), context)
        definition = self._definition
        if not op.properties.keys() <= definition.properties.keys():
            return False
        _check_attributes(definition.properties, op.properties, context)
        _check_attributes(definition.attributes, op.attributes, context)
        for trait in self._checking_traits():
            trait.verify(op)
        return True

    def _groups(
        self, operands: Sequence[SSAValue]
    ) -> Sequence[Sequence[Attribute]] | None:
        """Return the types of each operand. Return None if their number is wrong."""
        types = [value.type for value in operands]
        spare = len(types) - len(self._operands)
        place = self._variadic
        single = [(each,) for each in types]
        if place is None:
            return None if spare else single
        if spare < -1 or (self._has_optional and spare > 0):
            return None
        end = place + 1 + spare
        return [*single[:place], types[place:end], *single[end:]]

    def _checking_traits(self) -> list[OpTrait]:
        if self._traits is None:
            traits = self._definition.traits.traits
            self._traits = [t for t in traits if type(t).verify is not OpTrait.verify]
        return self._traits


def _check_attributes(
    definitions: Mapping[str, irdl.PropertyDef] | Mapping[str, irdl.AttributeDef],
    given: Mapping[str, Attribute],
    context: irdl.VerificationContext,
) -> None:
    for name, each in definitions.items():
        value = given.get(name)
        if value is not None:
            each.constr.verify(value, context)
        elif not isinstance(each, irdl.OptionalDef):
            raise VerifyException(name)
