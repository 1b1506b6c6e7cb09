"""The executable of a kernel: stages arguments, launches, copies results back.

Its programs are built once for each context, after checks that the device can run them.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from math import prod
from typing import Any, cast

from xetl.backend import Argument, Artifact, Event, Place, QueuedExecutable
from xetl.devices import find_device
from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.signature import Signature
from xetl.locks import ForkSafeLock
from xetl.opencl_driver import VECTORS
from xetl.runtime.placement import FINISHED
from xetl.settings import config
from xetl_xegpu.build_options import FOR_CPUS, UNOPTIMISED, build_options
from xetl_xegpu.emit.spirv_words import computes_in_short_integers
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import Device, default_queue, dpctl
from xetl_xegpu.launch.facts import (
    CodeFacts,
    Grid,
    KernelFacts,
    choose_kernel,
    choose_part,
    facts_of,
    ranges,
    words_of,
)
from xetl_xegpu.launch.places import LaunchEvent, QueuePlace, keep_until_done, place_of
from xetl_xegpu.launch.shortcut import Known, Shortcuts
from xetl_xegpu.launch.staging import Staged, StatusWords
from xetl_xegpu.limits import REST

_WITH_LARGE_GRF = 32
"""The most subgroups of a workgroup if threads have the large register file."""

_built: dict[object, Any] = {}
_lock = ForkSafeLock()


def build_kernel(spirv: bytes, name: str, facts: CodeFacts, place: QueuePlace) -> Any:
    """Return a kernel of dpctl, built for the device of a queue.

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
    program, device = dpctl().program, place.device
    try:
        if _must_not_optimise(spirv, device):
            options = UNOPTIMISED
        return program.create_program_from_spirv(place.queue, spirv, options)
    except (ValueError, program.SyclProgramCompilationError):
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


class XegpuExecutable(QueuedExecutable):
    """See `xetl.backend.QueuedExecutable`."""

    def __init__(self, artifact: Artifact, signature: Signature) -> None:
        self._spirv = artifact.payload
        self._signature = signature
        self.facts = facts_of(artifact.meta)
        self._parts: dict[str, XegpuExecutable] = {}
        self._built: dict[tuple[QueuePlace, str], Any] = {}
        self._shortcuts: dict[QueuePlace, Shortcuts] = {}
        self._status: dict[tuple[QueuePlace, str], StatusWords] = {}

    def _part(self, target: str) -> XegpuExecutable:
        """A kernel for other arrays, compiled at the first launch that needs it."""
        found = self._parts.get(target)
        if found is None:
            artifact = self.compile_part(target)
            found = self._parts[target] = XegpuExecutable(artifact, self._signature)
            found._shortcuts = self._shortcuts  # `fast_at` looks for shortcuts in self
        return found

    def launch(self, grid: Grid, args: Sequence[Argument]) -> None:
        """Run the kernel on our own queue, and wait for it."""
        self.submit(grid, args, place_of(default_queue())).wait()

    def fast_at(self, place: Place, *, waits: bool) -> Callable[..., Any] | None:
        """Return a function for calls that repeat an earlier one on this queue.

        It returns 0 or, without waiting, the event; 1 if it did nothing.
        """
        if any(kernel.tells for kernel in self.facts.kernels):
            return None  # the host must read the log of each launch
        return self._shortcuts_at(cast("QueuePlace", place)).entry(waits=waits)

    def submit(self, grid: Grid, args: Sequence[Argument], place: Place) -> Event:
        """Start the kernel on ``args`` (constants left out).

        Wait for the kernel if arrays must be copied back, or if it writes a log.

        Raises:
            LaunchError: the device lacks something (the arrays are unchanged), or it
                was lost.
        """
        where = cast("QueuePlace", place)
        check_fits(self.facts, where.device)  # before anything is copied
        staged, seen, padded = None, args, frozenset[int]()
        if where.device.has_messages or not where.device.reads_host:
            staged = Staged(args, self.facts, where)
            seen, padded = staged.args, staged.padded
        kernel, reason = choose_kernel(self.facts, grid, seen, padded)
        part = choose_part(self.facts, grid, seen) if kernel is None else ""
        if reason is not None and config.log and not part.endswith(REST):
            name = self.facts.name
            sys.stderr.write(f"xetl: `{name}` runs without block messages: {reason}\n")
        if kernel is None:
            staged = seen = None  # free the copies before the other kernel makes its
            return self._part(part).submit(grid, args, where)
        status = self._status_of(kernel, where)
        event, known = self._start(grid, seen, where, kernel, status)
        if not kernel.tells and not (staged and staged.keep):
            self._shortcuts_at(where).note(known, seen)
        keep = (args, staged, status)
        name = self.facts.name
        launched = LaunchEvent(event, keep, where.device, name, status.show)
        if not kernel.tells and (staged is None or not staged.comes_back):
            return keep_until_done(launched)
        launched.finish()
        if staged is not None:
            staged.copy_back()
        status.show()
        return FINISHED

    def _start(
        self,
        grid: Grid,
        args: Sequence[Argument],
        where: QueuePlace,
        kernel: KernelFacts,
        status: StatusWords,
    ) -> tuple[Any, Known]:
        words = [*chain(*map(words_of, self.facts.arguments, args)), status.word]
        built = self._kernel_at(where, kernel)
        everywhere, each = ranges(grid, kernel.lanes)
        try:
            event = where.queue.submit_async(built, words, everywhere, each)
        except dpctl().SyclKernelSubmitError:
            device, lanes = where.device.name, prod(kernel.lanes)
            raise failures.not_started(device, self.facts.name, grid, lanes) from None
        return event, Known(built, kernel.lanes, words, status.show)

    def _status_of(self, kernel: KernelFacts, where: QueuePlace) -> StatusWords:
        """Return new status words, or shared ones if the kernel writes no log."""
        if kernel.tells:
            return StatusWords(kernel, where)
        key = where, kernel.name
        if key not in self._status:
            self._status[key] = StatusWords(kernel, where)
        return self._status[key]

    def _kernel_at(self, where: QueuePlace, kernel: KernelFacts) -> Any:
        found = self._built.get((where, kernel.name))
        if found is None:
            spirv = self._spirv[kernel.spirv]
            found = build_kernel(spirv, kernel.name, self.facts, where)
            self._built[where, kernel.name] = found
        return found

    def _shortcuts_at(self, where: QueuePlace) -> Shortcuts:
        return self._shortcuts.setdefault(
            where, Shortcuts(self._signature, self.facts, where)
        )
