"""Text of the structured control flow operations.  Source: MLIR, `scf` dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from ..base import parse_attributes, print_attributes, resolve_indices

OpT = TypeVar("OpT", bound=IRDLOperation)


def _parse_assignments(
    parser: Parser,
) -> tuple[list[Parser.UnresolvedArgument], list[UnresolvedOperand]]:
    arguments: list[Parser.UnresolvedArgument] = []
    operands: list[UnresolvedOperand] = []

    def parse_one() -> None:
        arguments.append(parser.parse_argument(expect_type=False))
        parser.parse_punctuation("=")
        operands.append(parser.parse_unresolved_operand())

    parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_one)
    return arguments, operands


def _print_assignments(
    printer: Printer, arguments: Sequence[SSAValue], values: Sequence[SSAValue]
) -> None:
    def print_one(pair: tuple[SSAValue, SSAValue]) -> None:
        printer.print_ssa_value(pair[0])
        printer.print_string(" = ")
        printer.print_ssa_value(pair[1])

    with printer.in_parens():
        printer.print_list(list(zip(arguments, values)), print_one)


def _parse_types(parser: Parser) -> list[Attribute]:
    """Parse ``(types)`` or one type without parentheses."""
    types = parser.parse_optional_comma_separated_list(
        parser.Delimiter.PAREN, parser.parse_type
    )
    return [parser.parse_type()] if types is None else list(types)


def _print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


def _terminate(region: Region, terminator: type[Operation]) -> None:
    """Add the terminator that the text may leave out."""
    block = region.block
    if not isinstance(block.last_op, terminator) and not _has_terminator(block):
        block.add_op(terminator.create())


def _has_terminator(block: Block) -> bool:
    last = block.last_op
    return last is not None and last.name in ("scf.yield", "scf.reduce")


def _print_body(printer: Printer, region: Region, *, terminator: bool) -> None:
    printer.print_string(" ")
    last = region.block.last_op
    keep = terminator or (last is not None and bool(last.attributes))
    printer.print_region(
        region,
        print_entry_block_args=False,
        print_empty_block=False,
        print_block_terminators=keep,
    )


class _For(Protocol):
    @property
    def lower_bound(self) -> SSAValue: ...
    @property
    def upper_bound(self) -> SSAValue: ...
    @property
    def step(self) -> SSAValue: ...
    @property
    def init_args(self) -> Sequence[SSAValue]: ...
    @property
    def body(self) -> Region: ...


def parse_for(parser: Parser, op_type: type[OpT], terminator: type[Operation]) -> OpT:
    """Parse an scf.for."""
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
        arguments, inits = _parse_assignments(parser)
        parser.parse_punctuation("->")
        types = _parse_types(parser)
    type_ = parser.parse_type() if parser.parse_optional_punctuation(":") else None
    counter_type = type_ or IndexType()
    operands = [
        *(parser.resolve_operand(bound, counter_type) for bound in bounds),
        *parser.resolve_operands(inits, types, parser.pos),
    ]
    entry = [counter.resolve(counter_type)]
    entry += [a.resolve(t) for a, t in zip(arguments, types)]
    body = parser.parse_region(entry)
    _terminate(body, terminator)
    properties, attributes = parse_attributes(parser, op_type)
    return op_type.create(
        operands=operands,
        result_types=types,
        regions=[body],
        properties=properties,
        attributes=attributes,
    )


def print_for(printer: Printer, op: _For) -> None:
    """Print an scf.for."""
    counter, *arguments = op.body.block.args
    printer.print_string(" ")
    printer.print_ssa_value(counter)
    bounds = (op.lower_bound, op.upper_bound, op.step)
    for word, bound in zip((" = ", " to ", " step "), bounds):
        printer.print_string(word)
        printer.print_ssa_value(bound)
    if arguments:
        printer.print_string(" iter_args")
        _print_assignments(printer, arguments, op.init_args)
        printer.print_string(" -> ")
        _print_types(printer, [argument.type for argument in arguments])
    if counter.type != IndexType():
        printer.print_string(" : ")
        printer.print_attribute(counter.type)
    _print_body(printer, op.body, terminator=bool(arguments))
    assert isinstance(op, Operation)
    print_attributes(printer, op)


class _If(Protocol):
    @property
    def condition(self) -> SSAValue: ...
    @property
    def then_region(self) -> Region: ...
    @property
    def else_region(self) -> Region: ...


def parse_if(parser: Parser, op_type: type[OpT], terminator: type[Operation]) -> OpT:
    """Parse an scf.if."""
    condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
    types = _parse_types(parser) if parser.parse_optional_punctuation("->") else []
    then_region = parser.parse_region([])
    _terminate(then_region, terminator)
    else_region = Region()
    if parser.parse_optional_keyword("else"):
        else_region = parser.parse_region([])
        _terminate(else_region, terminator)
    properties, attributes = parse_attributes(parser, op_type)
    return op_type.create(
        operands=[condition],
        result_types=types,
        regions=[then_region, else_region],
        properties=properties,
        attributes=attributes,
    )


def print_if(printer: Printer, op: _If) -> None:
    """Print an scf.if."""
    assert isinstance(op, Operation)
    printer.print_string(" ")
    printer.print_ssa_value(op.condition)
    if op.results:
        printer.print_string(" -> ")
        _print_types(printer, op.result_types)
    _print_body(printer, op.then_region, terminator=bool(op.results))
    if op.else_region.blocks:
        printer.print_string(" else")
        _print_body(printer, op.else_region, terminator=bool(op.results))
    print_attributes(printer, op)


class _While(Protocol):
    @property
    def inits(self) -> Sequence[SSAValue]: ...
    @property
    def before(self) -> Region: ...
    @property
    def after(self) -> Region: ...


def parse_while(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse an scf.while."""
    arguments: list[Parser.UnresolvedArgument] = []
    inits: list[UnresolvedOperand] = []
    if parser.parse_optional_punctuation("("):
        parser._resume_from(parser.pos - 1)  # pyright: ignore[reportPrivateUsage]
        arguments, inits = _parse_assignments(parser)
    parser.parse_punctuation(":")
    function_type = parser.parse_function_type()
    types = function_type.inputs.data
    operands = parser.resolve_operands(inits, types, parser.pos)
    before = parser.parse_region([a.resolve(t) for a, t in zip(arguments, types)])
    parser.parse_keyword("do")
    after = parser.parse_region()
    attributes: dict[str, Attribute] = {}
    if parser.parse_optional_keyword("attributes"):
        attributes = parser.parse_optional_attr_dict()
    return op_type.create(
        operands=operands,
        result_types=function_type.outputs.data,
        regions=[before, after],
        attributes=attributes,
    )


def print_while(printer: Printer, op: _While) -> None:
    """Print an scf.while."""
    assert isinstance(op, Operation)
    printer.print_string(" ")
    if op.inits:
        _print_assignments(printer, op.before.block.args, op.inits)
        printer.print_string(" ")
    printer.print_string(": ")
    printer.print_function_type([v.type for v in op.inits], op.result_types)
    _print_body(printer, op.before, terminator=True)
    printer.print_string(" do ")
    printer.print_region(op.after)
    printer.print_op_attributes(op.attributes, print_keyword=True)


class _Parallel(Protocol):
    @property
    def lower_bounds(self) -> Sequence[SSAValue]: ...
    @property
    def upper_bounds(self) -> Sequence[SSAValue]: ...
    @property
    def steps(self) -> Sequence[SSAValue]: ...
    @property
    def init_vals(self) -> Sequence[SSAValue]: ...
    @property
    def body(self) -> Region: ...


def parse_parallel(
    parser: Parser, op_type: type[OpT], terminator: type[Operation]
) -> OpT:
    """Parse an scf.parallel."""

    def parse_argument() -> Parser.Argument:
        return parser.parse_argument(expect_type=False).resolve(IndexType())

    def parse_list() -> list[UnresolvedOperand]:
        return parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )

    counters = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_argument)
    parser.parse_punctuation("=")
    bounds = [resolve_indices(parser, parse_list())]
    for word in ("to", "step"):
        parser.parse_keyword(word)
        bounds.append(resolve_indices(parser, parse_list()))
    inits = parse_list() if parser.parse_optional_keyword("init") else []
    types = _parse_types(parser) if parser.parse_optional_punctuation("->") else []
    init_vals = parser.resolve_operands(inits, types, parser.pos)
    body = parser.parse_region(counters)
    _terminate(body, terminator)
    _, attributes = parse_attributes(parser, op_type)
    return op_type.build(
        operands=[*bounds, init_vals],
        result_types=[types],
        regions=[body],
        attributes=attributes,
    )


def print_parallel(printer: Printer, op: _Parallel) -> None:
    """Print an scf.parallel."""
    assert isinstance(op, Operation)

    def print_values(values: Sequence[SSAValue]) -> None:
        with printer.in_parens():
            printer.print_list(values, printer.print_ssa_value)

    printer.print_string(" ")
    print_values(op.body.block.args)
    bounds = (op.lower_bounds, op.upper_bounds, op.steps)
    for word, values in zip((" = ", " to ", " step "), bounds):
        printer.print_string(word)
        print_values(values)
    if op.init_vals:
        printer.print_string(" init ")
        print_values(op.init_vals)
        printer.print_string(" -> ")
        _print_types(printer, op.result_types)
    printer.print_string(" ")
    printer.print_region(op.body, print_entry_block_args=False)
    print_attributes(printer, op, ("operandSegmentSizes",))


class _Reduce(Protocol):
    @property
    def arguments(self) -> Sequence[SSAValue]: ...
    @property
    def reductions(self) -> Sequence[Region]: ...


def parse_reduce(parser: Parser, op_type: type[OpT]) -> OpT:
    """Parse an scf.reduce."""
    operands: Sequence[SSAValue] = []
    regions: list[Region] = []
    if parser.parse_optional_punctuation("("):
        unresolved = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_type
        )
        parser.parse_punctuation(")")
        operands = parser.resolve_operands(unresolved, types, parser.pos)
        regions = parser.parse_comma_separated_list(
            parser.Delimiter.NONE, parser.parse_region
        )
    _, attributes = parse_attributes(parser, op_type)
    return op_type.create(operands=operands, regions=regions, attributes=attributes)


def print_reduce(printer: Printer, op: _Reduce) -> None:
    """Print an scf.reduce."""
    if op.arguments:
        with printer.in_parens():
            printer.print_list(op.arguments, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list([a.type for a in op.arguments], printer.print_attribute)
        printer.print_string(" ")
        printer.print_list(op.reductions, printer.print_region)
    assert isinstance(op, Operation)
    print_attributes(printer, op)


# Regions of several kinds ---------------------------------------------------------


def parse_result_types(parser: Parser) -> list[Attribute]:
    """Parse ``-> (types)``, ``-> type`` or nothing."""
    return _parse_types(parser) if parser.parse_optional_punctuation("->") else []


def print_result_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """Print ``-> (types)``, or nothing if there are none."""
    if types:
        printer.print_string(" -> ")
        _print_types(printer, types)


def parse_yielding_region(parser: Parser, terminator: type[Operation]) -> Region:
    """Parse a region of one block whose terminator may be left out."""
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    _terminate(region, terminator)
    return region
