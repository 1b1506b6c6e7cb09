"""Scratch memory of kernels: one block for each Python thread, which only grows.

Memory of whole pages, huge ones where the system has them.

Pages of 4 KB cost a product from L3 13 to 24 % where page walks are nested in a virtual
machine (measured on silicon with AMX); huge ones 1 to 6 %.

Packed operands outlive a launch, in memory for `xetl.prepacked.Prepacked`: a launch
that is given such an operand brings the memory in which an earlier launch left it
packed; the kernel looks at what the memory says of itself and refuses anything else
than it would have packed. Then other memory is tried, and at last a new one filled.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from xetl.backend import Argument, ArrayView
from xetl.prepacked import Prepacked
from xetl_cpu.launch.slots import PACKED, PACKED_BYTES, PACKED_STATE

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
    """A block of memory, aligned to 64 bytes (in fact to a page).

    Attributes:
        address: where it starts; 0 if it is empty.
        size: in bytes.
    """

    def __init__(self) -> None:
        self._pages: Pages | None = None
        self.address = self.size = 0

    def reserve(self, size: int) -> None:
        """Make it at least ``size`` bytes; what was in it is lost."""
        if size <= self.size:
            return
        self.address = self.size = 0
        self._pages = None  # the old block goes before the new one comes
        self._pages = pages = Pages(size)
        self.address, self.size = pages.address, pages.size


class _Published:
    """What native code of one thread finds."""

    def __init__(self) -> None:
        self.workspace: Workspace | None = None
        self.words = (ctypes.c_int64 * 5)()
        # Native code may look at it as long as the thread lives, and a thread
        # that Python did not make can outlive this object: it is never freed.
        _immortal.append(self.words)
        _libc.pthread_setspecific(KEY, ctypes.addressof(self.words))

    def publish(self, workspace: Workspace | None) -> None:
        """Let native launches use this workspace; None: they have none."""
        self.workspace = workspace
        if workspace is None:
            self.words[:2] = [0, 0]
        else:
            self.words[:2] = [workspace.address, workspace.size]

    def __del__(self) -> None:
        self.words[:] = [0] * len(self.words)


@contextmanager
def borrowed_workspace() -> Generator[Workspace]:
    """The workspace of the calling Python thread, for the time of a launch.

    A launch inside of it (by a finaliser, by a signal handler) gets another one.
    """
    published = _published()
    workspace = published.workspace or Workspace()
    published.publish(None)
    try:
        yield workspace
    finally:
        other = published.workspace  # of a launch inside of this one
        if other is None or other.size < workspace.size:
            published.publish(workspace)


def published_address() -> int:
    """Where the workspace is that a native launch of this thread has just used."""
    return _published().words[0]


def bring(address: int, size: int, state: int) -> None:
    """Give the next native launches of this thread a packed operand; state 0: none."""
    words = _published().words
    words[2], words[3], words[4] = address, size, state


_immortal: list[object] = []
_local = threading.local()


def _published() -> _Published:
    try:
        return _local.published
    except AttributeError:
        _local.published = published = _Published()
        return published


HEADER_WORDS = 16
"""Of the memory, before the operand."""

NONE, FILL, FILLED = range(3)
"""What a launch brings: nothing (pack into the workspace), memory to pack into, memory
in which the operand is packed."""

Slots: TypeAlias = "ctypes.Array[ctypes.c_int64]"

_REFUSED = 1
"""What an entry says that has done nothing."""

_MOST = 8
"""Kernels for which one operand keeps memory."""


def prepacked_argument(
    args: Sequence[Argument], packed: int | None
) -> Prepacked | None:
    """What keeps the operand that a kernel packs.

    Args:
        args: of the launch.
        packed: which of them the kernel packs.
    """
    if packed is None:
        return None
    arg = args[packed]
    if isinstance(arg, ArrayView) and isinstance(arg.obj, Prepacked):
        return arg.obj
    return None


def fast_prepacked(
    fast: Callable[..., int], place: int, kernel: Hashable
) -> Callable[..., int]:
    """A native entry for calls whose operand is prepacked, and packed already.

    Args:
        fast: the entry for arrays (`xetl.backend.Executable.fast`).
        place: of the parameter that ``kernel`` packs.
        kernel: who it is packed for.
    """
    place += 3  # behind the grid

    def run(*args: Any) -> int:
        operand = args[place] if place < len(args) else None
        if type(operand) is not Prepacked:
            return _REFUSED
        memory = operand.kept.get(kernel)
        if memory is None:
            return _REFUSED
        bring(memory.address, memory.size, FILLED)
        try:
            return fast(*args[:place], operand.array, *args[place + 1 :])
        finally:
            bring(0, 0, NONE)

    return run


def run_prepacked(
    operand: Prepacked,
    kernel: Hashable,
    slots: Slots,
    run: Callable[[], int],
) -> int:
    """Run a kernel with what there is of the operand, or what it makes of it now.

    Args:
        operand: what the kernel packs.
        kernel: who it is packed for.
        slots: of the launch; those of packed memory are filled here.
        run: calls the kernel; a negative result is the bytes of packed memory that it
            needs, and nothing was written.
    """
    memory = operand.kept.get(kernel)
    if memory is not None:
        result = _run_with(memory, FILLED, slots, run)
        if result >= 0:
            return result
    with operand.lock.held():
        for other in set(operand.kept.values()):
            result = _run_with(other, FILLED, slots, run)
            if result >= 0:
                operand.kept[kernel] = other
                return result
        return _fill(operand, kernel, slots, run)


def _fill(
    operand: Prepacked,
    kernel: Hashable,
    slots: Slots,
    run: Callable[[], int],
) -> int:
    needed = -_run_with(None, FILL, slots, run)
    memory = Pages(needed)
    result = _run_with(memory, FILL, slots, run)
    if result == 0:
        if len(operand.kept) >= _MOST:
            operand.kept.clear()
        operand.kept[kernel] = memory
    return result


def _run_with(
    memory: Pages | None,
    state: int,
    slots: Slots,
    run: Callable[[], int],
) -> int:
    slots[PACKED] = 0 if memory is None else memory.address
    slots[PACKED_BYTES] = 0 if memory is None else memory.size
    slots[PACKED_STATE] = state
    return run()
