"""Calls of operations, methods, builtins and functions of the user."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any, cast

import numpy as np

from xetl.errors import CompileError, XetlError
from xetl.frontend import types
from xetl.frontend.arguments import (
    OPERATIONS,
    Arg,
    Call,
    Given,
    OperationHandler,
    Parameter,
    bind_arguments,
    check_readable,
    read,
    wrong_kind,
)
from xetl.frontend.builtin_calls import BUILTINS
from xetl.frontend.casts import convert, from_element, rounded, to_element
from xetl.frontend.context import MAX_INLINING, Context
from xetl.frontend.exits import returned_value
from xetl.frontend.expressions import expression, plain, starred
from xetl.frontend.limits import check_call, check_count
from xetl.frontend.source import Frame, FunctionNode, SourceFile, find_source
from xetl.imports import late
from xetl.language import ops
from xetl.language.dtypes import DType
from xetl.language.maps import sg_map, wg_map, xe_map
from xetl.language.operation import Function, body_of, operation_name
from xetl.language.values import Array as ArrayOfUser
from xetl.language.values import Vector as VectorOfUser

_advice_on = late("xetl.language.other_names", "advice_on")


def inline_function(
    ctx: Context, function: Callable[..., Any], given: Given, node: ast.Call
) -> types.Value:
    """Compile a call of a function or lambda of a module."""
    source = find_source(function)
    scope = types.Scope(types.Environment(function, ctx.reads))
    defaults = read(ctx, node, lambda: ctx.reads.defaults(function))
    return _inline(ctx, source.node, source.file, scope, defaults, given, node)


def inline_operation(
    ctx: Context, operation: Callable[..., Any], args: Mapping[str, Arg], node: ast.AST
) -> types.Value:
    """Compile a call of an operation whose body consists of other operations.

    Raises:
        ControlFlowError: a subgroup-level kernel calls an operation that uses shared
            memory: all subgroups would use the same memory.
    """
    body = body_of(operation)
    assert body is not None
    source = find_source(body)
    scope = types.Scope({**vars(builtins), **body.__globals__})
    shared = ctx.slm_bytes
    value = _run_in(ctx, source.node, source.file, scope, args, node, hidden=True)
    is_users = not ctx.frame.hidden
    if is_users and ctx.level == "subgroup" and ctx.slm_bytes > shared:
        problem = f"`{body.__name__}` has a meaning in workgroup-level kernels only"
        help_ = "it goes through memory that all subgroups of a workgroup share"
        raise ctx.error("X0608", problem, node, help=help_)
    return value


def inline_local(
    ctx: Context, function: types.LocalFunction, given: Given, node: ast.Call
) -> types.Value:
    """Compile a call of a function or lambda written in the kernel."""
    scope = types.Scope(function.scope)
    file = function.frame.source
    is_hidden = function.frame.hidden  # written in an operation
    defaults = function.defaults
    return _inline(ctx, function.node, file, scope, defaults, given, node, is_hidden)


def _inline(
    ctx: Context,
    function: FunctionNode,
    file: SourceFile,
    scope: types.Scope,
    defaults: Mapping[str, types.Value],
    given: Given,
    node: ast.Call,
    hidden: bool = False,
) -> types.Value:
    name = _name_of(function)
    if ctx.frame.depth >= MAX_INLINING:
        raise _endless(ctx, name, node)
    ctx.calls += 1
    advice = "call from a loop `range(...)`, which is not unrolled"
    check_count(ctx, ctx.calls, "calls are inlined, up to this one,", advice)
    parameters = parameters_of_node(ctx, function, defaults)
    bound, rest = bind_arguments(ctx, name, parameters, given, node)
    if function.args.vararg is not None:
        bound[function.args.vararg.arg] = Arg(tuple(a.value for a in rest), node)
    return _run_in(ctx, function, file, scope, bound, node, hidden=hidden)


def _run_in(
    ctx: Context,
    function: FunctionNode,
    file: SourceFile,
    scope: types.Scope,
    args: Mapping[str, Arg],
    node: ast.AST,
    *,
    hidden: bool = False,
) -> types.Value:
    """Compile the body of a function with its parameters bound."""
    name = _name_of(function)
    for parameter, arg in args.items():
        scope.bind(parameter, arg.value)
    outer = (ctx.scope, ctx.frame, ctx.node)
    ctx.scope = scope
    ctx.frame = Frame(file, name, outer[1], node, hidden)
    if isinstance(function, ast.Lambda):
        value = ctx.evaluate(function.body)
    else:
        ctx.run(function.body, types.Tail(function))
        value = returned_value(ctx, name, function)
    ctx.scope, ctx.frame, ctx.node = outer
    return value


def _name_of(function: FunctionNode) -> str:
    return function.name if isinstance(function, ast.FunctionDef) else "lambda"


def too_deep(ctx: Context) -> CompileError:
    """Return the error for code that overflows Python's stack."""
    frame = ctx.frame
    while frame.parent is not None and frame.call is not None:
        if frame.function in frame.parent.functions():
            ctx.frame = frame.parent
            return _endless(ctx, frame.function, frame.call)
        frame = frame.parent
    help_ = "compute parts of it in lines of their own"
    return ctx.error("X0408", "this is nested too deeply", help=help_)


def _endless(ctx: Context, name: str, node: ast.AST) -> CompileError:
    """Return the error for a recursion; it shows one cycle of calls, not all calls."""
    names = [name, *ctx.frame.functions()]
    if name in names[1:]:
        names = names[: names.index(name, 1) + 1]
    error = ctx.error(
        "X0406",
        f"`{name}` calls itself without end: calls are inlined",
        node,
        label=" calls ".join(f"`{each}`" for each in reversed(names)),
        help="end the recursion with a condition known when compiling, or write a loop",
    )
    error.frames = ()
    return error


def parameters_of_node(
    ctx: Context, function: FunctionNode, defaults: Mapping[str, types.Value]
) -> list[Parameter]:
    """Return the parameters of a function of the user.

    Raises:
        SyntaxNotSupportedError: it takes ``**kwargs``.
    """
    arguments = function.args
    if arguments.kwarg is not None:
        name = arguments.kwarg.arg
        problem = f"`**{name}` parameters are not part of the kernel language"
        raise ctx.error("X0402", problem, help="write the parameters one by one")
    places = [*arguments.posonlyargs, *arguments.args]
    found = [Parameter(p.arg, defaults.get(p.arg, types.MISSING)) for p in places]
    if arguments.vararg is not None:
        found.append(Parameter(arguments.vararg.arg, variadic=True))
    return found + [
        Parameter(p.arg, defaults.get(p.arg, types.MISSING), keyword_only=True)
        for p in arguments.kwonlyargs
    ]


PURE: tuple[Callable[..., Any], ...] = (wg_map, sg_map, xe_map)
"""Host functions that a kernel may call at compile time."""


@expression(ast.Call)
def _call(ctx: Context, node: ast.Call) -> types.Value:
    return call_value(ctx, ctx.evaluate(node.func), evaluate_arguments(ctx, node), node)


def evaluate_arguments(ctx: Context, node: ast.Call) -> Given:
    """Evaluate the arguments of a call; ``*`` is expanded, ``**`` is refused."""
    given = Given([], {})
    for item in node.args:
        if isinstance(item, ast.Starred):
            given.positional += starred(ctx, item)
        else:
            given.positional.append(Arg(ctx.evaluate(item), item))
    for keyword in node.keywords:
        if keyword.arg is None:
            problem = "`**` arguments are not part of the kernel language"
            help_ = "write the arguments one by one"
            raise ctx.error("X0402", problem, keyword.value, help=help_)
        given.keywords[keyword.arg] = Arg(ctx.evaluate(keyword.value), keyword)
    return given


def call_value(
    ctx: Context, callee: types.Value, given: Given, node: ast.Call
) -> types.Value:
    """Compile a call of ``callee``: a method, operation, function, dtype or builtin."""
    if isinstance(callee, types.BoundMethod):
        return _call_method(ctx, callee, given, node)
    operation = operation_name(callee)
    if operation is not None:
        return call_operation(ctx, operation, callee, given, node)
    if isinstance(callee, types.LocalFunction):
        return inline_local(ctx, callee, given, node)
    if isinstance(callee, Function):
        return inline_function(ctx, cast("Function[..., Any]", callee).fn, given, node)
    if isinstance(callee, FunctionType) and callee.__name__ == "<lambda>":
        return inline_function(ctx, callee, given, node)
    if isinstance(callee, DType):
        return _of_dtype(ctx, callee, given, node)
    builtin = BUILTINS.get(callee) if callable(callee) else None
    if builtin is not None:
        return builtin(ctx, given, node)
    if _is_pure(callee):
        return _call_pure(ctx, callee, given, node)
    raise _not_callable(ctx, callee, node)


def _of_dtype(ctx: Context, dtype: DType, given: Given, node: ast.Call) -> types.Value:
    """Compile ``u32(3)``: convert a number or, as ``.to`` does, a vector."""
    bound, _ = bind_arguments(ctx, dtype.name, [Parameter("value")], given, node)
    value = bound["value"].value
    if isinstance(value, types.Vector):
        return convert(ctx, value, dtype)
    if not types.is_scalar(value) or dtype.name == "tf32":
        raise wrong_kind(ctx, f"the argument of `{dtype}`", "a number", bound["value"])
    if isinstance(value, types.Scalar):
        # The conversion to an element rounds the value to the dtype.
        return from_element(ctx, to_element(ctx, value, dtype), dtype)
    return plain(rounded(value, dtype))


# Operations -------------------------------------------------------------------------


@functools.cache
def parameters_of(declaration: Callable[..., Any]) -> list[Parameter]:
    """Return the parameters of an operation, from its declaration in xetl.language."""
    found: list[Parameter] = []
    for parameter in inspect.signature(declaration).parameters.values():
        default: types.Value = parameter.default
        found.append(
            Parameter(
                parameter.name,
                types.MISSING if default is inspect.Parameter.empty else default,
                parameter.kind is inspect.Parameter.KEYWORD_ONLY,
                parameter.kind is inspect.Parameter.VAR_POSITIONAL,
            )
        )
    return found


def call_operation(
    ctx: Context,
    name: str,
    declaration: Callable[..., Any],
    given: Given,
    node: ast.Call,
) -> types.Value:
    """Compile a call of an operation of the language."""
    args, rest = bind_arguments(ctx, name, parameters_of(declaration), given, node)
    if body_of(declaration) is not None:
        if not ctx.frame.hidden:
            _check_declared(ctx, name, declaration, args)
        return inline_operation(ctx, declaration, args, node)
    return _builder(ctx, name, node)(Call(ctx, name, node, args, rest))


def _check_declared(
    ctx: Context, name: str, declaration: Callable[..., Any], args: Mapping[str, Arg]
) -> None:
    """Check arguments against the declared Vector and int: errors are clearer here."""
    for each, arg in args.items():
        annotation = declaration.__annotations__.get(each)
        if annotation == "Vector" and not isinstance(arg.value, types.Vector):
            raise wrong_kind(ctx, f"`{each}` of `{name}`", "a vector", arg)
        if annotation != "int":
            continue
        if not types.is_int(arg.value):
            problem = f"`{each}` of `{name}` must be an int"
            label = f"is {types.describe(arg.value)}"
            raise ctx.error("X0305", problem, arg.node, label=label)


def _call_method(
    ctx: Context, method: types.BoundMethod, given: Given, node: ast.Call
) -> types.Value:
    """Compile ``v.sum(0)``: an operation whose first argument is the owner."""
    owner = ArrayOfUser if isinstance(method.owner, types.Array) else VectorOfUser
    declaration = getattr(owner, method.name)
    receiver = Given([Arg(method.owner, method.owner_node), *given.positional], {})
    receiver.keywords = given.keywords
    name = method.name
    if operation_name(declaration) is not None:
        return call_operation(ctx, name, declaration, receiver, node)
    args, rest = bind_arguments(ctx, name, parameters_of(declaration), receiver, node)
    args["v"] = args.pop("self")
    handler = OPERATIONS.get(f".{name}") or _builder(ctx, name, node)
    return handler(Call(ctx, name, node, args, rest))


def _builder(ctx: Context, name: str, node: ast.Call) -> OperationHandler:
    if name in OPERATIONS:
        return OPERATIONS[name]
    raise ctx.error("X0405", f"`{name}` is not supported yet", node)


# Functions of the host --------------------------------------------------------------


def _is_pure(callee: types.Value) -> bool:
    if isinstance(callee, type) and issubclass(callee, np.generic):
        return True
    is_builtin = isinstance(callee, BuiltinFunctionType)
    return callee in PURE or (is_builtin and callee.__module__ == math.__name__)


def _call_pure(
    ctx: Context, callee: Callable[..., Any], given: Given, node: ast.Call
) -> types.Value:
    args = [*given.positional, *given.keywords.values()]
    name = _OF_NUMBERS.get(callee.__name__, callee.__name__)
    is_operation = callee.__module__ == math.__name__ and name in ops.__all__
    if is_operation and any(isinstance(arg.value, types.Scalar) for arg in args):
        # Compile ``math.sqrt(x)`` of a run-time number as ``xetile.sqrt(x)``.
        value = call_operation(ctx, name, getattr(ops, name), given, node)
        if callee not in _ROUNDED:
            return value
        return BUILTINS[int](ctx, Given([Arg(value, node)], {}), node)
    for arg in args:
        if not types.is_constant(arg.value):
            raise _host_function(ctx, callee, node)
        check_readable(ctx, arg)
    values = [arg.value for arg in given.positional]
    keywords = {name: arg.value for name, arg in given.keywords.items()}
    check_call(ctx, callee, values)
    try:
        return plain(callee(*values, **keywords))
    except CompileError as error:
        raise ctx.locate_error(error, node) from None
    except XetlError:
        raise
    except Exception as problem:
        text = f"`{callee.__name__}` failed: {problem}"
        raise ctx.error("X0307", text, node) from None


_OF_NUMBERS = {"fabs": "abs"}
"""Functions of Python's math that are operations of another name."""

_ROUNDED = (math.floor, math.ceil, math.trunc)
"""Functions whose results are ints, as those of the operations are not."""


def _not_callable(ctx: Context, callee: types.Value, node: ast.Call) -> CompileError:
    if isinstance(callee, FunctionType):
        return ctx.error(
            "X0103",
            f"`{callee.__name__}` is a plain Python function",
            node.func,
            label="a kernel cannot call it",
            notes=[
                f"it is defined at {callee.__code__.co_filename}:"
                f"{callee.__code__.co_firstlineno}"
            ],
            help="decorate it with `@xetile.function`",
        )
    if isinstance(getattr(callee, "fn", None), FunctionType):
        name = ctx.frame.text(node.func)
        problem = f"`{name}` is a kernel: only the host launches it"
        help_ = "decorate what both use with `@xetile.function`"
        return ctx.error(
            "X0103", problem, node.func, label="a kernel cannot call it", help=help_
        )
    if callable(callee):
        return _host_function(ctx, callee, node)
    advice = "give a function: `lambda a, b: a + b`, say"
    return ctx.error(
        "X0310",
        f"{types.describe(callee)} cannot be called",
        node.func,
        help=advice if isinstance(callee, str) else None,
    )


def _host_function(
    ctx: Context, callee: Callable[..., Any], node: ast.Call
) -> CompileError:
    name: str = getattr(callee, "__name__", str(callee))
    advice: str | None = _advice_on(name, ops.__all__)
    advice = advice or "compute it before the launch and pass it to the kernel"
    if name == "format":
        advice = "texts are f-strings: f'{n:d}'"
    if name in ("print", "pprint"):
        advice = "use xetile.device_print, or xetile.static_print when compiling"
    problem = f"`{ctx.frame.text(node.func)}` is a function of the host"
    return ctx.error(
        "X0106", problem, node.func, label="cannot run in a kernel", help=advice
    )
