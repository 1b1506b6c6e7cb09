"""What a launch brings to a device: copies of arrays of the host, and status words.

Devices that cannot read an array where it is get a copy. It holds all bytes from the
first element to the last, and starts on 64 bytes. If block messages could not move that
(odd rows, slices), and the kernel is told the strides, rows lie multiples of 64 bytes
apart in the copy, with zeros between them: then they can. Of an array that is written
the elements come back, not the bytes between them: these may be somebody else's. Arrays
that the device can read are copied there, by a kernel of ours, and only if so.
[measured] ocloc 26.27: 94 instructions for 256 elements on pvc; a kernel without block
messages takes up to thirty times as many as one with them, in each of its steps.

A kernel writes prints and failed checks to the status words. Every kernel is given
some: masked loads read them where their mask is off.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from xetl.backend import Argument, ArrayView
from xetl.errors import LaunchError
from xetl.runtime.library import load_mlir
from xetl.runtime.log import LOG_WORDS, read_records, show
from xetl.runtime.overlap import as_numpy, bounds
from xetl.runtime.text_kernel import TextKernel
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import dpctl
from xetl_xegpu.launch.events import wait_for
from xetl_xegpu.launch.facts import CodeFacts, KernelFacts, Surface, why_no_surface
from xetl_xegpu.launch.places import QueuePlace
from xetl_xegpu.limits import REFUSED_WORDS

_ALIGNMENT = 64
"""Of what is allocated: block messages want it."""


def allocated(
    kind: Literal["Device", "Shared"], size: int, place: QueuePlace, use: str
) -> Any:
    """Memory of dpctl; ``use`` says in errors what for.

    Raises:
        LaunchError: there is not so much left.
    """
    memory = dpctl().memory
    new = getattr(memory, f"MemoryUSM{kind}")
    try:
        return new(size, alignment=_ALIGNMENT, queue=place.queue)
    except (memory.USMAllocationError, MemoryError):
        raise failures.out_of_memory(place.device.name, size, use) from None


def address_of(memory: Any) -> int:
    """Where memory of dpctl is."""
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


class _Copy(NamedTuple):
    """An array on the device: its memory, bytes, how it lies there, along which dim."""

    memory: Any
    size: int
    view: ArrayView
    is_padded: bool
    column: int = 0


class Staged:
    """The arguments of a launch as the device sees them.

    Attributes:
        args: arrays with addresses of the device's memory, and numbers.
        keep: the memory of the copies.
        padded: indices of the arrays that have zeros behind their rows.
        comes_back: whether there is something to copy back.
    """

    def __init__(
        self, args: Sequence[Argument], facts: CodeFacts, place: QueuePlace
    ) -> None:
        """Make the copies; nothing has been launched yet.

        Raises:
            LaunchError: they do not fit the memory of the device, or it was lost.
        """
        self.keep: list[Any] = []
        self._back: list[tuple[ArrayView, _Copy]] = []
        self._place = place
        self._reads_host = place.device.reads_host
        copies: dict[object, _Copy] = {}
        written = {_view_key(args[index]) for index in facts.stored}
        # What a kernel stores behind a row nobody must load from there again.
        both = written & {_view_key(args[index]) for index in facts.loaded}
        surfaces = _surfaces(args, facts)
        all_fit = self._all_fit(args, facts, surfaces, both)
        padded: set[int] = set()
        self.args = list(args)
        for index, arg in enumerate(args):
            if not isinstance(arg, ArrayView):
                continue
            key = _view_key(arg)
            if key not in copies:
                surface = surfaces.get(key)
                pitched = surface is not None and self._may_be_pitched(
                    surface, arg, is_padded=key not in both
                )
                if not self._reads(arg):
                    copies[key] = self._copied(arg, surface if pitched else None)
                elif surface is not None and pitched and all_fit:
                    made = self._repitched(arg, surface)
                    if made is None:
                        continue
                    copies[key] = made
                else:
                    continue
                if key in written and 0 not in arg.shape:
                    self._back.append((arg, copies[key]))
            self.args[index] = copies[key].view
            if copies[key].is_padded and key not in both:
                padded.add(index)
        self.padded = frozenset(padded)
        self.comes_back = bool(self._back)

    def copy_back(self) -> None:
        """Bring home what the kernel has written: all, or nothing.

        Raises:
            LaunchError: the device was lost; the arrays are as they were.
        """
        on_host = [each for each in self._back if not self._reads(each[0])]
        found = [(view, made, self._fetched(made)) for view, made in on_host]
        for view, made in self._back:
            if self._reads(view):
                copy_elements(made.view, view, made.column, self._place)
        for view, made, room in found:
            start = room.ctypes.data + made.view.address - address_of(made.memory)
            as_numpy(view)[...] = as_numpy(replace(made.view, address=start))

    def _reads(self, view: ArrayView) -> bool:
        return view.memory is not None or self._reads_host

    def _all_fit(
        self,
        args: Sequence[Argument],
        facts: CodeFacts,
        surfaces: Mapping[object, Surface],
        both: Collection[object],
    ) -> bool:
        """Whether block messages can move all that they are to, some of it copied."""
        for surface in facts.kernels[0].surfaces:
            view = cast("ArrayView", args[surface.argument])
            key = _view_key(view)
            if why_no_surface(surface, self._as_it_lies(view)) is None:
                continue
            is_padded = key not in both
            if key not in surfaces or not self._may_be_pitched(
                surface, view, is_padded=is_padded
            ):
                return False
        return True

    def _may_be_pitched(
        self, surface: Surface, view: ArrayView, *, is_padded: bool
    ) -> bool:
        """Whether block messages can move an array only if its rows are set apart."""
        if 0 in view.shape or why_no_surface(surface, self._as_it_lies(view)) is None:
            return False
        if self._reads(view) and len(view.shape) > MOST_DIMS:
            return False
        others = [d for d in range(len(view.shape)) if d != surface.column]
        if any(view.strides[d] == 0 for d in others if view.shape[d] > 1):
            return False  # a row that is there many times
        apart = replace(view, address=0, strides=_strides(view, surface.column))
        return why_no_surface(surface, apart, is_padded=is_padded) is None

    def _as_it_lies(self, view: ArrayView) -> ArrayView:
        """Where its bytes are on the device: copies of the host's begin aligned."""
        if self._reads(view):
            return view
        return replace(view, address=view.address - bounds(view)[0])

    def _fetched(self, made: _Copy) -> Any:
        room = np.empty(made.size, np.uint8)
        copy(room, made.memory, made.size, self._place)
        return room

    def _repitched(self, view: ArrayView, surface: Surface) -> _Copy | None:
        """The array with the rows of a surface apart, if the device has room."""
        strides = _strides(view, surface.column)
        size = _elements(view, strides) * view.dtype.itemsize
        try:
            memory = allocated("Device", size, self._place, "a copy of an array")
        except LaunchError:
            return None  # lanes move its elements
        memory.memset()  # zeros behind the rows
        self.keep.append(memory)
        address = address_of(memory)
        there = replace(view, address=address, strides=strides, memory=None)
        copy_elements(view, there, surface.column, self._place)
        return _Copy(memory, size, there, True, surface.column)

    def _copied(self, view: ArrayView, surface: Surface | None) -> _Copy:
        """The array as it lies, or the rows of a surface apart."""
        if 0 in view.shape:
            return _Copy(None, 0, replace(view, address=0), is_padded=False)
        if surface is None:
            low, high = bounds(view)
            source, strides, start = _bytes_at(low, high - low), view.strides, low
        else:
            source, strides = _pitched(view, surface.column)
            start = view.address
        memory = allocated("Device", source.nbytes, self._place, "a copy of an array")
        copy(memory, source, source.nbytes, self._place)
        self.keep.append(memory)
        address = address_of(memory) + view.address - start
        there = replace(view, address=address, strides=strides)
        return _Copy(memory, source.nbytes, there, surface is not None)


def _surfaces(args: Sequence[Argument], facts: CodeFacts) -> dict[object, Surface]:
    """How views are moved by messages, of those whose strides all who take them get."""
    found = {_view_key(args[s.argument]): s for s in facts.kernels[0].surfaces}
    for arg, told in zip(args, facts.arguments):
        surface = found.get(_view_key(arg))
        if isinstance(arg, ArrayView) and surface is not None:
            others = set(range(len(arg.shape))) - {surface.column}
            if not others <= set(told.strides):
                del found[_view_key(arg)]
    return found


def _strides(view: ArrayView, column: int) -> tuple[int, ...]:
    """Of an array whose rows, along a dimension, are multiples of 64 bytes apart."""
    size = view.dtype.itemsize
    step = -(-view.shape[column] * size // _ALIGNMENT) * _ALIGNMENT // size
    strides = [1] * len(view.shape)
    for dim in reversed([d for d in range(len(strides)) if d != column]):
        strides[dim] = step
        step *= view.shape[dim]
    return tuple(strides)


def _pitched(view: ArrayView, column: int) -> tuple[Any, tuple[int, ...]]:
    """The bytes of such an array, with zeros behind its rows, and its strides."""
    strides = _strides(view, column)
    room = np.zeros(_elements(view, strides) * view.dtype.itemsize, np.uint8)
    to = replace(view, address=room.ctypes.data, strides=strides)
    as_numpy(to)[...] = as_numpy(view)
    return room, strides


def _elements(view: ArrayView, strides: Sequence[int]) -> int:
    return max((n * s for n, s in zip(view.shape, strides)), default=1)


def _view_key(arg: Argument) -> object:
    """Equal for the very same view, which may be given several times."""
    if not isinstance(arg, ArrayView):
        return None
    return arg.address, arg.shape, arg.strides, arg.dtype


def _bytes_at(address: int, size: int) -> Any:
    room: Any = (ctypes.c_char * size).from_address(address)
    return np.frombuffer(room, np.uint8)


_LEAST_BYTES = 64
"""The widest element that a masked load reads, and more."""


class StatusWords:
    """A log in memory that the device and the host reach.

    Attributes:
        word: its address, as dpctl takes it.
    """

    def __init__(self, kernel: KernelFacts, place: QueuePlace) -> None:
        self._log = kernel.log
        self._room = LOG_WORDS if kernel.tells else REFUSED_WORDS
        memory = _new(8 * self._room, place) if kernel.log else _never_written(place)
        self._memory, self._address = memory, address_of(memory)
        self.word = ctypes.c_int64(self._address)

    def show(self) -> None:
        """Print the lines, when the kernel has run; the log is empty then.

        Raises:
            LaunchError: a check failed; the first one, in the order of programs.
        """
        if not self._log:
            return  # memory that the device uses stays there
        used = ctypes.c_int64.from_address(self._address)
        if used.value > 1:
            records = read_records(self._address, self._log, self._room)
            used.value = 1
            show(records)


def _new(size: int, place: QueuePlace) -> Any:
    memory = allocated("Shared", size, place, "the log of a launch")
    # One word is in use: the one that counts.
    memory.copy_from_host(np.ones(1, np.int64).view(np.uint8))
    return memory


@lru_cache(maxsize=64)
def _never_written(place: QueuePlace) -> Any:
    """What all kernels share that write nothing."""
    return _new(_LEAST_BYTES, place)


MOST_DIMS = 4

_TEXT = """
gpu.module @copies {{
  gpu.func @copy_rows(%from: i64, %to: i64, %columns: i64, %inner: i64,
      %f0: i64, %f1: i64, %f2: i64, %t0: i64, %t1: i64, %t2: i64) kernel {{
    %x = gpu.block_id x
    %y = gpu.block_id y
    %row = arith.index_cast %x : index to i64
    %matrix = arith.index_cast %y : index to i64
    %d0 = arith.divsi %matrix, %inner : i64
    %d1 = arith.remsi %matrix, %inner : i64
    %f3 = arith.muli %d0, %f0 : i64
    %f4 = arith.muli %d1, %f1 : i64
    %f5 = arith.muli %row, %f2 : i64
    %f6 = arith.addi %from, %f3 : i64
    %f7 = arith.addi %f6, %f4 : i64
    %source = arith.addi %f7, %f5 : i64
    %t3 = arith.muli %d0, %t0 : i64
    %t4 = arith.muli %d1, %t1 : i64
    %t5 = arith.muli %row, %t2 : i64
    %t6 = arith.addi %to, %t3 : i64
    %t7 = arith.addi %t6, %t4 : i64
    %target = arith.addi %t7, %t5 : i64
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
      %p = arith.addi %source, %o : i64
      %q = arith.addi %target, %o : i64
      %s = xetile.init_tile %p[0, 0], [1, 256], [256, 1] : i64 -> {tile256}
      %v = xetile.load_tile %s : {tile256} -> vector<1x256xi{bits}>
      %t = xetile.init_tile %q[0, 0], [1, 256], [256, 1] : i64 -> {tile256}
      xetile.store_tile %v, %t : vector<1x256xi{bits}>, {tile256}
    }}
    scf.for %c = %whole to %n step %lanes {{
      %s = xetile.init_tile %source[0, %c], [%one, %n], [%n, 1] : i64 -> {tile16}
      %v = xetile.load_tile %s : {tile16} -> vector<1x16xi{bits}>
      %t = xetile.init_tile %target[0, %c], [%one, %n], [%n, 1] : i64 -> {tile16}
      xetile.store_tile %v, %t : vector<1x16xi{bits}>, {tile16}
    }}
    gpu.return
  }}
}}
"""
"""A program copies a row. Strides are bytes: of two leading dimensions, and of rows."""


@cache
def copy_rows(itemsize: int) -> TextKernel:
    """The kernel that copies elements of so many bytes."""
    bits = 8 * itemsize
    wide, narrow = (f"!xetile.tile<1x{n}xi{bits}>" for n in (256, 16))
    text = _TEXT.format(bits=bits, bytes=itemsize, tile256=wide, tile16=narrow)
    return load_mlir(text)["copy_rows"]


def copy_elements(
    source: ArrayView, target: ArrayView, column: int, place: QueuePlace
) -> None:
    """Copy the elements of an array to another one of the same shape, and wait.

    Args:
        source: of rank 4 at most, of the device.
        target: the same.
        column: the dimension whose elements lie side by side.

    Raises:
        LaunchError: the device was lost.
    """
    order = [dim for dim in range(len(source.shape)) if dim != column]
    missing = MOST_DIMS - 1 - len(order)
    outer, inner, rows = *(1,) * missing, *(source.shape[dim] for dim in order)
    size = source.dtype.itemsize
    steps = [
        step
        for view in (source, target)
        for step in (*(0,) * missing, *(view.strides[dim] * size for dim in order))
    ]
    words = source.address, target.address, source.shape[column], inner, *steps
    grid = (rows, outer * inner)
    copy_rows(size)[grid](*words, backend="xegpu", queue=place.queue)
