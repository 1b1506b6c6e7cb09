"""What ``perf`` is told of kernels on the CPU: names, addresses, machine code.

A *map* (``/tmp/perf-<process>.map``) has a line for each kernel; ``perf report`` reads
it.  A *jitdump* (``/tmp/jit-<process>.dump``) has the code as well: ``perf inject
--jit`` makes files of it that ``perf annotate`` disassembles.

Source: Linux, tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path

from xetl.locks import ForkSafeLock

_FOLDER = Path("/tmp")
_MAGIC, _VERSION, _X86_64 = 0x4A695444, 1, 62
_HEADER = struct.Struct("<IIIIIIQQ")
_CODE_LOAD = struct.Struct("<IIQIIQQQQ")
_LOADED = 0


def tell_perf(name: str, address: int, size: int) -> None:
    """Say that the code of a kernel is there.

    Nothing is said where files cannot be written: a profile is no reason to fail.
    """
    with suppress(OSError):
        with (_FOLDER / f"perf-{os.getpid()}.map").open("a") as file:
            file.write(f"{address:x} {size:x} {name}\n")
        _Dump.of_this_process().add(name, address, size)


class _Dump:
    """The jitdump of a process; the child of a fork begins its own."""

    _current: _Dump | None = None
    _lock = ForkSafeLock()

    def __init__(self) -> None:
        self.process = os.getpid()
        self._count = 0
        self._path = _FOLDER / f"jit-{self.process}.dump"
        facts = (_MAGIC, _VERSION, _HEADER.size, _X86_64, 0, self.process)
        with self._path.open("w+b") as file:
            file.write(_HEADER.pack(*facts, time.monotonic_ns(), 0))
            file.flush()
            # perf records what is mapped so: that is how it finds the file.
            access = mmap.PROT_READ | mmap.PROT_EXEC
            self._mark = mmap.mmap(
                file.fileno(), _HEADER.size, mmap.MAP_PRIVATE, access
            )

    @classmethod
    def of_this_process(cls) -> _Dump:
        """The one that is open, or a new one."""
        with cls._lock.held():
            if cls._current is None or cls._current.process != os.getpid():
                cls._current = cls()
            return cls._current

    def add(self, name: str, address: int, size: int) -> None:
        """Write a kernel's record with its code."""
        told = name.encode() + b"\0" + ctypes.string_at(address, size)
        now, thread = time.monotonic_ns(), threading.get_native_id()
        with self._lock.held(), self._path.open("ab") as file:
            facts = (_LOADED, _CODE_LOAD.size + len(told), now, self.process, thread)
            record = _CODE_LOAD.pack(*facts, address, address, size, self._count)
            file.write(record + told)
            self._count += 1
