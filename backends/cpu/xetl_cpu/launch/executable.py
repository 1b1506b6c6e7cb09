"""A loaded kernel: fills the slots of the CPU ABI and calls the machine code.

The ABI is section 4 of ``docs/design/0001-seams.md``.

This module also tells profilers the names, addresses and machine code of kernels.

A *map* (``/tmp/perf-<process>.map``) has one line for each kernel; ``perf report``
reads it.  A *jitdump* (``/tmp/jit-<process>.dump``) has the code as well: ``perf inject
--jit`` makes files of it that ``perf annotate`` disassembles.

VTune loads a *collector* library into each process that it watches; we call it.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from xetl.backend import Argument, ArrayView, Executable
from xetl.errors import InternalError
from xetl.imports import import_whole, late
from xetl.language.signature import Signature
from xetl.locks import ForkSafeLock
from xetl.settings import config
from xetl_cpu.image import Image, load_image
from xetl_cpu.launch import (
    FIRST_ARGUMENT,
    GRID,
    POOL,
    THREADS,
    WORKSPACE,
    WORKSPACE_BYTES,
    fastcall,
    slots_of,
)
from xetl_cpu.launch.threads import SERIAL, ThreadLayer, on_layer_lost, thread_layer
from xetl_cpu.launch.workspace import (
    Packed,
    Workspace,
    borrowed_workspace,
    fast_prepacked,
    prepacked_arguments,
    published_address,
    run_prepacked,
)

_read_records = late("xetl.runtime.log", "read_records")
_show = late("xetl.runtime.log", "show")

_FOLDER = Path("/tmp")
_MAGIC, _VERSION, _X86_64 = 0x4A695444, 1, 62
_HEADER = struct.Struct("<IIIIIIQQ")
_CODE_LOAD = struct.Struct("<IIQIIQQQQ")
_LOADED = 0
_COLLECTOR = "INTEL_JIT_PROFILER64"
"""The environment variable with the path of VTune's library."""
_METHOD_LOADED = 13


def tell_perf(name: str, address: int, size: int) -> None:
    """Tell perf about the code of a kernel.

    If files cannot be written, do nothing: a profile is no reason to fail.
    """
    with suppress(OSError):
        with (_FOLDER / f"perf-{os.getpid()}.map").open("a") as file:
            file.write(f"{address:x} {size:x} {name}\n")
        _Dump.of_this_process().add(name, address, size)


def tell_vtune(name: str, address: int, size: int) -> None:
    """Tell VTune about the code of a kernel, if VTune watches this process."""
    notify = _collector(os.environ.get(_COLLECTOR))
    if notify is not None:
        method = _Method(next(_METHODS), name.encode(), address, size)
        notify(_METHOD_LOADED, ctypes.byref(method))


class _Method(ctypes.Structure):
    """``iJIT_Method_Load``, without lines, class and file."""

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
    """Return ``NotifyEvent`` of the collector; None if none is loaded or listening."""
    if not path:
        return None
    try:
        library = ctypes.CDLL(path)
        return library.NotifyEvent if library.Initialize() else None
    except (OSError, AttributeError):
        return None


class _Dump:
    """The jitdump of a process; the child of a fork starts its own file."""

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
            # perf records executable mappings of files: so it finds this file.
            access = mmap.PROT_READ | mmap.PROT_EXEC
            number, size = file.fileno(), _HEADER.size
            self._mark = mmap.mmap(number, size, mmap.MAP_PRIVATE, access)

    @classmethod
    def of_this_process(cls) -> _Dump:
        """Return the open dump of this process, or a new one."""
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


KERNEL = "xetl_kernel"

_Native = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
"""ctypes releases Python's lock during a call through this type."""


class CpuExecutable(Executable):
    """Machine code in memory, and the way to call it."""

    def __init__(
        self,
        image: Image,
        meta: Mapping[str, Any],
        signature: Signature,
        library: Mapping[str, int] | None = None,
        *,
        is_sequential: bool = False,
    ) -> None:
        """Map the code.

        Args:
            library: addresses of the functions that it may call besides those of C.
            is_sequential: whether it must run on one thread.
        """
        self._loaded = load_image(image, library)
        name = f"xetl:{meta.get('kernel')}:{meta.get('target')}"
        tell_vtune(name, self._loaded.address, len(image.code))
        if config.perf:
            tell_perf(name, self._loaded.address, len(image.code))
        self._is_sequential = is_sequential
        self._native = _Native(self._loaded[KERNEL])
        self.meta = meta
        self.signature = signature
        self.packed = [Packed(argument) for argument in meta.get("packed", ())]
        self._slots = FIRST_ARGUMENT + sum(map(slots_of, signature.params))

    @property
    def fast(self) -> Callable[..., int] | None:
        """See `xetl.backend.Executable`."""
        return self._fast

    @cached_property
    def _fast(self) -> Callable[..., int] | None:
        """The native entry; None for a kernel that must run on one thread."""
        if self._is_sequential:
            return None
        stored, elements = self.meta["stored"], self.meta.get("elements")
        fast = fastcall.make_fast(
            self._loaded[KERNEL], self.signature, stored, self._loaded, elements
        )
        log = self.meta.get("log")
        return partial(_run_logged, fast, log) if fast and log else fast

    @property
    def is_fast_at_hand(self) -> bool:
        """See `xetl.backend.Executable`."""
        return fastcall.is_entry_at_hand()

    @property
    def address(self) -> int:
        """The address of ``xetl_kernel``."""
        return self._loaded[KERNEL]

    @property
    def fast_prepacked(self) -> Callable[..., int] | None:
        """`fast`, for calls whose packed operands are passed as `Prepacked`."""
        if self.fast is None or not self.packed:
            return None
        runtime = list(self.signature.runtime)
        places = [runtime[each.argument] for each in self.packed]
        return fast_prepacked(self.fast, places, self.packed)

    def numba_call(
        self, name: str, grid: tuple[int, int, int] | Callable[[Any], Any]
    ) -> Callable[..., None]:
        """See `xetl.backend.Executable`."""
        if self.meta.get("log"):
            return super().numba_call(name, grid)
        make: Any = import_whole("xetl_cpu.launch.numba_call").numba_call
        code = self._loaded[KERNEL]
        return make(name, code, self.signature, self.meta["stored"], grid, self._loaded)

    def launch(self, grid: tuple[int, int, int], args: Sequence[Argument]) -> None:
        """Run the kernel on ``args`` (without constants) and wait for its end."""
        layer = SERIAL if self._is_sequential else thread_layer()
        operands = prepacked_arguments(args, self.packed)
        with borrowed_workspace() as workspace, layer.team() as threads:
            slots = self._filled_slots(layer, threads, workspace, grid, args)
            run = partial(self._run, slots, workspace)
            _running.append(slots)
            try:
                if not self._is_sequential:
                    _publish(layer)
                if any(operands):
                    result = run_prepacked(operands, self.packed, slots, run)
                else:
                    result = run()
            finally:
                _running.remove(slots)
            log = self.meta.get("log")
            records: list[Any] = _read_records(workspace.address, log) if log else []
        if result != 0:
            raise InternalError(f"a kernel ended with {result}")
        if records:
            _show(records)

    def _filled_slots(
        self,
        layer: ThreadLayer,
        threads: int,
        workspace: Workspace,
        grid: tuple[int, int, int],
        args: Sequence[Argument],
    ) -> Any:
        words = [
            layer.pool if threads > 1 else 0,
            threads,
            workspace.address,
            workspace.size,
            *grid,
            *[0] * (FIRST_ARGUMENT - GRID - len(grid)),
        ]
        for arg in args:
            words.extend(words_of(arg))
        if len(words) != self._slots:
            problem = f"a kernel with {self._slots} slots was given {len(words)}"
            raise InternalError(problem)
        return (ctypes.c_int64 * len(words))(*words)

    def _run(self, slots: Any, workspace: Workspace) -> int:
        """Call the code; call it again with a larger workspace if it asks for one."""
        result = self._native(slots)
        if result > 0:
            workspace.reserve(result)
            slots[WORKSPACE] = workspace.address
            slots[WORKSPACE_BYTES] = workspace.size
            result = self._native(slots)
        return result


def _run_logged(fast: Callable[..., int], log: Any, *values: Any) -> int:
    """Call a native entry, and show the records that the kernel wrote to its log."""
    result = fast(*values)
    records: list[Any] = [] if result else _read_records(published_address(), log)
    if records:
        _show(records)
    return result


def _publish(layer: ThreadLayer) -> None:
    """Tell native entries the threads to use, unless a fork ended them meanwhile."""
    fastcall.publish(layer)
    now = thread_layer()
    if now is not layer:
        fastcall.publish(now)
        _run_alone(now)


def _run_alone(_: ThreadLayer) -> None:
    """Make running launches serial, in the child of a fork by a signal handler."""
    for slots in _running:
        slots[POOL], slots[THREADS] = 0, 1


_running: list[Any] = []
on_layer_lost(_run_alone)


def words_of(arg: Argument) -> tuple[int, ...]:
    """Return the slots of an argument."""
    if isinstance(arg, ArrayView):
        return (arg.address, *arg.shape, *arg.strides)
    if isinstance(arg, float):
        return struct.unpack("<q", struct.pack("<d", arg))
    return (int(arg),)
