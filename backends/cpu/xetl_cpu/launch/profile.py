"""What profilers are told of kernels on the CPU: names, addresses, machine code.

A *map* (``/tmp/perf-<process>.map``) has a line for each kernel; ``perf report`` reads
it.  A *jitdump* (``/tmp/jit-<process>.dump``) has the code as well: ``perf inject
--jit`` makes files of it that ``perf annotate`` disassembles.

VTune puts a *collector* into the processes that it watches, a library that is called.

Source: Linux, tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt;
Intel, Instrumentation and Tracing Technology API, jitprofiling.h.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from xetl.locks import ForkSafeLock

_FOLDER = Path("/tmp")
_MAGIC, _VERSION, _X86_64 = 0x4A695444, 1, 62
_HEADER = struct.Struct("<IIIIIIQQ")
_CODE_LOAD = struct.Struct("<IIQIIQQQQ")
_LOADED = 0
_COLLECTOR = "INTEL_JIT_PROFILER64"
"""The environment variable by which VTune names its library."""
_METHOD_LOADED = 13


def tell_perf(name: str, address: int, size: int) -> None:
    """Say that the code of a kernel is there.

    Nothing is said where files cannot be written: a profile is no reason to fail.
    """
    with suppress(OSError):
        with (_FOLDER / f"perf-{os.getpid()}.map").open("a") as file:
            file.write(f"{address:x} {size:x} {name}\n")
        _Dump.of_this_process().add(name, address, size)


def tell_vtune(name: str, address: int, size: int) -> None:
    """Say that the code of a kernel is there, if VTune watches this process."""
    notify = _collector(os.environ.get(_COLLECTOR))
    if notify is not None:
        method = _Method(next(_METHODS), name.encode(), address, size)
        notify(_METHOD_LOADED, ctypes.byref(method))


class _Method(ctypes.Structure):
    """``iJIT_Method_Load``; no lines, no class, no file."""

    _fields_ = (
        *(("method_id", ctypes.c_uint), ("method_name", ctypes.c_char_p)),
        *(("method_load_address", ctypes.c_void_p), ("method_size", ctypes.c_uint)),
        *(("line_number_size", ctypes.c_uint), ("line_number_table", ctypes.c_void_p)),
        *(("class_id", ctypes.c_uint), ("class_file_name", ctypes.c_char_p)),
        ("source_file_name", ctypes.c_char_p),
    )


_METHODS = itertools.count(1000)


@cache
def _collector(path: str | None) -> Callable[..., int] | None:
    """``NotifyEvent`` of the collector; None: there is none, or it does not listen."""
    if not path:
        return None
    try:
        library = ctypes.CDLL(path)
        return library.NotifyEvent if library.Initialize() else None
    except (OSError, AttributeError):
        return None


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
