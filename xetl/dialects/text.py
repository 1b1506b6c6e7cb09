"""The text of a module as a user hands it over: parsed, verified, of single blocks.

Whatever is wrong becomes an `IRError` with the line and column of the text.
"""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region

from xetl.errors import IRError

from .kernel_attributes import LEVEL, SUBGROUP, WORKGROUP
from .parser import XetlParser, make_context
from .text_errors import FILE, parse_error, text_error
from .text_symbols import check_symbols
from .upstream import cf, func, gpu
from .verify import LocatedVerifyException, verify
from .xetile.used_maps import used_maps

Function = gpu.FuncOp | func.FuncOp


def read_module(text: str) -> ModuleOp:
    """Parse and verify ``text``; every function gets its level.

    Raises:
        IRError: the text is wrong.
    """
    # Errors point into this text, not into what it was made of.
    parser: XetlParser | None = None
    try:
        parser = XetlParser(make_context(), text, FILE, keeps_locations=False)
        module = parser.parse_module()
    except Exception as error:
        raise parse_error(text, parser, error) from None
    _verify(text, module)
    merged = [_merge_blocks(text, function.body) for function in kernels_of(module)]
    if any(merged):
        _verify(text, module)
    for function in functions_of(module):
        function.attributes.setdefault(LEVEL, StringAttr(_level(function)))
    return module


def kernels_of(module: ModuleOp) -> list[Function]:
    """Functions of a device; without a `gpu.module` any function may be one."""
    functions = functions_of(module)
    tops = [function.parent_op() for function in functions]
    if not any(isinstance(op, gpu.ModuleOp) for op in module.walk()):
        return functions
    return [f for f, top in zip(functions, tops) if isinstance(top, gpu.ModuleOp)]


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
    shown = f"`{op.name}`: {message}"
    return text_error(text, line, column, shown, code, len(op.name))


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
        check_symbols(module)
        verify(module)
    except LocatedVerifyException as error:
        raise error_at(text, error.op, error.problem, "X0702") from None


def _merge_blocks(text: str, region: Region) -> bool:
    """One block of a chain of them, if it is one; other graphs are refused."""
    if len(region.blocks) < 2:
        return False
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
    return True


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
