"""Memory of large results, used again once nobody has the result any more.

Each page of new memory is a trip to the system, which fills it with zeros: 32 MB take
5 ms in a virtual machine, 44 without huge pages, and a softmax of them takes 3.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from xetl.imports import import_whole

LARGE = 4 << 20
"""Bytes from which on results are kept: 4 us, 4 % of what it takes to store them.

Steps of training pay for pages of 4 MB in each step: the C library gives memory back as
soon as two such arrays are free."""

KEPT = 256 << 20
"""Bytes that are kept for later results, at most; larger results are never kept."""

_PAGE = 2 << 20

_blocks: deque[mmap.mmap] = deque()


def new_array(
    shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None
) -> np.ndarray[Any, Any]:
    """An uninitialised array of NumPy; ``order``: the outermost dimension first."""
    if order is not None:
        return in_order(order, shape, lambda inward: new_array(inward, dtype))
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    # Not `np.ndarray(shape, dtype, memory)`: that keeps what is behind the view, only.
    return np.frombuffer(_memory(nbytes), np.uint8).view(dtype).reshape(shape)


def in_order(
    order: Sequence[int], shape: Sequence[int], make: Callable[[Sequence[int]], Any]
) -> Any:
    """An array made with its outermost dimension first, seen as that shape."""
    return make([shape[d] for d in order]).transpose(np.argsort(order))


def new_tensor(shape: Sequence[int], strides: Sequence[int], kind: Any) -> Any:
    """An uninitialised tensor in host memory, without gaps; it is no view."""
    torch: Any = import_whole("torch")
    nbytes = prod(shape) * kind.itemsize
    if nbytes < LARGE:
        return torch.empty_strided(shape, strides, dtype=kind, device="cpu")
    flat = torch.frombuffer(_memory(nbytes), dtype=kind)
    return flat.as_strided_(tuple(shape), tuple(strides))


def _memory(nbytes: int) -> memoryview:
    """Memory that nobody else has; whoever refers to the view has it.

    A block is out of the queue while it is looked at, so no other thread takes it.
    """
    size = -(-nbytes // _PAGE) * _PAGE
    block = _free_block(size) or _new_block(size)
    view = memoryview(block)[:nbytes]
    if size <= KEPT:
        _blocks.append(block)
    return view


def _free_block(size: int) -> mmap.mmap | None:
    for _ in range(len(_blocks)):
        try:
            block = _blocks.popleft()
        except IndexError:  # another thread has it
            return None
        if len(block) == size and not _is_in_use(block):
            return block
        _blocks.append(block)
    return None


def _is_in_use(block: mmap.mmap) -> bool:
    """Whether a view of it lives: Python moves no block that somebody may look at."""
    try:
        block.resize(len(block))
    except BufferError:
        return True
    return False


def _new_block(size: int) -> mmap.mmap:
    """Private: a process forked later has its own."""
    with suppress(IndexError):
        while _blocks and sum(map(len, [*_blocks])) + size > KEPT >= size:
            _blocks.popleft()  # who uses it keeps it
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without huge pages refuses
        block.madvise(mmap.MADV_HUGEPAGE)
    return block
