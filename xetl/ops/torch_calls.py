"""Calls of functions with tensors: which of them torch must know of, and how it does.

To be imported only where torch is.
"""

from __future__ import annotations

from typing import Any, cast

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.ops import torch_library
from xetl.ops.declare import Function
from xetl.ops.repeated import PLAIN, REPEATED, SEQUENCES

torch: Any = import_whole("torch")
_PLAIN = {torch.Tensor, torch.nn.Parameter}
REPEATED.update(_PLAIN)
PLAIN.add(torch.dtype)
SEQUENCES.add(torch.Size)
torch_library.register()


def has_modes() -> bool:
    """Whether a mode or a transform of torch is on, which must see each operator."""
    hooks = torch._C
    return (
        hooks._len_torch_dispatch_stack() or hooks._functorch.peek_interpreter_stack()
    )


def is_recorded(declared: Function, values: list[Any]) -> bool:
    """Whether torch must know of a call: for a derivative, a transform or a mode."""
    if has_modes():
        return any(isinstance(values[i], torch.Tensor) for i in declared.arrays)
    records = torch.is_grad_enabled()
    for i in declared.arrays:
        x = values[i]
        if records and isinstance(x, torch.Tensor) and x.requires_grad:
            return True
        if type(x) not in _PLAIN and isinstance(x, torch.Tensor):
            kind = cast("Any", type(x))
            return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    return False


def recorded(declared: Function, values: list[Any]) -> Any:
    """Call the operator of torch.

    Raises:
        LaunchError: ``out`` is given, of which torch can keep no history; or the class
            of a tensor says itself what operators do, and does not know this one.
    """
    if values[-1] is not None and torch.is_grad_enabled():
        raise LaunchError(
            f"`{declared.name}` was given `out=`, and an argument requires a gradient",
            code="X0838",
            help="leave out `out=`, or call it inside of `with torch.no_grad():`",
        )
    is_plain = not has_modes()
    for i in declared.arrays:
        x = values[i]
        if type(x) in _PLAIN:
            values[i] = torch._C._functorch.unwrap_if_dead(x)
        elif isinstance(x, torch.Tensor):
            is_plain = False  # it may have operators of its own
        elif x is not None:
            kind = type(x).__name__
            raise LaunchError(
                f"`{declared.names[i]}` is a {kind}, beside tensors that torch records",
                code="X0805",
                help="pass tensors only: `torch.from_numpy(...)`",
            )
    if is_plain:
        # As the operator does it, without torch's dispatcher in between.
        arguments = _with_dtypes(declared, values)
        return torch_library.record(declared, declared.compute, arguments)
    torch_library.register()
    try:
        if torch._C._are_functorch_transforms_active() and values[-1] is None:
            arguments = _with_dtypes(declared, values)
            return torch_library.transformed(declared, arguments)
        return traced(declared, values)
    except NotImplementedError:
        i = next(i for i in declared.arrays if _has_own_operators(values[i]))
        kind = cast("Any", type(values[i])).__name__
        raise LaunchError(
            f"`{declared.names[i]}` is a {kind}, which does not know `{declared.name}`",
            code="X0805",
            help="pass a plain tensor",
        ) from None


def new_seed(like: Any, limit: int) -> Any:
    """A tensor of one number from 0 to ``limit``, by torch's generator."""
    return torch.randint(limit, (1,), device=like.device)


def _has_own_operators(x: object) -> bool:
    return isinstance(x, torch.Tensor) and type(x) not in _PLAIN


def _with_dtypes(declared: Function, values: list[Any]) -> list[Any]:
    """All arguments but ``out``, dtypes as torch has them."""
    arguments = values[:-1]
    i = declared.places.get("dtype")
    if i is not None:
        arguments[i] = torch_library.as_torch(arguments[i])
    return arguments


def traced(declared: Function, values: list[Any]) -> Any:
    """The same; also what torch.compile reads."""
    out = values[-1]
    operator = torch_library.operator_of(declared)
    found = operator(*_with_dtypes(declared, values))
    if out is None:
        return found
    if declared.results == 1:
        return out.copy_(found)
    for to, each in zip(out, found):
        to.copy_(each)
    return out
