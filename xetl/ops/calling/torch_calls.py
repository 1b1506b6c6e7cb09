"""Calls with tensors: which of them torch must know about, and how it is told.

Import this module only if torch is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

from xetl.errors import LaunchError, a_kind
from xetl.imports import import_whole
from xetl.ops.calling import autocast, torch_library
from xetl.ops.calling.declarations import out_and_gradient, with_out
from xetl.ops.calling.declare import Function
from xetl.ops.calling.options import EXACT
from xetl.ops.calling.repeated import PLAIN, REPEATED, SEQUENCES

torch: Any = import_whole("torch")
_PLAIN = {torch.Tensor, torch.nn.Parameter}
REPEATED.update(_PLAIN)
PLAIN.add(torch.dtype)
SEQUENCES.add(torch.Size)
for kinds, symbol in (
    (("int", "Dims"), torch.SymInt),
    (("float", "Number"), torch.SymFloat),
    (("bool",), torch.SymBool),
):
    for kind in kinds:
        EXACT[kind].add(symbol)
torch_library.register()


Below: TypeAlias = Callable[..., Any]
"""Computes a call from all arguments but ``out``, and remembers it for native code."""

Way: TypeAlias = Callable[[Function, list[Any], Below], Any]
"""A function of (the called function, all arguments in order, what computes below
torch); it computes the call."""


def way_of(declared: Function, values: list[Any]) -> Way | None:
    """Return how torch is told about a call; None: torch does not have to know.

    Torch must know about calls that need derivatives, or if transforms or modes are
    active.
    """
    # A mode, a transform or a trace is active: it must see each operator.
    hooks = torch._C
    if (
        hooks._len_torch_dispatch_stack()
        or hooks._functorch.peek_interpreter_stack()
        or hooks._get_tracing_state()
    ):
        some = any(isinstance(values[i], torch.Tensor) for i in declared.arrays)
        return _dispatched if some else None
    if hooks._is_any_autocast_enabled() and (way := _way_of_autocast(declared, values)):
        return way
    records, is_needed, is_plain = torch.is_grad_enabled(), False, True
    has_elements = is_meta = False
    for i in declared.arrays:
        x = values[i]
        if type(x) in _PLAIN:
            is_needed = is_needed or (records and x.requires_grad)
            is_meta = is_meta or x.is_meta
            has_elements = has_elements or not x.is_meta
        elif x is not None:
            is_plain, has_elements = False, True
            if isinstance(x, torch.Tensor):
                is_needed = is_needed or (records and x.requires_grad)
                is_needed = is_needed or _has_own_operators(x)
    if is_meta and not has_elements:
        return _dispatched
    if not is_needed:
        return None
    return _recorded if is_plain else _dispatched


def _way_of_autocast(declared: Function, values: list[Any]) -> Way | None:
    """Return the way of a call under autocast; None: it is off for these tensors."""
    given = [values[i] for i in declared.arrays if values[i] is not None]
    device = next((x.device.type for x in given if isinstance(x, torch.Tensor)), None)
    if device is None or autocast.is_off(device):
        return None
    # Functions in a user's own function are under autocast as well.
    is_ours = declared.namespace == "xetl" and values[-1] is None
    if is_ours and all(type(x) in _PLAIN for x in given):
        return partial(_under_autocast, device)
    return _dispatched


def _under_autocast(device: str, declared: Function, values: Any, _: Below) -> Any:
    """Cast the operands as torch's operator does, and compute without autocast."""
    with autocast.off(device):
        return declared.public(*autocast.cast(device, declared, values[:-1]))


def _recorded(declared: Function, values: list[Any], below: Below) -> Any:
    """Compute and record as torch's operator does, but without torch's dispatcher."""
    if values[-1] is not None:
        return _in_place(declared, values)
    for i in declared.arrays:
        each = values[i]
        if each is not None:  # it may be wrapped by a transform that has ended
            values[i] = torch._C._functorch.unwrap_if_dead(each)
            if values[i] is not each:
                below = declared.compute
    return torch_library.record(declared, below, _with_dtypes(declared, values))


def _in_place(declared: Function, values: list[Any]) -> Any:
    """Write to the input in a call that torch is to differentiate.

    Raises:
        LaunchError: ``out`` is another array, or a leaf: torch cannot record that.
    """
    x, *others, out = values
    if out is not x or x.is_leaf:
        raise out_and_gradient(declared.shown)
    found = declared.public(_kept(declared, x), *others)
    return with_out(declared.shown, found, x)


def _kept(declared: Function, x: Any) -> Any:
    """Return an input that is to be written as its derivative may read it later."""
    return x.clone() if declared.names[0] in declared.saves else x


def _dispatched(declared: Function, values: list[Any], _: Below) -> Any:
    """Call torch's operator.

    Raises:
        LaunchError: ``out`` is given, but torch cannot record writes to it; an operand
            is no tensor; or the class of a tensor overrides operators and does not
            know this one.
    """
    given = [values[i] for i in declared.arrays if values[i] is not None]
    is_needed = any(getattr(x, "requires_grad", False) for x in given)
    if values[-1] is not None and torch.is_grad_enabled() and is_needed:
        return _in_place(declared, values)
    for i in declared.arrays:
        if values[i] is not None and not isinstance(values[i], torch.Tensor):
            kind = a_kind(values[i])
            raise LaunchError(
                f"`{declared.names[i]}` is {kind}, beside tensors that torch records",
                code="X0805",
                help="pass tensors only: `torch.from_numpy(...)`",
            )
    torch_library.register()
    declared, values = declared.as_operator(values)
    try:
        if torch._C._are_functorch_transforms_active() and values[-1] is None:
            return torch_library.transformed(declared, _with_dtypes(declared, values))
        return traced(declared, values)
    except NotImplementedError:
        i = next(i for i in declared.arrays if type(values[i]) not in _PLAIN)
        kind = a_kind(values[i])
        raise LaunchError(
            f"`{declared.names[i]}` is {kind}, which does not know `{declared.name}`",
            code="X0805",
            help="pass a plain tensor",
        ) from None


def new_seed(like: Any, limit: int) -> Any:
    """Draw a tensor of one integer in [0, ``limit``) from torch's generator."""
    return torch.randint(limit, (1,), device=like.device)


def _has_own_operators(x: object) -> bool:
    kind = cast("Any", type(x))
    return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


def _with_dtypes(declared: Function, values: list[Any]) -> list[Any]:
    """Return all arguments but ``out``, with dtypes converted to torch's."""
    arguments = values[:-1]
    i = declared.places.get("dtype")
    if i is not None:
        arguments[i] = torch_library.as_torch(arguments[i])
    return arguments


def traced(declared: Function, values: list[Any]) -> Any:
    """Call torch's operator; torch.compile traces this code as well."""
    declared, values = declared.as_operator(values)
    out = values[-1]
    if out is not None and out is values[0]:
        values = [_kept(declared, out), *values[1:]]
    operator = torch_library.operator_of(declared)
    found = operator(*_with_dtypes(declared, values))
    if out is None or declared.results == 1:
        return with_out(declared.name, found, out)
    for to, each in zip(declared.outs_of(out), found):
        with_out(declared.name, each, to)
    return out
