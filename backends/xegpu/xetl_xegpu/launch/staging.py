"""Memory of a launch on the device: copies of arrays of the host, and status words.

A device that cannot read an array of the host gets a copy of all bytes from the first
element to the last, aligned to 64 bytes. Block messages may not be able to move the
array with its strides (odd rows, slices, broadcast rows). If the kernel gets the
strides as arguments, a kernel of ours then copies the array once more: the new pitch is
a multiple of 64 bytes, with zeros between the rows. If the kernel writes an array, its
elements are copied back, but not the bytes between them, which may belong to others.
[measured] ocloc 26.27: the copy takes 94 instructions for 256 elements on pvc; a kernel
without block messages takes up to thirty times as many as one with them in each step.

A kernel writes prints and failed checks to the status words. Every kernel gets some:
masked loads read them if their mask is off.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from xetl.backend import Argument, ArrayView
from xetl.errors import LaunchError
from xetl.runtime.library import load_mlir
from xetl.runtime.log import LOG_WORDS, read_records, show
from xetl.runtime.overlap import as_numpy, bounds, view_key
from xetl.runtime.text_kernel import TextKernel
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import dpctl
from xetl_xegpu.launch.facts import CodeFacts, KernelFacts, Surface, why_no_surface
from xetl_xegpu.launch.places import QueuePlace, wait_for
from xetl_xegpu.limits import BASE_ALIGNMENT, REFUSED_WORDS


def allocated(
    kind: Literal["Device", "Shared"], size: int, place: QueuePlace, use: str
) -> Any:
    """Allocate memory of dpctl; errors name its ``use``.

    Raises:
        LaunchError: the device has not enough memory left.
    """
    memory = dpctl().memory
    new = getattr(memory, f"MemoryUSM{kind}")
    try:
        return new(size, alignment=BASE_ALIGNMENT, queue=place.queue)
    except (memory.USMAllocationError, MemoryError):
        raise failures.out_of_memory(place.device.name, size, use) from None


def address_of(memory: Any) -> int:
    """Return the address of memory of dpctl."""
    return memory.__sycl_usm_array_interface__["data"][0]


def copy(target: Any, source: Any, size: int, place: QueuePlace) -> None:
    """Copy bytes between memory of dpctl and buffers of the host.

    Raises:
        LaunchError: the device was lost.
    """
    doing = "copying an array"
    try:
        event = place.queue.memcpy_async(target, source, size)
    except RuntimeError:
        raise failures.lost(place.device.name, doing, copies=True) from None
    wait_for(event, place.device, doing)


class Staged:
    """The arguments of a launch in memory of the device.

    Attributes:
        args: views with addresses of the device's memory, and numbers.
        keep: the memory of the copies.
        padded: indices of the arrays whose rows are padded with zeros.
        comes_back: whether an array must be copied back.
    """

    def __init__(
        self, args: Sequence[Argument], facts: CodeFacts, place: QueuePlace
    ) -> None:
        """Copy the arrays to the device.

        Raises:
            LaunchError: they do not fit the memory of the device, or it was lost.
        """
        self.keep: list[Any] = []
        self._place = place
        given = {view_key(arg): arg for arg in args if isinstance(arg, ArrayView)}
        there = {key: self._reached(view) for key, view in given.items()}
        pitched = self._all_pitched(_surfaces(args, facts, there), there)
        self.args: list[Argument] = []
        for arg in args:
            key = view_key(arg)
            seen = pitched.get(key, there.get(key))
            self.args.append(arg if seen is None else seen)
        self.padded = frozenset(
            index for index, arg in enumerate(args) if view_key(arg) in pitched
        )
        written = {view_key(args[index]) for index in facts.stored}
        # Each written array: the user's view, the copy of its bytes, the padded copy.
        self._back = [
            (view, there[key], pitched.get(key))
            for key, view in given.items()
            if key in written and 0 not in view.shape
            if key in pitched or there[key] is not view
        ]
        self.comes_back = bool(self._back)

    def copy_back(self) -> None:
        """Copy all arrays that the kernel has written back to the host.

        Raises:
            LaunchError: the device was lost; no array has changed.
        """
        for _, there, apart in self._back:
            if apart is not None:
                copy_elements(apart, there, apart.strides.index(1), self._place)
        found = [
            (view, self._fetched(there))
            for view, there, _ in self._back
            if there is not view
        ]
        for view, room in found:
            start = room.ctypes.data + view.address - bounds(view)[0]
            as_numpy(view)[...] = as_numpy(replace(view, address=start))

    def _reached(self, view: ArrayView) -> ArrayView:
        """Return a view that the device can read: the array, or a copy of its bytes."""
        if view.memory is not None or self._place.device.reads_host:
            return view
        if 0 in view.shape:
            return replace(view, address=0)
        low, high = bounds(view)
        start = self._new(high - low)
        room: Any = (ctypes.c_char * (high - low)).from_address(low)
        copy(self.keep[-1], np.frombuffer(room, np.uint8), high - low, self._place)
        return replace(view, address=start + view.address - low)

    def _fetched(self, there: ArrayView) -> Any:
        low, high = bounds(there)
        room = np.empty(high - low, np.uint8)
        memory = next(each for each in self.keep if address_of(each) == low)
        copy(room, memory, room.nbytes, self._place)
        return room

    def _new(self, size: int) -> int:
        """Allocate memory for a copy and return its address."""
        self.keep.append(allocated("Device", size, self._place, "a copy of an array"))
        return address_of(self.keep[-1])

    def _all_pitched(
        self, surfaces: Mapping[object, Surface], there: Mapping[object, ArrayView]
    ) -> dict[object, ArrayView]:
        """Make padded copies of the arrays that messages cannot move as they are.

        Return {} if messages could not move all copies either, or if memory runs out:
        lanes then move the elements.
        """
        moved = {key: _apart(there[key], each.column) for key, each in surfaces.items()}
        pairs = zip(surfaces.values(), moved.values())
        if any(why_no_surface(*pair, is_padded=True) for pair in pairs):
            return {}
        made: dict[object, ArrayView] = {}
        for key, view in moved.items():
            most = max(n * step for n, step in zip(view.shape, view.strides))
            size = -(-most * view.dtype.itemsize // BASE_ALIGNMENT) * BASE_ALIGNMENT
            try:
                start = self._new(size)
            except LaunchError:
                return {}
            self.keep[-1].memset()  # pad the rows with zeros
            made[key] = replace(view, address=start)
            copy_elements(there[key], made[key], surfaces[key].column, self._place)
        return made


def _surfaces(
    args: Sequence[Argument], facts: CodeFacts, there: Mapping[object, ArrayView]
) -> dict[object, Surface]:
    """Return the surfaces of the arrays that messages cannot move as they are.

    Return {} if the kernel has static strides for one of them: it needs the array with
    these strides. A copy of folded arrays would move more bytes than it
    saves instructions.
    """
    found = {view_key(args[s.argument]): s for s in facts.kernels[0].surfaces}
    found = {k: s for k, s in found.items() if why_no_surface(s, there[k]) is not None}
    if any(each.folded for each in found.values()):
        return {}
    for arg, told in zip(args, facts.arguments):
        surface = found.get(view_key(arg))
        if isinstance(arg, ArrayView) and surface is not None:
            others = set(range(len(arg.shape))) - {surface.column}
            if not others <= set(told.strides):
                return {}
    return found


def _apart(view: ArrayView, column: int) -> ArrayView:
    """Return a contiguous view at address 0, with rows padded to 64 bytes.

    Args:
        column: the dimension along the rows.
    """
    size = view.dtype.itemsize
    step = -(-view.shape[column] * size // BASE_ALIGNMENT) * BASE_ALIGNMENT // size
    strides = [1] * len(view.shape)
    for dim in reversed([d for d in range(len(strides)) if d != column]):
        strides[dim] = step
        step *= view.shape[dim]
    return replace(view, address=0, strides=tuple(strides), memory=None)


_LEAST_BYTES = 64
"""More bytes than any element that a masked load reads."""


class StatusWords:
    """A log in memory that both the device and the host reach.

    Attributes:
        word: its address, as an argument for dpctl.
    """

    def __init__(self, kernel: KernelFacts, place: QueuePlace) -> None:
        self._log = kernel.log
        self._room = LOG_WORDS if kernel.tells else REFUSED_WORDS
        memory = _new(8 * self._room, place) if kernel.log else _never_written(place)
        self._memory, self._address = memory, address_of(memory)
        self.word = ctypes.c_int64(self._address)

    def show(self) -> None:
        """Print the lines of a kernel that has run, and empty the log.

        Raises:
            LaunchError: a check failed: the first one in the order of programs.
        """
        if not self._log:
            return  # do not touch the shared words, which stay on the device
        used = ctypes.c_int64.from_address(self._address)
        if used.value > 1:
            records = read_records(self._address, self._log, self._room)
            used.value = 1
            show(records)


def _new(size: int, place: QueuePlace) -> Any:
    memory = allocated("Shared", size, place, "the log of a launch")
    # The first word counts the words in use, itself included.
    memory.copy_from_host(np.ones(1, np.int64).view(np.uint8))
    return memory


@lru_cache(maxsize=64)
def _never_written(place: QueuePlace) -> Any:
    """Return the status words that all kernels without a log share."""
    return _new(_LEAST_BYTES, place)


_TEXT = """
gpu.module @copies {{
  gpu.func @copy_rows(%from0: i64, %to0: i64, %columns: i64{numbers}) kernel {{
    %x = gpu.block_id x
    %rows0 = arith.index_cast %x : index to i64{places}
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %lanes = arith.constant 16 : index
    %piece = arith.constant 256 : index
    %bytes = arith.constant {bytes} : i64
    %n = arith.index_cast %columns : i64 to index
    %rest = arith.remsi %n, %piece : index
    %whole = arith.subi %n, %rest : index
    scf.for %c = %zero to %whole step %piece {{  // inside: nobody looks at bounds
      %i = arith.index_cast %c : index to i64
      %o = arith.muli %i, %bytes : i64
      %p = arith.addi %from{rank}, %o : i64
      %q = arith.addi %to{rank}, %o : i64
      %s = xetile.init_tile %p[0, 0], [1, 256], [256, 1] : i64 -> {tile256}
      %v = xetile.load_tile %s : {tile256} -> vector<1x256xi{bits}>
      %t = xetile.init_tile %q[0, 0], [1, 256], [256, 1] : i64 -> {tile256}
      xetile.store_tile %v, %t : vector<1x256xi{bits}>, {tile256}
    }}
    scf.for %c = %whole to %n step %lanes {{
      %s = xetile.init_tile %from{rank}[0, %c], [%one, %n], [%n, 1] : i64 -> {tile16}
      %v = xetile.load_tile %s : {tile16} -> vector<1x16xi{bits}>
      %t = xetile.init_tile %to{rank}[0, %c], [%one, %n], [%n, 1] : i64 -> {tile16}
      xetile.store_tile %v, %t : vector<1x16xi{bits}>, {tile16}
    }}
    gpu.return
  }}
}}
"""

_PART = """
    %d{at} = arith.remsi %rows{before}, %size{at} : i64
    %rows{at} = arith.divsi %rows{before}, %size{at} : i64"""

_STEP = """
    %f{at} = arith.muli %{number}, %fstep{at} : i64
    %from{at} = arith.addi %from{before}, %f{at} : i64
    %t{at} = arith.muli %{number}, %tstep{at} : i64
    %to{at} = arith.addi %to{before}, %t{at} : i64"""


@cache
def copy_rows(itemsize: int, rank: int) -> TextKernel:
    """Return the kernel that copies elements of so many bytes, a row for each program.

    Args:
        rank: the number of dimensions besides the columns. The kernel gets the size and
            the strides in bytes of each, the innermost first.
    """
    bits = 8 * itemsize
    wide, narrow = (f"!xetile.tile<1x{n}xi{bits}>" for n in (256, 16))
    numbers, places = "", ""
    for at in range(1, rank + 1):
        names = {"at": at, "before": at - 1}
        numbers += ", %size{at}: i64, %fstep{at}: i64, %tstep{at}: i64".format(**names)
        places += _PART.format(**names) if at < rank else ""
        number = f"d{at}" if at < rank else f"rows{at - 1}"
        places += _STEP.format(**names, number=number)
    sizes = {"bits": bits, "bytes": itemsize, "rank": rank}
    types = {"tile256": wide, "tile16": narrow}
    text = _TEXT.format(**sizes, **types, numbers=numbers, places=places)
    return load_mlir(text)["copy_rows"]


def copy_elements(
    source: ArrayView, target: ArrayView, column: int, place: QueuePlace
) -> None:
    """Copy the elements of an array to another one of the same shape, and wait.

    Args:
        column: the dimension that has stride 1 in both.

    Raises:
        LaunchError: the device was lost.
    """
    others = [dim for dim in reversed(range(len(source.shape))) if dim != column]
    size = source.dtype.itemsize
    numbers: list[int] = []
    for dim in others:
        strides = (source.strides[dim] * size, target.strides[dim] * size)
        numbers += [source.shape[dim], *strides]
    words = source.address, target.address, source.shape[column], *numbers
    rows = prod(source.shape[dim] for dim in others)
    copy_rows(size, len(others))[rows](*words, backend="xegpu", queue=place.queue)
