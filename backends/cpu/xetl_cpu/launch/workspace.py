"""Scratch memory of kernels: one block for each Python thread, which only grows."""

from __future__ import annotations

import ctypes
import mmap
import threading

_HUGE = 1 << 21
_libc = ctypes.CDLL(None)
_libc.pthread_key_create.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
_libc.pthread_setspecific.argtypes = [ctypes.c_uint, ctypes.c_void_p]


def _create_key() -> int:
    key = ctypes.c_uint()
    if _libc.pthread_key_create(ctypes.byref(key), None) != 0:
        raise OSError("no pthread key is left")
    return key.value


KEY = _create_key()
"""The pthread key under which native code finds what a thread has for its launches: the
address and the bytes of its workspace, then those of a packed operand and its state."""

GETSPECIFIC = ctypes.cast(_libc.pthread_getspecific, ctypes.c_void_p).value or 0


class Workspace:
    """Memory of one thread, aligned to 64 bytes (in fact to a page)."""

    def __init__(self) -> None:
        self._map: mmap.mmap | None = None
        self._anchor: object = None
        self._published = (ctypes.c_int64 * 5)()
        # Native code may look at it as long as the thread lives, and a thread
        # that Python did not make can outlive this object: it is never freed.
        _immortal.append(self._published)
        _libc.pthread_setspecific(KEY, ctypes.addressof(self._published))

    @property
    def address(self) -> int:
        """Where it starts; 0 if it is empty."""
        return self._published[0]

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._published[1]

    def reserve(self, size: int) -> None:
        """Make it at least ``size`` bytes; what was in it is lost."""
        if size <= self.size:
            return
        self._published[:2] = [0, 0]
        self._anchor = self._map = None  # the old block goes before the new one comes
        size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= _HUGE:
            self._map.madvise(mmap.MADV_HUGEPAGE)
        anchor = ctypes.c_char.from_buffer(self._map)
        self._anchor = anchor
        self._published[:2] = [ctypes.addressof(anchor), size]

    def bring(self, address: int, size: int, state: int) -> None:
        """Give the next launches of this thread a packed operand; state 0: none."""
        published = self._published
        published[2], published[3], published[4] = address, size, state

    def __del__(self) -> None:
        self._published[:] = [0] * len(self._published)


_immortal: list[object] = []
_local = threading.local()


def thread_workspace() -> Workspace:
    """The workspace of the calling Python thread."""
    try:
        return _local.workspace
    except AttributeError:
        _local.workspace = workspace = Workspace()
        return workspace
