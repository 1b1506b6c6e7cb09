"""Operations that move elements within a vector; they are made of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xetl.language.dtypes import i8
from xetl.language.operation import composite
from xetl.language.ops.compile_time import static_assert
from xetl.language.ops.program import barrier
from xetl.language.ops.tiles import init_tile, load_gather, slm, store_scatter
from xetl.language.ops.vectors import arange

if TYPE_CHECKING:
    from xetl.language.values import Vector

__all__ = [
    "flip",
]


@composite
def flip(v: Vector, axis: int = 0) -> Vector:
    """``v`` with its elements along ``axis`` in reverse order.

    They go through shared memory and two barriers: all subgroups must reach it, and
    the kernel must not be written at subgroup level.
    """
    static_assert(-v.ndim <= axis < v.ndim, f"`flip` of rank {v.ndim}: axis {axis}")
    wide = v.to(i8) if v.dtype.bits == 1 else v
    columns = v.shape[-1]
    size = v.shape[0] * columns if v.ndim == 2 else columns
    target = arange(columns)
    source = target
    if axis % v.ndim == v.ndim - 1:
        source = columns - 1 - target
    if v.ndim == 2:
        rows = arange(v.shape[0])
        below = rows
        if axis % 2 == 0:
            below = v.shape[0] - 1 - rows
        target = rows[:, None] * columns + target[None, :]
        source = below[:, None] * columns + source[None, :]
    memory = slm((size,), wide.dtype)
    store_scatter(wide, None, init_tile(memory, target))
    barrier()
    flipped = load_gather(init_tile(memory, source))
    barrier()
    return flipped.to(v.dtype)
