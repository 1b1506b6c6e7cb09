"""Copies of the arrays that a kernel writes: trials never write the user's arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np

from xetl.backend import Argument, ArrayView
from xetl.errors import LaunchError
from xetl.runtime.overlap import as_numpy, bounds, same_view

_PAGE = 4096

_PART = 1 << 20
"""The number of elements that are compared at once."""

_TOLERANCES = {"f64": 1e-9, "f32": 1e-3, "f16": 1e-2, "bf16": 5e-2}
"""Allowed differences relative to the largest element: the order of sums may differ."""


class Copies:
    """Copies of stored arguments, with the strides and alignment of the originals.

    Arguments that are the same view share a copy.
    """

    def __init__(
        self, names: Sequence[str], args: Sequence[Argument], stored: Collection[str]
    ) -> None:
        """Copy those of the arguments of a call whose names are in ``stored``."""
        views = {n: a for n, a in zip(names, args) if isinstance(a, ArrayView)}
        self.arrays: dict[str, Any] = {}
        self._pairs: list[tuple[ArrayView, Any]] = []
        for name in stored:
            if name in self.arrays:
                continue
            copy = _copy(name, views[name])
            self._pairs.append((views[name], copy))
            for other, view in views.items():
                if same_view(view, views[name]):
                    self.arrays[other] = copy
        self.restore()

    def restore(self, names: Collection[str] | None = None) -> None:
        """Copy the elements of the originals again, for some copies or for all."""
        some = self.arrays if names is None else names
        for view, copy in self._pairs:
            if any(self.arrays.get(name) is copy for name in some):
                if isinstance(copy, np.ndarray):
                    copy.view(f"u{view.dtype.itemsize}")[...] = as_numpy(view)
                else:
                    copy.copy_(view.obj)

    def results(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the copies as NumPy arrays; host arrays are returned themselves."""
        return {name: _host(each) for name, each in self.arrays.items()}

    def zero(self, names: Collection[str]) -> None:
        """Fill the copies of these names with zeros."""
        for name in names:
            if name in self.arrays:
                self.arrays[name][...] = 0


def _copy(name: str, view: ArrayView) -> Any:
    """Return new memory of the same strides and alignment; elements are unspecified.

    Raises:
        LaunchError: an array in device memory cannot be copied.
    """
    if view.memory is not None and not view.memory.is_reachable:
        if hasattr(view.obj, "clone"):  # a tensor of torch
            return cast("Any", view.obj).clone()
        raise LaunchError(
            f"`{name}` is in the memory of a device and cannot be copied for tuning",
            code="X0851",
            help="tune with tensors of torch, or with arrays that the host can reach",
        )
    start, end = bounds(view) if 0 not in view.shape else (view.address, view.address)
    memory = np.empty(end - start + _PAGE, np.uint8)
    shift = (start - memory.ctypes.data) % _PAGE
    size = view.dtype.itemsize
    at, data = shift + view.address - start, cast("Any", memory)
    strides = tuple(stride * size for stride in view.strides)
    return np.ndarray(view.shape, view.dtype.numpy, data, at, strides)


def _host(array: Any) -> np.ndarray[Any, Any]:
    if isinstance(array, np.ndarray):
        return cast("np.ndarray[Any, Any]", array)
    tensor = array.detach().cpu()
    return tensor.float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.numpy()


def difference(
    found: Mapping[str, np.ndarray[Any, Any]],
    expected: Mapping[str, np.ndarray[Any, Any]],
    views: Mapping[str, ArrayView],
) -> str | None:
    """Return a text if results differ by more than their dtype explains, else None."""
    for name in expected.keys() & found.keys():
        tolerance = _TOLERANCES.get(views[name].dtype.name, 0.0)
        problem = _difference(found[name], expected[name], tolerance)
        if problem is not None:
            return f"`{name}` {problem}"
    return None


def _difference(
    found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], tolerance: float
) -> str | None:
    if not tolerance:
        count = int(np.count_nonzero(found != expected))
        return f"differs in {count} of {found.size} elements" if count else None
    most = scale = 0.0
    step = max(1, _PART * len(found) // max(1, found.size))
    for start in range(0, len(found), step):  # in f64, but not all of it at once
        part = slice(start, start + step)
        gap, size = _largest(found[part], expected[part])
        most, scale = max(most, gap), max(scale, size)
    if most == float("inf"):
        return "differs in elements that are infinite or NaN"
    if most <= tolerance * scale:
        return None
    return f"differs by {most:.3g}, where the largest element is {scale:.3g}"


def _largest(
    found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]
) -> tuple[float, float]:
    """Return the largest difference and the largest magnitude of finite elements.

    The difference is infinite if two elements differ and one of them is not finite.
    """
    left, right = found.astype(np.float64), expected.astype(np.float64)
    usual = np.isfinite(right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    if not np.all(np.where(usual, np.isfinite(left), same)):
        return float("inf"), 0.0
    gaps = np.abs(left[usual] - right[usual])
    return float(gaps.max(initial=0.0)), float(np.abs(right[usual]).max(initial=0.0))
