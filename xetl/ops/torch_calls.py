"""Calls of functions with tensors: which of them torch must know of, and how it does.

To be imported only where torch is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.ops import torch_library
from xetl.ops.calls import Launch
from xetl.ops.declare import Function
from xetl.ops.repeated import Repeated

torch: Any = import_whole("torch")


def is_recorded(declared: Function, values: list[Any]) -> bool:
    """Whether torch must know of a call: for a derivative, a transform or a mode."""
    hooks = torch._C
    if hooks._len_torch_dispatch_stack() or hooks._functorch.peek_interpreter_stack():
        return any(isinstance(values[i], torch.Tensor) for i in declared.arrays)
    records = torch.is_grad_enabled()
    for i in declared.arrays:
        x = values[i]
        if isinstance(x, torch.Tensor):
            if records and x.requires_grad:
                return True
            if type(x) is not torch.Tensor and type(x) is not torch.nn.Parameter:
                kind = cast("Any", type(x))
                return kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    return False


def key_of_repeated(declared: Function, values: list[Any]) -> Hashable:
    """As `Function` has it of NumPy's arrays; None: not all are plain tensors."""
    if declared.plain is not None:
        return None
    key: list[Any] = ["torch"]
    for i in (*declared.arrays, -1):
        x = values[i]
        if x is None:
            key.append(None)
            continue
        if type(x) is not torch.Tensor or x.requires_grad or not x.is_cpu:
            return None
        if x.layout is not torch.strided or x.is_nested:
            return None
        key += x.shape, x.stride(), x.dtype
    return declared.with_options(key, values)


def repeat(declared: Function, values: list[Any]) -> Any:
    """Do as an earlier call did; None: there was none, or these tensors do not fit."""
    key = key_of_repeated(declared, values)
    repeated = None if key is None else declared.repeated.get(key)
    if repeated is None:
        return None
    try:
        return repeated.run([*values])
    except LaunchError:
        return None  # what is done instead says it by the names of the arguments


def remember(declared: Function, how: Repeated, values: list[Any], made: Any) -> None:
    """Let the next call like this one give its tensors to the kernels, if these can.

    Args:
        declared: was called.
        how: calls of NumPy's arrays are repeated.
        values: of the call.
        made: its result.
    """
    key = key_of_repeated(declared, values)
    if key is None or type(made) is not torch.Tensor or key in declared.repeated:
        return
    given = [*values[:-1], made, *(np.empty(*each) for each in how.temporary)]
    for launch, take, _ in how.steps:
        if launch.loops or not _are_views(launch, take(given)):
            declared.remember(key, None)
            return
    new = partial(torch.empty, tuple(made.shape), dtype=made.dtype, device="cpu")
    declared.remember(key, how._replace(new=new))


def _are_views(launch: Launch, arrays: Sequence[Any]) -> bool:
    """Whether what a kernel takes of tensors are tensors on the same memory."""
    try:
        seen = launch.seen(arrays)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return False  # a view of NumPy's arrays only
    for x, view in zip(arrays, seen):
        if not isinstance(x, torch.Tensor) or view is x:
            continue
        if type(view) is not torch.Tensor or view.data_ptr() != x.data_ptr():
            return False
    return True


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
    for i in declared.arrays:
        if values[i] is not None and not isinstance(values[i], torch.Tensor):
            kind = type(values[i]).__name__
            raise LaunchError(
                f"`{declared.names[i]}` is a {kind}, beside tensors that torch records",
                code="X0805",
                help="pass tensors only: `torch.from_numpy(...)`",
            )
    torch_library.register()
    try:
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
    plain = (torch.Tensor, torch.nn.Parameter)
    return isinstance(x, torch.Tensor) and type(x) not in plain


def traced(declared: Function, values: list[Any]) -> Any:
    """The same; also what torch.compile reads."""
    *arguments, out = values
    operator = torch_library.operator_of(declared)
    for i in declared.options:
        if declared.names[i] == "dtype":
            arguments[i] = torch_library.as_torch(arguments[i])
    found = operator(*arguments)
    if out is None:
        return found
    if declared.results == 1:
        return out.copy_(found)
    for to, each in zip(out, found):
        to.copy_(each)
    return out
