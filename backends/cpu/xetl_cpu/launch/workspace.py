"""Scratch memory of kernels: one block for each Python thread, which only grows.

A block has whole pages, huge ones if the system has them. A workspace starts in the
middle of a page: large arrays start near the start of a page, and a load beside a store
whose address ends in the same 12 bits waits for that store, or shares its set of L1
(softmax and layer norm of 4096 x 1024 in f32 on Zen 4: 23 and 18 % faster).

With pages of 4 KB, a product from L3 loses 13 to 24 % if page walks are nested in a
virtual machine (measured on silicon with AMX); with huge pages 1 to 6 %.

Packed operands outlive a launch, in memory that `xetl.prepacked.Prepacked` keeps. A
launch with such operands passes in the memory of an earlier launch. The kernel reads
the header of the memory and refuses it unless it holds exactly what the kernel would
pack. Then other memory is tried, and at last new memory is filled.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from xetl.backend import Argument, ArrayView
from xetl.prepacked import Prepacked
from xetl.records import record
from xetl_cpu.launch import PACKED
from xetl_cpu.machine import PAGE

_HUGE = 2 << 20
"""Bytes of a huge page of x86."""


class Pages:
    """A block of zeros, at a fixed address during its life.

    Attributes:
        address: its start: a page, or a huge page if it is as large as one.
        size: in bytes, whole pages.
    """

    def __init__(self, size: int) -> None:
        """Allocate ``size`` bytes, rounded up to whole pages."""
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
"""The pthread key under which native code finds a thread's words for launches: the
address and the bytes of its workspace, then the table of packed operands, or 0."""


class Workspace:
    """A block of memory.

    Attributes:
        address: its start, in the middle of a page; 0 if it is empty.
        size: in bytes.
    """

    def __init__(self) -> None:
        self._pages: Pages | None = None
        self.address = self.size = 0

    def reserve(self, size: int) -> None:
        """Make it at least ``size`` bytes; its content is lost."""
        if size <= self.size:
            return
        self.address = self.size = 0
        self._pages = None  # the old block goes before the new one comes
        self._pages = pages = Pages(size + PAGE // 2)
        self.address = pages.address + PAGE // 2
        self.size = pages.size - PAGE // 2


class _Published:
    """The words of one thread that native code reads."""

    def __init__(self) -> None:
        self.workspace: Workspace | None = None
        self.words = (ctypes.c_int64 * 3)()
        # Never freed: native code may read the words as long as the thread lives, and a
        # thread that Python did not start can outlive this object.
        _immortal.append(self.words)
        _libc.pthread_setspecific(KEY, ctypes.addressof(self.words))

    def publish(self, workspace: Workspace | None) -> None:
        """Let native launches use this workspace; None: they get no workspace."""
        self.workspace = workspace
        if workspace is None:
            self.words[:2] = [0, 0]
        else:
            self.words[:2] = [workspace.address, workspace.size]

    def __del__(self) -> None:
        self.words[:] = [0] * len(self.words)


@contextmanager
def borrowed_workspace() -> Generator[Workspace]:
    """Lend the workspace of the calling Python thread for the time of a launch.

    A nested launch (by a finaliser or a signal handler) gets another workspace.
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
    """Return the address of the workspace of this thread's last native launch."""
    return _published().words[0]


_immortal: list[object] = []
_local = threading.local()


def _published() -> _Published:
    try:
        return _local.published
    except AttributeError:
        _local.published = published = _Published()
        return published


HEADER_WORDS = 16
"""Words of the header in front of a packed operand."""

NONE, FILL, FILLED = range(3)
"""The argument of a launch: nothing (pack into the workspace), memory to pack into, or
memory that holds the packed operand."""

NUMBER_SHIFT = 48
"""A result that asks for bytes has the index of the operand above this many bits."""

Slots: TypeAlias = "ctypes.Array[ctypes.c_int64]"

_REFUSED = 1
"""The result of an entry that has done nothing."""

_MOST = 8
"""The most kernels for which one operand keeps memory."""


@record(eq=False)
class Packed:
    """An operand that a kernel packs; the key of the memory that `Prepacked` keeps."""

    argument: int


Brought: TypeAlias = "tuple[Pages | None, int]"
"""Memory for one operand, and its state."""

NOTHING: Brought = (None, NONE)

_TOO_SMALL: Brought = (None, FILL)
"""With this, a kernel returns how many bytes it needs."""


def table_of(brought: Sequence[Brought]) -> Slots:
    """Return the table of memory for each operand that the kernel packs."""
    words: list[int] = []
    for memory, state in brought:
        place = (0, 0) if memory is None else (memory.address, memory.size)
        words += *place, state
    return (ctypes.c_int64 * len(words))(*words)


def kept_for(operand: Prepacked | None, packed: Packed) -> Brought | None:
    """Return memory with the packed operand; None if it has to be packed first."""
    if operand is None:
        return NOTHING
    memory = operand.kept.get(packed)
    return None if memory is None else (memory, FILLED)


def prepacked_arguments(
    args: Sequence[Argument], packed: Sequence[Packed]
) -> list[Prepacked | None]:
    """Return the `Prepacked` of each operand that a kernel packs, or None.

    Args:
        packed: the operands that the kernel packs.
    """
    found = [args[each.argument] for each in packed]
    objects = [arg.obj if isinstance(arg, ArrayView) else None for arg in found]
    return [obj if isinstance(obj, Prepacked) else None for obj in objects]


def fast_prepacked(
    fast: Callable[..., int], places: Sequence[int], packed: Sequence[Packed]
) -> Callable[..., int]:
    """Return a native entry for calls whose operands are prepacked already.

    Args:
        fast: the entry for arrays (`xetl.backend.Executable.fast`).
        places: the indices of the parameters that the kernel packs.
        packed: for each, the operand that it packs.
    """
    pairs = [(3 + place, each) for place, each in zip(places, packed)]  # after the grid

    def run(*args: Any) -> int:
        all_brought: list[Brought] = []
        arrays = list(args)
        for place, each in pairs:
            given = args[place] if place < len(args) else None
            operand = given if type(given) is Prepacked else None
            brought = kept_for(operand, each)
            if brought is None:
                return _REFUSED
            all_brought.append(brought)
            if operand is not None:
                arrays[place] = operand.array
        table = table_of(all_brought)
        words = _published().words
        words[2] = ctypes.addressof(table)
        try:
            return fast(*arrays)
        finally:
            words[2] = 0

    return run


def run_prepacked(
    operands: Sequence[Prepacked | None],
    packed: Sequence[Packed],
    slots: Slots,
    run: Callable[[], int],
) -> int:
    """Run a kernel with packed operands, or pack them now.

    Args:
        operands: the `Prepacked` of each operand, or None.
        packed: the operands that the kernel packs.
        slots: the slots of the launch; the one of packed memory is filled here.
        run: calls the kernel. A negative result holds the bytes of packed memory that
            it needs, and the index of the operand; then nothing was written.
    """
    choices = [_choices(*pair) for pair in zip(operands, packed)]
    brought = [next(each) for each in choices]
    while True:
        table = table_of(brought)
        slots[PACKED] = ctypes.addressof(table)
        result = run()
        if result >= 0:
            break
        number, needed = divmod(-result, 1 << NUMBER_SHIFT)
        is_new = brought[number] == _TOO_SMALL
        brought[number] = (Pages(needed), FILL) if is_new else next(choices[number])
    for operand, each, (memory, _) in zip(operands, packed, brought):
        if operand is not None and result == 0:
            _keep(operand, each, memory)
    return result


def _choices(operand: Prepacked | None, packed: Packed) -> Iterator[Brought]:
    """Yield memory that a launch could pass in, the likeliest first."""
    if operand is None:
        yield NOTHING
        return
    with operand.lock.held():
        usual = operand.kept.get(packed)
        others = set(operand.kept.values()) - {usual}
    yield from ((one, FILLED) for one in (usual, *others) if one is not None)
    yield _TOO_SMALL


def _keep(operand: Prepacked, packed: Packed, memory: Pages | None) -> None:
    with operand.lock.held():
        if packed not in operand.kept and len(operand.kept) >= _MOST:
            operand.kept.clear()
        operand.kept[packed] = memory
