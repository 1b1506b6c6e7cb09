"""Functions of `xetl.ops` as operators of torch: ``torch.ops.xetl.softmax``.

Each has a schema made of its signature, a kernel for the CPU and for xpu, an answer for
tensors without elements, and a derivative. To be imported only where torch is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.dtypes import DType
from xetl.locks import ForkSafeLock
from xetl.ops.declarations import Context, Operand
from xetl.ops.declare import FUNCTIONS, Function
from xetl.ops.torch_batches import batched

torch: Any = import_whole("torch")

_SCHEMA = {
    "ArrayLike": "Tensor",
    "Number": "float",
    "float": "float",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "DTypeLike": "ScalarType?",
    "Dims": "int[1]",
}
_libraries: dict[str, Any] = {}
_lock = ForkSafeLock()
_registered: set[str] = set()


def register() -> None:
    """Make known to torch what is declared; what is known already is left alone."""
    if len(_registered) == len(FUNCTIONS):
        return
    with _lock.held():
        for name, declared in list(FUNCTIONS.items()):
            if name not in _registered:
                _registered.add(name)
                _register(declared)


def schema_of(function: Function) -> str:
    """``softmax(Tensor input, int dim=-1) -> Tensor``."""
    parts: list[str] = []
    for parameter, kind in zip(function.parameters, function.kinds):
        name, _, rest = kind.partition(" |")
        kind = _SCHEMA[name]
        if parameter.name in function.writes:
            kind += f"({chr(97 + len(parts))}!)"
        optional = rest and not kind.endswith("?")
        text = f"{kind}{'?' if optional else ''} {parameter.name}"
        if parameter.default is not parameter.empty:
            value = parameter.default
            value = f'"{value}"' if isinstance(value, str) else value
            text += f"={[*value] if isinstance(value, tuple) else value}"
        parts.append(text)
    results = ", ".join(["Tensor"] * function.results)
    results = results if function.results == 1 else f"({results})"
    return f"{function.name}({', '.join(parts)}) -> {results}"


def _register(declared: Function) -> None:
    name, namespace = declared.name, declared.namespace
    library = _libraries.get(namespace)
    if library is None:
        library = torch.library.Library(namespace, "FRAGMENT")
        _libraries[namespace] = library
    library.define(schema_of(declared))
    for key in ("CPU", "XPU"):
        library.impl(name, _implementation(declared), key)
    library.impl(name, _fake(declared), "Meta")
    recording = _recording(declared, operator_of(declared))
    library.impl(name, recording, "Autograd", with_keyset=True)
    if not declared.writes:
        rule = batched(declared, operator_of(declared))
        torch.library.register_vmap(f"{namespace}::{name}", rule, lib=library)


def operator_of(declared: Function) -> Any:
    """The operator of torch."""
    return getattr(getattr(torch.ops, declared.namespace), declared.name).default


def _implementation(declared: Function) -> Callable[..., Any]:
    return lambda *args, **kwargs: declared.compute(args, kwargs)


def _fake(declared: Function) -> Callable[..., Any]:
    """Results without elements, from the rule."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        values = declared.complete(args, kwargs)[:-1]
        if declared.fake is not None:
            return declared.fake(values)
        first = values[declared.arrays[0]]
        for i in declared.arrays:
            if values[i] is not None:
                dtype = DType.of(str(values[i].dtype))
                shape = tuple(values[i].shape)
                values[i] = Operand(declared.names[i], shape, dtype)
        made = tuple(
            torch.empty(spec.shape, dtype=as_torch(spec.dtype), device=first.device)
            for spec in declared.rule(*values).results
        )
        return made[0] if declared.results == 1 else made or None

    return fake


class _Recorded(torch.autograd.Function):
    """The step of a graph that calls an operator."""

    @staticmethod
    def forward(
        ctx: Any, declared: Function, below: Callable[..., Any], *args: Any
    ) -> Any:
        """Compute, and save what the derivative needs."""
        found = below(*args)
        ctx.declared = declared
        keep(declared, ctx, args, found)
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The derivatives by all arguments."""
        return (None, None, *differentiate(ctx.declared, ctx, gradients))


def _recording(declared: Function, operator: Any) -> Callable[..., Any]:
    """What the operator does where torch records."""

    def called(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        values = declared.complete(args, kwargs)[:-1]

        def below(*args: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                keys = keyset & torch._C._after_autograd_keyset
                return operator.redispatch(keys, *args)

        given = [values[i] for i in declared.arrays if values[i] is not None]
        if torch.is_grad_enabled() and any(each.requires_grad for each in given):
            if declared.writes:
                raise LaunchError(
                    f"`{declared.name}` changes an array that requires a gradient",
                    code="X0838",
                    help="call it inside of `with torch.no_grad():`",
                )
            return _Recorded.apply(declared, below, *values)
        return below(*values)

    return called


def as_torch(dtype: Any) -> Any:
    """The dtype of torch."""
    if isinstance(dtype, torch.dtype) or dtype is None:
        return dtype
    name = DType.of(dtype).numpy
    return getattr(torch, {"bool": "bool"}.get(str(name), str(name)))


def keep(declared: Function, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
    """Save what the derivative needs."""
    results = (output,) if declared.results == 1 else output
    kept: list[Any] = []
    for name in declared.saves:
        which = name.removeprefix("result")
        is_result = name.startswith("result")
        chosen = results[int(which or 0)] if is_result else None
        kept.append(chosen if is_result else inputs[declared.places[name]])
    ctx.save_for_backward(*kept)
    floats = [each for each in results if not each.dtype.is_floating_point]
    if floats:
        ctx.mark_non_differentiable(*floats)
    arrays = set(declared.arrays)
    given = {declared.names[i]: inputs[i] for i in arrays if inputs[i] is not None}
    ctx.dtypes = {name: each.dtype for name, each in given.items()}
    ctx.shapes = {name: each.shape for name, each in given.items()}
    ctx.options = {
        name: None if i in arrays else inputs[i]
        for i, name in enumerate(declared.names)
    }


def differentiate(declared: Function, ctx: Any, gradients: Sequence[Any]) -> Any:
    """The derivatives by all arguments.

    Raises:
        LaunchError: the function has none, or none by an argument that needs one.
    """
    if declared.backward is None:
        name = declared.name
        is_first = not name.endswith("_backward")
        name = str(ctx.options.get("which", name.removesuffix("_backward")))
        what = f"`{name}`" if is_first else f"`{name}` twice"
        raise LaunchError(
            f"{what} cannot be differentiated",
            code="X0838",
            help="pass `.detach()` of what needs no gradient"
            if is_first
            else "leave out `create_graph=True`, or use torch's function there",
        )
    needs = dict(zip(declared.names, ctx.needs_input_grad[2:]))
    kept = (ctx.saved_tensors, ctx.options, needs, ctx.dtypes, ctx.shapes)
    context = Context(*kept)
    found = declared.backward(context, *gradients)
    for name in (name for name, is_needed in needs.items() if is_needed):
        if name not in found:
            raise LaunchError(
                f"`{name}` of `{declared.name}` cannot be differentiated",
                code="X0838",
                help=f"pass `{name}.detach()`",
            )
    return tuple(found.get(name) for name in declared.names)
