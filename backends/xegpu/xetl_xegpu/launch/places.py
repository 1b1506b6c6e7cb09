"""The queue of a launch: the user's queue, that of the arrays, or our own."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from xetl.backend import Argument, ArrayView, DeviceMemory
from xetl.errors import LaunchError
from xetl.settings import config
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import (
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
    is_stated = memory.queue is not None and not isinstance(
        getattr(memory.queue, "sycl_queue", None), int
    )
    if not is_stated or 0 in view.shape or place_of(queue).device.reads_host:
        return
    byte = {"data": (view.address, True), "shape": (1,), "strides": None}
    stated = {**byte, "typestr": "|u1", "version": 1, "syclobj": queue}
    try:
        dpctl().memory.as_usm_memory(
            SimpleNamespace(__sycl_usm_array_interface__=stated)
        )
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
    problem = f"`queue=` is a {type(given).__name__}, which is no queue"
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
