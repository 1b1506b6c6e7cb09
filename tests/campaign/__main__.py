"""The runner: kernels of many seeds, a line for each fault, and a summary.

    python -m tests.campaign --backend cpu --seeds 0:20000
    python -m tests.campaign --backend xegpu --fresh 200

Exit code 1: there are faults. ``--log`` makes a run one that can be resumed.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from tests.campaign.cases import of_seed
from tests.campaign.check import Fault
from tests.campaign.shrink import Shrinker
from tests.campaign.worker import Worker


@dataclass
class Campaign:
    """Seeds that are run on a backend, and what was found."""

    backend: str
    log: Path | None = None
    shrinks: int = 3
    kernels: int = 0
    faults: dict[int, Fault] = field(default_factory=dict[int, Fault])
    kinds: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, seeds: Iterable[int], jobs: int = 1) -> None:
        """Run all seeds that the log does not hold already."""
        done = self._done()
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for seed in seeds:
            if seed not in done:
                waiting.put(seed)
        threads = [
            threading.Thread(target=self._work, args=(waiting,)) for _ in range(jobs)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, waiting: queue.SimpleQueue[int]) -> None:
        with Worker() as worker:
            while True:
                try:
                    seed = waiting.get_nowait()
                except queue.Empty:
                    return
                fault = worker.run(of_seed(seed, self.backend))
                with self.lock:
                    self._note(seed, fault)
                if fault is not None:
                    self._report(seed, fault, worker)

    def _note(self, seed: int, fault: Fault | None) -> None:
        self.kernels += 1
        if fault is not None:
            self.faults[seed] = fault
            self.kinds[fault.kind] += 1
        if self.log is not None:
            with self.log.open("a") as file:
                print(seed, fault.kind if fault else "-", file=file)

    def _done(self) -> set[int]:
        if self.log is None or not self.log.exists():
            return set()
        lines = [line.split(" ", 1) for line in self.log.read_text().splitlines()]
        for seed, kind in lines:
            if kind != "-":
                self.faults[int(seed)] = Fault(kind)
                self.kinds[kind] += 1
        return {int(seed) for seed, _ in lines}

    def _report(self, seed: int, fault: Fault, worker: Worker) -> None:
        """Print a fault; the first ones of a kind are shrunk."""
        lines = [
            f"seed {seed}: {fault.kind}",
            f"  again with: {again(self.backend, seed)}",
        ]
        if self.kinds[fault.kind] <= self.shrinks:
            shrinker = Shrinker(of_seed(seed, self.backend), fault, worker.run)
            shrunk = shrinker.shrink()
            lines += [shrinker.fault.text, shrunk.text()]
        with self.lock:
            print("\n".join(lines), flush=True)


def again(backend: str, seed: int) -> str:
    """The command that repeats a seed."""
    return f"python -m tests.campaign --backend {backend} --seeds {seed}:{seed + 1}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign")
    parser.add_argument("--backend", choices=("cpu", "xegpu"), default="cpu")
    parser.add_argument("--seeds", help="FIRST:END, without the end")
    parser.add_argument("--fresh", type=int, help="so many from a random first seed")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--log", type=Path, help="file of what was run, to resume it")
    parser.add_argument("--shrinks", type=int, default=3, help="how many of a kind")
    options = parser.parse_args(arguments)
    if options.fresh is not None:
        first = int.from_bytes(os.urandom(6))
        end = first + options.fresh
    else:
        first, end = map(int, (options.seeds or "0:100").split(":"))
    print(f"campaign on {options.backend}: seeds {first}:{end}", flush=True)
    campaign = Campaign(options.backend, options.log, options.shrinks)
    start = monotonic()
    campaign.run(range(first, end), options.jobs)
    seconds = monotonic() - start
    print(
        f"{campaign.kernels} kernels in {seconds:.0f} s on {options.backend}, seeds "
        f"{first}:{end}: {len(campaign.faults)} faults {dict(campaign.kinds)}"
    )
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
