"""The queue of a launch (the user's, that of the arrays, or our own), and its events.

The events of running launches keep the arguments alive until the kernel ends.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from xetl.backend import Argument, ArrayView, DeviceMemory
from xetl.errors import LaunchError, a_kind
from xetl.locks import ForkSafeLock
from xetl.settings import config
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import (
    PROCESS,
    Device,
    check_process,
    default_queue,
    dpctl,
    facts_of,
)
from xetl_xegpu.launch.facts import Surface, why_no_surface
from xetl_xegpu.limits import OTHER, WIDTH_STEP


@dataclass(frozen=True, eq=False)
class QueuePlace:
    """A queue, the facts about its device, and the part of the code for the launch."""

    queue: Any
    device: Device
    part: str = ""

    @property
    def target(self) -> str:
        """The target to compile for."""
        return self.device.target + self.part


def find_place(
    queue: object, names: Sequence[str], args: Sequence[Argument]
) -> QueuePlace:
    """Return the place of a launch, and wait until its arrays are ready there.

    Args:
        queue: the user's queue: a `dpctl.SyclQueue`, a stream of torch, or None.

    Raises:
        LaunchError: there is no device, or an array is in the memory of another one.
    """
    check_process()
    chosen = None if queue is None else as_queue(queue)
    for name, arg in zip(names, args):
        if isinstance(arg, ArrayView) and arg.memory is not None:
            chosen = _with_memory(chosen, arg.memory, name)
            _check_allocated(arg, arg.memory, chosen, name)
    place = place_of(default_queue() if chosen is None else chosen)
    device = place.device
    if device.has_messages or not device.reads_host or config.log:
        return place  # what does not fit messages is copied, or is to be explained
    views = (arg for arg in args if isinstance(arg, ArrayView) and len(arg.shape) > 1)
    return place_of(place.queue, "" if all(map(_may_fit, views)) else OTHER)


def _may_fit(view: ArrayView) -> bool:
    """Whether some block message could move an array of two and more dimensions.

    If not, the first launch need not compile the kernel with messages.
    """
    *_, row, column = sorted(range(len(view.shape)), key=lambda dim: -view.strides[dim])
    return why_no_surface(Surface(-1, row, column, WIDTH_STEP), view) is None


def _with_memory(chosen: Any, memory: DeviceMemory, name: str) -> Any:
    """Return the queue of the launch, once the memory of an array is ready for it."""
    if memory.queue is None:
        if not memory.is_reachable:
            raise failures.elsewhere(name, memory.owner, "unknown")
        return chosen  # the owner names no queue: treat it as memory of the host
    own = _queue_of_memory(memory.queue)
    if chosen is None:
        chosen = own
    elif own.sycl_context != chosen.sycl_context:
        wanted = chosen.sycl_device.filter_string
        raise failures.elsewhere(name, memory.owner, wanted)
    if own != chosen or not own.is_in_order:
        own.wait()  # for all earlier work on that queue
    return chosen


def _check_allocated(
    view: ArrayView, memory: DeviceMemory, queue: Any, name: str
) -> None:
    """Refuse memory that was freed: a GPU that reads it would be lost (7 us).

    Tensors of torch are not checked: they own their memory, and may map it in another
    way. Nothing is checked if kernels may read any memory of the process.
    """
    is_of_torch = isinstance(getattr(memory.queue, "sycl_queue", None), int)
    is_stated = memory.queue is not None and not is_of_torch
    if not is_stated or 0 in view.shape or place_of(queue).device.reads_host:
        return
    byte = {"data": (view.address, True), "shape": (1,), "strides": None}
    stated = {**byte, "typestr": "|u1", "version": 1, "syclobj": queue}
    holder = SimpleNamespace(__sycl_usm_array_interface__=stated)
    try:
        dpctl().memory.as_usm_memory(holder)
    except ValueError:
        raise failures.freed(name, queue.sycl_device.filter_string) from None


@lru_cache(maxsize=64)
def place_of(queue: Any, part: str = "") -> QueuePlace:
    """Return the place of a queue of dpctl."""
    return QueuePlace(queue, facts_of(queue.sycl_device), part)


def as_queue(given: Any) -> Any:
    """Return a queue of dpctl for a queue or a stream of the user.

    Raises:
        LaunchError: it is no queue.
    """
    if isinstance(given, dpctl().SyclQueue):
        return given
    inner = getattr(given, "sycl_queue", None)  # a stream of torch has its address
    if isinstance(inner, int):
        return _queue_at(inner)
    if isinstance(inner, dpctl().SyclQueue):
        return inner
    problem = f"`queue=` is {a_kind(given)}, which is no queue"
    raise LaunchError(problem, "X0813", "pass a dpctl.SyclQueue or a torch.xpu.Stream")


def _queue_of_memory(owner: Any) -> Any:
    """Return a queue that reaches the memory of an array.

    Args:
        owner: a queue or a stream (`as_queue`), or another value that ``syclobj`` of
            `__sycl_usm_array_interface__` may have: a context, a capsule of dpctl with
            a queue or a context, the name of a device.
    """
    if type(owner).__name__ == "PyCapsule":
        is_queue = _is_capsule(owner, _NAME)
        owner = (dpctl().SyclQueue if is_queue else dpctl().SyclContext)(owner)
    if isinstance(owner, str):
        owner = dpctl().SyclQueue(owner)
    if isinstance(owner, dpctl().SyclContext):
        return _queue_in(owner)
    return as_queue(owner)


@lru_cache(maxsize=64)
def _queue_in(context: Any) -> Any:
    return dpctl().SyclQueue(context, context.get_devices()[0])


_NewCapsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)
_new_capsule = _NewCapsule(("PyCapsule_New", ctypes.pythonapi))
_NAME = b"SyclQueueRef"
"""dpctl's name for a capsule with the address of a ``sycl::queue``, which it copies."""

_IsCapsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_is_capsule = _IsCapsule(("PyCapsule_IsValid", ctypes.pythonapi))


@lru_cache(maxsize=64)
def _queue_at(address: int) -> Any:
    return dpctl().SyclQueue(_new_capsule(address, _NAME, None))


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
