"""The status words of a launch: where a kernel writes prints and failed checks."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xetl.runtime.log import LOG_BYTES, read_records, show
from xetl_xegpu.launch.devices import dpctl
from xetl_xegpu.launch.places import QueuePlace
from xetl_xegpu.launch.staging import address_of


class StatusWords:
    """A log in memory that the device and the host reach.

    Attributes:
        word: what the kernel is given, as dpctl takes it; 0 if it writes no log.
    """

    def __init__(self, log: Sequence[Mapping[str, Any]], place: QueuePlace) -> None:
        self._log = log
        self._address = 0
        if log:
            memory = dpctl().memory.MemoryUSMShared(LOG_BYTES, queue=place.queue)
            self._memory = memory
            self._address = address_of(memory)
            # One word is in use: the one that counts.
            memory.copy_from_host(np.ones(1, np.int64).view(np.uint8))
        self.word = ctypes.c_int64(self._address)

    @property
    def is_used(self) -> bool:
        """Whether the kernel writes a log, so that somebody must wait and read it."""
        return bool(self._log)

    def show(self) -> None:
        """Print the lines, when the kernel has run.

        Raises:
            LaunchError: a check failed; the first one, in the order of programs.
        """
        if self._log:
            show(read_records(self._address, self._log))
