"""NumPy arrays over the memory of arrays of any library; new arrays for results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias, cast

import numpy as np

from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.dtypes import BY_NAME, DType
from xetl.language.strides import row_major
from xetl.ops.calling.recycling import in_order, new_array, new_tensor
from xetl.runtime import overlap
from xetl.runtime.arrays import locate, of_numpy, plain_values
from xetl.runtime.tensors import is_tensor
from xetl.runtime.usm import DeviceNumbers

Numbers: TypeAlias = np.ndarray[Any, Any]

_TORCH_NAMES = {dtype: name for name, dtype in BY_NAME.items() if name != dtype.name}


def as_numpy(obj: object, name: str) -> Numbers:
    """Return a NumPy array over the memory of ``obj``.

    If the memory is on a device, the result has only addresses: the host must not read
    the elements, but a launch finds the device by the attribute ``memory``.

    Args:
        obj: anything a kernel takes as an array.
        name: the name of the array in errors.

    Raises:
        LaunchError: it is no array, or kernels cannot read its dtype or its device.
    """
    if type(obj) is np.ndarray and obj.ndim > 0:
        return obj
    (seen,) = plain_values([obj]) or [None]
    if getattr(seen, "ndim", 0) > 0:
        return cast("Numbers", seen)
    if isinstance(obj, bool | int | float | complex):
        problem = f"`{name}` is the number {obj}, but must be an array"
        help_ = "pass an array of rank 1 or more; a product by a number is `x * y`"
        raise LaunchError(problem, "X0805", help_)
    view = locate(obj, name)
    found = overlap.as_numpy(view).view(view.dtype.numpy)
    if view.memory is None:
        return found
    there = found.view(DeviceNumbers)
    there.memory = view.memory
    return there


def dtype_of(array: Numbers, name: str) -> DType:
    """Return the dtype of a NumPy array; a LaunchError if kernels cannot read it."""
    known = None
    if type(array) is np.ndarray and array.ndim and array.flags.c_contiguous:
        known = of_numpy(array.dtype)  # contiguous: strides need no check
    return locate(array, name).dtype if known is None else known


def order_of(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Return the dimensions by stride, the outermost first; None: row-major.

    A dimension stays in its place if its extent is 1 or its stride 0.

    >>> order_of((2, 3, 4), (12, 1, 3))
    (0, 2, 1)
    """
    placed = [d for d, n in enumerate(shape) if n != 1 and strides[d] != 0]
    if all(abs(strides[a]) >= abs(strides[b]) for a, b in pairwise(placed)):
        return None
    order = [*range(len(shape))]
    inward = sorted(placed, key=lambda d: -abs(strides[d]))
    for place, d in zip(placed, inward):
        order[place] = d
    return tuple(order)


def dense_strides(
    shape: Sequence[int], order: tuple[int, ...] | None
) -> tuple[int, ...]:
    """Return the strides, in elements, of an array without gaps.

    >>> dense_strides((2, 3, 4), (0, 2, 1))
    (12, 1, 3)
    """
    if order is None:
        return row_major(shape)
    strides = dict(zip(order, row_major([shape[d] for d in order])))
    return tuple(strides[d] for d in range(len(shape)))


def new_result(
    like: object,
    shape: tuple[int, ...],
    dtype: DType,
    order: tuple[int, ...] | None = None,
) -> Any:
    """Make an uninitialised array of the library of ``like``, or else of NumPy."""
    given: Any = like
    if is_tensor(like):
        torch: Any = import_whole("torch")
        kind, strides = getattr(torch, _TORCH_NAMES[dtype]), dense_strides(shape, order)
        if given.is_cpu:
            return new_tensor(shape, strides, kind)
        return torch.empty_strided(shape, strides, dtype=kind, device=given.device)
    if type(like).__module__.partition(".")[0] == "dpnp":
        dpnp: Any = import_whole("dpnp")
        where = {"sycl_queue": given.sycl_queue, "usm_type": given.usm_type}
        make = partial(dpnp.empty, dtype=dtype.numpy, **where)
        return in_order(order or range(len(shape)), shape, make)
    return new_array(shape, dtype.numpy, order)


Shape: TypeAlias = tuple[int, ...]
