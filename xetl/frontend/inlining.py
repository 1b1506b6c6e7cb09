"""Functions of the user, compiled anew at each call."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

from xetl.errors import CompileError, ControlFlowError, SyntaxNotSupportedError
from xetl.frontend.arguments import Arg, Given, Parameter, bind_arguments
from xetl.frontend.context import MAX_INLINING, Context, Frame
from xetl.frontend.exits import Tail, returned_value
from xetl.frontend.limits import check_count
from xetl.frontend.reading import read
from xetl.frontend.scope import MISSING, Environment, Scope
from xetl.frontend.source import FunctionNode, SourceFile, find_source
from xetl.frontend.types import LocalFunction, Value


def inline_function(
    ctx: Context, function: Callable[..., Any], given: Given, node: ast.Call
) -> Value:
    """Compile a call of a function or lambda of a module."""
    source = find_source(function)
    scope = Scope(Environment(function, ctx.reads))
    defaults = read(ctx, node, lambda: ctx.reads.defaults(function))
    return _inline(ctx, source.node, source.file, scope, defaults, given, node)


def inline_operation(
    ctx: Context, body: Callable[..., Any], args: Mapping[str, Arg], node: ast.AST
) -> Value:
    """Compile a call of an operation that is made of others.

    Raises:
        ControlFlowError: each subgroup calls it, but all would share its memory.
    """
    source = find_source(body)
    names = {**vars(builtins), **body.__globals__}
    scope = Scope(names)
    shared = ctx.slm_bytes
    value = _run_in(ctx, source.node, source.file, scope, args, node, hidden=True)
    if ctx.level == "subgroup" and ctx.slm_bytes > shared:
        raise ctx.error(
            ControlFlowError,
            "X0608",
            f"`{body.__name__}` has a meaning in workgroup-level kernels only",
            node,
            help="it goes through memory that all subgroups of a workgroup share",
        )
    return value


def inline_local(
    ctx: Context, function: LocalFunction, given: Given, node: ast.Call
) -> Value:
    """Compile a call of a function or lambda written in the kernel."""
    scope = Scope(function.scope)
    file = function.frame.source
    return _inline(ctx, function.node, file, scope, function.defaults, given, node)


def _inline(
    ctx: Context,
    function: FunctionNode,
    file: SourceFile,
    scope: Scope,
    defaults: Mapping[str, Value],
    given: Given,
    node: ast.Call,
) -> Value:
    name = _name_of(function)
    if ctx.frame.depth >= MAX_INLINING:
        raise _endless(ctx, name, node)
    ctx.calls += 1
    advice = "call from a loop `range(...)`, which is not unrolled"
    check_count(ctx, ctx.calls, "calls are inlined, up to this one,", advice)
    parameters = parameters_of_node(ctx, function, defaults)
    bound, _ = bind_arguments(ctx, name, parameters, given, node)
    return _run_in(ctx, function, file, scope, bound, node)


def _run_in(
    ctx: Context,
    function: FunctionNode,
    file: SourceFile,
    scope: Scope,
    args: Mapping[str, Arg],
    node: ast.AST,
    *,
    hidden: bool = False,
) -> Value:
    """Compile the body of a function with its parameters bound."""
    name = _name_of(function)
    for parameter, arg in args.items():
        scope.bind(parameter, arg.value)
    outer = (ctx.scope, ctx.frame, ctx.node)
    ctx.scope = scope
    ctx.frame = Frame(file, name, outer[1], node, hidden)
    value = _run_body(ctx, function)
    ctx.scope, ctx.frame, ctx.node = outer
    return value


def _name_of(function: FunctionNode) -> str:
    return function.name if isinstance(function, ast.FunctionDef) else "lambda"


def _endless(ctx: Context, name: str, node: ast.Call) -> CompileError:
    """The error for a recursion: who calls whom, once around, and not each call."""
    names = [name]
    frame: Frame | None = ctx.frame
    while frame is not None:
        names.append(frame.function)
        if frame.function == name:
            break
        frame = frame.parent
    error = ctx.error(
        SyntaxNotSupportedError,
        "X0406",
        f"`{name}` calls itself without end: calls are inlined",
        node,
        label=" calls ".join(f"`{each}`" for each in reversed(names)),
        help="end the recursion with a condition known when compiling",
    )
    error.frames = ()
    return error


def _run_body(ctx: Context, function: FunctionNode) -> Value:
    if isinstance(function, ast.Lambda):
        return ctx.evaluate(function.body)
    ctx.run(function.body, Tail(function))
    return returned_value(ctx, function.name, function)


def parameters_of_node(
    ctx: Context, function: FunctionNode, defaults: Mapping[str, Value]
) -> list[Parameter]:
    """The parameters of a function of the user.

    Raises:
        SyntaxNotSupportedError: it takes ``*args`` or ``**kwargs``.
    """
    arguments = function.args
    for star in (arguments.vararg, arguments.kwarg):
        if star is not None:
            raise ctx.error(
                SyntaxNotSupportedError,
                "X0402",
                f"`*{star.arg}` parameters are not part of the kernel language",
                help="write the parameters one by one",
            )
    places = [*arguments.posonlyargs, *arguments.args]
    return [Parameter(p.arg, defaults.get(p.arg, MISSING)) for p in places] + [
        Parameter(p.arg, defaults.get(p.arg, MISSING), keyword_only=True)
        for p in arguments.kwonlyargs
    ]
