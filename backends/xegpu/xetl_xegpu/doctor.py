"""Findings of `xetl doctor` about devices, their drivers and the offline compiler."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from xetl.errors import LaunchError
from xetl.findings import Finding, TestDevice
from xetl_xegpu.launch import devices, failures
from xetl_xegpu.offline import ocloc

_KIB, _GIB = 1 << 10, 1 << 30


def examine() -> list[Finding]:
    """Return all findings of this backend. Nothing is built or launched."""
    return [*_driver_for_cpus(), *_devices(), _offline_compiler()]


def _driver_for_cpus() -> Iterator[Finding]:
    given = os.environ.get(devices.VARIABLE)
    found = devices.installed_driver()
    if given and given != str(found):
        yield Finding("OpenCL", f"drivers of {devices.VARIABLE}: {given}")
    elif found is not None:
        yield Finding("OpenCL", f"{_package(devices.PACKAGE)} in {found}")
    else:
        text = "the driver for CPUs is not installed; GPUs do without"
        yield Finding("OpenCL", text, "note", f"pip install {devices.PACKAGE}")


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return name


def _devices() -> Iterator[Finding]:
    try:
        usable = devices.usable_devices()
        seen = devices.dpctl().get_devices()
    except LaunchError as error:
        yield Finding("device", error.message, "note", failures.INSTALL)
        return
    if not usable:
        others = ", ".join(each.name for each in seen) or "none at all"
        text = f"none can run kernels; there are: {others}"
        yield Finding("device", text, "note", failures.INSTALL)
    for index, device in enumerate(usable):
        yield Finding("device", _described(device, is_default=index == 0))


def test_devices() -> list[TestDevice]:
    """Return the devices that can run kernels, each with a new queue.

    Raises:
        LaunchError: there is no driver.
    """
    found: list[TestDevice] = []
    for index, device in enumerate(devices.usable_devices()):
        facts = devices.facts_of(device)
        queue = devices.dpctl().SyclQueue(device, property="in_order")
        text = _described(device, is_default=index == 0)
        found.append(
            TestDevice(facts.name, text, facts.target, facts.is_gpu, facts.lacks, queue)
        )
    return found


def _described(device: Any, *, is_default: bool) -> str:
    facts = devices.facts_of(device)
    lacks = f", no {' and no '.join(sorted(facts.lacks))}" if facts.lacks else ""
    reads = "reads host arrays" if facts.reads_host else "host arrays are copied"
    taken = "; launches take it" if is_default else ""
    can = f"; {facts.capabilities}" if facts.is_gpu else ""
    return (
        f"{facts.name} {facts.full_name}, driver {facts.driver}: "
        f"target `{facts.target}`, {facts.memory_bytes / _GIB:.1f} GiB, "
        f"{facts.slm_bytes // _KIB} KiB shared memory, workgroups of "
        f"{facts.most_lanes} lanes{lacks}{can}; {reads}{taken}"
    )


def _offline_compiler() -> Finding:
    try:
        found = ocloc.find_ocloc()
    except LaunchError as error:
        return Finding("ocloc", error.message, "problem", error.help)
    if found is None:
        text = 'not installed; `ir("asm")` and spills of GPUs come from it'
        return Finding("ocloc", text, "note", ocloc.SETUP)
    return Finding("ocloc", str(found))
