"""Copies of arrays of the host, for devices that cannot read them where they are.

A copy holds all bytes from the first element to the last, so shape and strides stay
what the kernel was compiled for, however the array is laid out.  It starts on 64 bytes,
as block messages want.  Of an array that is written the elements come back, not the
bytes between them: these may be somebody else's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from xetl.backend import Argument, ArrayView
from xetl.runtime.overlap import as_numpy, bounds
from xetl_xegpu.launch.memory import address_of, allocated, copy
from xetl_xegpu.launch.places import QueuePlace


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
