"""The entry of the front end: make a module of a Python function and a signature."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from xetl.dialects.kernel_attributes import SUBGROUP, WORKGROUP, attributes_of_kernel
from xetl.dialects.upstream import arith, gpu, memref
from xetl.errors import InternalError, XetlError
from xetl.frontend import types
from xetl.frontend.arrays import argument_type
from xetl.frontend.calls import parameters_of_node, too_deep
from xetl.frontend.context import Context
from xetl.frontend.source import Frame, FunctionNode, find_source
from xetl.language.reads import Reads
from xetl.language.signature import (
    ArrayParam,
    ConstParam,
    Param,
    Record,
    RuntimeParam,
    ScalarParam,
    Signature,
    TupleParam,
)


def point_at_user(error: XetlError) -> XetlError:
    """Give ``error`` a traceback whose only entry is the user's line.

    ``raise point_at_user(error) from None`` adds the frames of the host before it.
    """
    if error.file is None or error.line is None:
        return error
    # `raise` extends an existing traceback, which would end with frames of xetl.
    error.__traceback__ = None
    return error.with_traceback(_traceback_at(error, error.file, error.line))


def _traceback_at(error: XetlError, file: str, line: int) -> TracebackType | None:
    text, column = error.source_line or "", (error.column or 1) - 1
    start = len(text[:column].encode())
    end = start + len(text[column : column + error.length].encode())
    position = {
        "lineno": line,
        "end_lineno": line,
        "col_offset": start,
        "end_col_offset": max(end, start + 1),
    }
    name = ast.Name("error", ast.Load(), **position)
    module = ast.Module([ast.Raise(exc=name, cause=None, **position)], [])
    code = compile(module, file, "exec")
    function = error.function or "<module>"
    try:
        exec(code.replace(co_name=function, co_qualname=function), {"error": error})
    except XetlError as raised:
        own = raised.__traceback__
        return own.tb_next if own is not None else None
    return None


_NO_WORD = re.compile(r"^[\W\d_]+|\W+", re.ASCII)
"""Characters that a name of an SSA value cannot have."""

_SCALARS: dict[str, Attribute] = {"i64": types.I64, "f64": types.F64, "i1": types.I1}


def build_module(
    function: Callable[..., Any],
    signature: Signature,
    *,
    subgroups: tuple[int, int] | None = None,
    slm_limit: int = 1 << 20,
    reads: Reads | None = None,
    steps: bool = False,
) -> ModuleOp:
    """Compile a kernel to XeTile IR (docs/design/0001-seams.md, section 2).

    Args:
        function: the Python function; its source must be available.
        signature: the specialisation of its parameters, in their order.
        subgroups: rows and columns of subgroups of a subgroup-level kernel; None for
            a workgroup-level one.
        slm_limit: bytes of shared local memory that the target has.
        reads: records the Python values around the kernel that it reads.
        steps: whether a debugger may stop at each statement.

    Raises:
        CompileError: the kernel is wrong; the traceback ends at the user's line.
    """
    try:
        if reads is None:
            reads = Reads(function, signature.constants)
        return _build(function, signature, subgroups, slm_limit, reads, steps)
    except InternalError:
        raise
    except XetlError as error:
        located = point_at_user(error)
    raise located from None


def _build(
    function: Callable[..., Any],
    signature: Signature,
    subgroups: tuple[int, int] | None,
    slm_limit: int,
    reads: Reads,
    steps: bool,
) -> ModuleOp:
    source = find_source(function)
    name = function.__name__.replace("<lambda>", "lambda")
    runtime = list(signature.runtime.values())
    block = Block(arg_types=[_argument_type(param) for param in runtime])
    scope = types.Scope(types.Environment(function, reads))
    frame = Frame(source.file, name)
    level = WORKGROUP if subgroups is None else SUBGROUP
    node = source.node
    ctx = Context(block, scope, frame, node, reads, level, steps, slm_limit=slm_limit)
    values = iter(block.args)
    bound = {param.name: _bind(ctx, param, values) for param in signature.params}
    bound |= {each.name: _assemble(each, bound) for each in signature.tuples}
    parts = {leaf for each in signature.tuples for leaf in each.leaves()}
    for parameter, value in bound.items():
        if parameter not in parts:
            scope.bind(parameter, value)
    _check_parameters(ctx, function)
    _compile_body(ctx, source.node)
    ctx.node = source.node
    ctx.add(gpu.ReturnOp())
    names, aliases = [each.name for each in runtime], list(map(_alias_of, runtime))
    attributes = attributes_of_kernel(level, names, aliases, subgroups)
    kernel = gpu.FuncOp(name, Region(block), attributes=attributes)
    kernel.location = ctx.location()
    inner = gpu.ModuleOp(name, Region(Block([kernel])), location=ctx.location())
    return ModuleOp([inner])


def _compile_body(ctx: Context, node: FunctionNode) -> None:
    try:
        if isinstance(node, ast.Lambda):
            ctx.evaluate(node.body)
        else:
            ctx.run(node.body, types.Tail(node))
            _check_returns(ctx)
    except XetlError:
        raise
    except RecursionError:
        raise too_deep(ctx) from None
    except OverflowError as problem:
        error = "a constant is too large for a number of the run"
        raise ctx.error("X0317", error, notes=[str(problem)]) from None
    except Exception as problem:
        # A bug of xetl, but the user's line helps to find it.
        error = InternalError(
            f"the front end failed: {type(problem).__name__}: {problem}",
            code="X0901",
            help="this is a bug of xetl: please report it with this kernel",
        )
        raise ctx.locate_error(error) from problem
    finally:
        sys.stdout.writelines(f"{line}\n" for line in ctx.said)


def _check_returns(ctx: Context) -> None:
    """Refuse a kernel that returns a value."""
    returned = ctx.scope.returned
    if returned is not None and returned.value is not None:
        found = types.describe(returned.value)
        problem = f"a kernel returns nothing, but this is {found}"
        help_ = "store results with xetile.store_tile(value, tile)"
        raise ctx.error("X0611", problem, returned.node, help=help_)


def _check_parameters(ctx: Context, function: Callable[..., Any]) -> None:
    """Refuse a signature that does not name every parameter of the function."""
    for parameter in parameters_of_node(ctx, find_source(function).node, {}):
        if parameter.name not in ctx.scope.bindings:
            problem = f"`{function.__name__}` misses its argument `{parameter.name}`"
            raise ctx.error("X0105", problem)


def _argument_type(param: RuntimeParam) -> Attribute:
    if isinstance(param, ScalarParam):
        return _SCALARS[param.kind]
    return argument_type(types.element_type(param.dtype), param.rank, param.unit_dim)


def _bind(ctx: Context, param: Param, values: Any) -> types.Value:
    if isinstance(param, ConstParam):
        listed = isinstance(param.value, list)
        return tuple(types.items_of(param.value) or ()) if listed else param.value
    value: SSAValue = next(values)
    value.name_hint = _NO_WORD.sub("_", param.name).strip("_") or None
    if isinstance(param, ArrayParam):
        metadata = ctx.add(memref.ExtractStridedMetadataOp(value))
        strides: list[types.Extent] = list(metadata.strides)
        if param.unit_dim is not None:
            strides[param.unit_dim] = 1
        return types.Array(
            param.name,
            value,
            param.dtype,
            0,
            tuple(metadata.sizes),
            tuple(strides),
            param.unit_dim,
        )
    if param.kind == "i64":
        return types.Scalar(ctx.emit(arith.IndexCastOp(value, types.INDEX)), "int")
    return types.Scalar(value, "float" if param.kind == "f64" else "bool")


def _assemble(param: TupleParam, parts: Mapping[str, types.Value]) -> types.Value:
    """Return the tuple or record that consists of bound parameters."""
    items = [
        parts[item] if isinstance(item, str) else _assemble(item, parts)
        for item in param.items
    ]
    if not param.form:
        return tuple(items)
    return Record.make(param.form[0], param.form[1:], items)


def _alias_of(param: RuntimeParam) -> int:
    return -1 if isinstance(param, ScalarParam) or param.alias is None else param.alias
