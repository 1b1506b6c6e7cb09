"""`scf.forall`: trips in any order, with bounds that are numbers or values.

Only the form on memrefs: tensors (``shared_outs``) are refused.
Source: MLIR, `scf` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from typing_extensions import Unpack
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IndexType
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, RecursiveMemoryEffect

from ..base import (
    Index,
    Value,
    check,
    check_indices,
    ints_of,
    mix_indices,
    parse_attributes,
    parse_indices,
    print_attributes,
    resolve_indices,
    split_indices,
)
from ..operation import Common, XetlOp

_BOUNDS = ("staticLowerBound", "staticUpperBound", "staticStep")


class ForallInParallelOp(XetlOp, name="scf.forall.in_parallel"):
    """End of an scf.forall; what it would insert into tensors is not there."""

    region = region_def("single_block")

    traits = traits_def(IsTerminator(), NoTerminator(), RecursiveMemoryEffect())

    def __init__(self, region: Region | None = None, **common: Unpack[Common]) -> None:
        super().__init__(regions=[region or Region(Block())], **common)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``{}``."""
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        _, attributes = parse_attributes(parser, cls)
        return cls(region, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print ``{}``."""
        printer.print_string(" ")
        printer.print_region(self.region, print_empty_block=False)
        print_attributes(printer, self)

    def verify_(self) -> None:
        """Check that nothing is inserted."""
        check(not self.region.block.ops, "scf.forall on memrefs inserts nothing")


class ForallOp(XetlOp, name="scf.forall"):
    """A nest of loops whose trips may run in any order or at once."""

    dynamic_lower_bound = var_operand_def(IndexType)
    dynamic_upper_bound = var_operand_def(IndexType)
    dynamic_step = var_operand_def(IndexType)
    outputs = var_operand_def()
    static_lower_bound = prop_def(DenseArrayBase, prop_name=_BOUNDS[0])
    static_upper_bound = prop_def(DenseArrayBase, prop_name=_BOUNDS[1])
    static_step = prop_def(DenseArrayBase, prop_name=_BOUNDS[2])
    mapping = opt_prop_def(ArrayAttr[Attribute])
    region = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        lowers: Sequence[int | Value],
        uppers: Sequence[int | Value],
        steps: Sequence[int | Value],
        body: Region,
        mapping: Attribute | None = None,
        **common: Unpack[Common],
    ) -> None:
        bounds = [split_indices(one) for one in (lowers, uppers, steps)]
        static = {name: each.static for name, each in zip(_BOUNDS, bounds)}
        super().__init__(
            operands=[*(each.values for each in bounds), []],
            properties={**static, "mapping": mapping},
            regions=[body],
            **common,
        )

    @property
    def mixed_bounds(self) -> tuple[tuple[Index, ...], ...]:
        """Lower bounds, upper bounds and steps."""
        return (
            mix_indices(self.static_lower_bound, self.dynamic_lower_bound),
            mix_indices(self.static_upper_bound, self.dynamic_upper_bound),
            mix_indices(self.static_step, self.dynamic_step),
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse ``(%i, %j) in (32, %n) {...}`` or ``= (0) to (%n) step (2)``."""

        def parse_argument() -> Parser.Argument:
            return parser.parse_argument(expect_type=False).resolve(IndexType())

        paren = parser.Delimiter.PAREN
        counters = parser.parse_comma_separated_list(paren, parse_argument)
        words = ("in",) if parser.parse_optional_keyword("in") else ("=", "to", "step")
        bounds: list[tuple[Index, ...]] = []
        for word in words:
            if word == "=":
                parser.parse_punctuation("=")
            elif word != "in":
                parser.parse_keyword(word)
            values, static = parse_indices(parser, paren)
            bounds.append(mix_indices(static, resolve_indices(parser, values)))
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
        properties, attributes = parse_attributes(parser, cls)
        mapping = properties.get("mapping")
        lowers, uppers, steps = bounds
        return cls(lowers, uppers, steps, body, mapping, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Print as parsed, in the shorter of the two forms that says it."""
        lowers, uppers, steps = self.mixed_bounds
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.region.block.args, printer.print_ssa_value)
        if set(lowers) == {0} and set(steps) == {1}:
            parts = [(" in ", uppers)]
        else:
            parts = [(" = ", lowers), (" to ", uppers), (" step ", steps)]
        for word, bounds in parts:
            printer.print_string(word)
            with printer.in_parens():
                printer.print_list(bounds, lambda one: _print_index(printer, one))
        printer.print_string(" ")
        last = self.region.block.last_op
        printer.print_region(
            self.region,
            print_entry_block_args=False,
            print_block_terminators=last is not None and bool(last.attributes),
        )
        print_attributes(printer, self, (*_BOUNDS, "operandSegmentSizes"))

    def verify_(self) -> None:
        """Check that bounds, steps and counters agree, and the terminator."""
        check(not self.outputs, "scf.forall over tensors is not supported")
        check_indices("lower", self.static_lower_bound, self.dynamic_lower_bound)
        check_indices("upper", self.static_upper_bound, self.dynamic_upper_bound)
        check_indices("step", self.static_step, self.dynamic_step)
        ranks = {len(ints_of(self.properties[name])) for name in _BOUNDS}
        found = [argument.type for argument in self.region.block.args]
        check(
            ranks == {len(found)} and found == [IndexType()] * len(found),
            f"the body takes {found}; one index for each of the bounds is needed",
        )
        check(
            isinstance(self.region.block.last_op, ForallInParallelOp),
            "the body must end in scf.forall.in_parallel",
        )


def _print_index(printer: Printer, index: Index) -> None:
    if isinstance(index, int):
        printer.print_string(str(index))
    else:
        printer.print_ssa_value(index)
