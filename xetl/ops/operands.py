"""Arrays of any library as NumPy arrays over the same memory, and results of theirs."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from xetl.backend import ArrayView
from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.dtypes import BY_NAME, DType
from xetl.runtime.arrays import locate
from xetl.runtime.tensors import is_tensor, tensors_as_arrays
from xetl.runtime.usm import DeviceNumbers

Numbers: TypeAlias = np.ndarray[Any, Any]

LARGE = 8 << 20
"""Bytes from which on a tensor comes in huge pages; NumPy asks for them from 4 MB on.

It costs 2 us, which is 1 % of writing so much where memory is there already."""

_TORCH_NAMES = {dtype: name for name, dtype in BY_NAME.items() if name != dtype.name}


def as_numpy(obj: object, name: str) -> Numbers:
    """A NumPy array over the memory of ``obj``.

    Of memory that lives on a device it says only where elements are: nobody may read
    them here, but a launch knows where they belong.

    Args:
        obj: anything a kernel takes as an array.
        name: what an error calls it.

    Raises:
        LaunchError: it is no array, or of a dtype or on a device kernels cannot read.
    """
    if type(obj) is np.ndarray and obj.ndim > 0:
        return obj
    seen = tensors_as_arrays([obj])
    if seen is not None and seen[0].ndim > 0:
        return seen[0]
    if isinstance(obj, bool | int | float | complex):
        raise LaunchError(
            f"`{name}` is the number {obj}, but must be an array",
            code="X0805",
            help="pass an array of rank 1 or more; a product by a number is `x * y`",
        )
    view = locate(obj, name)
    found = np.asarray(_Memory(view)).view(view.dtype.numpy)
    if view.memory is None:
        return found
    there = found.view(DeviceNumbers)
    there.memory = view.memory
    return there


def dtype_of(array: Numbers, name: str) -> DType:
    """The dtype of a NumPy array.

    Raises:
        LaunchError: kernels cannot read it.
    """
    return locate(array, name).dtype


def new_result(like: object, shape: tuple[int, ...], dtype: DType) -> Any:
    """An uninitialised array of the library that ``like`` is from; else NumPy's."""
    given: Any = like
    if is_tensor(like):
        torch: Any = import_whole("torch")
        kind = getattr(torch, _TORCH_NAMES[dtype])
        return in_huge_pages(torch.empty(shape, dtype=kind, device=given.device))
    if type(like).__module__.partition(".")[0] == "dpnp":
        dpnp: Any = import_whole("dpnp")
        where = {"sycl_queue": given.sycl_queue, "usm_type": given.usm_type}
        return dpnp.empty(shape, dtype=dtype.numpy, **where)
    return np.empty(shape, dtype.numpy)


def in_huge_pages(made: Any) -> Any:
    """A new tensor, whose first writer then meets fewer pages that are not there yet.

    Each costs a trip to the system: 8,192 of them as much as 20 times what is stored
    (32 MB in a virtual machine: 44 ms, in huge pages 4 to 12). Small tensors, those of
    a device and those without memory are left as they are.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if made.nbytes < LARGE or not made.is_cpu or advice is None:
        return made
    with suppress(RuntimeError):  # what has no memory says so
        first = made.data_ptr()
        start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        end = (first + made.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        _madvise(start, end - start, advice)  # a system without refuses: no matter
    return made


_madvise: Any = getattr(ctypes.CDLL(None), "madvise", None)
if _madvise is not None:
    _madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class _Memory:
    """A view as NumPy's array protocol states it."""

    def __init__(self, view: ArrayView) -> None:
        itemsize = view.dtype.itemsize
        self._keep = view.obj
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|u{itemsize}" if itemsize == 1 else f"<u{itemsize}",
            "data": (view.address, view.readonly),
            "shape": view.shape,
            "strides": tuple(stride * itemsize for stride in view.strides),
        }
