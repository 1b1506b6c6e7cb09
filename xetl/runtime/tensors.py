"""Tensors of torch: views of their elements, and their treatment by autograd.

torch is never imported here: a caller that passes a tensor has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cache
from typing import Any, cast

from xetl.backend import Arguments, ArrayView
from xetl.errors import LaunchError
from xetl.language.dtypes import DType, bf16
from xetl.runtime import usm

SUPPORTED = (
    "bool, int8 to int64, uint8 to uint64, float8_e4m3fn, float8_e5m2, float16,"
    " bfloat16, float32, float64"
)
"""The dtypes of arrays, for errors."""


def check_rank(rank: int, name: str) -> None:
    """Refuse arrays without dimensions."""
    if rank == 0:
        raise LaunchError(
            f"`{name}` is an array without dimensions",
            code="X0805",
            help=f"pass the number itself (`{name}.item()`), or an array of one element"
            f" (`{name}.reshape(1)`)",
        )


def is_tensor(obj: object) -> bool:
    """Whether ``obj`` is a tensor of torch, or of a class derived from it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.Tensor)


def is_plain_tensor(obj: object) -> bool:
    """Whether the class of ``obj`` is torch's own, so that its methods are, too."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and type(obj) in (torch.Tensor, torch.nn.Parameter)


def describe_tensor(tensor: Any, name: str) -> ArrayView:
    """Return the view of a tensor.

    Args:
        name: its name in errors.

    Raises:
        LaunchError: kernels cannot read it, or torch is to differentiate it.
    """
    torch = sys.modules["torch"]
    try:
        plain = _as_plain(torch, tensor, name)
        _check_kind(torch, plain, name)
        _check_derivatives(torch, plain, name)
        dtype = _of_torch(plain.dtype)
        if dtype is None:
            problem = f"`{name}` has dtype {plain.dtype}, which kernels cannot read"
            raise LaunchError(problem, "X0805", f"the dtypes of arrays are {SUPPORTED}")
        check_rank(plain.ndim, name)
        if not _is_allocated(plain):
            raise LaunchError(
                f"the storage of `{name}` is smaller than the tensor: "
                f"it has {plain.untyped_storage().nbytes()} bytes",
                code="X0805",
                help="it was resized or freed; give it its memory back first",
            )
        memory = usm.tensor_memory(torch, plain)
        shape, strides = tuple(plain.shape), plain.stride()
        where = (plain.data_ptr(), dtype, shape, strides)
    except LaunchError:
        raise
    except Exception:  # torch has many errors for tensors without elements
        raise _no_elements(tensor, name) from None
    return ArrayView(*where, False, tensor, memory)


def note_written(objects: Iterable[object]) -> None:
    """Tell autograd that the elements of tensors change.

    Otherwise torch would use the new elements of a tensor that was saved for a
    derivative, which would be wrong.

    Args:
        objects: the user's arrays that a kernel stores to; others than tensors are
            ignored.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    tensors = [each for each in objects if isinstance(each, torch.Tensor)]
    if tensors:
        torch.autograd.graph.increment_version(tensors)


def stored_objects(args: Arguments, stored: Collection[int]) -> Iterable[object]:
    """Yield the user's objects for the arguments that a kernel stores to."""
    for index in stored:
        arg = args[index]
        if isinstance(arg, ArrayView):
            yield arg.obj


_of_torch = cache(DType.find)


def tensor_as_array(torch: Any, tensor: Any) -> Any:
    """Return a NumPy array over a tensor's memory, ten times as fast as the view.

    Raises:
        TypeError, RuntimeError: NumPy cannot share the memory, or the tensor must be
            refused.
    """
    if not is_plain_tensor(tensor):
        raise TypeError
    if tensor.requires_grad:
        if torch.is_grad_enabled():
            raise TypeError
        tensor = tensor.detach()
    if not _is_allocated(tensor):  # `numpy` would return other memory
        raise TypeError
    if tensor.dtype is torch.bfloat16:  # NumPy has no such dtype
        return tensor.view(torch.int16).numpy().view(bf16.numpy)
    if tensor.dtype.itemsize == 1 and tensor.dtype.is_floating_point:
        dtype = _of_torch(tensor.dtype)
        if dtype is None:
            raise TypeError
        return tensor.view(torch.uint8).numpy().view(dtype.numpy)
    return tensor.numpy()


def _as_plain(torch: Any, tensor: Any, name: str) -> Any:
    """Return the tensor as a plain `torch.Tensor`, without a user's subclass."""
    kind = cast("Any", type(tensor))
    if kind is torch.Tensor:
        return tensor
    if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise _no_elements(tensor, name)
    if torch.nn.parameter.is_lazy(tensor):
        problem = f"`{name}` is a parameter that is not initialised yet"
        raise LaunchError(problem, "X0805", "run its module once")
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def _no_elements(tensor: object, name: str) -> LaunchError:
    kind = type(tensor)
    return LaunchError(
        f"`{name}` is a tensor of class {kind.__module__}.{kind.__qualname__} "
        "whose elements have no memory of their own",
        code="X0805",
        help="pass a plain dense tensor; inside of torch.func's transforms and of "
        "fake tensors there is none",
    )


def _check_kind(torch: Any, tensor: Any, name: str) -> None:
    if tensor.device.type not in ("cpu", "xpu"):
        problem = f"`{name}` is a tensor on device `{tensor.device}`, not on the CPU"
        raise LaunchError(problem, "X0813", f"pass `{name}.cpu()`")
    if tensor.layout is not torch.strided or tensor.is_nested:
        layout = "torch.nested" if tensor.is_nested else tensor.layout
        raise LaunchError(
            f"`{name}` is a tensor with layout {layout}",
            code="X0805",
            help=f"pass `{name}.to_padded_tensor(0)`, or its parts"
            if tensor.is_nested
            else f"pass `{name}.to_dense()`",
        )
    if tensor.is_conj() or tensor.is_neg():
        problem = f"`{name}` is a tensor whose sign is not yet applied"
        help_ = f"pass `{name}.resolve_conj().resolve_neg()`"
        raise LaunchError(problem, "X0805", help_)


def _check_derivatives(torch: Any, tensor: Any, name: str) -> None:
    """Refuse a tensor that torch is to differentiate: it does not record kernels."""
    if tensor.requires_grad and torch.is_grad_enabled():
        raise LaunchError(
            f"`{name}` requires a gradient, but kernels have no derivatives",
            code="X0838",
            help=f"pass `{name}.detach()`, or launch inside of "
            "`with torch.no_grad():`; to train, wrap the launch in a function with "
            "`@xetl.op(..., backward=...)`",
        )
    refuse_tangent(torch, tensor, name)


def refuse_tangent(torch: Any, tensor: Any, name: str) -> None:
    """Refuse a tensor with a tangent: forward mode would take its derivative as 0."""
    forward = torch.autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(tensor).tangent is not None:
        problem = f"`{name}` has a tangent, but kernels have no derivatives"
        help_ = f"pass `torch.autograd.forward_ad.unpack_dual({name}).primal`"
        raise LaunchError(problem, "X0838", help_)


def needs_derivative(obj: object) -> bool:
    """Whether ``obj`` is a tensor that torch is to differentiate."""
    torch: Any = sys.modules.get("torch")
    given: Any = obj
    if torch is None or not isinstance(obj, torch.Tensor):
        return False
    return given.requires_grad and torch.is_grad_enabled()


def _is_allocated(tensor: Any) -> bool:
    """Whether the storage of a tensor holds all of its elements."""
    size: int = tensor.nbytes
    if size == 0:
        return True
    if not tensor.is_contiguous():
        steps = zip(tensor.shape, tensor.stride())
        size = tensor.itemsize * (1 + sum((n - 1) * stride for n, stride in steps))
    size += tensor.storage_offset() * tensor.itemsize
    return size <= tensor.untyped_storage().nbytes() and tensor.data_ptr() != 0


def hide_from_dynamo(*functions: Any) -> None:
    """Make ``torch.compile`` run these functions, and their callees, uncompiled.

    The attributes are those that `torch.compiler.disable` sets: a call of such a
    function breaks the graph. The function then runs in the interpreter, where torch
    would try to compile it. `settle_dynamo` prevents that when torch is imported.
    """
    for function in functions:
        function._torchdynamo_disable = True
        function._torchdynamo_disable_msg = "xetl launches kernels outside of graphs"
    _hidden.extend(function.__code__ for function in functions)
    settle_dynamo()


def settle_dynamo() -> None:
    """Tell torch, if it is imported, which functions it must not compile."""
    if not _hidden:
        return
    torch: Any = sys.modules.get("torch")
    with suppress(AttributeError):  # not imported, not completely, or another version
        hooks = torch._C._dynamo.eval_frame
        skip = hooks._FrameAction.SKIP
        strategy = hooks._FrameExecStrategy(skip, skip)
        while _hidden:
            hooks.set_code_exec_strategy(_hidden[-1], strategy)
            _hidden.pop()


_hidden: list[Any] = []
hide_from_dynamo(settle_dynamo)
