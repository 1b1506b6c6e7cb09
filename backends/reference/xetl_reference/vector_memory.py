"""`vector` and memory: loads, stores, masked ones, gathers, transfers.

Elements that are masked off are never touched. Source: MLIR, `vector`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr

from xetl.errors import InternalError
from xetl_reference.memory import View
from xetl_reference.values import Array, Function, Meaning, shape_of


def _window(view: View, indices: Sequence[int], shape: tuple[int, ...]) -> Array:
    """``shape`` elements of the last dimensions from ``indices`` on."""
    strides = view.strides[len(view.strides) - len(shape) :]
    return view.memory.window(view.dtype, view.at(indices), shape, strides)


def _load(op: Any) -> Function:
    shape = shape_of(op.result.type)

    def run(base: View, *indices: int) -> Array:
        return _window(base, indices, shape).copy()

    return run


def _store(op: Any) -> Function:
    shape = shape_of(op.value.type)

    def run(value: Array, base: View, *indices: int) -> None:
        _window(base, indices, shape)[...] = value

    return run


# Some of the elements ---------------------------------------------------------------


def _reach(base: View, indices: Sequence[int], places: Array) -> tuple[Array, Array]:
    """Memory around the elements at ``places`` (some), and where they are in it."""
    low, high = int(places.min()), int(places.max())
    stride = base.strides[-1] if base.strides else 1
    offset = base.at(indices) + low * stride
    window = base.memory.window(base.dtype, offset, (high - low + 1,), (stride,))
    return window, places - low


def _gather(base: View, indices: Any, places: Array, mask: Array, other: Array) -> Any:
    result = other.copy()
    if mask.any():
        window, at = _reach(base, indices, places[mask])
        result[mask] = window[at]
    return result


def _scatter(base: View, indices: Any, places: Array, mask: Array, value: Any) -> None:
    if mask.any():
        window, at = _reach(base, indices, places[mask])
        window[at] = value[mask]


def _lanes(mask: Array) -> Array:
    """The distance of each element from the first, along the last dimension."""
    if mask.ndim != 1:
        raise InternalError("masked accesses are of vectors of rank 1")
    return np.arange(len(mask))


def _maskedload(op: Any) -> Function:
    def run(base: View, *rest: Any) -> Array:
        *indices, mask, other = rest
        return _gather(base, indices, _lanes(mask), mask, other)

    return run


def _maskedstore(op: Any) -> Function:
    def run(base: View, *rest: Any) -> None:
        *indices, mask, value = rest
        _scatter(base, indices, _lanes(mask), mask, value)

    return run


def _gather_op(op: Any) -> Function:
    def run(base: View, *rest: Any) -> Array:
        *indices, places, mask, other = rest
        return _gather(base, indices, places.astype(np.int64), mask, other)

    return run


def _scatter_op(op: Any) -> Function:
    def run(base: View, *rest: Any) -> None:
        *indices, places, mask, value = rest
        _scatter(base, indices, places.astype(np.int64), mask, value)

    return run


# Transfers --------------------------------------------------------------------------


def _dims(op: Any) -> list[int]:
    """Which dimension of memory each one of the vector runs along."""
    return [each.position for each in op.permutation_map.data.results]


def _along(shape: Sequence[int], axis: int) -> Array:
    """0, 1, ... along an axis, of size 1 along all others."""
    steps = np.arange(shape[axis])
    return steps.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def _inside(op: Any, base: View, indices: Sequence[int], shape: Any) -> Array:
    """Which elements of the vector lie in the memref; all along in-bounds dims."""
    inside = np.ones(shape, np.bool_)
    for axis, (dim, flag) in enumerate(zip(_dims(op), op.in_bounds.data)):
        if isinstance(flag, IntegerAttr) and flag.value.data:
            continue
        place = indices[dim] + _along(shape, axis)
        inside &= (place >= 0) & (place < base.sizes[dim])
    return inside


def _places(op: Any, base: View, shape: Any) -> Array:
    """The offset of each element from the first, in elements of memory."""
    places = np.zeros(shape, np.int64)
    for axis, dim in enumerate(_dims(op)):
        places += _along(shape, axis) * base.strides[dim]
    return places


def _flat(base: View, indices: Sequence[int]) -> View:
    return View(base.memory, base.dtype, base.at(indices), (), ())


def _transfer_read(op: Any) -> Function:
    shape = shape_of(op.result.type)
    rank = len(op.indices)

    def run(base: View, *rest: Any) -> Array:
        indices, (padding, *masks) = rest[:rank], rest[rank:]
        mask = _inside(op, base, indices, shape)
        for each in masks:
            mask = mask & each
        other = np.full(shape, padding, base.dtype)
        return _gather(_flat(base, indices), (), _places(op, base, shape), mask, other)

    return run


def _transfer_write(op: Any) -> Function:
    shape = shape_of(op.value.type)
    rank = len(op.indices)

    def run(value: Array, base: View, *rest: Any) -> None:
        indices, masks = rest[:rank], rest[rank:]
        mask = _inside(op, base, indices, shape)
        for each in masks:
            mask = mask & each
        _scatter(_flat(base, indices), (), _places(op, base, shape), mask, value)

    return run


MEANINGS: dict[str, Meaning] = {
    "vector.load": _load,
    "vector.store": _store,
    "vector.maskedload": _maskedload,
    "vector.maskedstore": _maskedstore,
    "vector.gather": _gather_op,
    "vector.scatter": _scatter_op,
    "vector.transfer_read": _transfer_read,
    "vector.transfer_write": _transfer_write,
}
