"""Verify a module; errors name the operation and its location.

xDSL's own ``verify`` names neither the operation nor its location, and does not check
that a value is defined before its use, which passes that move code need. It does not
check maps either, which operations of any dialect may carry.
"""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from .xetile.used_maps import map_problem


class LocatedVerifyException(VerifyException):
    """An operation breaks a rule.

    ``op`` is the operation, ``problem`` the message. ``str()`` has both and the
    location, if it is known.
    """

    def __init__(self, op: Operation, problem: str) -> None:
        where = place_of(op)
        text = f"`{op.name}`: {problem}"
        super().__init__(f"{where}: {text}" if where else text)
        self.op = op
        self.problem = problem


def innermost(location: Attribute) -> FileLineColLoc | None:
    """Return the innermost file location of nested call sites, or None."""
    while isinstance(location, CallSiteLoc):
        location = location.callee
    return location if isinstance(location, FileLineColLoc) else None


def place_of(op: Operation) -> str:
    """Return ``file:line:column`` of an operation, or an empty string if unknown."""
    location = innermost(op.location)
    if location is None:
        return ""
    line, column = location.line.data, location.column.data
    return f"{location.filename.data}:{line}:{column}"


def verify(op: Operation) -> None:
    """Verify ``op`` and everything inside.

    Raises:
        LocatedVerifyException: for the first operation that breaks a rule, in the order
            of the text.
    """
    _verify_op(op, set())


def _verify_op(op: Operation, visible: set[SSAValue]) -> None:
    try:
        op.verify(verify_nested_ops=False)
    except LocatedVerifyException:
        raise
    except VerifyException as error:
        raise LocatedVerifyException(op, str(error)) from error
    problem = map_problem(op)
    if problem is not None:
        raise LocatedVerifyException(op, problem)
    for index, operand in enumerate(op.operands):
        if operand not in visible:
            raise LocatedVerifyException(
                op, f"operand {index} is used before it is defined, or out of scope"
            )
    for region in op.regions:
        # Blocks may come in any order: each may use the values of its siblings.
        inside = visible.copy()
        if len(region.blocks) > 1:
            for block in region.blocks:
                inside.update(block.args, *(op.results for op in block.ops))
        for block in region.blocks:
            _verify_block(op, block, inside)
    visible.update(op.results)


def _verify_block(parent: Operation, block: Block, visible: set[SSAValue]) -> None:
    visible.update(block.args)
    if block.first_op is None and not parent.has_trait(NoTerminator):
        raise LocatedVerifyException(parent, "a block is empty and lacks a terminator")
    for op in block.ops:
        _verify_op(op, visible)
