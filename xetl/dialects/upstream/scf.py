"""Structured control flow: loops and conditionals that carry values.

Source: MLIR, `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Attribute, Dialect, Region
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsTerminator,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)

from ..base import Value, check, type_of
from ..operation import Common, XetlOp
from . import scf_syntax as syntax
from .scf_forall import ForallInParallelOp, ForallOp
from .scf_regions import ExecuteRegionOp, IndexSwitchOp
from .scf_yield import YieldOp


class ConditionOp(XetlOp, name="scf.condition"):
    """End of a while loop's "before" region: go on, with these values?"""

    condition = operand_def(i1)
    arguments = var_operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "`(` $condition `)` attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(
        self, condition: Value, *arguments: Value, **common: Unpack[Common]
    ) -> None:
        super().__init__(condition, arguments, **common)


def _check_yield(region: Region, expected: Sequence[Attribute], what: str) -> None:
    last = region.blocks[-1].last_op if region.blocks else None
    check(isinstance(last, YieldOp), f"{what} must end in scf.yield")
    found = [operand.type for operand in last.operands] if last else []
    check(found == list(expected), f"{what} yields {found}, expected {list(expected)}")


class ForOp(XetlOp, name="scf.for"):
    """Run the body for lower, lower + step, ... < upper, carrying ``iter_args``.

    The block takes the counter and then the carried values.
    """

    lower_bound = operand_def()
    upper_bound = operand_def()
    step = operand_def()
    init_args = var_operand_def()
    body = region_def("single_block")
    res = var_result_def()

    traits = traits_def(RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        lower: Value,
        upper: Value,
        step: Value,
        iter_args: Sequence[Value],
        body: Region,
        **common: Unpack[Common],
    ) -> None:
        types = [type_of(value) for value in iter_args]
        super().__init__(lower, upper, step, iter_args, types, regions=[body], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%i = %a to %b step %c iter_args(...) -> (...) {...}``."""
        return syntax.parse_for(parser, cls, YieldOp)

    def print(self, printer: Printer) -> None:
        """Print ``%i = %a to %b step %c iter_args(...) -> (...) {...}``."""
        syntax.print_for(printer, self)

    def verify_(self) -> None:
        """Check bounds, carried values and the yield."""
        counter = self.lower_bound.type
        bounds = {counter, self.upper_bound.type, self.step.type}
        check(len(bounds) == 1, "the bounds and the step must have one type")
        carried = [value.type for value in self.init_args]
        found = [argument.type for argument in self.body.block.args]
        check(
            found == [counter, *carried],
            f"the body takes {found}, expected {[counter, *carried]}",
        )
        check(
            [result.type for result in self.res] == carried,
            "the results must have the types of the carried values",
        )
        _check_yield(self.body, carried, "the body")


class IfOp(XetlOp, name="scf.if"):
    """One of two regions; without results the second one may be empty."""

    condition = operand_def(i1)
    then_region = region_def("single_block")
    else_region = region_def()
    res = var_result_def()

    traits = traits_def(RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        condition: Value,
        result_types: Sequence[Attribute],
        then_region: Region,
        else_region: Region | None = None,
        **common: Unpack[Common],
    ) -> None:
        regions = [then_region, else_region or Region()]
        super().__init__(condition, result_types, regions=regions, **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%c -> (types) {...} else {...}``."""
        return syntax.parse_if(parser, cls, YieldOp)

    def print(self, printer: Printer) -> None:
        """Print ``%c -> (types) {...} else {...}``."""
        syntax.print_if(printer, self)

    def verify_(self) -> None:
        """Check what the regions yield."""
        types = [result.type for result in self.res]
        _check_yield(self.then_region, types, "the then region")
        if self.else_region.blocks:
            _check_yield(self.else_region, types, "the else region")
        else:
            check(not types, "an if with results needs an else region")


class WhileOp(XetlOp, name="scf.while"):
    """Run "before"; while its condition holds, run "after" and start again.

    Results are the values of the last scf.condition.
    """

    inits = var_operand_def()
    before = region_def("single_block")
    after = region_def("single_block")
    res = var_result_def()

    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        inits: Sequence[Value],
        result_types: Sequence[Attribute],
        before: Region,
        after: Region,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(inits, result_types, regions=[before, after], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%a = %b) : (types) -> types {...} do {...}``."""
        return syntax.parse_while(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``(%a = %b) : (types) -> types {...} do {...}``."""
        syntax.print_while(printer, self)

    def verify_(self) -> None:
        """Check the arguments and terminators of both regions."""
        carried = [value.type for value in self.inits]
        types = [result.type for result in self.res]
        check(
            [argument.type for argument in self.before.block.args] == carried,
            "the before region must take the initial values",
        )
        check(
            [argument.type for argument in self.after.block.args] == types,
            "the after region must take the results",
        )
        last = self.before.block.last_op
        check(
            isinstance(last, ConditionOp)
            and [value.type for value in last.arguments] == types,
            "the before region must end in scf.condition with the results",
        )
        _check_yield(self.after, carried, "the after region")


class ReduceOp(XetlOp, name="scf.reduce"):
    """End of a parallel loop: values to reduce, one region for each."""

    arguments = var_operand_def()
    reductions = var_region_def()

    traits = traits_def(IsTerminator(), RecursiveMemoryEffect())

    def __init__(
        self,
        arguments: Sequence[Value] = (),
        reductions: Sequence[Region] = (),
        **common: Unpack[Common],
    ) -> None:
        super().__init__(arguments, regions=[reductions], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%a, %b : types) {...}, {...}``."""
        return syntax.parse_reduce(parser, cls)

    def print(self, printer: Printer) -> None:
        """Print ``(%a, %b : types) {...}, {...}``."""
        syntax.print_reduce(printer, self)


class ReduceReturnOp(XetlOp, name="scf.reduce.return"):
    """The value of one reduction step."""

    result = operand_def()

    traits = traits_def(IsTerminator(), Pure())

    assembly_format = "$result attr-dict `:` type($result)"


class ParallelOp(XetlOp, name="scf.parallel"):
    """A nest of loops whose trips may run in any order or at once."""

    lower_bounds = var_operand_def(IndexType)
    upper_bounds = var_operand_def(IndexType)
    steps = var_operand_def(IndexType)
    init_vals = var_operand_def()
    body = region_def("single_block")
    res = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect(), RecursivelySpeculatable())

    def __init__(
        self,
        lowers: Sequence[Value],
        uppers: Sequence[Value],
        steps: Sequence[Value],
        body: Region,
        init_vals: Sequence[Value] = (),
        **common: Unpack[Common],
    ) -> None:
        types = [type_of(value) for value in init_vals]
        bounds = (lowers, uppers, steps)
        super().__init__(*bounds, init_vals, types, regions=[body], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%i, %j) = (..) to (..) step (..) init (..) -> types {...}``."""
        return syntax.parse_parallel(parser, cls, ReduceOp)

    def print(self, printer: Printer) -> None:
        """Print ``(%i, %j) = (..) to (..) step (..) init (..) -> types {...}``."""
        syntax.print_parallel(printer, self)

    def verify_(self) -> None:
        """Check that bounds, steps and counters agree, and the terminator."""
        rank = len(self.lower_bounds)
        check(
            rank == len(self.upper_bounds) == len(self.steps) > 0,
            "a parallel loop needs as many lower bounds as upper bounds and steps",
        )
        found = [argument.type for argument in self.body.block.args]
        check(
            found == [IndexType()] * rank,
            f"the body takes {found}, expected {rank} index counters",
        )
        last = self.body.block.last_op
        check(
            isinstance(last, ReduceOp)
            and [value.type for value in last.arguments]
            == [value.type for value in self.init_vals],
            "the body must end in scf.reduce with a value for each init value",
        )


Scf = Dialect(
    "scf",
    [
        YieldOp,
        ConditionOp,
        ForOp,
        IfOp,
        WhileOp,
        ReduceOp,
        ReduceReturnOp,
        ParallelOp,
        ForallOp,
        ForallInParallelOp,
        ExecuteRegionOp,
        IndexSwitchOp,
    ],
)

__all__ = [
    "ConditionOp",
    "ExecuteRegionOp",
    "ForOp",
    "ForallInParallelOp",
    "ForallOp",
    "IfOp",
    "IndexSwitchOp",
    "ParallelOp",
    "ReduceOp",
    "ReduceReturnOp",
    "Scf",
    "WhileOp",
    "YieldOp",
]
