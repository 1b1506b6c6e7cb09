"""Programs that a driver has built, one for each context: building takes 10 to 500 ms.

The driver compiles SPIR-V to its own code.  dpctl keeps nothing, so everything that was
built is kept here as long as the process lives.
"""

from __future__ import annotations

import hashlib
from typing import Any

from xetl.devices import find_device
from xetl.errors import LaunchError
from xetl.locks import ForkSafeLock
from xetl_xegpu.build_options import build_options
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import Device, dpctl
from xetl_xegpu.launch.facts import CodeFacts
from xetl_xegpu.launch.places import QueuePlace

LARGE_GRF = 256
_WITH_LARGE_GRF = 32
"""Subgroups of a workgroup that fit when each thread has the large registers."""

_built: dict[object, Any] = {}
_lock = ForkSafeLock()


def build_kernel(spirv: bytes, name: str, facts: CodeFacts, place: QueuePlace) -> Any:
    """A kernel of dpctl, built for the device of a queue.

    Args:
        spirv: the program.
        name: of the kernel in it.
        facts: what else the compiler says about it.
        place: the queue.

    Raises:
        LaunchError: the device lacks something, or its driver refuses the program.
    """
    queue = place.queue
    options = _options(facts, place.device)
    digest = hashlib.sha256(spirv).digest()
    key = (digest, options, queue.sycl_context, queue.sycl_device)
    with _lock.held():
        found = _built.get(key)
        if found is None:
            found = _build(spirv, facts, place, options).get_sycl_kernel(name)
            _built[key] = found
    return found


def _build(spirv: bytes, facts: CodeFacts, place: QueuePlace, options: str) -> Any:
    program = dpctl().program
    try:
        return program.create_program_from_spirv(place.queue, spirv, options)
    except program.SyclProgramCompilationError:
        reason = "it was not compiled"
        raise failures.refused(place.device.name, facts.name, reason) from None


def _options(facts: CodeFacts, device: Device) -> str:
    """What the driver is told; the one for CPUs knows no registers, and is exact."""
    if not device.is_gpu:
        return ""
    return build_options(
        is_level_zero=device.is_level_zero, large_registers=facts.grf >= LARGE_GRF
    )


def check_fits(facts: CodeFacts, device: Device) -> None:
    """Check that the device has what a program needs, before its driver sees it.

    Raises:
        LaunchError: it has not.
    """
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
    if facts.grf >= LARGE_GRF and device.is_gpu:
        most = min(most, _WITH_LARGE_GRF * 16)
    if facts.lanes > most:
        raise failures.asks_too_much(
            f"kernel `{facts.name}` needs workgroups of {facts.lanes // 16} subgroups, "
            f"more than {most // 16}",
            device.name,
            "give its tiles a `wg_map` with fewer subgroups",
        )
