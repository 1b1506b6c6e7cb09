"""The executable of a kernel: stages arguments, launches, copies results back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

from xetl.backend import Argument, Artifact, Event, Place, QueuedExecutable
from xetl.language.signature import Signature
from xetl.runtime.placement import FINISHED
from xetl.settings import config
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.devices import default_queue, dpctl
from xetl_xegpu.launch.events import LaunchEvent, keep_until_done
from xetl_xegpu.launch.facts import (
    Grid,
    KernelFacts,
    choose_kernel,
    choose_part,
    facts_of,
    ranges,
    words_of,
)
from xetl_xegpu.launch.places import QueuePlace, place_of
from xetl_xegpu.launch.programs import build_kernel, check_fits
from xetl_xegpu.launch.shortcut import Known, Shortcuts
from xetl_xegpu.launch.staging import Staged, StatusWords
from xetl_xegpu.limits import REST


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
        return self._submit(grid, args, cast("QueuePlace", place))

    def _submit(self, grid: Grid, args: Sequence[Argument], where: QueuePlace) -> Event:
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
            return self._part(part)._submit(grid, args, where)
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
