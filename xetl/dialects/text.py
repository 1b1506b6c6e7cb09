"""Read the text of a module from a user: parse, verify and merge blocks.

Every problem becomes an `IRError` with the line and column of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import ParseError, VerifyException

from xetl.errors import IRError, suggest

from .base import around, operations_in
from .kernel_attributes import LEVEL, SUBGROUP, WORKGROUP
from .parser import XetlParser, make_context
from .upstream import cf, func, gpu
from .verify import LocatedVerifyException, innermost, verify
from .xetile.used_maps import used_maps

Function = gpu.FuncOp | func.FuncOp


def read_module(text: str, dialects: Iterable[Dialect] = ()) -> ModuleOp:
    """Parse and verify ``text``; every function gets its level.

    ``dialects``: dialects that the text may use besides ours.

    Raises:
        IRError: the text is wrong.
    """
    # Errors point into this text, not into the source that it was made of.
    parser: XetlParser | None = None
    try:
        parser = XetlParser(make_context(dialects), text, FILE, keeps_locations=False)
        module = parser.parse_module()
    except Exception as error:
        raise parse_error(text, parser, error) from None
    _verify(text, module)
    merged = [_merge_blocks(text, function.body) for function in kernels_of(module)]
    if any(merged):
        _verify(text, module)
    called = {op.callee.string_value() for op in operations_in(module, func.CallOp)}
    for function in functions_of(module):
        if isinstance(function, func.FuncOp) and function.sym_name.data not in called:
            _leave_out_returned_arguments(function)
        level = WORKGROUP if used_maps(function) else SUBGROUP
        function.attributes.setdefault(LEVEL, StringAttr(level))
    return module


def _leave_out_returned_arguments(function: func.FuncOp) -> None:
    """Leave out results that are arguments if all are: a launch has its arguments."""
    first, last = function.body.blocks[0], function.body.blocks[-1]
    end, inputs = last.last_op, function.function_type.inputs.data
    if isinstance(end, func.ReturnOp) and all(v in first.args for v in end.operands):
        end.operands = ()
        function.function_type = FunctionType.from_lists(inputs, ())


def kernels_of(module: ModuleOp) -> list[Function]:
    """Return the device functions; without a `gpu.module` any function may be one."""
    functions = functions_of(module)
    tops = [function.parent_op() for function in functions]
    if not operations_in(module, gpu.ModuleOp):
        return functions
    return [f for f, top in zip(functions, tops) if isinstance(top, gpu.ModuleOp)]


def functions_of(module: ModuleOp) -> list[Function]:
    """Return all functions that have a body, in the order of the text."""
    return [
        op
        for op in module.walk()
        if isinstance(op, gpu.FuncOp | func.FuncOp) and op.body.blocks
    ]


def qualified_name(function: Function) -> str:
    """Return the name with those of the modules around it: ``kernels::gemm``."""
    _, *modules = around(function, Operation)
    found = [each.properties.get("sym_name") for each in (function, *modules[:-1])]
    names = [each.data for each in found if isinstance(each, StringAttr)]
    return "::".join(reversed(names))


def error_at(text: str, op: Operation, message: str, code: str) -> IRError:
    """Return an error about an operation of the text."""
    place = location_of(op)
    if place is None:
        return IRError(f"`{op.name}`: {message}", code=code)
    line, column = place
    return text_error(text, line, column, f"`{op.name}`: {message}", code, len(op.name))


RUNS_ALL = "backend `reference` runs every operation"


def cannot_run(
    op: Operation, backend: str, reason: str, help_: str | None = RUNS_ALL
) -> IRError:
    """Return the error about an operation that a backend cannot run."""
    line, column = location_of(op) or (None, None)
    return IRError(
        f"backend `{backend}` cannot run `{op.name}` here: {reason}",
        code="X0705",
        file=FILE,
        line=line,
        column=column,
        length=len(op.name),
        help=help_,
    )


def location_of(op: Operation) -> tuple[int, int] | None:
    """Return line and column in the text, of the operation or of one around it."""
    for each in around(op, Operation):
        location = innermost(each.location)
        if location is not None:
            return location.line.data, location.column.data
    return None


def _verify(text: str, module: ModuleOp) -> None:
    try:
        check_symbols(module)
        verify(module)
    except LocatedVerifyException as error:
        raise error_at(text, error.op, error.problem, "X0702") from None


def _merge_blocks(text: str, region: Region) -> bool:
    """Merge a chain of blocks into one block; refuse other control flow graphs."""
    if len(region.blocks) < 2:
        return False
    entry = region.blocks[0]
    while isinstance(last := entry.last_op, cf.BrOp):
        target, given = last.dest, last.dest_operands
        if target is entry or _predecessors(region, target) != 1:
            break
        Rewriter.erase_op(last)
        Rewriter.inline_block(target, InsertPoint.at_end(entry), given)
    if len(region.blocks) > 1:
        culprit = entry.last_op
        assert culprit is not None
        problem = (
            "only chains of blocks can be run, each with one predecessor; "
            "write branches and loops with `scf`"
        )
        raise error_at(text, culprit, problem, "X0703")
    return True


def _predecessors(region: Region, target: Block) -> int:
    ops = (op for block in region.blocks for op in block.ops)
    return sum(op.successors.count(target) for op in ops)


# Symbols ------------------------------------------------------------------------------


Table = dict[str, Operation]


def check_symbols(module: ModuleOp) -> None:
    """Check the names in a module and in the modules inside.

    Raises:
        LocatedVerifyException: a name is defined twice, or a call does not fit.
    """
    for holder in operations_in(module, ModuleOp, gpu.ModuleOp):
        table = _table(holder)
        for function in table.values():
            if isinstance(function, ModuleOp | gpu.ModuleOp):
                continue  # its calls use its own table
            for op in operations_in(function, func.CallOp):
                _check_call(op, table)


def _table(holder: Operation) -> Table:
    found: Table = {}
    for block in holder.regions[0].blocks:
        for op in block.ops:
            name = op.properties.get("sym_name") or op.attributes.get("sym_name")
            if not isinstance(name, StringAttr):
                continue
            if name.data in found:
                problem = f"there are two functions called `{name.data}`"
                raise LocatedVerifyException(op, problem)
            found[name.data] = op
    return found


def _check_call(call: func.CallOp, table: Table) -> None:
    name = call.callee.root_reference.data
    callee = table.get(name)
    if not isinstance(callee, func.FuncOp | gpu.FuncOp):
        raise LocatedVerifyException(call, f"there is no function `{name}` here")
    type_ = callee.function_type
    given = [[a.type for a in call.arguments], list(call.result_types)]
    if given != [list(type_.inputs.data), list(type_.outputs.data)]:
        raise LocatedVerifyException(call, f"`{name}` has the type {type_}")


# Errors of texts ----------------------------------------------------------------------


FILE = "<text>"
"""The file name in errors about a text that came from no file."""

_UNKNOWN = re.compile(r"(?:Operation |')([\w.]+)'? is not registered")
_UNDEFINED = re.compile(r"values? used but not defined: \[%([^\],]+)")

_CLEARER = {
    "in block definition": "an operation or '}' expected",
    "Expected shape type.": "a shape and a type of elements expected, such as 8x16xf32",
}

OF_LANES = (
    *("gpu.shuffle", "gpu.rotate", "gpu.subgroup_reduce", "gpu.subgroup_broadcast"),
    *("gpu.all_reduce", "gpu.ballot", "vector.warp_execute_on_lane_0"),
)
"""Operations of single work-items, which XeTile does not have: it has subgroups."""


def parse_error(text: str, parser: XetlParser | None, error: Exception) -> IRError:
    """Return the error for an exception of the parser, which is None before it starts.

    A ParseError has a position. Other exceptions come from the checks of attributes and
    types: their position is that of the operation that is being parsed.
    """
    if isinstance(error, RecursionError):
        return IRError("the text nests too deeply", code="X0701")
    if not isinstance(error, ParseError):
        reason = str(error)
        if not isinstance(error, VerifyException) and not reason.startswith("expected"):
            reason = "the operation is not well formed"
        return _at(text, reason, _operation_position(parser), 1)
    message, start = _first_line(error.msg), error.span.start
    undefined = _UNDEFINED.match(message)
    if undefined is not None:  # the parser is at the end of the text
        name = undefined[1]
        start = (parser.forward_positions if parser else {}).get(name, start)
        message = f"value %{name} is used but not defined"
        return _at(text, message, start, len(name) + 1)
    unknown = _UNKNOWN.search(message)
    if unknown is not None:  # the parser is already behind the name
        start = max(text.rfind(unknown[1], 0, start), 0)
        return _unknown(text, unknown[1], message, start, parser)
    if start >= len(text.rstrip()):
        return _at(text, "the text ends too early", start, 1)
    if message.startswith("Could not parse entire input"):
        message = "an operation is expected, or the end of the text"
    is_label = text[start] == "^"
    if not (is_label or _says_what_follows(message)) and _begins_line(text, start):
        # The parser reports a wrong value only when it is at the next line.
        start = _operation_position(parser)
    return _at(text, message, start, max(1, error.span.end - error.span.start))


def _operation_position(parser: XetlParser | None) -> int:
    return 0 if parser is None else parser.operation_position


def _unknown(
    text: str, name: str, message: str, start: int, parser: XetlParser | None
) -> IRError:
    if name not in OF_LANES:
        return _at(text, message, start, len(name), _near(name, parser))
    message = f"`{name}` works on lanes; a text of XeTile works on whole subgroups"
    help_ = "reduce and broadcast vectors with xetile.reduction and xetile.broadcast"
    return _at(text, message, start, len(name), help_)


def _near(name: str, parser: XetlParser | None) -> str | None:
    """Suggest a similar operation of the same dialect, or list the dialects."""
    dialect, _, own = name.partition(".")
    names = (op.name.partition(".") for op in parser.ctx.loaded_ops) if parser else ()
    dialects = sorted(parser.ctx.registered_dialect_names) if parser else []
    if own and dialect not in dialects:
        return f"the dialects are {', '.join(dialects)}"
    found = suggest(own, [own for of, _, own in names if of == dialect])
    return None if found is None else f"did you mean `{dialect}.{found}`?"


def _first_line(message: str | None) -> str:
    lines = (message or "wrong syntax").strip().splitlines()
    found = lines[0] if lines else "wrong syntax"
    return _CLEARER.get(found, found)


def _says_what_follows(message: str) -> bool:
    return message.lower().startswith("expected") or message.endswith("expected")


def _begins_line(text: str, position: int) -> bool:
    return not text[text.rfind("\n", 0, position) + 1 : position].strip()


def _at(
    text: str, message: str, position: int, length: int, help_: str | None = None
) -> IRError:
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    return text_error(text, line, column, _first_line(message), "X0701", length, help_)


def text_error(
    text: str,
    line: int,
    column: int,
    message: str,
    code: str,
    length: int,
    help_: str | None = None,
) -> IRError:
    """Return an error with a position in the text and the line there."""
    lines = text.split("\n")
    return IRError(
        message,
        code=code,
        file=FILE,
        line=line,
        column=column,
        length=length,
        source_line=lines[line - 1] if line <= len(lines) else None,
        help=help_,
    )
