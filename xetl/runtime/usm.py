"""Read arrays in SYCL's unified memory: of dpnp, and objects of dpctl.memory.

Both have `__sycl_usm_array_interface__`. It is like NumPy's array interface, but
strides count elements, and ``syclobj`` names the queue or context of the memory. A
user's class needs nothing else. Tensors of torch on an Intel GPU (``xpu``) are such
memory, too, but have another interface.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from xetl.backend import ArrayView, DeviceMemory
from xetl.errors import LaunchError
from xetl.language.strides import row_major
from xetl.prepacked import Prepacked

INTERFACE = "__sycl_usm_array_interface__"
DEVICE_BACKEND = "xegpu"
"""The backend that runs kernels on such memory."""


class DeviceNumbers(np.ndarray[Any, Any]):
    """A NumPy array over device memory: for taking views, never for reading elements.

    Attributes:
        memory: the device memory; a view has that of its base.
    """

    memory: DeviceMemory | None = None

    def __array_finalize__(self, obj: object) -> None:
        self.memory = getattr(obj, "memory", None)


def read(obj: Any) -> tuple[Any, ...]:
    """Return address, NumPy's dtype, shape, strides, readonly and memory of ``obj``."""
    interface: dict[str, Any] = getattr(obj, INTERFACE)
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    strides = row_major(shape) if strides is None else tuple(strides)
    address, flag = interface["data"]
    offset = interface.get("offset", 0) * dtype.itemsize
    # The flag is right only for arrays, which have `usm_type`. Memory of dpctl sets it
    # although it can be written; classes that pass its interface on do the same.
    readonly = bool(flag) and hasattr(obj, "usm_type")
    queue = getattr(obj, "sycl_queue", None)
    if queue is None:
        queue = interface.get("syclobj")
    device = getattr(obj, "sycl_device", None) or _device_of(queue)
    name = "unknown" if device is None else str(device.filter_string)
    memory = DeviceMemory(name, queue, _is_reachable(obj, device))
    return address + offset, dtype, shape, strides, readonly, memory


PLAIN = {np.ndarray, int, float, bool, str, type(None)}
"""Classes of arguments that are on the host, as most are, and have no parts."""


def is_on_device(obj: object) -> bool:
    """Whether an argument is in device memory, so that the launch runs there."""
    if type(obj) in PLAIN:
        return False
    if isinstance(obj, Prepacked):
        obj = obj.array
    if isinstance(obj, np.ndarray):
        return isinstance(obj, DeviceNumbers)
    torch: Any = sys.modules.get("torch")  # whoever passes a tensor has imported it
    if torch is not None and isinstance(obj, torch.Tensor):
        tensor: Any = obj
        if type(tensor) is torch.Tensor:
            return tensor.device.type == "xpu"
        with torch._C.DisableTorchFunctionSubclass():  # its class may say anything
            return tensor.device.type == "xpu"
    return states(obj, INTERFACE)


def states(obj: object, protocol: str) -> bool:
    """Whether an object has the attribute of a protocol; classes do not count."""
    if isinstance(obj, type):
        return False
    try:
        return hasattr(obj, protocol)
    except Exception:  # it exists, but fails: the code that reads it reports that
        return True


def tensor_memory(torch: Any, tensor: Any) -> DeviceMemory | None:
    """Return the memory of a tensor on an Intel GPU; None for other devices."""
    if tensor.device.type != "xpu":
        return None
    stream = torch.xpu.current_stream(tensor.device)
    return DeviceMemory(str(tensor.device), stream, is_reachable=False)


def settle(view: ArrayView, name: str) -> None:
    """Wait until the host may use an array; a LaunchError if it cannot reach it."""
    memory = view.memory
    if memory is None:
        return
    if not memory.is_reachable:
        raise LaunchError(
            f"`{name}` is in the memory of a device (`{memory.owner}`) "
            "that the host cannot reach",
            code="X0813",
            help=f"copy it to the host, or launch there: backend={DEVICE_BACKEND!r}",
        )
    wait = getattr(memory.queue, "wait", None)
    if wait is not None:
        wait()  # for the work that was submitted to the device before


def _device_of(owner: Any) -> Any:
    """Return the device of a queue, or the only one of a context; None if unknown."""
    device: Any = getattr(owner, "sycl_device", None)
    if device is None and hasattr(owner, "get_devices"):
        devices: list[Any] = owner.get_devices()
        return devices[0] if len(devices) == 1 else None
    return device


def _is_reachable(obj: Any, device: Any) -> bool:
    if device is not None and device.is_cpu:
        return True
    kind = getattr(obj, "usm_type", None)  # dpnp's; dpctl's memory has a method
    if kind is None and hasattr(obj, "get_usm_type"):
        kind = obj.get_usm_type()
    return kind in ("shared", "host")
