"""What a launch brings to a device: copies of arrays of the host, and status words.

Devices that cannot read an array where it is get a copy. It holds all bytes from the
first element to the last, so shape and strides stay what the kernel was compiled for,
however the array is laid out. It starts on 64 bytes, as block messages want. Of an
array that is written the elements come back, not the bytes between them: these may be
somebody else's.

A kernel writes prints and failed checks to the status words. Every kernel is given
some: masked loads read them where their mask is off.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from xetl.backend import Argument, ArrayView
from xetl.runtime.log import LOG_BYTES, read_records, show
from xetl.runtime.overlap import as_numpy, bounds
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import dpctl
from xetl_xegpu.launch.events import wait_for
from xetl_xegpu.launch.places import QueuePlace

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


class Staged:
    """The arguments of a launch as the device sees them.

    Attributes:
        args: arrays with addresses of the device's memory, and numbers.
        keep: the memory of the copies.
        comes_back: whether there is something to copy back.
    """

    def __init__(
        self, args: Sequence[Argument], stored: Collection[int], place: QueuePlace
    ) -> None:
        """Make the copies; nothing has been launched yet.

        Raises:
            LaunchError: they do not fit the memory of the device, or it was lost.
        """
        self.keep: list[Any] = []
        self._back: list[tuple[ArrayView, Any]] = []
        self._place = place
        copies: dict[object, ArrayView] = {}
        written = {_view_key(args[index]) for index in stored}
        self.args = list(args)
        for index, arg in enumerate(args):
            if not isinstance(arg, ArrayView) or arg.memory is not None:
                continue
            key = _view_key(arg)
            if key not in copies:
                copies[key] = self._copy(arg, key in written)
            self.args[index] = copies[key]
        self.comes_back = bool(self._back)

    def copy_back(self) -> None:
        """Bring home what the kernel has written: all, or nothing.

        Raises:
            LaunchError: the device was lost; the arrays are as they were.
        """
        found = [(view, self._fetched(view, memory)) for view, memory in self._back]
        for view, room in found:
            start = room.ctypes.data + view.address - bounds(view)[0]
            as_numpy(view)[...] = as_numpy(replace(view, address=start))

    def _fetched(self, view: ArrayView, memory: Any) -> Any:
        low, high = bounds(view)
        room = np.empty(high - low, np.uint8)
        copy(room, memory, high - low, self._place)
        return room

    def _copy(self, view: ArrayView, is_stored: bool) -> ArrayView:
        low, high = bounds(view)
        if 0 in view.shape:
            return replace(view, address=0)
        memory = allocated("Device", high - low, self._place, "a copy of an array")
        copy(memory, _bytes_at(low, high - low), high - low, self._place)
        if is_stored:
            self._back.append((view, memory))
        self.keep.append(memory)
        return replace(view, address=address_of(memory) + view.address - low)


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

    def __init__(self, log: Sequence[Mapping[str, Any]], place: QueuePlace) -> None:
        self._log = log
        self._memory = _new(LOG_BYTES, place) if log else _never_written(place)
        self._address = address_of(self._memory)
        self.word = ctypes.c_int64(self._address)

    def show(self) -> None:
        """Print the lines, when the kernel has run.

        Raises:
            LaunchError: a check failed; the first one, in the order of programs.
        """
        if self._log:
            show(read_records(self._address, self._log))


def _new(size: int, place: QueuePlace) -> Any:
    memory = allocated("Shared", size, place, "the log of a launch")
    # One word is in use: the one that counts.
    memory.copy_from_host(np.ones(1, np.int64).view(np.uint8))
    return memory


@lru_cache(maxsize=64)
def _never_written(place: QueuePlace) -> Any:
    """What all kernels without a log share."""
    return _new(_LEAST_BYTES, place)
