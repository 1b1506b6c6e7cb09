"""What can be passed as an array, and where its elements are.

NumPy arrays, torch tensors and SYCL's unified memory are read directly, everything
else through DLPack: 8 us an array, so only a fallback. Nothing is ever copied.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from operator import is_
from typing import Any, cast

import numpy as np

from xetl.backend import ArrayView
from xetl.errors import LaunchError, TileTypeError
from xetl.imports import import_whole
from xetl.language.dtypes import DType
from xetl.prepacked import Prepacked
from xetl.runtime import overlap, usm
from xetl.runtime.constants import known_constant
from xetl.runtime.tensors import (
    SUPPORTED,
    check_rank,
    describe_tensor,
    is_tensor,
    tensor_as_array,
)

__all__ = ["ArrayView", "describe_if_array", "locate", "plain_values", "unit_dim"]


def locate(obj: object, name: str = "the array") -> ArrayView:
    """Say where the elements of ``obj`` are; the host may not be able to read them.

    Args:
        obj: a NumPy array, a torch tensor, anything with ``__dlpack__``, or SYCL's
            unified memory.
        name: what an error calls it.

    Raises:
        LaunchError: it is no array, or one of a kind kernels cannot read.
    """
    view = describe_if_array(obj, name)
    if view is None:
        problem = f"`{name}` is not an array but a {type(obj).__name__}"
        help_ = "pass an array, such as `numpy.asarray(...)` or `torch.tensor(...)`"
        raise LaunchError(problem, "X0805", help_)
    return view


def describe_if_array(obj: object, name: str) -> ArrayView | None:
    """As `locate`; ``None`` for what is no array at all."""
    if isinstance(obj, np.ndarray):
        return _describe_numpy(cast("np.ndarray[Any, Any]", obj), name)
    if is_tensor(obj):
        return describe_tensor(obj, name)
    if isinstance(obj, Prepacked):
        view = describe_if_array(obj.array, name)
        if view is None:
            return None
        # The backend may look for what it keeps there; nobody may write there.
        return replace(view, obj=obj, readonly=True)
    if usm.states(obj, usm.INTERFACE):
        return _describe_usm(obj, name)
    if usm.states(obj, "__dlpack__"):
        return _describe_dlpack(obj, name)
    return None


_PLAIN = {np.ndarray, int, float, bool, str, type(None)}


def plain_values(values: Sequence[Any]) -> list[Any] | None:
    """The same values as native entries take them.

    Tensors of torch and arrays with DLPack become arrays of NumPy over their memory,
    numbers of NumPy those of Python. None if nothing is to change, or something cannot
    be seen so or must be refused.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.autograd.forward_ad._current_level >= 0:
        return None
    try:
        found = [_as_plain(torch, each) for each in values]
    except (TypeError, RuntimeError, LaunchError):  # on a device, sparse and the like
        return None
    return None if all(map(is_, found, values)) else found


def _as_plain(torch: Any, value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if torch is not None and isinstance(value, torch.Tensor):
        return tensor_as_array(torch, value)
    if isinstance(value, np.integer | np.floating | np.bool_):
        return cast("Any", value).item()
    if isinstance(value, tuple | list):
        return known_constant(cast("object", value))
    others = issubclass(type(value), np.ndarray) or usm.states(value, usm.INTERFACE)
    if not others and usm.states(value, "__dlpack__"):
        view = _describe_dlpack(value, "an array")
        return overlap.as_numpy(view).view(view.dtype.numpy)
    return value


def unit_dim(view: ArrayView) -> int | None:
    """The last dimension whose stride is 1, or the last one, if it has one element.

    What the stride of a dimension of one element is does not matter, and libraries
    leave anything there: it says nothing of how the others lie.
    """
    if view.shape and view.shape[-1] <= 1:
        return len(view.shape) - 1
    for dim in reversed(range(len(view.shape))):
        if view.strides[dim] == 1 and view.shape[dim] > 1:
            return dim
    return None


def _describe_numpy(array: np.ndarray[Any, Any], name: str) -> ArrayView:
    # Plain arrays are what nearly all are; `np.ma` takes 14 ms to import.
    if type(array) is not np.ndarray and _is_masked(array):
        problem = f"`{name}` is a masked array, whose mask a kernel would not see"
        help_ = "pass `.filled(...)`, or the mask as an array of its own"
        raise LaunchError(problem, "X0805", help_)
    dtype = of_numpy(array.dtype)
    if dtype is None:
        raise _unsupported_numpy(array.dtype, name)
    check_rank(array.ndim, name)
    strides = _in_elements(array.strides, array.shape, dtype.itemsize, name)
    address, readonly = array.__array_interface__["data"]
    memory = array.memory if isinstance(array, usm.DeviceNumbers) else None
    return ArrayView(address, dtype, array.shape, strides, readonly, array, memory)


def _is_masked(array: object) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, masked.MaskedArray)


def _in_elements(
    strides: tuple[int, ...], shape: tuple[int, ...], itemsize: int, name: str
) -> tuple[int, ...]:
    for dim, stride in enumerate(strides):
        if stride % itemsize and shape[dim] > 1:
            raise LaunchError(
                f"dimension {dim} of `{name}` has a stride of {stride} bytes, "
                f"which is not a multiple of the {itemsize} bytes of an element",
                code="X0808",
                help="pass a copy, whose elements lie on multiples of their size",
            )
    return tuple(stride // itemsize for stride in strides)


@cache
def of_numpy(dtype: np.dtype[Any]) -> DType | None:
    """What kernels call a dtype of NumPy; None: they cannot read it."""
    if dtype.kind not in "biufV" or not dtype.isnative or dtype.names is not None:
        return None
    try:
        return DType.of(dtype)
    except TileTypeError:
        return None


def _unsupported_numpy(dtype: np.dtype[Any], name: str) -> LaunchError:
    if dtype.names is None and not dtype.isnative:
        return LaunchError(
            f"`{name}` has dtype {dtype.name} in the byte order of another machine",
            code="X0805",
            help=f"pass `{name}.astype({name}.dtype.newbyteorder('='))`",
        )
    what = "a structured dtype" if dtype.names is not None else f"dtype {dtype.name}"
    problem = f"`{name}` has {what}, which kernels cannot read"
    return LaunchError(problem, "X0805", f"the dtypes of arrays are {SUPPORTED}")


def _describe_usm(obj: Any, name: str) -> ArrayView:
    try:
        found = usm.read(obj)
    except Exception as error:  # the class is another's: anything may be raised
        raise _wrong_protocol(
            obj,
            name,
            f"its `{usm.INTERFACE}` is wrong ({type(error).__name__}: {error})",
        ) from None
    dtype = of_numpy(found.dtype)
    if dtype is None:
        raise _unsupported_numpy(found.dtype, name)
    check_rank(len(found.shape), name)
    where = (found.address, dtype, found.shape, found.strides)
    return ArrayView(*where, found.readonly, obj, found.memory)


def _describe_dlpack(obj: Any, name: str) -> ArrayView:
    dlpack: Any = import_whole("xetl.runtime.dlpack")
    try:
        kind, index = dlpack.device_of(obj)
        if kind != dlpack.CPU:
            problem = f"`{name}` is an array on another device (DLPack {kind}:{index})"
            raise LaunchError(problem, "X0813", "copy it to host memory first")
        found = dlpack.read(obj)
    except dlpack.WrongDlpackError as error:
        raise _wrong_protocol(obj, name, str(error)) from None
    dtype = None if found.dtype is None else DType.of(found.dtype)
    if dtype is None:
        problem = f"`{name}` has a dtype that kernels cannot read"
        raise LaunchError(problem, "X0805", f"the dtypes of arrays are {SUPPORTED}")
    check_rank(len(found.shape), name)
    return ArrayView(
        found.address, dtype, found.shape, found.strides, found.readonly, found.keep
    )


def _wrong_protocol(obj: object, name: str, problem: str) -> LaunchError:
    problem = f"`{name}` is a {type(obj).__name__} that cannot be read: {problem}"
    help_ = "pass a NumPy array of it, or tell its authors"
    return LaunchError(problem, "X0805", help_)
