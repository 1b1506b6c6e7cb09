"""Errors of devices, with advice for the user."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod

from xetl.errors import LaunchError
from xetl.opencl_driver import VARIABLE

DOCTOR = "xetl doctor"
"""The command that lists what is installed and what is missing."""

INSTALL = "pip install dpctl intel-opencl-rt"
_GET = f"run `{INSTALL}`; `{DOCTOR}` says what is missing"


def no_runtime(reason: str) -> LaunchError:
    """The package that reaches devices is missing or broken."""
    problem = f"backend `xegpu` cannot reach any device: {reason}"
    return LaunchError(problem, "X0830", _GET)


def no_device(seen: list[str]) -> LaunchError:
    """There is no device that runs SPIR-V."""
    found = f"only {', '.join(seen)}" if seen else "none"
    advice = _GET
    # A driver is named, but dpctl listed its devices before xetl named it.
    if os.environ.get(VARIABLE):
        advice = f"import xetl before anything asks dpctl for devices; {advice}"
    problem = "backend `xegpu` found no device that can run kernels"
    note = f"it needs a GPU of Intel or an OpenCL driver for CPUs; found: {found}"
    return LaunchError(problem, "X0830", advice, notes=[note])


def forked() -> LaunchError:
    """The drivers do not survive a fork."""
    return LaunchError(
        "this process was forked from one that had launched on a device",
        code="X0830",
        notes=["the drivers of devices do not work in a forked process"],
        help='start it anew: multiprocessing.set_start_method("spawn")',
    )


def asks_too_much(what: str, device: str, advice: str) -> LaunchError:
    """A kernel needs something that the device lacks."""
    return LaunchError(
        f"{what}, which device `{device}` has not", code="X0831", help=advice
    )


_ASK_DRIVER = (
    "set DPCTL_VERBOSITY=error to see what the driver says; "
    f"`{DOCTOR}` says which driver it is"
)


def no_queue(device: str) -> LaunchError:
    """The driver is installed, but made no queue."""
    problem = f"the driver of device `{device}` failed: it made no queue"
    return LaunchError(problem, "X0832", _ASK_DRIVER)


def refused(device: str, kernel: str, reason: str) -> LaunchError:
    """The driver would not build or start a kernel; nothing was written."""
    problem = f"the driver of device `{device}` failed on kernel `{kernel}`: {reason}"
    return LaunchError(problem, "X0832", _ASK_DRIVER)


def not_compiled(device: str, kernel: str, driver: str | None) -> LaunchError:
    """The driver did not build a kernel.

    Args:
        driver: the version of the driver of a GPU; None for CPUs.
    """
    error = refused(device, kernel, "it was not compiled")
    if driver is not None:
        error.help = f"update the driver, which is {driver} (kernels are tested with "
        error.help += f"Intel's compiler 26.27): `{UPDATE}`; {_ASK_DRIVER}"
    return error


UPDATE = "sudo apt-get install --only-upgrade libze-intel-gpu1 intel-opencl-icd"
"""The command that brings Intel's newest drivers of GPUs."""


def not_started(
    device: str, kernel: str, grid: tuple[int, int, int], lanes: int
) -> LaunchError:
    """The driver would not start a grid of programs; nothing was written."""
    programs = prod(grid)
    if programs * lanes < _MOST_LANES:
        return refused(device, kernel, "it was not started")
    return LaunchError(
        f"the grid {grid} is too large: device `{device}` does not start kernel "
        f"`{kernel}` on {programs:,} programs of {lanes} lanes",
        code="X0802",
        help="let a program do more (larger tiles, a loop over some of them), or "
        "launch parts of the grid one after the other",
    )


_MOST_LANES = 1 << 32
"""Drivers may refuse a launch of so many lanes."""


def compiler_died(
    device: str, kernel: str, end: str, new: Sequence[str]
) -> LaunchError:
    """The compiler of a driver crashed in a separate process; nothing was written.

    Args:
        device: its name and the version of the driver.
        end: what happened, such as "ended its process by SIGABRT".
        new: the features of the program that the compiler had not built before.
    """
    shown = ", ".join(new[:_SHOWN]) + (", ..." if len(new) > _SHOWN else "")
    return LaunchError(
        f"the compiler of {device} {end}; it was given kernel `{kernel}`",
        code="X0836",
        notes=[f"in a process of its own, as this was new to it: {shown}"],
        help=f"update the driver (`{UPDATE}`), make tiles smaller, or run on the "
        "processor (XETL_BACKEND=cpu); `xetl cache prune --all` forgets it, to try "
        "again",
    )


_SHOWN = 6


def lost(device: str, doing: str, *, copies: bool) -> LaunchError:
    """The device did not finish, and will not.

    Args:
        doing: what it was doing, such as ``running kernel `k```.
        copies: whether it works on copies of the host's arrays.
    """
    note = "what the arrays hold that the kernel writes is not known"
    if copies:
        note = "arrays of the host are as they were; what those on the device hold"
        note += " is not known"
    problem = f"device `{device}` was lost, or its driver failed, while {doing}"
    help_ = f"start the process anew; {_ASK_DRIVER}"
    return LaunchError(problem, code="X0832", notes=[note], help=help_)


def out_of_memory(device: str, size: int, use: str) -> LaunchError:
    """The device has no memory left for the copy of an array, or for a log."""
    problem = f"device `{device}` has no {size} bytes left for {use}"
    help_ = "free arrays on the device, or pass a part of the array at a time"
    if size >= _RELAXED:
        help_ = f"Level Zero gives less than 4 GB at once, unless {_RELAX} is set "
        help_ += "before Python starts; or pass a part of the array at a time"
    return LaunchError(problem, "X0833", help_)


_RELAXED, _RELAX = 1 << 32, "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1"


def freed(name: str, device: str) -> LaunchError:
    """An array states memory that is not allocated in its context (any more)."""
    problem = f"`{name}` states memory that is not allocated on `{device}`, or no more"
    help_ = "keep what owns the memory alive until the launch is done"
    return LaunchError(problem, "X0813", help_)


def elsewhere(name: str, owner: str, device: str) -> LaunchError:
    """An array is in the memory of another device or context."""
    return LaunchError(
        f"`{name}` is in memory of `{owner}` that a queue of `{device}` cannot reach",
        code="X0813",
        help="make all arrays and the queue of one device and one context: "
        f"queue={name}.sycl_queue",
    )
