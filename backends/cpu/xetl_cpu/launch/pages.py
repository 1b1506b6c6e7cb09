"""Memory of whole pages, huge ones where the system has them.

Pages of 4 KB cost a product from L3 13 to 24 % where page walks are nested in a virtual
machine (measured on silicon with AMX); huge ones 1 to 6 %.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress

_HUGE = 2 << 20
"""Bytes of a huge page of x86."""


class Pages:
    """A block of zeros; its content and address stay as long as it lives.

    Attributes:
        address: where it starts: a page, or a huge page if it is as large as one.
        size: in bytes, whole pages.
    """

    def __init__(self, size: int) -> None:
        """Ask for ``size`` bytes or a few more."""
        self.size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        is_huge = self.size >= _HUGE
        room = self.size + (_HUGE if is_huge else 0)
        block = mmap.mmap(-1, room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        skip = 0
        if is_huge:
            with suppress(OSError):  # of a system without: then they are small
                block.madvise(mmap.MADV_HUGEPAGE)
            skip = -ctypes.addressof(ctypes.c_char.from_buffer(block)) % _HUGE
        self._anchor = ctypes.c_char.from_buffer(block, skip)  # which keeps it
        self.address = ctypes.addressof(self._anchor)
