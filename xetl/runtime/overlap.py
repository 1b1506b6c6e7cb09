"""Find arrays that share memory: exact, for any strides.

The rule (docs/language.md, section 4): the same view may be passed twice. A stored
argument that overlaps another argument in any other way, or that overlaps itself, is
refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from xetl.backend import Argument, ArrayView
from xetl.errors import LaunchError

_MAX_WORK = 10_000_000
"""NumPy's exact solver gives up after so much work: then two arrays count as
overlapping."""


def same_view(left: ArrayView, right: ArrayView) -> bool:
    """Whether both have the same address, dtype, shape and strides."""
    return view_key(left) == view_key(right)


def view_key(view: Argument) -> object:
    """Return a key that is equal for views that are the same; None for a number."""
    if not isinstance(view, ArrayView):
        return None
    return view.address, view.dtype, view.shape, view.strides


def overlap(left: ArrayView, right: ArrayView) -> bool:
    """Whether an element of one shares a byte with an element of the other."""
    if 0 in left.shape or 0 in right.shape:
        return False
    left_start, left_end = bounds(left)
    right_start, right_end = bounds(right)
    if left_end <= right_start or right_end <= left_start:
        return False
    return _shares(as_numpy(left), as_numpy(right))


def overlaps_itself(view: ArrayView) -> bool:
    """Whether two of its elements share a byte."""
    if 0 in view.shape or _is_nested(view):
        return False
    array = as_numpy(view)
    # Let `dim` be the first dimension in which the indices of two elements differ. Both
    # can be moved by the same indices, so that one is 0 there and in all before.
    for dim, size in enumerate(view.shape):
        if size == 1:
            continue
        first: tuple[Any, ...] = (slice(0, 1),) * dim
        if _shares(array[(*first, slice(0, 1))], array[(*first, slice(1, None))]):
            return True
    return False


def check_stored(
    names: Sequence[str], args: Sequence[Argument], stored: Collection[int]
) -> None:
    """Check that the arrays a kernel writes, at the indices ``stored``, may be written.

    Raises:
        LaunchError: one is read-only, overlaps itself, or overlaps another argument.
    """
    for index in sorted(stored):
        target = args[index]
        if not isinstance(target, ArrayView):
            continue
        _check_writable(names[index], target)
        for other, arg in enumerate(args):
            if other == index or not isinstance(arg, ArrayView):
                continue
            if not same_view(target, arg) and overlap(target, arg):
                raise LaunchError(
                    f"`{names[index]}` is written, but shares memory with "
                    f"`{names[other]}`",
                    code="X0807",
                    help="pass a copy of one of them; only the very same view may be "
                    "given twice",
                )


def _check_writable(name: str, view: ArrayView) -> None:
    if view.readonly:
        problem = f"`{name}` is written by the kernel, but the array is read-only"
        help_ = "pass an array that may be written, such as a copy of it"
        raise LaunchError(problem, "X0806", help_)
    if overlaps_itself(view):
        raise LaunchError(
            f"`{name}` is written, but some of its elements share memory "
            f"(shape {view.shape}, strides {view.strides})",
            code="X0807",
            help="pass a copy, in which each element has its own place",
        )


def bounds(view: ArrayView) -> tuple[int, int]:
    """Return the address of the first byte of a view, and the address of its end."""
    itemsize = view.dtype.itemsize
    low = high = 0
    for size, stride in zip(view.shape, view.strides):
        reach = (size - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return view.address + low * itemsize, view.address + (high + 1) * itemsize


def _is_nested(view: ArrayView) -> bool:
    """Whether each stride exceeds the reach of all dimensions with smaller strides."""
    reach = 0
    for step, size in sorted((abs(s), n) for s, n in zip(view.strides, view.shape)):
        if size == 1:
            continue
        if step <= reach:
            return False
        reach += step * (size - 1)
    return True


def _shares(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(left, right, max_work=cast("Any", _MAX_WORK))
    except np.exceptions.TooHardError:
        return True


def as_numpy(view: ArrayView) -> np.ndarray[Any, Any]:
    """Return the elements as unsigned integers of their width; they are kept alive."""
    itemsize = view.dtype.itemsize
    stated = {
        "version": 3,
        "typestr": f"|u{itemsize}" if itemsize == 1 else f"<u{itemsize}",
        "data": (view.address, view.readonly),
        "shape": view.shape,
        "strides": tuple(stride * itemsize for stride in view.strides),
    }
    described: Any = SimpleNamespace(__array_interface__=stated, keep=view.obj)
    return np.asarray(described)
