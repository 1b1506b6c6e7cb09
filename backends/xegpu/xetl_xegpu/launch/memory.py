"""Unified shared memory of a queue: allocated, found, copied; each may fail."""

from __future__ import annotations

from typing import Any, Literal

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
