"""``@xetl.op``: makes a function of the user an operator of torch."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.ops.calling.declarations import Context
from xetl.ops.calling.declare import Function, public_function
from xetl.ops.calling.operands import new_result
from xetl.ops.calling.views import as_dtype
from xetl.runtime.call_site import errors_at_caller
from xetl.runtime.kernel import Kernel

Like: TypeAlias = "str | Callable[..., Any] | Sequence[str] | None"

_TYPES = {"int": "int", "float": "float", "bool": "bool", "str": "str"}
_RESULT_NAMES = ("out", "output", "result", "y")


@errors_at_caller
def op(
    name: str, *, out: Like = None, backward: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function an operator of torch, ``torch.ops.lib.name``.

    The function still takes arrays of any library. With tensors it has a derivative
    (`backward`), and torch.compile and torch.export keep it as one node of their graph.

    Args:
        name: ``"lib::name"``.
        out: which shape and dtype the result has: those of the argument of this name
            (by default the first array), or what a function of the arguments returns:
            a new array, a shape, or (shape, dtype). For several results, a sequence of
            names. If the last parameter of the decorated function is called ``out``,
            xetl passes the new array there; otherwise the function returns the result.
            Of a kernel with a declared grid, the last parameter that is not
            ``constexpr`` is the result.
        backward: returns the gradients of the inputs in order; None: the function has
            no derivative. ``backward(grad, ...)`` gets the gradient of each result,
            then the arguments whose names its parameters have, and the result as
            ``out``. If other names occur, it gets all arguments in order. If the first
            parameter is called ``ctx``, the call is ``backward(ctx, *gradients)``, and
            ``ctx.saved_tensors`` holds the arrays, then the results.

    Raises:
        LaunchError: the name is not of that form, or `out` names no argument.

    >>> @op("docs::double", backward=lambda grad: 2 * grad)
    ... def double(x):
    ...     return 2 * x
    """
    # Of `@op` without a name, `name` is the function.
    namespace, separator, short = str(name).partition("::")
    if not (separator and namespace.isidentifier() and short.isidentifier()):
        problem = f"`{name}` is no name of an operator"
        raise LaunchError(problem, "X0829", 'write `@xetl.op("library::name")`')

    @errors_at_caller
    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for what, given in (("made of", function), ("given", backward or function)):
            if not callable(given):
                problem = f"the operator `{name}` is {what} {given!r}, no function"
                help_ = "write it above a function or kernel; `backward=` is a function"
                raise LaunchError(problem, "X0829", help_)
        called = public_function(_declared(namespace, short, function, out, backward))
        if "torch" in sys.modules:  # otherwise the first call after its import does it
            import_whole("xetl.ops.calling.torch_library").register_again(name)
        return called

    return declare


def _declared(
    namespace: str,
    name: str,
    function: Callable[..., Any],
    out: Like,
    backward: Callable[..., Any] | None,
) -> Function:
    is_kernel = isinstance(function, Kernel)
    source: Any = function.fn if isinstance(function, Kernel) else function
    taken = inspect.signature(source).parameters.values()
    parameters = [p for p in taken if "constexpr" not in str(p.annotation)]
    fills = is_kernel or parameters[-1].name == "out"
    inputs = parameters[:-1] if fills else parameters
    kinds = [_kind(p) for p in inputs]
    count = 1 if out is None or isinstance(out, str) or callable(out) else len(out)
    arrays = [p.name for p, kind in zip(inputs, kinds) if kind.startswith("ArrayLike")]
    like = out or (arrays[0] if arrays else None)
    names = _names(like, f"{namespace}::{name}", [p.name for p in inputs], arrays)

    def made(values: Sequence[Any]) -> tuple[Any, ...]:
        arguments = {p.name: v for p, v in zip(inputs, values)}
        if callable(like):
            found: Any = like(**_named(like, arguments))
            parts = cast("tuple[Any, ...]", found if isinstance(found, tuple) else ())
            if parts and all(hasattr(each, "shape") for each in parts):
                return parts
            return (_new(found, arguments),)
        return tuple(_new(arguments[name], arguments) for name in names)

    def plain(values: list[Any]) -> Any:
        *given, place = values
        if not fills:
            found = function(*given)
            return found if place is None else _copied(found, place)
        new = _one_or_all(made(given)) if place is None else place
        found = function(*given, new)
        return new if found is None else found

    def fake(values: list[Any]) -> Any:
        return _one_or_all(made(values))

    def rule() -> Any: ...

    rule.__name__ = rule.__qualname__ = source.__name__
    rule.__module__, rule.__doc__ = source.__module__, source.__doc__
    rule.__signature__ = inspect.Signature(inputs)  # type: ignore[attr-defined]
    saves = [*arrays, *(f"result{i}" for i in range(count))]
    rules = {"namespace": namespace, "kinds": kinds, "plain": plain, "fake": fake}
    found = None if backward is None else _gradients(backward, inputs, arrays, count)
    if found is not None:
        found = _as_operator(namespace, name, inputs, kinds, count, found)
    return Function(name, rule, count, found, tuple(saves), **rules)  # type: ignore[arg-type]


def _names(
    like: Like, operator: str, inputs: Sequence[str], arrays: Sequence[str]
) -> list[str]:
    """Return the argument that each result is like; [] if a function makes results."""
    if like is None or callable(like):
        return []
    names = [like] if isinstance(like, str) else list(like)
    for name in names:
        if name not in inputs:
            problem = f"`out=` of `{operator}` names `{name}`, which is not given"
            known = ", ".join(f"`{each}`" for each in arrays)
            help_ = f"name the argument that the result is like: {known}"
            raise LaunchError(problem, "X0829", help_)
    return names


def _kind(parameter: inspect.Parameter) -> str:
    """Return the kind of a parameter, by its annotation or else by its default."""
    annotation, default = parameter.annotation, parameter.default
    text = getattr(annotation, "__name__", None) or str(annotation)
    for name, kind in _TYPES.items():
        if text == name or text.startswith(f"{name} |"):
            return f"{kind} | None" if default is None or "None" in text else kind
    if isinstance(default, bool | int | float | str):
        return type(default).__name__
    return "ArrayLike | None" if default is None else "ArrayLike"


def _named(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Return the arguments of ``function``: by name, or in order if names differ."""
    names = list(inspect.signature(function).parameters)
    if set(names) <= set(arguments):
        return {name: arguments[name] for name in names}
    return dict(zip(names, arguments.values()))


def _new(like: Any, arguments: Mapping[str, Any]) -> Any:
    """Return a new array: like an array, of a shape, or of a shape and a dtype."""
    first = next(x for x in arguments.values() if hasattr(x, "shape"))
    if hasattr(like, "shape"):
        if not any(like is each for each in arguments.values()):
            return like
        shape, dtype = like.shape, like.dtype
    elif like and isinstance(like[0], Sequence):
        shape, dtype = like
    else:
        shape, dtype = like, first.dtype
    if hasattr(first, "new_empty"):
        from xetl.ops.calling.torch_library import as_torch  # noqa: PLC0415 - only with torch

        return first.new_empty(tuple(shape), dtype=as_torch(dtype))
    return new_result(first, tuple(shape), as_dtype(dtype, dtype))


def _one_or_all(results: tuple[Any, ...]) -> Any:
    return results[0] if len(results) == 1 else results


def _copied(found: Any, place: Any) -> Any:
    place[...] = found
    return place


def _gradients(
    backward: Callable[..., Any],
    inputs: Sequence[inspect.Parameter],
    arrays: Sequence[str],
    count: int,
) -> Callable[[Sequence[Any], Mapping[str, Any], Sequence[Any]], Mapping[str, Any]]:
    """Return a function ``(gradients, arguments, results)`` to gradients by name."""
    names = [p.name for p in inspect.signature(backward).parameters.values()]

    def found(
        gradients: Sequence[Any], arguments: Mapping[str, Any], results: Sequence[Any]
    ) -> Mapping[str, Any]:
        if names[0] == "ctx":
            saved = [arguments[name] for name in arrays]
            given: Any = backward(_Saved((*saved, *results), arguments), *gradients)
        else:
            rest = names[count:]
            known = dict(arguments)
            known |= {each: results[0] for each in _RESULT_NAMES if each not in known}
            chosen = list(arguments.values())
            if set(rest) <= set(known):
                chosen = [known[name] for name in rest]
            given = backward(*gradients, *chosen)
        if isinstance(given, Mapping):
            return cast("Mapping[str, Any]", given)
        several = isinstance(given, tuple | list)
        each = cast("Sequence[Any]", given if several else (given,))
        to = [p.name for p in inputs] if len(each) == len(inputs) else arrays
        if len(each) != len(to):
            problem = f"a backward gave {len(each)} gradients for {len(arrays)} arrays"
            help_ = f"return one for each of {', '.join(arrays)}; None for no gradient"
            raise LaunchError(problem, "X0829", help_)
        return dict(zip(to, each))

    return found


class _Saved:
    """The ``ctx`` of a backward function in torch's form."""

    def __init__(self, saved: tuple[Any, ...], arguments: Mapping[str, Any]) -> None:
        self.saved_tensors = saved
        self.inputs = tuple(arguments.values())
        self.arguments = arguments


def _as_operator(
    namespace: str,
    name: str,
    inputs: Sequence[inspect.Parameter],
    kinds: Sequence[str],
    count: int,
    gradients: Callable[..., Mapping[str, Any]],
) -> Callable[..., Mapping[str, Any]]:
    """Declare the derivative as an operator, so that graphs keep it as one node.

    The operator takes the gradients, all arguments and the results. It returns a
    gradient for each array: zeros where ``gradients`` gives none.
    """
    arrays = [i for i, kind in enumerate(kinds) if kind.startswith("ArrayLike")]

    def empty(values: Sequence[Any]) -> tuple[Any, ...]:
        given = [values[count + i] for i in arrays]
        first = values[0]
        return tuple(
            first.new_empty(0) if x is None else x.new_empty(x.shape) for x in given
        )

    def plain(values: list[Any]) -> Any:
        arguments = {p.name: v for p, v in zip(inputs, values[count:])}
        found = gradients(values[:count], arguments, values[count + len(inputs) : -1])
        made: list[Any] = []
        for i, new in zip(arrays, empty(values)):
            each = found.get(inputs[i].name)
            made.append(new.zero_() if each is None else each.to(new.dtype))
        return _one_or_all(tuple(made))

    def fake(values: list[Any]) -> Any:
        return _one_or_all(empty(values))

    def rule() -> Any: ...

    bare = [p.replace(default=inspect.Parameter.empty) for p in inputs]
    grads = [_parameter(f"grad{i}") for i in range(count)]
    results = [_parameter(f"result{i}") for i in range(count)]
    signature = inspect.Signature([*grads, *bare, *results])
    rule.__signature__ = signature  # type: ignore[attr-defined]
    kinds = [*["ArrayLike"] * count, *kinds, *["ArrayLike"] * count]
    declared = Function(
        f"{name}_backward",
        rule,
        len(arrays),
        namespace=namespace,
        kinds=kinds,
        plain=plain,
        fake=fake,
    )
    called = public_function(declared)

    def backward(context: Context, *grads: Any) -> Mapping[str, Any]:
        unpacked, options = context.saved, context.options
        saved = dict(zip([inputs[i].name for i in arrays], unpacked))
        arguments = [saved.get(p.name, options.get(p.name)) for p in inputs]
        found = called(*grads, *arguments, *unpacked[len(arrays) :])
        each = (found,) if len(arrays) == 1 else found
        return {
            inputs[i].name: gradient
            for i, gradient in zip(arrays, each)
            if context.needs(inputs[i].name)
        }

    return backward


def _parameter(name: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
