"""A loaded kernel: puts the arguments in place, launches, brings results back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from xetl.backend import Argument, Artifact, Event, Place, QueuedExecutable
from xetl.language.signature import Signature
from xetl.runtime.placement import FINISHED
from xetl.settings import config
from xetl_xegpu.launch import failures
from xetl_xegpu.launch.calling import choose_kernel, ranges, words_of
from xetl_xegpu.launch.devices import default_queue, dpctl
from xetl_xegpu.launch.events import LaunchEvent, keep_until_done
from xetl_xegpu.launch.facts import Grid, KernelFacts, facts_of
from xetl_xegpu.launch.places import QueuePlace, place_of
from xetl_xegpu.launch.programs import build_kernel, check_fits
from xetl_xegpu.launch.shortcut import Shortcuts
from xetl_xegpu.launch.staging import Staged
from xetl_xegpu.launch.status import StatusWords


class XegpuExecutable(QueuedExecutable):
    """See `xetl.backend.QueuedExecutable`."""

    def __init__(self, artifact: Artifact, signature: Signature) -> None:
        self._spirv = artifact.payload
        self._signature = signature
        self.facts = facts_of(artifact.meta)
        self._built: dict[tuple[QueuePlace, str], Any] = {}
        self._shortcuts: dict[QueuePlace, Shortcuts] = {}

    def launch(self, grid: Grid, args: Sequence[Argument]) -> None:
        """Run the kernel on our own queue, and wait for it."""
        self.submit(grid, args, place_of(default_queue())).wait()

    def fast_at(self, place: Place, *, waits: bool) -> Callable[..., Any] | None:
        """Calls that repeat an earlier one on the queue of ``place``.

        They give 0 or, without waiting, the event; 1 says that nothing was done.
        """
        if any(kernel.log for kernel in self.facts.kernels):
            return None  # somebody must read it
        return self._shortcuts_at(cast("QueuePlace", place)).entry(waits=waits)

    def submit(self, grid: Grid, args: Sequence[Argument], place: Place) -> Event:
        """Start the kernel on ``args`` (constants left out).

        What has to be copied back, or has a log to be read, is waited for here.

        Raises:
            LaunchError: the device lacks something, and the arrays are as they were;
                or it was lost.
        """
        where = cast("QueuePlace", place)
        check_fits(self.facts, where.device)  # before anything is copied
        staged, seen = None, args
        if not where.device.reads_host:
            staged = Staged(args, self.facts.stored, where)
            seen = staged.args
        kernel, reason = choose_kernel(self.facts, grid, seen)
        if reason is not None:
            _say(f"`{self.facts.name}` runs without block messages: {reason}")
        status = StatusWords(kernel.log, where)
        event = self._start(grid, seen, where, kernel, status)
        keep = (args, staged, status)
        launched = LaunchEvent(event, keep, where.device, self.facts.name)
        if not kernel.log and (staged is None or not staged.comes_back):
            return keep_until_done(launched)
        launched.wait()
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
    ) -> Any:
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
            raise failures.not_started(where.device.name, self.facts.name) from None
        if not kernel.log:
            self._shortcuts_at(where).note(built, kernel, words, args)
        return event

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
