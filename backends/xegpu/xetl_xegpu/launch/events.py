"""Events of running launches; they keep the arguments alive until the kernel ends."""

from __future__ import annotations

import atexit
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xetl.errors import LaunchError
from xetl.locks import ForkSafeLock
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import PROCESS, Device, dpctl


@dataclass(slots=True, eq=False)
class LaunchEvent:
    """The event of a launch, as `xetl.backend.Event`.

    Attributes:
        event: the event of dpctl.
        keep: what must stay alive until the kernel has run.
        kernel: the name of the kernel, for errors.
        show: prints the log of the kernel, or raises the error in it.
    """

    event: Any
    keep: object
    device: Device
    kernel: str
    show: Callable[[], None]

    @property
    def done(self) -> bool:
        """Whether the kernel has run, or never will: then `wait` raises."""
        status, known = self.event.execution_status, dpctl().event_status_type
        return status in (known.complete, known.unknown_status)

    def wait(self) -> None:
        """Return when the kernel has run.

        Raises:
            LaunchError: the device was lost, or its driver failed; hardware would
                refuse a message of the kernel, where it is emulated.
        """
        self.finish()
        self.show()

    def finish(self) -> None:
        """Wait for the kernel as `wait` does, but do not read its log."""
        try:
            wait_for(self.event, self.device, running(self.kernel))
        finally:
            self.keep = None

    def settle(self) -> None:
        """Wait as `wait` does, unless the caller has done so."""
        if self.keep is not None:
            self.wait()


def running(kernel: str) -> str:
    """Return the text for errors: what the device was doing."""
    return f"running kernel `{kernel}`"


def wait_for(event: Any, device: Device, doing: str) -> None:
    """Return when an event of dpctl is over.

    dpctl's own `wait` returns without an error if the device was lost.

    Raises:
        LaunchError: the work has not completed.
    """
    event.wait()
    if event.execution_status != dpctl().event_status_type.complete:
        raise failures.lost(device.name, doing, copies=not device.reads_host)


PENDING: deque[LaunchEvent] = deque()
"""Launches that were started without waiting, and may still run."""

_lock = ForkSafeLock()


def keep_until_done(event: LaunchEvent) -> LaunchEvent:
    """Keep the arguments of a launch alive, even if its caller drops the event.

    Raises:
        LaunchError: an earlier launch failed (`settle_done`).
    """
    try:
        settle_done()
    finally:
        with _lock.held():
            PENDING.append(event)
    return event


def settle_done() -> None:
    """Forget the launches that are over.

    Raises:
        LaunchError: a launch failed, and its caller has not waited for it.
    """
    over: list[LaunchEvent] = []
    with _lock.held():
        while PENDING and PENDING[0].done:
            over.append(PENDING.popleft())
    for each in over:
        each.settle()


@atexit.register
def _wait_for_all() -> None:
    """Wait for all launches: memory must not be freed while a kernel writes it."""
    while PENDING and not PROCESS.is_forked:
        try:
            PENDING.popleft().settle()
        except LaunchError as error:  # at exit nobody can catch it
            sys.stderr.write(f"{error}\n")
