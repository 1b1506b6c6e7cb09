"""Type inference for constructors and the text of operations.

``like`` in the definition of an operand or a result says how its type is inferred::

    rhs = operand_def(like("lhs"))
    result = result_def(like("lhs", boolean_like))
    result = result_def(like("source", "permutation", permuted))  # of a property, too
    res = var_result_def(like_all("init_args"))

Texts and callers do not give such a type, nor a type that a constraint fixes, as
`IndexType` and `i1` do. The verifier compares inferred types with the actual ones
(`type_problem`), so ``verify_`` need not check a type with ``like``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, TypeAlias

from typing_extensions import TypeVar
from xdsl import irdl
from xdsl.ir import Attribute, AttributeCovT, AttributeInvT, SSAValue

Function: TypeAlias = Callable[..., Attribute | Sequence[Attribute]]
"""Computes a type from types, then properties; several types for a variadic result."""

Types: TypeAlias = list[Sequence[Attribute] | None]
"""Types by position in the definition; None: not known yet."""


@dataclass(frozen=True)
class Like(irdl.AttrConstraint[AttributeCovT]):
    """A constraint that says how a type is computed.

    Attributes:
        sources: names of operands or results, then of properties.
        function: computes the type from the sources' types (of a variadic source: the
            first type) and the properties.
        base: another constraint that the type must satisfy.
        is_whole: whether the types are those of all values of the source instead.
        is_binding: whether the type must be the computed one. If not, the type may be
            given, and ``verify_`` checks it.
    """

    sources: tuple[str, ...]
    function: Function
    base: irdl.AttrConstraint[AttributeCovT]
    is_whole: bool = False
    is_binding: bool = True

    def verify(
        self, attr: Attribute, constraint_context: irdl.VerificationContext
    ) -> None:
        self.base.verify(attr, constraint_context)

    def mapping_type_vars(
        self,
        type_var_mapping: Mapping[TypeVar, irdl.AttrConstraint | irdl.IntConstraint],
    ) -> Like[AttributeCovT]:
        """Map the type variables of the base."""
        return replace(self, base=self.base.mapping_type_vars(type_var_mapping))


def like(
    source: str,
    *others: str | Function,
    base: irdl.IRDLAttrConstraint[AttributeInvT] = Attribute,
    is_binding: bool = True,
) -> Like[AttributeInvT]:
    """Infer the type of ``source``, or a function (the last argument) of such types.

    Names of properties come after those of operands and results. If not `is_binding`,
    only constructors infer the type, and ``verify_`` checks it.
    """
    names = [source, *(each for each in others if isinstance(each, str))]
    functions = [each for each in others if not isinstance(each, str)]
    function = functions[0] if functions else _same
    constraint = irdl.irdl_to_attr_constraint(base)
    return Like(tuple(names), function, constraint, is_binding=is_binding)


def like_all(source: str) -> Like[Attribute]:
    """Infer all types of a variadic ``source``, for the same number of values."""
    anything = irdl.irdl_to_attr_constraint(Attribute)
    return Like((source,), _same, anything, is_whole=True)


def _same(type_: Attribute) -> Attribute:
    return type_


class Slot(NamedTuple):
    """An operand or a result of a definition."""

    is_result: bool
    position: int


class Step(NamedTuple):
    """Computes the types of one slot from those of others, and from properties."""

    target: Slot
    sources: tuple[Slot, ...]
    properties: tuple[str, ...]
    function: Function
    is_whole: bool


def plan_types(op_type: type[irdl.IRDLOperation], known: Iterable[str]) -> list[Step]:
    """Return the steps that compute all types from the types of the ``known`` names."""
    definition = op_type.get_irdl_definition()
    groups = ((False, definition.operands), (True, definition.results))
    slots = {
        name: Slot(is_result, index)
        for is_result, group in groups
        for index, (name, _) in enumerate(group)
    }
    constraints = {name: each.constr for _, group in groups for name, each in group}
    properties = {
        accessor: name
        for accessor, (name, kind) in definition.accessor_names.items()
        if kind == "property"
    }
    done, steps = {*known, *properties}, list[Step]()
    while left := [name for name in slots if name not in done]:
        rules = {name: rule_of(constraints[name]) for name in left}
        ready = {n: r for n, r in rules.items() if r and done >= set(r.sources)}
        if not ready:
            raise TypeError(f"{op_type.name}: nothing says the types of {left}")
        for name, rule in ready.items():
            types = tuple(slots[n] for n in rule.sources if n in slots)
            named = tuple(properties[n] for n in rule.sources if n in properties)
            steps.append(Step(slots[name], types, named, rule.function, rule.is_whole))
        done.update(ready)
    return steps


def infer_types(
    steps: Iterable[Step],
    operands: Types,
    results: Types,
    counts: Sequence[int],
    properties: Mapping[str, Attribute],
) -> None:
    """Fill in types in place; ``counts`` has the number of values of each operand."""
    tables = (operands, results)
    for (is_result, index), sources, named, function, is_whole in steps:
        given = [tables[source.is_result][source.position] for source in sources]
        if is_whole:
            tables[is_result][index] = given[0]
            continue
        if not all(given):  # of an optional operand that is absent
            tables[is_result][index] = ()
            continue
        types = [types[0] for types in given if types]
        made = function(*types, *[properties.get(name) for name in named])
        if isinstance(made, Attribute):
            made = [made] * (1 if is_result else counts[index])
        tables[is_result][index] = made


class _Checks:
    """The types of an operation that `Like` binds to others."""

    def __init__(self, op_type: type[irdl.IRDLOperation]) -> None:
        definition = op_type.get_irdl_definition()
        groups = (definition.operands, definition.results)
        self._names = [[name for name, _ in group] for group in groups]
        self._is_plain = not any(
            isinstance(each, irdl.VariadicDef) for group in groups for _, each in group
        )
        rules = [(n, _element_of(each.constr)) for group in groups for n, each in group]
        free = [n for n, r in rules if not (isinstance(r, Like) and r.is_binding)]
        self._steps = plan_types(op_type, free)

    def problem(self, op: irdl.IRDLOperation) -> str | None:
        """Return a message about a type that differs from the inferred one, or None."""
        types = self._types(op) if self._steps else ()
        for (is_result, index), sources, named, function, is_whole in self._steps:
            found = types[is_result][index]
            given = [types[source.is_result][source.position] for source in sources]
            if not found or not all(given):  # of an optional operand that is absent
                continue
            expected = given[0]
            if not is_whole:
                properties = [op.properties.get(name) for name in named]
                made = function(*(each[0] for each in given), *properties)
                expected = [made] * len(found) if isinstance(made, Attribute) else made
            if [*found] != [*expected]:
                texts = (", ".join(map(str, each)) for each in (found, expected))
                name = self._names[is_result][index]
                return "`{}` has type {}, expected {}".format(name, *texts)
        return None

    def _types(self, op: irdl.IRDLOperation) -> Sequence[Sequence[Sequence[Attribute]]]:
        if self._is_plain:
            return [[(v.type,) for v in group] for group in (op.operands, op.results)]
        return [[types_of(getattr(op, n)) for n in names] for names in self._names]


def types_of(values: SSAValue | Sequence[SSAValue] | None) -> Sequence[Attribute]:
    """Return the types of an operand or result of a definition."""
    if isinstance(values, SSAValue):
        return (values.type,)
    return [each.type for each in values or ()]


_checks_of = cache(_Checks)


def type_problem(op: irdl.IRDLOperation) -> str | None:
    """Return a message about a type that is not the inferred one.

    Return None if all types are right. ``verify_`` checks types that are not inferred.
    """
    try:
        return _checks_of(type(op)).problem(op)
    except TypeError as problem:
        return str(problem)
    except IndexError:
        return None


def _element_of(constraint: irdl.RangeConstraint) -> irdl.AttrConstraint | None:
    if isinstance(constraint, irdl.RangeLengthConstraint):
        constraint = constraint.constraint
    return constraint.constr if isinstance(constraint, irdl.RangeOf) else None


def rule_of(constraint: irdl.RangeConstraint) -> Like[Attribute] | None:
    """Return how a type with this constraint is inferred; None if it is to be given."""
    element = _element_of(constraint)
    if isinstance(element, Like):
        return element
    if element is not None and element.can_infer(set()):
        only: Attribute = element.infer(irdl.VerificationContext())
        return Like((), lambda: only, element)
    return None
