"""Memory of large results, reused once nothing refers to the result any more.

Each page of new memory is a page fault, and the system fills the page with zeros: 32 MB
take 5 ms in a virtual machine, 44 ms without huge pages. A softmax of them takes 3 ms.
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
"""Bytes of the smallest result whose memory is reused. Reuse costs 4 us: 4 % of the
time to store such a result.

Otherwise training pays for new pages of 4 MB in each step: the C library returns memory
to the system as soon as two such arrays are free."""

KEPT = 256 << 20
"""Bytes that are kept for later results, at most. Larger results are not kept."""

_PAGE = 2 << 20

_blocks: deque[mmap.mmap] = deque()


def new_array(
    shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None
) -> np.ndarray[Any, Any]:
    """Make an uninitialised NumPy array; ``order``: see `in_order`."""
    if order is not None:
        return in_order(order, shape, lambda inward: new_array(inward, dtype))
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LARGE:
        return np.empty(shape, dtype)
    # Not `np.ndarray(shape, dtype, memory)`: its base is the block, not the memoryview.
    return np.frombuffer(_memory(nbytes), np.uint8).view(dtype).reshape(shape)


def in_order(
    order: Sequence[int], shape: Sequence[int], make: Callable[[Sequence[int]], Any]
) -> Any:
    """Make an array whose dimensions lie in ``order``, the outermost first.

    Args:
        order: the dimensions of ``shape`` by stride.
        shape: the shape of the result.
        make: makes a row-major array of a shape.
    """
    return make([shape[d] for d in order]).transpose(np.argsort(order))


def new_tensor(shape: Sequence[int], strides: Sequence[int], kind: Any) -> Any:
    """Make an uninitialised tensor in host memory, without gaps; it is no view."""
    torch: Any = import_whole("torch")
    nbytes = prod(shape) * kind.itemsize
    if nbytes < LARGE:
        return torch.empty_strided(shape, strides, dtype=kind, device="cpu")
    flat = torch.frombuffer(_memory(nbytes), dtype=kind)
    return flat.as_strided_(tuple(shape), tuple(strides))


def _memory(nbytes: int) -> memoryview:
    """Return memory that nothing else uses. It is in use while the view exists.

    A block leaves the queue while it is checked, so no other thread takes it.
    """
    size = -(-nbytes // _PAGE) * _PAGE
    block = _free_block(size) or _new_block(size)
    view = memoryview(block)[:nbytes]
    if size <= KEPT:
        _blocks.append(block)
    return view


def _free_block(size: int) -> mmap.mmap | None:
    """Return the last used block that is free: caches may still hold some of it."""
    for _ in range(len(_blocks)):
        try:
            block = _blocks.pop()
        except IndexError:  # another thread has it
            return None
        if len(block) == size and not _is_in_use(block):
            return block
        _blocks.appendleft(block)
    return None


def _is_in_use(block: mmap.mmap) -> bool:
    """Whether a view of the block exists: then Python refuses to resize the block."""
    try:
        block.resize(len(block))
    except BufferError:
        return True
    return False


def _new_block(size: int) -> mmap.mmap:
    """Map a block. It is private: a process forked later has its own copy."""
    with suppress(IndexError):
        while _blocks and sum(map(len, [*_blocks])) + size > KEPT >= size:
            _blocks.popleft()  # views of it keep it alive
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without huge pages refuses
        block.madvise(mmap.MADV_HUGEPAGE)
    return block
