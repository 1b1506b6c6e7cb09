"""Reading arrays of SYCL's unified memory: dpnp's, and the objects of dpctl.memory.

Both state `__sycl_usm_array_interface__`: as NumPy's array interface, but strides
count elements.  Memory that host code cannot reach is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xetl.errors import LaunchError
from xetl.runtime.strides import row_major

INTERFACE = "__sycl_usm_array_interface__"


class Described(NamedTuple):
    """What the interface says; strides count elements."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool


def read(obj: Any, name: str) -> Described:
    """What ``obj`` states about itself.

    Args:
        obj: what states the interface.
        name: what an error calls it.

    Raises:
        LaunchError: it is on a device whose memory the host cannot reach.
    """
    if not _is_reachable(obj):
        raise LaunchError(
            f"`{name}` is in the memory of a device that the host cannot reach",
            code="X0813",
            help="copy it to the host, or allocate it as shared memory",
        )
    interface: dict[str, Any] = getattr(obj, INTERFACE)
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    strides = row_major(shape) if strides is None else tuple(strides)
    address, flag = interface["data"]
    offset = interface.get("offset", 0) * dtype.itemsize
    # dpctl's own memory says True there although it can be written.
    readonly = bool(flag) and not type(obj).__module__.startswith("dpctl.memory")
    queue = getattr(obj, "sycl_queue", None)
    if queue is not None:
        queue.wait()  # what was asked of the device before must have happened
    return Described(address + offset, dtype, shape, strides, readonly)


def _is_reachable(obj: Any) -> bool:
    device = getattr(obj, "sycl_device", None)
    if device is not None and device.is_cpu:
        return True
    kind = getattr(obj, "usm_type", None)  # dpnp's; dpctl's memory has a method
    if kind is None and hasattr(obj, "get_usm_type"):
        kind = obj.get_usm_type()
    return kind in ("shared", "host")
