"""Functions of `xetl.ops` as operators of torch: ``torch.ops.xetl.softmax``.

Each operator has a schema made of its signature, a kernel for the CPU and for xpu, a
kernel for tensors without elements, a derivative and a rule for ``torch.func.vmap``.
Import this module only if torch is imported.

Under ``vmap`` the batch becomes the first dimension. Functions of elements, of rows and
of matrices take it as one more leading dimension. Other functions are called for each
element of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xetl import ops
from xetl.errors import LaunchError, XetlError
from xetl.imports import import_whole
from xetl.language.dtypes import DType
from xetl.locks import ForkSafeLock
from xetl.ops.calling import autocast
from xetl.ops.calling.declarations import Context, Operand
from xetl.ops.calling.declare import FUNCTIONS, Function
from xetl.ops.calling.operands import dense_strides, order_of
from xetl.ops.calling.recorded import picker
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import refuse_tangent

_ELEMENTS = ("relu", "gelu", "silu", "sigmoid", "tanh", "swiglu", "geglu")
_ALONG = ("softmax", "log_softmax", "cumsum", "argmax", "argmin")
_OVER = ("sum", "mean", "amax", "amin", "var")
_ROWS = ("layer_norm", "rms_norm", "rope", "linear_int4")
_ATTENTION = "scaled_dot_product_attention"
_DERIVED = {
    "attention_gradients": _ATTENTION,
    "batch_norm_training_backward": "batch_norm",
    "class_loss_backward": "cross_entropy` or `nll_loss",
    "convolution_by_input": "conv1d` or `conv2d",
    "convolution_by_weight": "conv1d` or `conv2d",
    "norm_backward": "layer_norm` or `rms_norm",
}
"""The public functions that a derivative belongs to, if its name does not say it."""


def batched(declared: Function, operator: Any) -> Callable[..., Any]:
    """Return the vmap rule of an operator: ``rule(info, in_dims, *args)``."""
    fold = _rule_of(declared.name)

    def rule(info: Any, in_dims: Any, *args: Any, **kwargs: Any) -> Any:
        values = declared.complete(args, kwargs)[:-1]
        dims = {i: dim for i, dim in enumerate(in_dims) if isinstance(dim, int)}
        for i, dim in dims.items():
            values[i] = values[i].movedim(dim, 0)
        which = list(dims)
        size = info.batch_size
        folded = None if fold is None else fold(values, which, size)
        if folded is not None:
            return operator(*folded), 0
        each = [operator(*_at(values, which, i)) for i in range(size)]
        if declared.results == 1:
            return torch.stack(each), 0
        stacked = [torch.stack(parts) for parts in zip(*each)]
        return tuple(stacked), (0,) * declared.results

    return rule


def _at(values: Sequence[Any], which: Sequence[int], i: int) -> list[Any]:
    return [x[i] if place in which else x for place, x in enumerate(values)]


def _rule_of(name: str) -> Callable[[list[Any], list[int], int], Any] | None:
    """Return the function that folds the batch into the arguments of an operator.

    The function returns None if it cannot. Return None if there is no such function.
    """
    if name in _ELEMENTS:
        return _of_elements
    if name in _ALONG or name in _OVER:
        return _along
    if name in _ROWS:
        return lambda values, which, size: values if which == [0] else None
    return {"matmul": _of_matrices, _ATTENTION: _of_attention}.get(name)


def _of_elements(values: list[Any], which: list[int], size: int) -> Any:
    arrays = [i for i, x in enumerate(values) if isinstance(x, torch.Tensor)]
    for i in arrays:
        if i not in which:
            values[i] = values[i].expand(size, *values[i].shape)
    return values


def _along(values: list[Any], which: list[int], size: int) -> Any:
    dim, rank = values[1], values[0].ndim - 1
    if rank == 0 or dim is None:
        return None
    if isinstance(dim, int):
        values[1] = dim % rank + 1 if -rank <= dim < rank else dim
    else:
        values[1] = tuple(each % rank + 1 for each in dim or range(rank))
    return values


def _of_matrices(values: list[Any], which: list[int], size: int) -> Any:
    ranks = [x.ndim - (i in which) for i, x in enumerate(values[:2])]
    if min(ranks) < 2 or 2 in which:
        return None
    return _aligned(values, which, ranks)


def _of_attention(values: list[Any], which: list[int], size: int) -> Any:
    if any(i > 3 for i in which):
        return None
    arrays = [x for x in values[:4] if x is not None]
    ranks = [x.ndim - (i in which) for i, x in enumerate(arrays)]
    return _aligned(values, which, ranks)


def _aligned(values: list[Any], which: list[int], ranks: Sequence[int]) -> Any:
    """Insert dimensions of 1 behind the batch until all ranks are equal."""
    for i in which:
        size, *rest = values[i].shape
        values[i] = values[i].reshape(size, *[1] * (max(ranks) - len(rest)), *rest)
    return values


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
_RESULT = "result"
_libraries: dict[str, Any] = {}
_lock = ForkSafeLock()
_registered: set[str] = set()


def register() -> None:
    """Register all declared functions as operators, except those registered already."""
    if _registered and len(_registered) == len(FUNCTIONS):
        return
    ops.load_all()
    with _lock.held():
        for name, declared in list(FUNCTIONS.items()):
            if name not in _registered:
                _registered.add(name)
                _register(name, declared)


def register_again(name: str) -> None:
    """Register an operator whose name may have been another function's before."""
    _registered.discard(name)
    register()


def schema_of(function: Function) -> str:
    """Return a schema, such as ``softmax(Tensor input, int dim=-1) -> Tensor``."""
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


def _register(full_name: str, declared: Function) -> None:
    name, namespace = declared.name, declared.namespace
    before = _libraries.get(full_name)
    if before is not None:  # declared again, as by a notebook cell that runs twice
        before._destroy()
    library = torch.library.Library(namespace, "FRAGMENT")
    _libraries[full_name] = library
    library.define(schema_of(declared))
    for key in ("CPU", "XPU"):
        library.impl(name, _implementation(declared), key)
        if autocast.casts(declared):
            library.impl(name, _casting(declared, key.lower()), f"Autocast{key}")
    library.impl(name, _fake(declared), "Meta")
    recording = _recording(declared, operator_of(declared))
    library.impl(name, recording, "Autograd", with_keyset=True)
    if not declared.writes:
        rule = batched(declared, operator_of(declared))
        torch.library.register_vmap(f"{namespace}::{name}", rule, lib=library)


def operator_of(declared: Function) -> Any:
    """Return torch's operator of a function."""
    return getattr(getattr(torch.ops, declared.namespace), declared.name).default


def _implementation(declared: Function) -> Callable[..., Any]:
    def implementation(*args: Any) -> Any:
        found = declared.compute(*args)
        _check_single(declared, found)
        return found

    return implementation


def _check_single(declared: Function, found: Any) -> None:
    """Refuse several results of a user's function that declares one."""
    if declared.results == 1 and isinstance(found, tuple):
        count = len(cast("tuple[Any, ...]", found))
        raise LaunchError(
            f"`{declared.name}` gave {count} results, but `out=` describes one",
            code="X0829",
            help='name an argument for each result: `out=("x", "x")`',
        )


def _casting(declared: Function, device: str) -> Callable[..., Any]:
    """Return the autocast kernel: it casts the arguments and calls the operator."""

    def casting(*args: Any, **kwargs: Any) -> Any:
        values = autocast.cast(device, declared, declared.complete(args, kwargs)[:-1])
        with autocast.off(device):
            return operator_of(declared)(*values)

    return casting


def _fake(declared: Function) -> Callable[..., Any]:
    """Return the kernel for tensors without elements; shapes come from the rule."""

    def fake(*args: Any, **kwargs: Any) -> Any:
        values = declared.complete(args, kwargs)[:-1]
        _check_devices(declared, values)
        if declared.fake is not None:
            return declared.fake(values)
        first = values[declared.arrays[0]]
        for i in declared.arrays:
            if values[i] is not None:
                dtype = DType.of(str(values[i].dtype))
                shape, strides = tuple(values[i].shape), values[i].stride()
                order = order_of(shape, strides)
                values[i] = Operand(declared.names[i], shape, dtype, order=order)
        made = tuple(
            first.new_empty_strided(
                spec.shape,
                dense_strides(spec.shape, spec.order),
                dtype=as_torch(spec.dtype),
            )
            for spec in declared.rule(*values).results
        )
        return made[0] if declared.results == 1 else made or None

    return fake


def _check_devices(declared: Function, values: Sequence[Any]) -> None:
    """Refuse tensors on different devices, such as ``meta`` and the CPU."""
    given = [i for i in declared.arrays if values[i] is not None]
    first = given[0]
    for i in given:
        if values[i].device != values[first].device:
            raise LaunchError(
                f"`{declared.names[i]}` is on device `{values[i].device}`, "
                f"`{declared.names[first]}` on `{values[first].device}`",
                code="X0813",
                help="move them to one device",
            )


def recorder_of(declared: Function) -> Any:
    """Return a function that computes ``declared`` and records it in torch's graph.

    It is called as ``apply((below, args, kwargs, values), *arrays)``:
    ``below(*args, **kwargs)`` computes the result, and ``values`` are all arguments in
    order without arrays. Torch looks only at ``arrays``.

    Each function has a class of its own, so that a node's class has its derivative
    as a method. No transform may be active: it would need torch's `apply`, in Python.
    """
    kept, is_single = picker(_places_among_arrays(declared)), declared.results == 1
    is_users = declared.namespace != "xetl"
    names = declared.array_names
    rule = declared.backward

    def forward(ctx: Any, call: Any, *arrays: Any) -> Any:
        below, args, kwargs, ctx.values = call
        found = below(*args, **kwargs)
        if is_users:
            _check_single(declared, found)
        if is_first:
            ctx.materialize_grads = False
        every = (*arrays, found) if is_single else (*arrays, *found)
        # What `save_for_backward` does, without a call of a Python function.
        ctx.to_save = kept(every)
        return found

    # Only the first result of our functions has a gradient: make no zeros for others.
    is_first = not is_single and not is_users

    def backward(ctx: Any, *gradients: Any) -> Any:
        if is_first and gradients[0] is None:
            return (None,) * (1 + len(names))
        if rule is None:
            raise _no_derivative(declared.name, ctx.options)
        found = rule(ctx, *gradients)
        if len(found) < len(names):
            _check_all_found(ctx, found)
        if len(names) == 1:
            return None, *found.values()
        _, *needed = ctx.needs_input_grad
        wanted = [found.get(name) if is_ else None for name, is_ in zip(names, needed)]
        return None, *wanted

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    made: Any = type(declared.name, (torch.autograd.Function,), methods)
    parts = {
        "_forward_cls": made,
        "apply": backward,
        "declared": declared,
        "places": {name: i for i, name in enumerate(names, 1)},
        "saved": torch._C._FunctionBase.saved_tensors,
    }
    bases = Context, torch.autograd.function.BackwardCFunction
    made._backward_cls = type(f"{declared.name}Backward", bases, parts)
    return torch._C._FunctionBase.__dict__["apply"].__get__(None, made)


class _Transformed(torch.autograd.Function):
    """The autograd function in the form that `torch.func` needs, which is slower."""

    @staticmethod
    def forward(declared: Function, below: Callable[..., Any], *args: Any) -> Any:
        """Compute."""
        return below(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the arrays and options that the derivative needs."""
        declared, _, *values = inputs
        results = (output,) if declared.results == 1 else output
        every = *declared.arrays_of(values), *results
        kept = [every[place] for place in _places_among_arrays(declared)]
        ctx.save_for_backward(*kept)
        declared.drop_arrays(values)
        ctx.declared, ctx.values = declared, values

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradients of all arguments."""
        declared, context = ctx.declared, Context()
        context.declared, context.values = declared, ctx.values
        context.places = {declared.names[i]: i + 2 for i in declared.arrays}
        context.saved = ctx.saved_tensors
        context.needs_input_grad = ctx.needs_input_grad
        if declared.backward is None:
            raise _no_derivative(declared.name, context.options)
        found = declared.backward(context, *gradients)
        _check_all_found(context, found)
        needed = zip(declared.names, ctx.needs_input_grad[2:])
        return None, None, *(found.get(name) if is_ else None for name, is_ in needed)

    @staticmethod
    def vmap(info: Any, in_dims: Any, declared: Function, _: Any, *args: Any) -> Any:
        """Compute all slices at once."""
        return batched(declared, operator_of(declared))(info, in_dims[2:], *args)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refuse to differentiate forwards."""
        problem = f"`{ctx.declared.name}` has no derivative forwards"
        raise LaunchError(problem, "X0838", "use `torch.func.vjp`, `grad` or `jacrev`")


def _recording(declared: Function, operator: Any) -> Callable[..., Any]:
    """Return the operator's kernel for the dispatch key Autograd."""

    def called(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        values = declared.complete(args, kwargs)[:-1]

        def below(*args: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                keys = keyset & torch._C._after_autograd_keyset
                return operator.redispatch(keys, *args)

        for i in declared.arrays:
            if values[i] is not None:
                refuse_tangent(torch, values[i], declared.names[i])
        given = [values[i] for i in declared.arrays if values[i] is not None]
        if torch.is_grad_enabled() and any(each.requires_grad for each in given):
            return record(declared, below, values)
        return below(*values)

    return called


def record(declared: Function, below: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Compute a function, and record it in torch's graph.

    Args:
        declared: the function.
        below: computes the function without recording it.
        values: all arguments but ``out``.

    Raises:
        LaunchError: the function changes its arguments (X0838).
    """
    if declared.writes:
        problem = f"`{declared.name}` changes an array that requires a gradient"
        raise LaunchError(problem, "X0838", "call it inside of `with torch.no_grad():`")
    known = [*values]
    declared.drop_arrays(known)
    arrays = declared.arrays_of(values)
    try:
        return declared.recorder((below, values, {}, known), *arrays)
    except XetlError as error:
        raise at_caller(error) from None


def transformed(declared: Function, values: Sequence[Any]) -> Any:
    """Compute a function inside of `torch.func.grad`, `vmap` and the like.

    Args:
        values: all arguments but ``out``.
    """
    operator = operator_of(declared)
    if declared.writes:
        return operator(*values)
    return _Transformed.apply(declared, operator, *values)


def as_torch(dtype: Any) -> Any:
    """Return torch's dtype for a dtype of any library; None stays None."""
    if isinstance(dtype, torch.dtype) or dtype is None:
        return dtype
    return getattr(torch, str(DType.of(dtype).numpy))


def _places_among_arrays(declared: Function) -> list[int]:
    """Return the index of each saved value among all arrays, then all results."""
    count, names = len(declared.arrays), declared.array_names
    return [
        count + int(name[len(_RESULT) :] or 0)
        if name.startswith(_RESULT)
        else names.index(name)
        for name in declared.saves
    ]


def _check_all_found(context: Context, found: Mapping[str, Any]) -> None:
    """Refuse a derivative that lacks a gradient that is needed."""
    for name in context.places:
        if name not in found and context.needs(name):
            problem = f"`{name}` of `{context.declared.name}` cannot be differentiated"
            raise LaunchError(problem, "X0838", f"pass `{name}.detach()`")


def _no_derivative(name: str, options: Mapping[str, Any]) -> LaunchError:
    is_first = not name.endswith("_backward") and name not in _DERIVED
    name = _DERIVED.get(name, name.removesuffix("_backward"))
    name = str(options.get("which", name))
    what = f"`{name}`" if is_first else f"`{name}` twice"
    return LaunchError(
        f"{what} cannot be differentiated",
        code="X0838",
        help="pass `.detach()` of what needs no gradient"
        if is_first
        else "leave out `create_graph=True`, or use torch's function there",
    )
