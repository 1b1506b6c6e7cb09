"""Runs the kernels of a wheel that `xetl compile --wheel` made; it needs only NumPy.

This file and `xetl_cpu.image` are copied into each wheel, beside ``kernels.json`` and
the images of code. It supports launches as from Python (`kernel[grid](A, B)`), with its
own checks; the ABI is section 4 of docs/design/0001-seams.md.
"""

from __future__ import annotations

import ctypes
import json
import operator
import os
import re
import struct
import threading
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from xetl_cpu.image import Image, LoadedImage, load_image

_HERE = Path(__file__).parent
_NAMES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "i1": "bool",
}  # fmt: skip
_CHECKED = re.compile(r"avx|fma|f16c|bmi|amx")
_HEAD, _MOST_DIMS, _MOST_PROGRAMS = 8, 3, (1 << 31) - 1
_MOST_WORK = 10_000_000
_FIRST = 1 << 13

_Kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_Word = ctypes.POINTER(ctypes.c_int64)
_Task = ctypes.CFUNCTYPE(None, _Word, _Word, ctypes.c_void_p, ctypes.c_void_p)
_Fork = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, _Word, _Word, ctypes.c_void_p, ctypes.c_void_p,
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64,
)  # fmt: skip


def cdiv(number: int, by: int) -> int:
    """Divide, and round up."""
    return -(-number // by)


class Team:
    """Threads that run parts of a kernel, without Python's lock."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.process = os.getpid()
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._fork = _Fork(self._run)
        fork = ctypes.cast(self._fork, ctypes.c_void_p).value
        self.pool = (ctypes.c_int64 * 2)(fork)  # and what its last join lost
        self._started = 1

    def _start(self, parts: int) -> None:
        """Start up to one thread for each part; small kernels need fewer."""
        while self._started < min(parts, self.threads):
            self._started += 1
            threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            part, done = self._queue.get()
            part()
            done.release()

    def _run(
        self, task: int, args: Any, count: Any, steps: int, context: int, *rest: int
    ) -> None:
        """Call ``task`` once for each thread's number, on this thread and on others."""
        call, first, parts = _Task(task), args[0], count[0]
        done = threading.Semaphore(0)
        self._start(parts)

        def part(number: int) -> None:
            mine, one = ctypes.c_int64(number), ctypes.c_int64(1)
            call(ctypes.byref(mine), ctypes.byref(one), steps, context)

        for number in range(first + 1, first + parts):
            self._queue.put((lambda number=number: part(number), done))
        part(first)
        for _ in range(parts - 1):
            done.acquire()


_team: list[Team] = []


def team() -> Team:
    """Return the threads of this process; a fork makes new ones."""
    if not _team or _team[-1].process != os.getpid():
        text = os.environ.get("OMP_NUM_THREADS", "")
        available = len(os.sched_getaffinity(0))
        _team[:] = [Team(int(text) if text.isdecimal() and int(text) else available)]
    return _team[-1]


class Kernel:
    """A compiled kernel: ``kernel[grid](...)``, or ``kernel(...)`` by its own grid."""

    def __init__(self, facts: dict[str, Any], folder: Path = _HERE) -> None:
        self.__name__ = facts["kernel"]
        self.facts = facts
        self._folder = folder
        self._arguments: list[dict[str, Any]] = facts["arguments"]
        self._local = threading.local()
        grid = facts.get("grid")
        self._grid: Any = None if grid is None else eval(grid, {"cdiv": cdiv})

    def __repr__(self) -> str:
        names = ", ".join(each["name"] for each in self._arguments)
        return f"<compiled kernel {self.__name__}({names})>"

    def __getitem__(self, grid: Any) -> Any:
        """Return a function that launches the kernel with a grid."""

        def launch(*args: Any, **named: Any) -> None:
            self._launch(grid, args, named)

        return launch

    def __call__(self, *args: Any, **named: Any) -> None:
        """Launch with the grid that the kernel declares."""
        if self._grid is None:
            raise TypeError(
                f"`{self.__name__}` has no grid of its own: write "
                f"{self.__name__}[grid](...)"
            )
        self._launch(self._grid, args, named)

    @cached_property
    def _variant(self) -> dict[str, Any]:
        """The code for the best target that this processor can run."""
        flags = _processor()
        missing: list[str] = []
        for each in reversed(self.facts["variants"]):
            wanted = [name for name in each["features"] if _CHECKED.match(name)]
            missing = [name for name in wanted if name not in flags]
            if not missing and (not each["tiles"] or _permit_tiles()):
                return each
        raise ImportError(
            f"`{self.__name__}` does not run on this processor, which lacks "
            f"{', '.join(missing) or 'the permission to use AMX'}; compile it for "
            "another target"
        )

    @cached_property
    def target(self) -> str:
        """The target whose code is used."""
        return self._variant["target"]

    @cached_property
    def _image(self) -> LoadedImage:
        data = (self._folder / self._variant["file"]).read_bytes()
        return load_image(Image.from_bytes(data))

    @cached_property
    def _code(self) -> Any:
        return _Kernel(self._image[self.facts["function"]])

    def _launch(self, grid: Any, args: Any, named: dict[str, Any]) -> None:
        values = self._bound(args, named)
        words: list[int] = []
        for each, value in zip(self._arguments, values):
            words += self._words(each, value)
        self._check_overlap(values)
        if callable(grid):
            known = dict(zip([each["name"] for each in self._arguments], values))
            grid = grid(SimpleNamespace(**self.facts["plain_constants"], **known))
        sizes = _sizes(grid)
        if 0 not in sizes:
            self._run(sizes, words)

    def _bound(self, args: Any, named: dict[str, Any]) -> list[Any]:
        names = [each["name"] for each in self._arguments]
        given = dict(zip(names, args))
        twice = [name for name in named if name in given or name not in names]
        missing = [name for name in names if name not in given and name not in named]
        if len(args) > len(names) or twice or missing:
            raise TypeError(f"`{self.__name__}` takes {', '.join(names)}, each once")
        given |= named
        return [given[name] for name in names]

    def _words(self, what: dict[str, Any], value: Any) -> list[int]:
        """Return the slots of an argument.

        Raises:
            TypeError: it is no array or number, or it has another dtype.
            ValueError: the code does not support its layout.
        """
        name, kind = what["name"], what["kind"]
        if kind != "array":
            return [_word(name, kind, value)]
        wanted = _NAMES.get(what["dtype"], _integer(what["dtype"]))
        accepted = {wanted, "uint16"} if wanted == "bfloat16" else {wanted}
        has: Any = getattr(value, "dtype", None)
        if not isinstance(value, np.ndarray) or has.name not in accepted:
            raise TypeError(f"`{name}` must be an array of {wanted}")
        if not has.isnative:
            raise TypeError(f"`{name}` must have this machine's order of bytes")
        value = cast("np.ndarray[Any, Any]", value)
        size = value.itemsize
        strides = [stride // size for stride in value.strides]
        why = None
        if value.ndim != what["rank"]:
            why = f"{what['rank']} dimensions, not {value.ndim}"
        elif any(s % size for s in value.strides) or not value.flags.aligned:
            why = "elements on multiples of their size"
        elif what["stored"] and not value.flags.writeable:
            why = "memory that may be written"
        elif what["stored"] and _overlaps_itself(value):
            why = "a place of its own for each element: pass a copy"
        else:
            why = _misfit(what["needed"], value.shape, strides)
        if why is not None:
            raise ValueError(f"`{name}` must have {why}")
        return [value.ctypes.data, *value.shape, *strides]

    def _check_overlap(self, values: list[Any]) -> None:
        arrays = [
            (each, value)
            for each, value in zip(self._arguments, values)
            if each["kind"] == "array"
        ]
        for i, (one, first) in enumerate(arrays):
            for other, second in arrays[i + 1 :]:
                if not (one["stored"] or other["stored"]):
                    continue
                if np.may_share_memory(first, second) and _share(first, second):
                    raise ValueError(
                        f"`{one['name']}` and `{other['name']}` share memory, and the "
                        "kernel writes to one of them: pass a copy"
                    )

    def _run(self, grid: tuple[int, ...], words: list[int]) -> None:
        """Call the code; call it again with a larger workspace if it asks for one."""
        ours = team()
        pool = ctypes.addressof(ours.pool) if ours.threads > 1 else 0
        needed = 0
        for _ in range(2):
            address, size = getattr(self._local, "workspace", (0, 0))
            head = [pool, ours.threads, address, size, *grid, 0]
            slots = (ctypes.c_int64 * (_HEAD + len(words)))(*head, *words)
            needed = self._code(slots)
            if needed <= 0:
                break
            self._local.memory = ctypes.create_string_buffer(needed + 64)
            start = -(-ctypes.addressof(self._local.memory) // 64) * 64
            self._local.workspace = (start, needed)
        if needed:
            raise RuntimeError(f"`{self.__name__}` ended with {needed}")


def _sizes(grid: Any) -> tuple[int, ...]:
    listed: tuple[Any, ...] = (grid,)
    if isinstance(grid, tuple | list):
        listed = tuple(cast("list[Any]", grid))
    try:
        sizes = tuple(operator.index(each) for each in listed)
    except TypeError:  # what is no whole number
        sizes = ()
    if not 1 <= len(sizes) <= _MOST_DIMS or min(sizes) < 0:
        raise ValueError(f"the grid is {grid!r}: it must be one to three sizes")
    if max(sizes) > _MOST_PROGRAMS:
        raise ValueError(f"the grid is {grid!r}: a size is at most {_MOST_PROGRAMS}")
    return (*sizes, 1, 1)[:_MOST_DIMS]


def _word(name: str, kind: str, value: Any) -> int:
    """Return the bits of a number."""
    try:
        if kind == "f64":
            return struct.unpack("<q", struct.pack("<d", value))[0]
        return struct.unpack("<q", struct.pack("<q", _whole(kind, value)))[0]
    except (TypeError, OverflowError, struct.error):
        wanted = "a float" if kind == "f64" else "an integer of 64 bits"
        raise TypeError(f"`{name}` is {value!r}: it must be {wanted}") from None


def _whole(kind: str, value: Any) -> int:
    return int(bool(value)) if kind == "i1" else operator.index(value)


def _overlaps_itself(array: np.ndarray[Any, Any]) -> bool:
    """Whether two elements share memory; see `xetl.runtime.overlap.overlaps_itself`."""
    if array.flags.forc:
        return False
    for dim in range(array.ndim):
        before = (slice(0, 1),) * dim
        if _share(array[(*before, slice(0, 1))], array[(*before, slice(1, None))]):
            return True
    return False


def _share(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    try:
        return np.shares_memory(first, second, max_work=cast("Any", _MOST_WORK))
    except np.exceptions.TooHardError:
        return True


def _misfit(
    needed: list[tuple[str, int, int]], shape: tuple[int, ...], strides: list[int]
) -> str | None:
    """Return a requirement that an array fails; fix strides that nothing follows."""
    for what, dim, number in needed:
        if what == "stride" and (shape[dim] <= 1 or 0 in shape):
            strides[dim] = number
        found = (strides if what == "stride" else shape)[dim]
        if found != number:
            return f"{what} {number} in dimension {dim}, not {found}"
    return None


def _integer(dtype: str) -> str:
    return ("u" if dtype[0] == "u" else "") + "int" + dtype[1:]


def _processor() -> frozenset[str]:
    """Return the processor's features, by LLVM's names without separators."""
    with Path("/proc/cpuinfo").open() as file:
        text = file.read(_FIRST)  # of one processor: with hundreds it takes long
    line = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    flags = line.group(1).split() if line else []
    return frozenset(re.sub(r"[._-]", "", each) for each in flags)


def _permit_tiles() -> bool:
    """Ask Linux for the state of AMX tiles; return whether it may be used."""
    request_permission, tile_data, arch_prctl = 0x1023, 18, 158
    libc = ctypes.CDLL(None)
    return libc.syscall(arch_prctl, request_permission, tile_data) == 0


def load(name: str) -> Kernel:
    """Return the kernel of this wheel with this name; its code is read at first use."""
    known = json.loads((_HERE / "kernels.json").read_text("utf-8"))
    return Kernel(known[name])
