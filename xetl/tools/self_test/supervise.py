"""Runs the self-test of a device in processes that may crash or hang."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

_SECONDS = 120.0
"""For a case: compiling for a device that was never used takes long."""

Facts = dict[str, Any]


def results(
    backend: str,
    device: str,
    names: Sequence[str],
    seconds: float = _SECONDS,
    command: Sequence[str] = ("-m", "xetl.tools.self_test.run"),
) -> Iterator[Facts]:
    """What became of each case, in order.

    Args:
        backend: that has the device.
        device: its name.
        names: of the cases.
        seconds: after which one counts as hanging.
        command: what Python runs; it gets backend, device and names.
    """
    left = list(names)
    while left:
        words = [sys.executable, *command, backend, device, *left]
        child = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            for facts in _of_child(child, left, seconds):
                left.remove(facts["case"])
                yield facts
        finally:
            child.kill()
            child.communicate()


def _of_child(
    child: subprocess.Popen[str], left: Sequence[str], seconds: float
) -> Iterator[Facts]:
    """What one process says; ends when it has ended, or failed at a case."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    said: list[str] = []
    threads = [
        _reader(child.stdout, lines.put, lambda: lines.put(None)),
        _reader(child.stderr, said.append, lambda: None),
    ]
    current, ends = left[0], len(left)
    while ends:
        try:
            line = lines.get(timeout=seconds)
        except queue.Empty:
            text = f"did not end within {seconds:g} seconds"
            yield {"case": current, "state": "hangs", "text": text}
            return
        if line is None:
            threads[1].join(5)
            text = f"the process ended with {child.wait()}: {_last(said)}"
            yield {"case": current, "state": "crashes", "text": text}
            return
        facts = _read(line)
        if "begins" in facts:
            current = facts["begins"]
        elif "case" in facts:
            ends -= 1
            yield facts


def _reader(
    stream: Any, each: Callable[[str], None], end: Callable[[], None]
) -> threading.Thread:
    def read() -> None:
        for line in stream:
            each(line)
        end()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _read(line: str) -> Facts:
    try:
        found: Any = json.loads(line)
    except ValueError:  # drivers print, too
        return {}
    return cast("Facts", found) if isinstance(found, dict) else {}


def _last(lines: Sequence[str]) -> str:
    return lines[-1].strip() if lines else "it says nothing"
