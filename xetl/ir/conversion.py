"""Structured control flow in a 1:N conversion: carried values become several values.

A conversion walks a function and maps each old value to new ones. This module rebuilds
`scf.for`, `scf.while` and conditionals around the converted regions. Each value that
they carry becomes the values that its `Carried` describes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xetl.dialects.upstream import scf
from xetl.ir.builder import Builder
from xetl.records import record


@record(frozen=True)
class Carried:
    """How control flow carries a value.

    Attributes:
        types: the types of the new values.
        flatten: returns the new values for a converted value of this kind.
        bind: records that new values of these types replace an old value.
    """

    types: Sequence[Attribute]
    flatten: Callable[[SSAValue], Sequence[SSAValue]]
    bind: Callable[[SSAValue, Sequence[SSAValue]], None]


class Conversion(Protocol):
    """The interface of a conversion that the functions of this module use."""

    @property
    def emit(self) -> Builder:
        """The builder that inserts new operations."""
        ...

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """Return how ``op`` carries ``value``, a block argument or a result."""
        ...

    def converted(self, value: SSAValue) -> SSAValue:
        """Return the new scalar for an old one."""
        ...

    def convert(self, block: Block) -> None:
        """Convert the operations of an old block, without its terminator."""
        ...


def convert_for(c: Conversion, op: scf.ForOp) -> scf.ForOp:
    """Convert a counted loop; return the new one."""
    old = op.body.block
    counter, *carried = [c.carried(each, op) for each in old.args]
    inits = flatten(carried, op.init_args)
    body = Block(arg_types=types_of([counter, *carried]))
    with c.emit.inside(body):
        bind([counter, *carried], old.args, body.args)
        _convert_to_yield(c, old, carried)
    c.emit.location = op.location
    low, high, step = map(c.converted, (op.lower_bound, op.upper_bound, op.step))
    new = c.emit.add(scf.ForOp(low, high, step, inits, Region(body)))
    bind(carried, op.results, new.results)
    return new


def convert_while(c: Conversion, op: scf.WhileOp) -> scf.WhileOp:
    """Convert a loop with a condition; its two regions take different values."""
    before, after = op.before.block, op.after.block
    carried = [c.carried(each, op) for each in before.args]
    given = [c.carried(each, op) for each in op.results]
    inits = flatten(carried, op.inits)
    first, second = Block(arg_types=types_of(carried)), Block(arg_types=types_of(given))
    with c.emit.inside(first):
        bind(carried, before.args, first.args)
        c.convert(before)
        end = before.last_op
        assert isinstance(end, scf.ConditionOp)
        c.emit.location = end.location
        values = flatten(given, end.arguments)
        c.emit.add(scf.ConditionOp(c.converted(end.condition), *values))
    with c.emit.inside(second):
        bind(given, after.args, second.args)
        _convert_to_yield(c, after, carried)
    c.emit.location = op.location
    regions = Region(first), Region(second)
    new = c.emit.add(scf.WhileOp(inits, types_of(given), *regions))
    bind(given, op.results, new.results)
    return new


def convert_if(c: Conversion, op: Operation) -> Operation:
    """Convert a conditional, or another operation whose regions take no values."""
    carried = [c.carried(each, op) for each in op.results]
    regions: list[Region] = []
    for region in op.regions:
        blocks = [Block() for _ in region.blocks]
        regions.append(Region(blocks))
        for old, new in zip(region.blocks, blocks):
            with c.emit.inside(new):
                _convert_to_yield(c, old, carried)
    c.emit.location = op.location
    made = type(op).create(
        operands=[c.converted(each) for each in op.operands],
        result_types=types_of(carried),
        properties=dict(op.properties),
        regions=regions,
    )
    new = c.emit.add(made)
    bind(carried, op.results, new.results)
    return new


def _convert_to_yield(c: Conversion, block: Block, carried: Sequence[Carried]) -> None:
    c.convert(block)
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    c.emit.location = end.location
    c.emit.add(scf.YieldOp(*flatten(carried, end.operands)))


def types_of(carried: Sequence[Carried]) -> list[Attribute]:
    """Return the types of all new values."""
    return [type_ for each in carried for type_ in each.types]


def flatten(carried: Sequence[Carried], values: Sequence[SSAValue]) -> list[SSAValue]:
    """Return the new values for all old values, in one list."""
    pairs = zip(carried, values, strict=True)
    return [part for each, value in pairs for part in each.flatten(value)]


def bind(
    carried: Sequence[Carried], old: Sequence[SSAValue], new: Sequence[SSAValue]
) -> None:
    """Record for each old value which of the new ones, in order, replace it."""
    start = 0
    for each, value in zip(carried, old, strict=True):
        each.bind(value, new[start : start + len(each.types)])
        start += len(each.types)
