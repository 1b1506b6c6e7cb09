"""Where the OpenCL driver for CPUs is, when it does not stand where pip puts it.

`xetl.opencl_driver` has the usual place, and says what is done with it.
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
    """Make the installed driver known, unless one is.

    Returns:
        The driver that was made known, or None.
    """
    if os.environ.get(VARIABLE):
        return None
    driver = installed_driver()
    if driver is not None:
        os.environ[VARIABLE] = str(driver)
    return driver


def installed_driver() -> Path | None:
    """Where pip put the driver; None: it is not installed."""
    found = beside_python()  # asking pip's records takes 10 ms
    return _recorded_driver() if found is None else Path(found)


def _recorded_driver() -> Path | None:
    """As pip's records say: somewhere else on the path of modules."""
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
"""The target of devices that lack Intel's instructions: they are emulated."""

WITHOUT_FP64 = "opencl_fp32"
"""The target of those that lack fp64, too: Python floats are f32."""

_LEVEL_ZERO = "level_zero"


@dataclass(frozen=True, eq=False)
class Device:
    """What the runtime must know about a device.

    Attributes:
        name: as SYCL filters it, ``opencl:cpu:0``.
        full_name: what its driver calls it.
        is_gpu: whether options for GPUs apply.
        is_level_zero: whether its driver is Level Zero.
        reads_host: whether kernels may read and write the memory of the process.
        has_messages: whether block messages are its own, not emulated.
        lacks: dtypes it has no arithmetic for.
        slm_bytes: shared local memory that a workgroup can have.
        most_lanes: lanes that a workgroup can have.
        memory_bytes: of global memory.
        cores: that it has; of a processor, which runs what a GPU would, those of a GPU.
        capabilities: of a GPU, and who says so; for people.
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
    """The package, with the driver for CPUs made known.

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
    """This process.

    Attributes:
        is_forked: whether its parent has used the drivers, which do not survive that.
    """

    is_forked = False

    def note_fork(self) -> None:
        self.is_forked = True


PROCESS = _Process()


def check_process() -> None:
    """Refuse a process whose parent has used the drivers."""
    if PROCESS.is_forked:
        raise failures.forked()


def usable_devices() -> list[Any]:
    """The devices that can run kernels, the one to take first: dpctl's objects."""
    ranked = [
        (rank, device)
        for device in dpctl().get_devices()
        if (rank := _rank(device)) is not None
    ]
    return [device for _, device in sorted(ranked, key=lambda each: each[0])]


def _rank(device: Any) -> int | None:
    """GPUs by Level Zero, then GPUs by OpenCL, then CPUs; None: it cannot."""
    backend = device.backend.name
    if device.is_gpu and backend == _LEVEL_ZERO:
        return 0
    if backend != OPENCL:
        return None  # plugins for other makers' devices take no SPIR-V
    return 1 if device.is_gpu else 2 if device.is_cpu else None


@cache
def default_queue() -> Any:
    """The queue of launches that name none, in order.

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
    """What there is to know about a device of dpctl."""
    missing = [
        name
        for name, has in (
            ("f64", device.has_aspect_fp64),
            ("f16", device.has_aspect_fp16),
        )
        if not has
    ]
    target, capabilities = _target_of(device)
    return Device(
        name=device.filter_string,
        full_name=device.name.strip(),
        driver=device.driver_version,
        target=target,
        is_gpu=device.is_gpu,
        is_level_zero=device.backend.name == _LEVEL_ZERO,
        reads_host=device.is_cpu or device.has_aspect_usm_system_allocations,
        has_messages=not find_device(target).emulated,
        lacks=frozenset(missing),
        slm_bytes=device.local_mem_size,
        most_lanes=device.max_work_group_size,
        memory_bytes=device.global_mem_size,
        cores=_cores_of(device) if device.is_gpu else _CORES_OF_A_STACK,
        capabilities=capabilities,
    )


_CORES_OF_A_STACK = 64
"""Of Data Center GPU Max, which has two stacks."""


def _cores_of(device: Any) -> int:
    """SYCL counts engines."""
    return max(1, device.max_compute_units // find_device("pvc").speed.engines)


def _target_of(device: Any) -> tuple[str, str]:
    """The target, and who says what the device can do."""
    emulated = OPENCL if device.has_aspect_fp64 else WITHOUT_FP64
    if not device.is_gpu:
        return emulated, ""
    found = capabilities_of(device)
    if found.missing:
        _warn_of_emulation(device.name.strip(), device.driver_version, found)
        return emulated, str(found)
    return found.target, str(found)


def _warn_of_emulation(name: str, driver: str, found: Capabilities) -> None:
    """Once for each device: its facts are kept."""
    warnings.warn(
        f"`{name}` has no {found.missing[0]}, or its driver does not say so "
        f"({found.source}): Intel's instructions are emulated, which is slow. If the "
        f"driver {driver} is old, update it: `{failures.UPDATE}`. `xetl doctor --gpu` "
        "says what it reports; XETL_BACKEND=cpu runs on the processor",
        EmulatedDeviceWarning,
        stacklevel=2,
    )
