"""Types that follow from others, for constructors and the text of operations.

``like`` in the definition of an operand or a result says where its type comes from::

    rhs = operand_def(like("lhs"))
    result = result_def(like("lhs", boolean_like))

Neither the text nor a caller gives such a type.  Nor do they give one that a constraint
fixes, as `IndexType` and `i1` do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from typing_extensions import TypeVar
from xdsl.ir import Attribute, AttributeCovT, AttributeInvT
from xdsl.irdl import (
    AttrConstraint,
    IntConstraint,
    IRDLAttrConstraint,
    IRDLOperation,
    RangeConstraint,
    RangeLengthConstraint,
    RangeOf,
    VerificationContext,
    irdl_to_attr_constraint,
)

Function: TypeAlias = Callable[..., Attribute | Sequence[Attribute]]
"""From types to a type; to several types for a variadic result."""

Types: TypeAlias = list[Sequence[Attribute] | None]
"""By position in the definition; None where they are not known yet."""


@dataclass(frozen=True)
class Like(AttrConstraint[AttributeCovT]):
    """Says how a type is computed; the verifier of the operation compares.

    Attributes:
        sources: operands or results.
        function: of their types, of the first one where there are several.
        base: what the type must be besides.
    """

    sources: tuple[str, ...]
    function: Function
    base: AttrConstraint[AttributeCovT]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        """Check the base."""
        self.base.verify(attr, constraint_context)

    def mapping_type_vars(
        self, type_var_mapping: Mapping[TypeVar, AttrConstraint | IntConstraint]
    ) -> Like[AttributeCovT]:
        """Map those of the base."""
        mapped = self.base.mapping_type_vars(type_var_mapping)
        return Like(self.sources, self.function, mapped)


def like(
    source: str,
    *others: str | Function,
    base: IRDLAttrConstraint[AttributeInvT] = Attribute,
) -> Like[AttributeInvT]:
    """The type of ``source``, or a function (the last argument) of such types."""
    names = [source, *(each for each in others if isinstance(each, str))]
    functions = [each for each in others if not isinstance(each, str)]
    function = functions[0] if functions else _same
    return Like(tuple(names), function, irdl_to_attr_constraint(base))


def _same(type_: Attribute) -> Attribute:
    return type_


class Slot(NamedTuple):
    """An operand or a result of a definition."""

    is_result: bool
    position: int


class Step(NamedTuple):
    """Computes the types of one slot from those of others."""

    target: Slot
    sources: tuple[Slot, ...]
    function: Function


def plan_types(op_type: type[IRDLOperation], known: Iterable[str]) -> list[Step]:
    """The steps that compute all types, once those of ``known`` names are there."""
    definition = op_type.get_irdl_definition()
    groups = ((False, definition.operands), (True, definition.results))
    slots = {
        name: Slot(is_result, index)
        for is_result, group in groups
        for index, (name, _) in enumerate(group)
    }
    constraints = {name: each.constr for _, group in groups for name, each in group}
    done, steps = set(known), list[Step]()
    while left := [name for name in slots if name not in done]:
        rules = {name: _rule_of(constraints[name]) for name in left}
        ready = {n: rule for n, rule in rules.items() if rule and done >= set(rule[0])}
        if not ready:
            raise TypeError(f"{op_type.name}: nothing says the types of {left}")
        for name, (sources, function) in ready.items():
            steps.append(Step(slots[name], tuple(slots[s] for s in sources), function))
        done.update(ready)
    return steps


def infer_types(
    steps: Iterable[Step], operands: Types, results: Types, counts: Sequence[int]
) -> None:
    """Fill in types in place; operands have ``counts`` values each."""
    tables = (operands, results)
    for (is_result, index), sources, function in steps:
        given = [tables[source.is_result][source.position] for source in sources]
        if not all(given):  # of an optional operand that is absent
            tables[is_result][index] = ()
            continue
        made = function(*(types[0] for types in given if types))
        if isinstance(made, Attribute):
            made = [made] * (1 if is_result else counts[index])
        tables[is_result][index] = made


def is_inferred(constraint: RangeConstraint) -> bool:
    """Whether a type that satisfies this is not given."""
    return _rule_of(constraint) is not None


def _rule_of(constraint: RangeConstraint) -> tuple[tuple[str, ...], Function] | None:
    if isinstance(constraint, RangeLengthConstraint):
        constraint = constraint.constraint
    if not isinstance(constraint, RangeOf):
        return None
    element = constraint.constr
    if isinstance(element, Like):
        return element.sources, element.function
    if element.can_infer(set()):
        only: Attribute = element.infer(VerificationContext())
        return (), lambda: only
    return None
