"""The status words of a launch: where a kernel writes prints and failed checks.

Every kernel is given some: masked loads read them where their mask is off.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from xetl.runtime.log import LOG_BYTES, read_records, show
from xetl_xegpu.launch.memory import address_of, allocated
from xetl_xegpu.launch.places import QueuePlace

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
