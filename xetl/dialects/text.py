"""The text of a module as a user hands it over: parsed, verified, of single blocks.

Whatever is wrong becomes an `IRError` with the line and column of the text.
"""

from __future__ import annotations

import re

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.utils.exceptions import ParseError

from xetl.errors import IRError

from .kernel_attributes import LEVEL, SUBGROUP, WORKGROUP
from .parser import XetlParser, make_context
from .upstream import cf, func, gpu
from .verify import LocatedVerifyException, verify
from .xetile.used_maps import used_maps

FILE = "<text>"
"""What errors call a text that came from no file."""

_UNKNOWN = re.compile(r"Operation ([\w.]+) is not registered")
_UNDEFINED = re.compile(r"values? used but not defined: \[(%[^\],]+)")

Function = gpu.FuncOp | func.FuncOp


def read_module(text: str) -> ModuleOp:
    """Parse and verify ``text``; every function gets its level.

    Raises:
        IRError: the text is wrong.
    """
    # Errors point into this text, not into what it was made of.
    parser = XetlParser(make_context(), text, FILE, keeps_locations=False)
    try:
        module = parser.parse_module()
    except ParseError as error:
        start, end = error.span.start, error.span.end
        raise _syntax_error(text, error.msg or "wrong syntax", start, end) from None
    except RecursionError:
        raise IRError("the text nests too deeply", code="X0701") from None
    except Exception as error:  # of an attribute that is checked while it is made
        reason = str(error) or type(error).__name__
        raise _syntax_error(text, reason, parser.pos, parser.pos) from None
    _verify(text, module)
    for op in module.walk():
        for region in op.regions:
            _merge_blocks(text, region)
    _verify(text, module)
    for function in functions_of(module):
        function.attributes.setdefault(LEVEL, StringAttr(_level(function)))
    return module


def functions_of(module: ModuleOp) -> list[Function]:
    """All functions that have a body, in the order of the text."""
    return [
        op
        for op in module.walk()
        if isinstance(op, gpu.FuncOp | func.FuncOp) and op.body.blocks
    ]


def qualified_name(function: Function) -> str:
    """The name with those of the modules around it: ``kernels::gemm``."""
    names = [function.sym_name.data]
    around = function.parent_op()
    while around is not None:
        name = around.properties.get("sym_name")
        if isinstance(name, StringAttr) and around.parent_op() is not None:
            names.append(name.data)
        around = around.parent_op()
    return "::".join(reversed(names))


def error_at(text: str, op: Operation, message: str, code: str) -> IRError:
    """An error about an operation of the text."""
    place = location_of(op)
    if place is None:
        return IRError(f"`{op.name}`: {message}", code=code)
    line, column = place
    return _error(text, line, column, f"`{op.name}`: {message}", code, len(op.name))


def location_of(op: Operation) -> tuple[int, int] | None:
    """Line and column in the text; of the operation around it if it has none."""
    found: Operation | None = op
    while found is not None:
        location: Attribute = found.location
        while isinstance(location, CallSiteLoc):
            location = location.callee
        if isinstance(location, FileLineColLoc):
            return location.line.data, location.column.data
        found = found.parent_op()
    return None


def _level(function: Function) -> str:
    return WORKGROUP if used_maps(function) else SUBGROUP


def _verify(text: str, module: ModuleOp) -> None:
    try:
        verify(module)
    except LocatedVerifyException as error:
        raise error_at(text, error.op, error.problem, "X0702") from None


def _syntax_error(text: str, reason: str, start: int, end: int) -> IRError:
    message, length = reason.strip().splitlines()[0], max(1, end - start)
    unknown = _UNKNOWN.match(message)
    if unknown is not None:  # the parser stands behind the name by now
        length = len(unknown[1])
        start = max(text.rfind(unknown[1], 0, start), 0)
    undefined = _UNDEFINED.match(message)
    if undefined is not None:  # the parser is at the end of the function
        message = f"value {undefined[1]} is used but not defined"
        start, length = _first_use(text, undefined[1]), len(undefined[1])
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return _error(text, line, column, message, "X0701", length)


def _first_use(text: str, name: str) -> int:
    """Where a name stands first, comments left out; 0 if nowhere."""
    pattern = rf'//[^\n]*|"[^"\n]*"|({re.escape(name)})(?![\w$.-])'
    found = (match.start() for match in re.finditer(pattern, text) if match[1])
    return next(found, 0)


def _error(
    text: str, line: int, column: int, message: str, code: str, length: int
) -> IRError:
    lines = text.split("\n")
    source = lines[line - 1] if line <= len(lines) else None
    return IRError(
        message,
        code=code,
        file=FILE,
        line=line,
        column=column,
        length=length,
        source_line=source,
    )


def _merge_blocks(text: str, region: Region) -> None:
    """One block of a chain of them; any other graph of blocks is refused."""
    if len(region.blocks) < 2:
        return
    entry = region.blocks[0]
    while isinstance(last := entry.last_op, cf.BrOp):
        target = last.dest
        if target is entry or _predecessors(region, target) != 1:
            break
        _append(entry, last, target)
    if len(region.blocks) > 1:
        culprit = entry.last_op
        assert culprit is not None
        raise error_at(
            text,
            culprit,
            "only chains of blocks can be run, each with one predecessor; "
            "write branches and loops with `scf`",
            "X0703",
        )


def _append(entry: Block, branch: cf.BrOp, target: Block) -> None:
    for argument, value in zip(target.args, branch.dest_operands):
        argument.replace_all_uses_with(value)
    branch.detach()
    branch.erase()
    for op in list(target.ops):
        op.detach()
        entry.add_op(op)
    region = target.parent
    assert region is not None
    region.detach_block(target)
    target.erase()


def _predecessors(region: Region, target: Block) -> int:
    return sum(
        op.successors.count(target) for block in region.blocks for op in block.ops
    )
