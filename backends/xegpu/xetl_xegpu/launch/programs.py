"""Builds of programs, once for each context, and checks that a device can run them."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from xetl.devices import find_device
from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.locks import ForkSafeLock
from xetl.opencl_driver import VECTORS
from xetl_xegpu.build_options import FOR_CPUS, UNOPTIMISED, build_options
from xetl_xegpu.emit.spirv_words import computes_in_short_integers
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import Device, dpctl
from xetl_xegpu.launch.facts import CodeFacts
from xetl_xegpu.launch.places import QueuePlace

_WITH_LARGE_GRF = 32
"""The most subgroups of a workgroup if threads have the large register file."""

_built: dict[object, Any] = {}
_lock = ForkSafeLock()


def build_kernel(spirv: bytes, name: str, facts: CodeFacts, place: QueuePlace) -> Any:
    """Return a kernel of dpctl, built for the device of a queue.

    Args:
        facts: the facts of the program.

    Raises:
        LaunchError: the driver refuses the program, or its compiler crashes.
    """
    queue = place.queue
    options = " ".join(FOR_CPUS)
    if place.device.is_gpu:
        is_level_zero, is_large = place.device.is_level_zero, facts.is_large
        options = build_options(is_level_zero=is_level_zero, large_registers=is_large)
    digest = hashlib.sha256(spirv).digest()
    key = (digest, options, queue.sycl_context, queue.sycl_device)
    with _lock.held():
        found = _built.get(key)
        if found is None:
            found = _build(spirv, facts, place, options).get_sycl_kernel(name)
            _built[key] = found
    return found


def _must_not_optimise(spirv: bytes, device: Device) -> bool:
    """Return whether the driver for CPUs must not optimise a program.

    With AVX-512 the driver crashes on some arithmetic of 8- and 16-bit integers: it
    copies a 512-bit register to a 256-bit one ("Cannot emit physreg copy instruction").
    If the driver was loaded before xetl, only optimised programs have subgroups.
    """
    if device.is_gpu or os.environ.get(VECTORS) != "True":
        return False
    return computes_in_short_integers(spirv)


def _build(spirv: bytes, facts: CodeFacts, place: QueuePlace, options: str) -> Any:
    if place.device.is_gpu:  # tests run all programs through the driver for CPUs
        first_builds = import_whole("xetl_xegpu.launch.first_builds")
        first_builds.check(spirv, facts.name, place.device, options)
    program = dpctl().program
    try:
        if _must_not_optimise(spirv, place.device):
            options = UNOPTIMISED
        return program.create_program_from_spirv(place.queue, spirv, options)
    except (ValueError, program.SyclProgramCompilationError):
        device = place.device
        driver = device.driver if device.is_gpu else None
        raise failures.not_compiled(device.name, facts.name, driver) from None


def check_fits(facts: CodeFacts, device: Device) -> None:
    """Refuse a device that lacks what a program needs, before its driver builds it."""
    if facts.target != device.target and not find_device(facts.target).emulated:
        raise LaunchError(
            f"device `{device.name}` ({device.full_name}) cannot run code for target "
            f"`{facts.target}`",
            code="X0811",
            help=f"leave out the target, or set XETL_TARGET={device.target}; `ir`, "
            "`explain` and `stats` take any target",
        )
    for dtype in sorted(facts.needs & device.lacks):
        raise failures.asks_too_much(
            f"kernel `{facts.name}` computes in {dtype}",
            device.name,
            f'compute in f32, or launch with backend="cpu"; `{failures.DOCTOR}` '
            "lists the devices there are",
        )
    _check_room(facts, device)


def _check_room(facts: CodeFacts, device: Device) -> None:
    if facts.slm_bytes > device.slm_bytes:
        raise failures.asks_too_much(
            f"kernel `{facts.name}` needs {facts.slm_bytes} bytes of shared memory for "
            f"a workgroup, more than {device.slm_bytes}",
            device.name,
            "make its `slm` arrays or the tiles that change hands smaller",
        )
    most = device.most_lanes
    if facts.is_large and device.is_gpu:
        most = min(most, _WITH_LARGE_GRF * 16)
    if facts.lanes > most:
        raise failures.asks_too_much(
            f"kernel `{facts.name}` needs workgroups of {facts.lanes // 16} subgroups, "
            f"more than {most // 16}",
            device.name,
            "give its tiles a `wg_map` with fewer subgroups",
        )
