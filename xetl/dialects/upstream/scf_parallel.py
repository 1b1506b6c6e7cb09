"""Loops whose iterations run in any order; `scf.yield`; text that `scf` shares.

`scf.forall` is supported on memrefs only: tensors (``shared_outs``) are refused.
Source: MLIR, `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import (
    IsTerminator,
    NoTerminator,
    Pure,
    RecursivelySpeculatable,
    RecursiveMemoryEffect,
)

from .. import base
from ..operation import Common, XetlOp
from ..type_rules import like_all
from .func import GivingOp

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand
    from xdsl.printer import Printer


class YieldOp(GivingOp, name="scf.yield"):
    """End a region, and pass values to its loop or conditional."""


def parse_assignments(
    parser: Parser,
) -> tuple[list[Parser.UnresolvedArgument], list[UnresolvedOperand]]:
    """Parse ``(%a = %b, ...)``."""
    arguments: list[Parser.UnresolvedArgument] = []
    operands: list[UnresolvedOperand] = []

    def parse_one() -> None:
        arguments.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        operands.append(parser.parse_unresolved_operand())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_one)
    return arguments, operands


def assignments(
    arguments: Sequence[SSAValue], values: Sequence[SSAValue]
) -> list[base.Part]:
    """Return the parts of the text ``(%a = %b, ...)``."""
    return [(one, " = ", value) for one, value in zip(arguments, values)]


def parse_counters(parser: Parser) -> list[Parser.Argument]:
    """Parse ``(%i, %j)``: loop counters of type index."""

    def parse_one() -> Parser.Argument:
        return parser.parse_argument(expect_type=False).resolve(IndexType())

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_one)


def parse_types(parser: Parser) -> list[Attribute]:
    """Parse ``(types)`` or one type without parentheses."""
    types = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_type
    )
    return [parser.parse_type()] if types is None else list(types)


def terminate(region: Region, terminator: type[Operation]) -> None:
    """Add the terminator if the text leaves it out."""
    block = region.block
    if not isinstance(block.last_op, YieldOp | ReduceOp):
        block.add_op(terminator.create())


def print_body(printer: Printer, region: Region, *, terminator: bool) -> None:
    """Print a region without the arguments of its block."""
    printer.print_string(" ")
    last = region.block.last_op
    keep = terminator or (last is not None and bool(last.attributes))
    printer.print_region(
        region,
        print_entry_block_args=False,
        print_empty_block=False,
        print_block_terminators=keep,
    )


def parse_result_types(parser: Parser) -> list[Attribute]:
    """Parse ``-> (types)``, ``-> type`` or nothing."""
    return parse_types(parser) if parser.parse_optional_punctuation("->") else []


def print_result_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print ``-> (types)``, or nothing if there are none."""
    if types:
        base.write(printer, " -> ", [*types])


def parse_yielding_region(parser: Parser) -> Region:
    """Parse a region of one block whose `YieldOp` may be left out."""
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    terminate(region, YieldOp)
    return region


class ReduceOp(
    XetlOp, name="scf.reduce", traits=[IsTerminator(), RecursiveMemoryEffect()]
):
    """End a parallel loop: values to reduce, with a region for each."""

    arguments = irdl.var_operand_def()
    reductions = irdl.var_region_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%a, %b : types) {...}, {...}``."""
        operands: Sequence[SSAValue] = []
        regions: list[Region] = []
        if parser.parse_optional_punctuation("("):
            unresolved = base.parse_operands(parser)
            parser.parse_punctuation(":")
            types = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_type
            )
            parser.parse_punctuation(")")
            operands = parser.resolve_operands(unresolved, types, parser.pos)
            regions = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, parser.parse_region
            )
        _, attributes = base.parse_attributes(parser, cls)
        return cls.create(operands=operands, regions=regions, attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.arguments:
            with printer.in_parens():
                printer.print_list(self.arguments, printer.print_ssa_value)
                base.write(printer, " : ")
                types = [each.type for each in self.arguments]
                printer.print_list(types, printer.print_attribute)
            base.write(printer, " ")
            printer.print_list(self.reductions, printer.print_region)
        base.print_attributes(printer, self)


class ReduceReturnOp(XetlOp, name="scf.reduce.return", traits=[IsTerminator(), Pure()]):
    """Return the value of one reduction step."""

    result = irdl.operand_def()

    assembly_format = "$result attr-dict `:` type($result)"


class ParallelOp(
    XetlOp,
    name="scf.parallel",
    traits=[RecursiveMemoryEffect(), RecursivelySpeculatable()],
):
    """A loop nest whose iterations may run in any order, or at the same time."""

    lower_bounds = upper_bounds = steps = irdl.var_operand_def(IndexType)
    init_vals = irdl.var_operand_def()
    body = irdl.region_def("single_block")
    res = irdl.var_result_def(like_all("init_vals"))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%i, %j) = (..) to (..) step (..) init (..) -> types {...}``."""

        def parse_list() -> list[UnresolvedOperand]:
            return parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )

        counters = parse_counters(parser)
        parser.parse_punctuation("=")
        bounds = [base.resolve_indices(parser, parse_list())]
        for word in ("to", "step"):
            parser.parse_keyword(word)
            bounds.append(base.resolve_indices(parser, parse_list()))
        inits = parse_list() if parser.parse_optional_keyword("init") else []
        types = parse_result_types(parser)
        init_vals = parser.resolve_operands(inits, types, parser.pos)
        body = parser.parse_region(counters)
        terminate(body, ReduceOp)
        _, attributes = base.parse_attributes(parser, cls)
        return cls.build(
            operands=[*bounds, init_vals],
            result_types=[types],
            regions=[body],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        base.write(printer, " ", [*self.body.block.args], " = ", [*self.lower_bounds])
        base.write(printer, " to ", [*self.upper_bounds], " step ", [*self.steps])
        if self.init_vals:
            base.write(printer, " init ", [*self.init_vals])
        print_result_types(printer, self.result_types)
        base.write(printer, " ")
        printer.print_region(self.body, print_entry_block_args=False)
        base.print_attributes(printer, self, ("operandSegmentSizes",))

    def verify_(self) -> None:
        rank = len(self.lower_bounds)
        text = "a parallel loop needs as many lower bounds as upper bounds and steps"
        base.check(rank == len(self.upper_bounds) == len(self.steps) > 0, text)
        found = [argument.type for argument in self.body.block.args]
        text = "the body takes {}, expected {} index counters"
        base.check(found == [IndexType()] * rank, text, found, rank)
        last = self.body.block.last_op
        given = [value.type for value in last.operands] if last else []
        carried = [value.type for value in self.init_vals]
        fits = isinstance(last, ReduceOp) and given == carried
        base.check(
            fits, "the body must end in scf.reduce with a value for each init value"
        )


_BOUNDS = ("staticLowerBound", "staticUpperBound", "staticStep")


class ForallInParallelOp(
    XetlOp,
    name="scf.forall.in_parallel",
    traits=[IsTerminator(), NoTerminator(), RecursiveMemoryEffect()],
):
    """End an scf.forall; its region is empty, because tensors are not supported."""

    region = irdl.region_def("single_block")

    def __init__(self, region: Region | None = None, **common: Unpack[Common]) -> None:
        super().__init__(regions=[region or Region(Block())], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``{}``."""
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        _, attributes = base.parse_attributes(parser, cls)
        return cls(region, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.region, print_empty_block=False)
        base.print_attributes(printer, self)

    def verify_(self) -> None:
        base.check(not self.region.block.ops, "scf.forall on memrefs inserts nothing")


class ForallOp(XetlOp, name="scf.forall", traits=[RecursiveMemoryEffect()]):
    """A loop nest whose iterations may run in any order, or at the same time."""

    dynamic_lower_bound = irdl.var_operand_def(IndexType)
    dynamic_upper_bound = irdl.var_operand_def(IndexType)
    dynamic_step = irdl.var_operand_def(IndexType)
    outputs = irdl.var_operand_def()
    static_lower_bound = irdl.prop_def(DenseArrayBase, prop_name=_BOUNDS[0])
    static_upper_bound = irdl.prop_def(DenseArrayBase, prop_name=_BOUNDS[1])
    static_step = irdl.prop_def(DenseArrayBase, prop_name=_BOUNDS[2])
    mapping = irdl.opt_prop_def(ArrayAttr[Attribute])
    region = irdl.region_def("single_block")

    lower_bounds = base.MixedList("dynamic_lower_bound", _BOUNDS[0], "lower")
    upper_bounds = base.MixedList("dynamic_upper_bound", _BOUNDS[1], "upper")
    steps = base.MixedList("dynamic_step", _BOUNDS[2], "step")

    @property
    def mixed_bounds(self) -> tuple[tuple[base.Index, ...], ...]:
        """Lower bounds, upper bounds and steps."""
        return self.lower_bounds, self.upper_bounds, self.steps

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%i, %j) in (32, %n) {...}`` or ``= (0) to (%n) step (2)``."""
        paren, counters = parser.Delimiter.PAREN, parse_counters(parser)
        words = ("in",) if parser.parse_optional_keyword("in") else ("=", "to", "step")
        bounds: list[tuple[base.Index, ...]] = []
        for word in words:
            if word == "=":
                parser.parse_punctuation("=")
            elif word != "in":
                parser.parse_keyword(word)
            values, static = base.parse_indices(parser, paren)
            bounds.append(
                base.mix_indices(static, base.resolve_indices(parser, values))
            )
        if words == ("in",):
            rank = len(counters)
            bounds = [(0,) * rank, bounds[0], (1,) * rank]
        position = parser.pos
        if parser.parse_optional_keyword("shared_outs"):
            parser.raise_error(
                "`shared_outs`: loops over tensors are not supported; bufferize first",
                position,
            )
        body = parser.parse_region(counters)
        if not isinstance(body.block.last_op, ForallInParallelOp):
            body.block.add_op(ForallInParallelOp())
        properties, attributes = base.parse_attributes(parser, cls)
        mapping = properties.get("mapping")
        return cls(*bounds, (), body, mapping=mapping, attributes=attributes)

    def print(self, printer: Printer) -> None:
        lowers, uppers, steps = self.mixed_bounds
        base.write(printer, " ", [*self.region.block.args])
        if set(lowers) == {0} and set(steps) == {1}:
            base.write(printer, " in ", [*uppers])
        else:
            base.write(printer, " = ", [*lowers], " to ", [*uppers], " step ", [*steps])
        base.write(printer, " ")
        last = self.region.block.last_op
        printer.print_region(
            self.region,
            print_entry_block_args=False,
            print_block_terminators=last is not None and bool(last.attributes),
        )
        base.print_attributes(printer, self, (*_BOUNDS, "operandSegmentSizes"))

    def verify_(self) -> None:
        base.check(not self.outputs, "scf.forall over tensors is not supported")
        ranks = {len(base.ints_of(self.properties[name])) for name in _BOUNDS}
        found = [argument.type for argument in self.region.block.args]
        fits = ranks == {len(found)} and found == [IndexType()] * len(found)
        text = "the body takes {}; one index for each of the bounds is needed"
        base.check(fits, text, found)
        fits = isinstance(self.region.block.last_op, ForallInParallelOp)
        base.check(fits, "the body must end in scf.forall.in_parallel")
