"""Launch a kernel on copies of arrays, here and on the reference backend."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xetl_cpu.targets import find_target, host_features

BF16 = np.dtype(ml_dtypes.bfloat16)
EPSILON = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24}
"""Half a unit in the last place of 1."""


def needs(target: str) -> None:
    """Skip a test whose target this processor cannot run; AMX may be emulated."""
    wanted = {each for each in find_target(target).requires if "amx" not in each}
    missing = ", ".join(sorted(wanted - host_features()))
    if missing:
        pytest.skip(f"this processor cannot run `{target}`: it has no {missing}")


def launch(kernel: Any, grid: Any, *args: Any, **constants: Any) -> list[Any]:
    """Run on copies that keep strides and shared memory; returns the copies."""
    copies = copied(args)
    kernel[grid](*copies, **constants)
    return copies


def agree(kernel: Any, grid: Any, *args: Any, **constants: Any) -> list[Any]:
    """As `launch`; every array must be what the reference backend makes of it."""
    ours = launch(kernel, grid, *args, **constants)
    theirs = launch(kernel, grid, *args, backend="reference", **constants)
    for number, (one, other) in enumerate(zip(ours, theirs)):
        if isinstance(one, np.ndarray):
            same(one, other, f"argument {number} is not what reference makes")
    return ours


def same(one: Any, other: Any, message: str = "") -> None:
    """Equal shape, dtype and elements; NaN equals NaN."""
    assert one.dtype == other.dtype, message
    if one.dtype == BF16:  # NumPy does not know its NaN
        one, other = one.astype(np.float32), other.astype(np.float32)
    np.testing.assert_array_equal(one, other, err_msg=message)


def copied(args: Any) -> list[Any]:
    """Copies; an array given twice is one copy given twice."""
    seen: dict[int, Any] = {}
    return [seen.setdefault(id(arg), copy_of(arg)) for arg in args]


def copy_of(arg: Any) -> Any:
    """A copy with the same strides, negative and large ones included."""
    if not isinstance(arg, np.ndarray):
        return arg
    if 0 in arg.shape:
        return arg
    extents = [abs(arg.strides[d]) // arg.itemsize for d in range(arg.ndim)]
    total = 1 + sum((n - 1) * step for n, step in zip(arg.shape, extents))
    flat = np.zeros(total, arg.dtype)
    strides = [extents[d] * arg.itemsize for d in range(arg.ndim)]
    view = np.lib.stride_tricks.as_strided(flat, arg.shape, strides)
    flips = tuple(slice(None, None, -1 if s < 0 else 1) for s in arg.strides)
    view = view[flips]
    view[...] = arg
    return view


def small_integers(rng: Any, *shape: int, dtype: Any = np.float32) -> Any:
    """Sums of products of these are exact in f32: equality needs no tolerance."""
    return rng.integers(-4, 5, shape).astype(dtype)


def laid_out(array: Any, layout: str) -> Any:
    """The same elements: ``rows`` contiguous, ``columns`` contiguous, or neither."""
    if layout == "rows":
        return np.ascontiguousarray(array)
    if layout == "columns":
        return np.asfortranarray(array)
    room = np.zeros([2 * n for n in array.shape], array.dtype)
    view = room[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view
