"""Devices and their facts, through dpctl, and the OpenCL driver for CPUs.

`xetl.opencl_driver` knows the usual place of the driver, and says how it is used.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from xetl.devices import find_device
from xetl.errors import EmulatedDeviceWarning
from xetl.imports import import_whole
from xetl.opencl_driver import LIBRARY, VARIABLE, beside_python
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.capabilities import Capabilities, capabilities_of

PACKAGE = "intel-opencl-rt"


def set_up() -> Path | None:
    """Name the installed driver in the environment, unless a driver is named there.

    Returns:
        The driver that was named, or None.
    """
    if os.environ.get(VARIABLE):
        return None
    driver = installed_driver()
    if driver is not None:
        os.environ[VARIABLE] = str(driver)
    return driver


def installed_driver() -> Path | None:
    """Return the path of the driver. Return None if it is not installed."""
    found = beside_python()  # to read pip's records takes 10 ms
    return _recorded_driver() if found is None else Path(found)


def _recorded_driver() -> Path | None:
    """Return the path that pip's records have, for packages installed elsewhere."""
    metadata: Any = import_whole("importlib.metadata")  # 20 ms, and seldom needed
    try:
        files: list[Any] = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate())).resolve()
        if file.name == LIBRARY and path.exists():
            return path
    return None


OPENCL = "opencl"
"""The target of devices without Intel's instructions, which are emulated there."""

WITHOUT_FP64 = "opencl_fp32"
"""The target of devices that lack fp64, too: Python floats are f32 there."""

_LEVEL_ZERO = "level_zero"


@dataclass(frozen=True, eq=False)
class Device:
    """The facts of a device that the runtime needs.

    Attributes:
        name: the filter string of SYCL, such as ``opencl:cpu:0``.
        full_name: its name by the driver.
        is_gpu: whether options for GPUs apply.
        is_level_zero: whether its driver is Level Zero.
        reads_host: whether kernels may read and write the memory of the process.
        has_messages: whether it has block messages; otherwise they are emulated.
        lacks: dtypes that it cannot compute with.
        slm_bytes: the most bytes of shared local memory of a workgroup.
        most_lanes: the most lanes of a workgroup.
        memory_bytes: bytes of global memory.
        cores: the number of its cores; for a CPU, those of the GPU that it emulates.
        capabilities: what a GPU can do, and the source of that; for reports.
    """

    name: str
    full_name: str
    driver: str
    target: str
    is_gpu: bool
    is_level_zero: bool
    reads_host: bool
    has_messages: bool
    lacks: frozenset[str]
    slm_bytes: int
    most_lanes: int
    memory_bytes: int
    cores: int
    capabilities: str = ""


@cache
def dpctl() -> Any:
    """Return the package dpctl, after the driver for CPUs has been named.

    Raises:
        LaunchError: it cannot be imported.
    """
    set_up()
    try:
        found = import_whole("dpctl")
        import_whole("dpctl.program")
        import_whole("dpctl.memory")
    except ImportError as error:
        raise failures.no_runtime(str(error)) from None
    os.register_at_fork(after_in_child=PROCESS.note_fork)
    return found


class _Process:
    """The state of this process.

    Attributes:
        is_forked: whether its parent had used the drivers, which do not work after a
            fork.
    """

    is_forked = False

    def note_fork(self) -> None:
        self.is_forked = True


PROCESS = _Process()


def check_process() -> None:
    """Refuse a process that was forked after its parent had used the drivers."""
    if PROCESS.is_forked:
        raise failures.forked()


def usable_devices() -> list[Any]:
    """Return the devices of dpctl that can run kernels, the preferred one first."""
    # Plugins for other makers' devices take no SPIR-V.
    ranks = ("gpu", _LEVEL_ZERO), ("gpu", OPENCL), ("cpu", OPENCL)
    found = dpctl().get_devices()
    return [
        device
        for kind, backend in ranks
        for device in found
        if getattr(device, f"is_{kind}") and device.backend.name == backend
    ]


@cache
def default_queue() -> Any:
    """Return the in-order queue of launches that name no queue.

    Raises:
        LaunchError: there is no device, or its driver fails.
    """
    devices = usable_devices()
    if not devices:
        raise failures.no_device([each.name for each in dpctl().get_devices()])
    try:
        return dpctl().SyclQueue(devices[0], property="in_order")
    except dpctl().SyclQueueCreationError:
        raise failures.no_queue(devices[0].name) from None


@cache
def facts_of(device: Any) -> Device:
    """Return the facts of a device of dpctl."""
    has = {"f64": device.has_aspect_fp64, "f16": device.has_aspect_fp16}
    target, capabilities = _target_of(device)
    # SYCL counts vector engines.
    cores = max(1, device.max_compute_units // find_device("pvc").speed.engines)
    return Device(
        name=device.filter_string,
        full_name=device.name.strip(),
        driver=device.driver_version,
        target=target,
        is_gpu=device.is_gpu,
        is_level_zero=device.backend.name == _LEVEL_ZERO,
        reads_host=device.is_cpu or device.has_aspect_usm_system_allocations,
        has_messages=not find_device(target).emulated,
        lacks=frozenset(name for name in has if not has[name]),
        slm_bytes=device.local_mem_size,
        most_lanes=device.max_work_group_size,
        memory_bytes=device.global_mem_size,
        cores=cores if device.is_gpu else _CORES_OF_A_STACK,
        capabilities=capabilities,
    )


_CORES_OF_A_STACK = 64
"""Cores of one of the two stacks of Data Center GPU Max."""


def _target_of(device: Any) -> tuple[str, str]:
    """Return the target, and what the device can do, with the source."""
    emulated = OPENCL if device.has_aspect_fp64 else WITHOUT_FP64
    if not device.is_gpu:
        return emulated, ""
    found = capabilities_of(device)
    if found.missing:
        _warn_of_emulation(device.name.strip(), device.driver_version, found)
        return emulated, str(found)
    return found.target, str(found)


def _warn_of_emulation(name: str, driver: str, found: Capabilities) -> None:
    """Warn that a GPU is emulated. `facts_of` is cached, so each device warns once."""
    warnings.warn(
        f"`{name}` has no {found.missing[0]}, or its driver does not say so "
        f"({found.source}): Intel's instructions are emulated, which is slow. If the "
        f"driver {driver} is old, update it: `{failures.UPDATE}`. `xetl doctor --gpu` "
        "says what it reports; XETL_BACKEND=cpu runs on the processor",
        EmulatedDeviceWarning,
        stacklevel=2,
    )
