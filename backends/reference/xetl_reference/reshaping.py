"""`memref` views that merge or split dimensions.  Source: MLIR, `memref`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xetl_reference.memory import View
from xetl_reference.values import Function, Meaning, Unary
from xetl_reference.views import readers


def _collapse(op: Any) -> Unary:
    groups: list[list[int]] = op.groups

    def run(source: View) -> View:
        sizes = [[source.sizes[dim] for dim in group] for group in groups]
        steps = [[source.strides[dim] for dim in group] for group in groups]
        return View(
            source.memory,
            source.dtype,
            source.offset,
            tuple(map(prod, sizes)),
            tuple(_fastest(*each) for each in zip(sizes, steps)),
        )

    return run


def _fastest(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """The stride of the last dimension that has more than one element."""
    long = [stride for size, stride in zip(sizes, strides) if size != 1]
    return (long or strides)[-1]


def _expand(op: Any) -> Function:
    (shape,) = readers(op.static_output_shape)
    groups: list[list[int]] = op.groups

    def run(source: View, *operands: int) -> View:
        sizes = shape(operands)
        strides = [
            stride * prod(sizes[dim] for dim in group[place + 1 :])
            for group, stride in zip(groups, source.strides)
            for place in range(len(group))
        ]
        return View(source.memory, source.dtype, source.offset, sizes, tuple(strides))

    return run


def _assume_alignment(op: Any) -> Unary:
    def run(source: View) -> View:
        return source

    return run


MEANINGS: dict[str, Meaning] = {
    "memref.collapse_shape": _collapse,
    "memref.expand_shape": _expand,
    "memref.assume_alignment": _assume_alignment,
}
