"""A process that runs cases, and is started anew when one of them ends it."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from dataclasses import replace
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType

from tests.campaign.cases import Case
from tests.campaign.check import Fault, check
from tests.fenced_memory import fence_if_wanted
from tests.other_processor import pretend_if_wanted
from tests.poison import poison_workspaces
from xetl_cpu import targets

SECONDS = {"cpu": 60.0, "xegpu": 180.0}
"""What a case may take; the compilers of devices take their time."""
CASES = 400
"""What a process runs at most: machine code is kept as long as its kernel."""


def shrink_caches() -> None:
    """Pretend that caches are tiny, so that small arrays do not fit into them.

    Loops over blocks have several trips then, and stores go past the caches.
    """
    here = targets.host_machine()
    small = replace(
        here,
        l1=replace(here.l1, size=4 << 10),
        l2=replace(here.l2, size=16 << 10),
        l3=replace(here.l3, size=32 << 10),
    )
    targets.host_machine = cache(lambda: small)
    targets.host_fingerprint.cache_clear()


def serve(pipe: Connection) -> None:
    pretend_if_wanted()
    fence_if_wanted()
    shrink_caches()
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            given = pipe.recv()
            poison_workspaces()
            pipe.send(check(*given))


class Worker:
    """Runs one case at a time; whatever happens to the process is a fault of it."""

    def __init__(self) -> None:
        self._process: SpawnProcess | None = None
        self._pipe: Connection | None = None
        self._cases = 0

    def run(self, case: Case, strict: bool = False) -> Fault | None:
        """What is wrong with a case, or None."""
        process, pipe = self._process, self._pipe
        if process is None or pipe is None or self._cases >= CASES:
            process, pipe = self._start()
        self._cases += 1
        pipe.send((case, strict))
        seconds = SECONDS[case.backend]
        if not pipe.poll(seconds):
            self.close()
            return Fault("hang", f"no result after {seconds:.0f} s")
        try:
            return pipe.recv()
        except (EOFError, ConnectionResetError):
            process.join()
            code = process.exitcode or 0
            self.close()
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Fault(name, "the process has ended")

    def close(self) -> None:
        if self._process is not None and self._pipe is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None

    def _start(self) -> tuple[SpawnProcess, Connection]:
        self.close()
        context = multiprocessing.get_context("spawn")
        pipe, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs,), daemon=True)
        process.start()
        theirs.close()
        self._process, self._pipe, self._cases = process, pipe, 0
        return process, pipe

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
