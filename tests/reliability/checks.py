"""What must hold under load: each check returns what it measured, or raises.

``scale`` is the share of the full amount: 1 takes most of an hour on two cores.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.backends.cpu.native_harness import fenced
from tests.reliability.kernels import Case, cases, launch
from xetl.settings import config

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

_STORM = """
import random, sys
from tests.reliability.kernels import add, cases, launch
first, count = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(first)
for _ in range(count):
    case = cases()["add"]
    launch(case, BM=rng.randrange(1, 40), BN=rng.randrange(1, 60))
    print("done", flush=True)
"""


class _Worker:
    """A process that compiles, and how many compiles it has reported."""

    def __init__(self, seed: int, environment: dict[str, str], count: int) -> None:
        self.process = _start(_STORM, environment, seed, count)
        self.done = 0
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            self.done += 1

    def kill(self) -> int:
        """End it, wherever it is; how much it had done."""
        self.process.kill()
        self._reader.join()
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        self.process.communicate()  # closes the pipes
        assert self.process.returncode in (0, -signal.SIGKILL), errors[-2000:]
        return self.done


def cache_storm(scale: float) -> str:
    """16 processes compile into one folder and are killed at any moment."""
    wanted = max(int(16_000 * scale), 160)
    kills = wanted // 20
    rng, done = random.Random(0), 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = _environment(XETL_CACHE_DIR=folder)
        workers = [_Worker(n, environment, wanted) for n in range(16)]
        for number in range(kills):
            while done + sum(each.done for each in workers) < 20 * (
                number + 1
            ) or not any(each.done for each in workers):
                time.sleep(0.01)
            at = rng.choice([n for n, each in enumerate(workers) if each.done])
            done += workers[at].kill()
            workers[at] = _Worker(16 + number, environment, wanted)
        done += sum(each.kill() for each in workers)
        after = _start(_STORM, environment, 0, 200)
        _, errors = after.communicate()
        assert after.returncode == 0, errors[-2000:]
        entries = len(list(Path(folder).glob("*.xetl")))
    return f"{done} compiles or loads, {kills} kills, {entries} entries, all right"


def launches(scale: float) -> str:
    """10^6 launches leave memory as it was."""
    count = max(int(1e6 * scale), 20_000)
    case = cases()["add"]
    arguments = list(case.arrays.values())
    case.kernel[case.grid](*arguments)
    before = _grown(lambda: _repeat(case, arguments, count // 10))
    grown = _grown(lambda: _repeat(case, arguments, count))
    assert grown < 4 << 20, f"{grown} bytes more after {count} launches"
    return f"{count} launches, {grown >> 10} KiB more ({before >> 10} to warm up)"


def _repeat(case: Case, arguments: list[np.ndarray], count: int) -> None:
    launcher = case.kernel[case.grid]
    for _ in range(count):
        launcher(*arguments)


def specialisations(scale: float) -> str:
    """10^4 kernels compiled in one process: memory stops growing."""
    count = max(int(1e4 * scale), 200)

    def compile_some(first: int, number: int) -> None:
        for index in range(first, first + number):
            launch(cases()["add"], BM=1 + index % 64, BN=1 + index // 64)

    with _setting("cache", False):
        early = _grown(lambda: compile_some(0, count // 2))
        late = _grown(lambda: compile_some(count // 2, count - count // 2))
    each = late // (count - count // 2)
    assert each < 48 << 10, f"{each} bytes a kernel"
    return (
        f"{count} kernels, {early >> 20} then {late >> 20} MiB more, {each} bytes each"
    )


def threads(scale: float) -> str:
    """8 Python threads compile and launch at once."""
    failures: list[BaseException] = []
    rounds = max(int(400 * scale), 8)

    def work(number: int) -> None:
        rng = random.Random(number)
        try:
            for _ in range(rounds):
                name = rng.choice([*cases()])
                tiles = {"BM": rng.randrange(1, 33), "BN": rng.randrange(1, 65)}
                options = tiles if name == "add" else {}
                launch(cases()[name], **options)
        except BaseException as error:
            failures.append(error)

    with _setting("cache", False):
        started = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for each in started:
            each.start()
        for each in started:
            each.join(600)
            assert not each.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]
    return f"8 threads, {8 * rounds} launches of 10 kernels"


_INTERRUPTED = """
import signal, sys
from tests.reliability.kernels import cases, launch
interrupts, number, armed = 0, 0, False

def interrupt(*_):
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
print("ready", flush=True)
while number < int(sys.argv[1]):
    try:
        armed = True
        launch(cases()["gemm_f32"], BM=1 + number % 40, BN=1 + number % 50)
        number += 1
    except KeyboardInterrupt:
        interrupts += 1
    armed = False
# While Python ends, it would be the signal's own doing that ends it.
signal.signal(signal.SIGINT, signal.SIG_IGN)
for case in cases().values():
    launch(case)
print(interrupts, flush=True)
"""


def interrupts(scale: float) -> str:
    """Ctrl-C at any moment of compiling and launching is a KeyboardInterrupt."""
    wanted = max(int(300 * scale), 30)
    process = _start(_INTERRUPTED, _environment(XETL_CACHE="0"), wanted)
    assert process.stdout.readline() == "ready\n", process.stderr.read()[-2000:]
    rng, sent = random.Random(1), 0
    while process.poll() is None and sent < 20 * wanted:
        time.sleep(rng.random() * 0.15)
        process.send_signal(signal.SIGINT)
        sent += 1
    found, errors = process.communicate(timeout=120 + 2 * wanted)
    assert process.returncode == 0, f"exit {process.returncode}: {errors[-2000:]}"
    assert int(found) > 0
    return f"{wanted} compiles, {sent} signals, {int(found)} interrupts, then all right"


def processes(scale: float) -> str:
    """Children by fork, spawn and forkserver launch, after the parent did."""
    launch(cases()["gemm_f32"])
    rounds = max(int(10 * scale), 1)
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        for _ in range(rounds):
            children = [context.Process(target=launch_all) for _ in range(2)]
            for child in children:
                child.start()
            launch_all()
            for child in children:
                child.join(120)
                assert child.exitcode == 0, f"{method}: {child.exitcode}"
    return f"{6 * rounds} children, {10 * 6 * rounds} kernels in them"


def launch_all() -> None:
    """What a child does."""
    for case in cases().values():
        launch(case)


def folders(scale: float) -> str:
    """A full disk, a folder nobody may write, no HOME: kernels run all the same."""
    script = "from tests.reliability.checks import launch_all; launch_all()"
    held: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, variables in _homes(folder):
            done = _start(script, {**_environment(), **variables})
            _, errors = done.communicate(timeout=300)
            assert done.returncode == 0, f"{what}: {errors[-2000:]}"
            assert not errors, f"{what}: {errors[-2000:]}"
            held.append(what)
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            subprocess.run(["umount", str(folder / "full")], capture_output=True)
    return ", ".join(held)


def _homes(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    locked = folder / "locked"
    locked.mkdir(mode=0o500)
    yield "read-only", {"XETL_CACHE_DIR": str(locked / "cache")}
    yield "missing HOME", {"HOME": str(folder / "none"), "XETL_CACHE_DIR": ""}
    (folder / "file").write_text("")
    yield "a file for a folder", {"XETL_CACHE_DIR": str(folder / "file")}
    full = folder / "full"
    full.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full)]
    if subprocess.run(command, capture_output=True).returncode == 0:
        yield "full disk", {"XETL_CACHE_DIR": str(full)}


def guard_pages(scale: float) -> str:
    """Kernels touch no byte before or behind their arrays."""
    count = 0
    for target in ("host", "avx2"):
        with _setting("target", target), _setting("cache", False):
            for name, case in cases().items():
                for at_end in (True, False):
                    arrays = {
                        n: fenced(a, at_end=at_end) for n, a in case.arrays.items()
                    }
                    launch(case._replace(arrays=arrays))
                    count += 1
                assert name
    return f"{count} launches between guard pages, host and avx2"


# Helpers ----------------------------------------------------------------------------


@contextlib.contextmanager
def _setting(name: str, value: object) -> Iterator[None]:
    before = config.assigned
    setattr(config, name, value)
    try:
        yield
    finally:
        config.assigned = before


def _environment(**variables: str) -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *sys.path])
    return {**os.environ, "PYTHONPATH": path, **variables}


def _start(
    script: str, environment: dict[str, str], *arguments: object
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _grown(work: Callable[[], None]) -> int:
    """Bytes of memory that the process holds more after ``work``."""
    before = _resident()
    work()
    return _resident() - before


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def has(tool: str) -> bool:
    """Whether a program is there."""
    return shutil.which(tool) is not None
