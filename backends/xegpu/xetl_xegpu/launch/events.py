"""Launches that are under way: what the caller may wait for, what must stay alive."""

from __future__ import annotations

import atexit
from collections import deque
from threading import Lock
from typing import Any

from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import PROCESS, dpctl


class LaunchEvent:
    """The event of a launch, as `xetl.backend.Event`."""

    __slots__ = ("_device", "_event", "_keep", "_kernel")

    def __init__(self, event: Any, keep: object, device: str, kernel: str) -> None:
        self._event = event
        self._keep = keep
        self._device = device
        self._kernel = kernel

    @property
    def done(self) -> bool:
        """Whether the kernel has run."""
        status = self._event.execution_status
        return status == dpctl().event_status_type.complete

    def wait(self) -> None:
        """Return when the kernel has run.

        Raises:
            LaunchError: the device was lost, or its driver failed.
        """
        try:
            self._event.wait()
        except RuntimeError as error:
            reason = f"the device was lost ({error})"
            raise failures.refused(self._device, self._kernel, reason) from None
        self._keep = None


_pending: deque[LaunchEvent] = deque()
_lock = Lock()


def keep_until_done(event: LaunchEvent) -> LaunchEvent:
    """Keep the arguments of a launch alive, whatever its caller does with the event."""
    with _lock:
        while _pending and _pending[0].done:
            _pending.popleft()
        _pending.append(event)
    return event


@atexit.register
def _wait_for_all() -> None:
    """Memory must not go while a kernel still writes it."""
    while _pending and not PROCESS.is_forked:
        _pending.popleft().wait()
