"""Structured control flow: loops and conditionals that carry values.

Source: MLIR, `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects.builtin import DenseArrayBase, IndexType, i1
from xdsl.ir import Attribute, Dialect, Region
from xdsl.traits import (
    IsTerminator,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)
from xdsl.utils.exceptions import VerifyException

from ..base import (
    Value,
    check,
    dense_i64,
    ints_of,
    parse_attributes,
    print_attributes,
    write,
)
from ..operation import Common, XetlOp, operations_of
from ..type_rules import like_all
from . import scf_parallel as parallel
from .func import parse_keyword_attributes
from .scf_parallel import *

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer


class ConditionOp(XetlOp, name="scf.condition", traits=[IsTerminator(), Pure()]):
    """End the "before" region of a while loop: whether to go on, with which values."""

    condition = irdl.operand_def(i1)
    arguments = irdl.var_operand_def()

    assembly_format = "`(` $condition `)` attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(
        self, condition: Value, *arguments: Value, **common: Unpack[Common]
    ) -> None:
        super().__init__(condition, arguments, **common)


def _check_yield(region: Region, expected: Sequence[Attribute], what: str) -> None:
    last = region.blocks[-1].last_op if region.blocks else None
    check(isinstance(last, parallel.YieldOp), "{} must end in scf.yield", what)
    found = [operand.type for operand in last.operands] if last else []
    if found != list(expected):
        raise VerifyException(f"{what} yields {found}, expected {list(expected)}")


class ForOp(
    XetlOp, name="scf.for", traits=[RecursiveMemoryEffect(), RecursivelySpeculatable()]
):
    """Run the body for lower, lower + step, ... < upper.

    The block takes the counter, and then the loop-carried values. ``init_args`` are the
    first of these.
    """

    lower_bound = upper_bound = step = irdl.operand_def()
    init_args = irdl.var_operand_def()
    body = irdl.region_def("single_block")
    res = irdl.var_result_def(like_all("init_args"))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%i = %a to %b step %c iter_args(...) -> (...) {...}``."""
        counter = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        bounds = [parser.parse_unresolved_operand()]
        for word in ("to", "step"):
            parser.parse_keyword(word)
            bounds.append(parser.parse_unresolved_operand())
        arguments: list[Parser.UnresolvedArgument] = []
        inits: list[UnresolvedOperand] = []
        types: list[Attribute] = []
        if parser.parse_optional_keyword("iter_args"):
            arguments, inits = parallel.parse_assignments(parser)
            parser.parse_punctuation("->")
            types = parallel.parse_types(parser)
        type_ = parser.parse_type() if parser.parse_optional_punctuation(":") else None
        counter_type = type_ or IndexType()
        operands = [
            *(parser.resolve_operand(bound, counter_type) for bound in bounds),
            *parser.resolve_operands(inits, types, parser.pos),
        ]
        entry = [counter.resolve(counter_type)]
        entry += [a.resolve(t) for a, t in zip(arguments, types)]
        body = parser.parse_region(entry)
        parallel.terminate(body, parallel.YieldOp)
        properties, attributes = parse_attributes(parser, cls)
        return cls.create(
            operands=operands,
            result_types=types,
            regions=[body],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        counter, *arguments = self.body.block.args
        write(printer, " ", counter, " = ", self.lower_bound, " to ", self.upper_bound)
        write(printer, " step ", self.step)
        if arguments:
            write(
                printer, " iter_args", parallel.assignments(arguments, self.init_args)
            )
            parallel.print_result_types(
                printer, [argument.type for argument in arguments]
            )
        if counter.type != IndexType():
            write(printer, " : ", counter.type)
        parallel.print_body(printer, self.body, terminator=bool(arguments))
        print_attributes(printer, self)

    def verify_(self) -> None:
        counter = self.lower_bound.type
        bounds = {counter, self.upper_bound.type, self.step.type}
        check(len(bounds) == 1, "the bounds and the step must have one type")
        carried = [value.type for value in self.init_args]
        found = [argument.type for argument in self.body.block.args]
        text = "the body takes {}, expected {}"
        check(found == [counter, *carried], text, found, [counter, *carried])
        _check_yield(self.body, carried, "the body")


class IfOp(
    XetlOp, name="scf.if", traits=[RecursiveMemoryEffect(), RecursivelySpeculatable()]
):
    """Run one of two regions; if there are no results, the second one may be empty."""

    condition = irdl.operand_def(i1)
    then_region = irdl.region_def("single_block")
    else_region = irdl.region_def()
    res = irdl.var_result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%c -> (types) {...} else {...}``."""
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        types = parallel.parse_result_types(parser)
        regions = [parallel.parse_yielding_region(parser), Region()]
        if parser.parse_optional_keyword("else"):
            regions[1] = parallel.parse_yielding_region(parser)
        properties, attributes = parse_attributes(parser, cls)
        return cls.create(
            operands=[condition],
            result_types=types,
            regions=regions,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.condition)
        parallel.print_result_types(printer, self.result_types)
        parallel.print_body(printer, self.then_region, terminator=bool(self.results))
        if self.else_region.blocks:
            write(printer, " else")
            parallel.print_body(
                printer, self.else_region, terminator=bool(self.results)
            )
        print_attributes(printer, self)

    def verify_(self) -> None:
        types = [result.type for result in self.res]
        _check_yield(self.then_region, types, "the then region")
        if self.else_region.blocks:
            _check_yield(self.else_region, types, "the else region")
        else:
            check(not types, "an if with results needs an else region")


class WhileOp(XetlOp, name="scf.while", traits=[RecursiveMemoryEffect()]):
    """Run "before"; while its condition holds, run "after" and start again.

    Results are the values of the last scf.condition.
    """

    inits = irdl.var_operand_def()
    before = after = irdl.region_def("single_block")
    res = irdl.var_result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%a = %b) : (types) -> types {...} do {...}``."""
        arguments: list[Parser.UnresolvedArgument] = []
        inits: list[UnresolvedOperand] = []
        if parser.parse_optional_punctuation("("):
            parser._resume_from(parser.pos - 1)  # pyright: ignore[reportPrivateUsage]
            arguments, inits = parallel.parse_assignments(parser)
        parser.parse_punctuation(":")
        function_type = parser.parse_function_type()
        types = function_type.inputs.data
        operands = parser.resolve_operands(inits, types, parser.pos)
        before = parser.parse_region([a.resolve(t) for a, t in zip(arguments, types)])
        parser.parse_keyword("do")
        after = parser.parse_region()
        attributes = parse_keyword_attributes(parser)
        return cls.create(
            operands=operands,
            result_types=function_type.outputs.data,
            regions=[before, after],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        write(printer, " ")
        if self.inits:
            write(
                printer, parallel.assignments(self.before.block.args, self.inits), " "
            )
        write(printer, ": ")
        printer.print_function_type([v.type for v in self.inits], self.result_types)
        parallel.print_body(printer, self.before, terminator=True)
        write(printer, " do ")
        printer.print_region(self.after)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    def verify_(self) -> None:
        carried = [value.type for value in self.inits]
        types = [result.type for result in self.res]
        if [argument.type for argument in self.before.block.args] != carried:
            raise VerifyException("the before region must take the initial values")
        if [argument.type for argument in self.after.block.args] != types:
            raise VerifyException("the after region must take the results")
        last = self.before.block.last_op
        given = [each.type for each in last.operands[1:]] if last else []
        fits = isinstance(last, ConditionOp) and given == types
        check(fits, "the before region must end in scf.condition with the results")
        _check_yield(self.after, carried, "the after region")


class ExecuteRegionOp(
    XetlOp, name="scf.execute_region", traits=[RecursiveMemoryEffect()]
):
    """Run the region once; the results are the values that it yields."""

    region = irdl.region_def()
    res = irdl.var_result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``-> (types) no_inline {...}``."""
        types = parallel.parse_result_types(parser)
        parser.parse_optional_keyword("no_inline")
        region = parser.parse_region()
        attributes = parser.parse_optional_attr_dict()
        return cls.create(result_types=types, regions=[region], attributes=attributes)

    def print(self, printer: Printer) -> None:
        parallel.print_result_types(printer, self.result_types)
        write(printer, " ")
        printer.print_region(self.region, print_empty_block=False)
        print_attributes(printer, self)


class IndexSwitchOp(XetlOp, name="scf.index_switch", traits=[RecursiveMemoryEffect()]):
    """Run the region of the case that equals the argument, else the default region."""

    arg = irdl.operand_def(IndexType)
    cases = irdl.prop_def(DenseArrayBase)
    default_region = irdl.region_def("single_block")
    case_regions = irdl.var_region_def("single_block")
    res = irdl.var_result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``%i {...} -> types case 2 {...} default {...}``."""
        operand = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            types += parser.parse_optional_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_type
            ) or parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_type
            )
        cases: list[int] = []
        regions: list[Region] = []
        while parser.parse_optional_keyword("case"):
            cases.append(parser.parse_integer(allow_boolean=False))
            regions.append(parallel.parse_yielding_region(parser))
        parser.parse_keyword("default")
        default = parallel.parse_yielding_region(parser)
        return cls.create(
            operands=[parser.resolve_operand(operand, IndexType())],
            result_types=types,
            properties={"cases": dense_i64(cases)},
            attributes=attributes,
            regions=[default, *regions],
        )

    def print(self, printer: Printer) -> None:
        write(printer, " ", self.arg)
        print_attributes(printer, self, ("cases",))
        if self.results:
            write(printer, " -> ")
            printer.print_list(self.result_types, printer.print_attribute)
        for case, region in zip(ints_of(self.cases), self.case_regions):
            write(printer, f"\ncase {case} ")
            printer.print_region(region, print_empty_block=False)
        write(printer, "\ndefault ")
        printer.print_region(self.default_region, print_empty_block=False)

    def verify_(self) -> None:
        cases = ints_of(self.cases)
        check(len(cases) == len(self.case_regions), "each case needs a region")
        check(len(set(cases)) == len(cases), "a case is given twice in {}", list(cases))
        for region in (self.default_region, *self.case_regions):
            _check_yield(region, self.result_types, "a region")


Scf = Dialect("scf", operations_of(__name__, parallel))
