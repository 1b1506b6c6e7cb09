"""The numbers a kernel is given: addresses, sizes, strides; and which kernel it is."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, cast

from xetl.backend import Argument, ArrayView
from xetl.errors import InternalError
from xetl_xegpu.launch.facts import (
    ArgumentFacts,
    CodeFacts,
    Grid,
    KernelFacts,
    Surface,
)
from xetl_xegpu.surface import LEAST_PITCH, MOST_PROGRAMS, why_no_blocks

_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "i64": ctypes.c_int64,
    "f64": ctypes.c_double,
    "f32": ctypes.c_float,
}


def choose_kernel(
    facts: CodeFacts, grid: Grid, args: Sequence[Argument]
) -> tuple[KernelFacts, str | None]:
    """The first kernel that this launch fits, and why it is not the first of all."""
    reason = None
    for kernel in facts.kernels:
        found = _why_not(kernel, grid, args)
        if found is None:
            return kernel, reason
        reason = reason or found
    raise InternalError(f"no kernel of `{facts.name}` takes these arrays: {reason}")


def _why_not(kernel: KernelFacts, grid: Grid, args: Sequence[Argument]) -> str | None:
    if kernel.surfaces and not fits_messages(grid):
        return f"{max(grid)} programs along an axis are more than {MOST_PROGRAMS}"
    for surface in kernel.surfaces:
        view = cast("ArrayView", args[surface.argument])
        # `rotate-loops` counts on it, and no message can say that a row has nothing.
        reason = "it is empty" if 0 in view.shape else _why_no_blocks(surface, view)
        if reason is not None:
            return f"argument {surface.argument}: {reason}"
    return None


def fits_messages(grid: Grid) -> bool:
    """Whether a kernel that moves blocks by messages may run so many programs."""
    return max(grid) <= MOST_PROGRAMS


def _why_no_blocks(surface: Surface, view: ArrayView) -> str | None:
    row, column = surface.row, surface.column
    strides = [stride * view.dtype.itemsize for stride in view.strides]
    width = view.shape[column] * view.dtype.itemsize
    if row < 0:  # the kernel makes up a pitch
        return why_no_blocks(view.address, width, 1, width + -width % LEAST_PITCH)
    leading = [
        stride
        for dim, stride in enumerate(strides)
        if dim not in (row, column) and view.shape[dim] > 1
    ]
    return why_no_blocks(
        view.address, width, view.shape[row], strides[row], tuple(leading)
    )


def number_of(facts: ArgumentFacts) -> Callable[[Any], Any]:
    """What makes the word of an argument that is a number."""
    return _NUMBERS[facts.kind]


def words_of(facts: ArgumentFacts, arg: Argument) -> list[Any]:
    """What a kernel gets for one argument, as dpctl takes it."""
    if not isinstance(arg, ArrayView):
        return [number_of(facts)(arg)]
    numbers = [
        arg.address,
        *(arg.shape[dim] for dim in facts.sizes),
        *(arg.strides[dim] for dim in facts.strides),
    ]
    return [ctypes.c_int64(number) for number in numbers]


def ranges(grid: Grid, lanes: Grid) -> tuple[list[int], list[int]]:
    """Global and local range as SYCL orders them: x comes last."""
    whole = [programs * lane for programs, lane in zip(grid, lanes)]
    return whole[::-1], list(lanes[::-1])
