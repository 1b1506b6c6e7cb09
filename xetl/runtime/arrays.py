"""Arguments of a call: arrays, their address, dtype, shape and strides; constants.

NumPy arrays, torch tensors and SYCL's unified memory are read directly. All others are
read through DLPack, which takes 8 us an array. Elements are never copied. Constants are
compile-time values: they are converted, and it is told when two of them are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import is_
from typing import Any, cast

import numpy as np

from xetl.backend import ArrayView
from xetl.errors import LaunchError, a_kind
from xetl.imports import import_whole
from xetl.language.dtypes import DType
from xetl.language.signature import Record, fields_of, leaves
from xetl.prepacked import Prepacked
from xetl.runtime import overlap, usm
from xetl.runtime.tensors import (
    SUPPORTED,
    check_rank,
    describe_tensor,
    is_tensor,
    tensor_as_array,
)

__all__ = ["ArrayView", "describe_if_array", "locate", "plain_values", "unit_dim"]


def locate(obj: object, name: str = "the array") -> ArrayView:
    """Return the view of an array; it may be in memory that the host cannot read.

    Args:
        obj: a NumPy array, a torch tensor, anything with ``__dlpack__``, or SYCL's
            unified memory.
        name: its name in errors.

    Raises:
        LaunchError: it is no array, or kernels cannot read arrays of its kind.
    """
    view = describe_if_array(obj, name)
    if view is None:
        problem = f"`{name}` is not an array but {a_kind(obj)}"
        help_ = "pass an array, such as `numpy.asarray(...)` or `torch.tensor(...)`"
        raise LaunchError(problem, "X0805", help_)
    return view


def describe_if_array(obj: object, name: str) -> ArrayView | None:
    """Do the same as `locate`, but return None if ``obj`` is no array."""
    if isinstance(obj, np.ndarray):
        return _describe_numpy(cast("np.ndarray[Any, Any]", obj), name)
    if is_tensor(obj):
        return describe_tensor(obj, name)
    if isinstance(obj, Prepacked):
        view = describe_if_array(obj.array, name)
        if view is None:
            return None
        # The backend needs the object: it keeps packed data there. It is read-only.
        return replace(view, obj=obj, readonly=True)
    if usm.states(obj, usm.INTERFACE):
        return _describe_usm(obj, name)
    if usm.states(obj, "__dlpack__"):
        return _describe_dlpack(obj, name)
    return None


def plain_values(values: Sequence[Any]) -> list[Any] | None:
    """Convert values to types that native entries accept.

    Tensors of torch and arrays with DLPack become NumPy arrays over the same memory,
    and NumPy's numbers become Python's. Return None if all values stay as they are, or
    if one cannot be converted or must be refused.
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
    if type(value) in usm.PLAIN:
        return value
    if torch is not None and isinstance(value, torch.Tensor):
        return tensor_as_array(torch, value)
    if isinstance(value, np.integer | np.floating | np.bool_):
        return cast("Any", value).item()
    if isinstance(value, np.memmap):
        return np.asarray(cast("np.memmap[Any, Any]", value))
    if isinstance(value, tuple | list):
        return known_constant(cast("object", value))
    others = issubclass(type(value), np.ndarray) or usm.states(value, usm.INTERFACE)
    if not others and usm.states(value, "__dlpack__"):
        view = _describe_dlpack(value, "an array")
        return overlap.as_numpy(view).view(view.dtype.numpy)
    return value


def unit_dim(view: ArrayView) -> int | None:
    """Return the last dimension if its extent is 1, else the last one with stride 1.

    The stride of a dimension with one element has no meaning: libraries set it to any
    value. So such a dimension does not count as one with stride 1.
    """
    if view.shape and view.shape[-1] <= 1:
        return len(view.shape) - 1
    sizes = enumerate(view.shape)
    return max((d for d, n in sizes if view.strides[d] == 1 and n > 1), default=None)


def _describe_numpy(array: np.ndarray[Any, Any], name: str) -> ArrayView:
    # Nearly all arrays are plain; importing `np.ma` takes 14 ms.
    if type(array) is not np.ndarray and _is_masked(array):
        problem = f"`{name}` is a masked array, whose mask a kernel would not see"
        help_ = "pass `.filled(...)`, or the mask as an array of its own"
        raise LaunchError(problem, "X0805", help_)
    dtype = of_numpy(array.dtype)
    if dtype is None:
        raise _unsupported_numpy(array.dtype, name)
    check_rank(array.ndim, name)
    for dim, stride in enumerate(array.strides):
        if stride % dtype.itemsize and array.shape[dim] > 1:
            raise LaunchError(
                f"dimension {dim} of `{name}` has a stride of {stride} bytes, "
                f"which is not a multiple of the {dtype.itemsize} bytes of an element",
                code="X0808",
                help="pass a copy, whose elements lie on multiples of their size",
            )
    strides = tuple(stride // dtype.itemsize for stride in array.strides)
    address, readonly = array.__array_interface__["data"]
    memory = array.memory if isinstance(array, usm.DeviceNumbers) else None
    return ArrayView(address, dtype, array.shape, strides, readonly, array, memory)


def _is_masked(array: object) -> bool:
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(array, masked.MaskedArray)


@cache
def of_numpy(dtype: np.dtype[Any]) -> DType | None:
    """Return the dtype of kernels for one of NumPy; None if kernels cannot read it."""
    if dtype.kind not in "biufV" or not dtype.isnative or dtype.names is not None:
        return None
    return DType.find(dtype)


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
        address, of, shape, strides, readonly, memory = usm.read(obj)
    except Exception as error:  # code of other libraries may raise anything
        problem = f"its `{usm.INTERFACE}` is wrong ({type(error).__name__}: {error})"
        raise _wrong_protocol(obj, name, problem) from None
    dtype = of_numpy(of)
    if dtype is None:
        raise _unsupported_numpy(of, name)
    check_rank(len(shape), name)
    return ArrayView(address, dtype, shape, strides, readonly, obj, memory)


def _describe_dlpack(obj: Any, name: str) -> ArrayView:
    dlpack: Any = import_whole("xetl.runtime.dlpack")
    try:
        kind, index = dlpack.device_of(obj)
        if kind != dlpack.CPU:
            problem = f"`{name}` is an array on another device (DLPack {kind}:{index})"
            raise LaunchError(problem, "X0813", "copy it to host memory first")
        address, of, shape, strides, readonly, keep = dlpack.read(obj)
    except dlpack.WrongDlpackError as error:
        raise _wrong_protocol(obj, name, str(error)) from None
    if of is None:
        problem = f"`{name}` has a dtype that kernels cannot read"
        raise LaunchError(problem, "X0805", f"the dtypes of arrays are {SUPPORTED}")
    check_rank(len(shape), name)
    return ArrayView(address, DType.of(of), shape, strides, readonly, keep)


def _wrong_protocol(obj: object, name: str, problem: str) -> LaunchError:
    problem = f"`{name}` is {a_kind(obj)} that cannot be read: {problem}"
    help_ = "pass a NumPy array of it, or tell its authors"
    return LaunchError(problem, "X0805", help_)


_NUMBERS = {int, float, bool, str, type(None), DType}
_KNOWN: dict[Hashable, object] = {}
"""For each set of equal tuples the first one: native code compares them by identity.

Only tuples of numbers, strings, None and dtypes are kept, so nothing large is.
"""


def _record_of(value: object, constant: Callable[[Any], object]) -> Record | None:
    """Return a named tuple or dataclass as a record of constants; None for others."""
    fields = fields_of(value)
    if fields is None:
        return None
    items = [constant(each) for each in fields.values()]
    return Record.make(type(value).__name__, list(fields), items)


def constant_of(name: str, value: Any) -> object:
    """Convert a value to the compile-time value that kernels are compiled for.

    Raises:
        LaunchError: the value is an array or not hashable.
    """
    if isinstance(value, tuple) or not _is_hashable(value):
        record = _record_of(cast("object", value), partial(constant_of, name))
        if record is not None:
            return _first_of(record)
    if isinstance(value, list | tuple):
        made = tuple(constant_of(name, each) for each in cast("Sequence[Any]", value))
        return _first_of(made)
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    # Tensors are hashable, but their elements may change.
    if not _is_hashable(value) or usm.states(value, "__dlpack__"):
        raise LaunchError(
            f"`{name}` is a compile-time parameter, but {a_kind(value)} cannot be one",
            code="X0805",
            help="compile-time values must be hashable: numbers, strings, tuples, "
            "functions, dtypes, maps",
        )
    return value


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def typed(value: object) -> Hashable:
    """Return a key in which 1, 1.0, True and -0.0, 0.0 differ, but NaN equals NaN."""
    if isinstance(value, Record):
        return (value.form, *map(typed, value))
    if isinstance(value, tuple):
        return tuple(typed(each) for each in cast("tuple[object, ...]", value))
    if isinstance(value, float):
        return (float, value.hex())
    return (type(value), value)


def _first_of(made: tuple[object, ...] | Record) -> object:
    """Return the first of all equal tuples or records that were seen."""
    if not _is_of_numbers(made):
        return made
    return _KNOWN.setdefault(typed(made), made)


def _is_of_numbers(value: object) -> bool:
    return all(type(each) in _NUMBERS for each in leaves([value]))


def known_constant(value: object) -> object:
    """Convert a list or tuple of numbers to a constant; return others as they are."""
    return constant_of("", value) if _is_of_numbers(value) else value
