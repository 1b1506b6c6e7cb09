"""A loaded kernel: puts the arguments in place, launches, brings results back."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Any, cast

from xetl.backend import Argument, Artifact, Event, Place, QueuedExecutable
from xetl.devices import find_device
from xetl.errors import LaunchError
from xetl.imports import import_whole
from xetl.language.signature import Signature
from xetl.locks import ForkSafeLock
from xetl.runtime.placement import FINISHED
from xetl.settings import config
from xetl_xegpu.build_options import FOR_CPUS, build_options
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import Device, default_queue, dpctl
from xetl_xegpu.launch.events import LaunchEvent, keep_until_done
from xetl_xegpu.launch.facts import (
    CodeFacts,
    Grid,
    KernelFacts,
    choose_kernel,
    facts_of,
    ranges,
    words_of,
)
from xetl_xegpu.launch.places import QueuePlace, place_of
from xetl_xegpu.launch.shortcut import Known, Shortcuts
from xetl_xegpu.launch.staging import Staged, StatusWords


class XegpuExecutable(QueuedExecutable):
    """See `xetl.backend.QueuedExecutable`."""

    def __init__(self, artifact: Artifact, signature: Signature) -> None:
        self._spirv = artifact.payload
        self._signature = signature
        self.facts = facts_of(artifact.meta)
        self._built: dict[tuple[QueuePlace, str], Any] = {}
        self._shortcuts: dict[QueuePlace, Shortcuts] = {}
        self._status: dict[tuple[QueuePlace, str], StatusWords] = {}

    @cached_property
    def _other(self) -> XegpuExecutable:
        """The kernel for any arrays, compiled at the first launch that needs it."""
        artifact = self.compile_part(self.facts.parts[0])
        found = XegpuExecutable(artifact, self._signature)
        found._shortcuts = self._shortcuts  # they are looked for here
        return found

    def launch(self, grid: Grid, args: Sequence[Argument]) -> None:
        """Run the kernel on our own queue, and wait for it."""
        self.submit(grid, args, place_of(default_queue())).wait()

    def fast_at(self, place: Place, *, waits: bool) -> Callable[..., Any] | None:
        """Calls that repeat an earlier one on the queue of ``place``.

        They give 0 or, without waiting, the event; 1 says that nothing was done.
        """
        if any(kernel.tells for kernel in self.facts.kernels):
            return None  # somebody must read it
        return self._shortcuts_at(cast("QueuePlace", place)).entry(waits=waits)

    def submit(self, grid: Grid, args: Sequence[Argument], place: Place) -> Event:
        """Start the kernel on ``args`` (constants left out).

        What has to be copied back, or has a log to be read, is waited for here.

        Raises:
            LaunchError: the device lacks something, and the arrays are as they were;
                or it was lost.
        """
        return self._submit(grid, args, cast("QueuePlace", place))

    def _submit(self, grid: Grid, args: Sequence[Argument], where: QueuePlace) -> Event:
        check_fits(self.facts, where.device)  # before anything is copied
        staged, seen, padded = None, args, frozenset[int]()
        if where.device.has_messages or not where.device.reads_host:
            staged = Staged(args, self.facts, where)
            seen, padded = staged.args, staged.padded
        kernel, reason = choose_kernel(self.facts, grid, seen, padded)
        if reason is not None:
            _say(f"`{self.facts.name}` runs without block messages: {reason}")
        if kernel is None:
            staged = seen = None  # no copy need be there twice
            return self._other._submit(grid, args, where)
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
        words = [
            word
            for facts, arg in zip(self.facts.arguments, args)
            for word in words_of(facts, arg)
        ]
        words.append(status.word)
        built = self._kernel_at(where, kernel)
        everywhere, each = ranges(grid, kernel.lanes)
        try:
            event = where.queue.submit_async(built, words, everywhere, each)
        except dpctl().SyclKernelSubmitError:
            device, lanes = where.device.name, prod(kernel.lanes)
            raise failures.not_started(device, self.facts.name, grid, lanes) from None
        return event, Known(built, kernel.lanes, words, status.show)

    def _status_of(self, kernel: KernelFacts, where: QueuePlace) -> StatusWords:
        """Those of this launch, or of all launches of a kernel that tells nothing."""
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


def _say(text: str) -> None:
    if config.log:
        sys.stderr.write(f"xetl: {text}\n")


_WITH_LARGE_GRF = 32
"""Subgroups of a workgroup that fit when each thread has the large registers."""

_built: dict[object, Any] = {}
_lock = ForkSafeLock()


def build_kernel(spirv: bytes, name: str, facts: CodeFacts, place: QueuePlace) -> Any:
    """A kernel of dpctl, built for the device of a queue.

    Args:
        facts: what else the compiler says about it.

    Raises:
        LaunchError: the device lacks something, or its driver refuses the program or
            its compiler ends a process.
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
    if place.device.is_gpu:  # the driver for CPUs is the one of the tests
        first_builds = import_whole("xetl_xegpu.launch.first_builds")
        first_builds.check(spirv, facts.name, place.device, options)
    program = dpctl().program
    try:
        return program.create_program_from_spirv(place.queue, spirv, options)
    except program.SyclProgramCompilationError:
        device = place.device
        driver = device.driver if device.is_gpu else None
        raise failures.not_compiled(device.name, facts.name, driver) from None


def _options(facts: CodeFacts, device: Device) -> str:
    if not device.is_gpu:
        return " ".join(FOR_CPUS)
    return build_options(
        is_level_zero=device.is_level_zero, large_registers=facts.is_large
    )


def check_fits(facts: CodeFacts, device: Device) -> None:
    """Refuse a device that lacks what a program needs, before its driver sees it."""
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
