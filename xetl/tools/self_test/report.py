"""The self-test of all devices, and the file that is attached to an issue.

The test of a device runs in processes that may crash or hang.
"""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import click

from xetl import __version__
from xetl.backend import backend_names, find_backend
from xetl.errors import XetlError
from xetl.findings import TestDevice
from xetl.tools.machine import sections
from xetl.tools.output import write_files
from xetl.tools.self_test.cases import all_cases

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


REPORT = Path("xetl-gpu-report.json")
_COLOURS = {"ok": "green", "skipped": "yellow"}
_FINE = frozenset(_COLOURS)


def self_test(only: str | None, output: Path, as_json: bool) -> bool:
    """Test every device, print what is found, write the report.

    Args:
        only: a regular expression for the names of cases; None: all.
        as_json: whether the report is printed, too, and nothing else.

    Returns:
        Whether everything is as it should be.

    Raises:
        UsageError: there is no device, or no case.
    """
    names = _names(only)
    found = _devices()
    tested: list[Facts] = []
    for backend, device in found:
        if not as_json:
            click.secho(f"{device.text}", bold=True)
        tested.append(_test(backend, device, names, as_json))
    plain = {name: [asdict(each) for each in listed] for name, listed in sections()}
    report = {"xetl": __version__, "devices": tested, "machine": plain}
    text = json.dumps(report, indent=1) + "\n"
    write_files({output: text})
    if as_json:
        click.echo(text, nl=False)
    else:
        for line in _closing(found, tested, output):
            click.echo(line)
    return all(each["state"] in _FINE for dev in tested for each in dev["cases"])


def _names(only: str | None) -> list[str]:
    try:
        names = [c.name for c in all_cases() if re.search(only or "", c.name)]
    except re.error as error:
        why = f"`{only}` is no regular expression: {error}"
        raise click.BadParameter(why, param_hint="--only") from None
    if not names:
        known = ", ".join(dict.fromkeys(c.name.split()[0] for c in all_cases()))
        why = f"no case is called like `{only}`; their names begin with {known}"
        raise click.BadParameter(why, param_hint="--only")
    return names


def _devices() -> list[tuple[str, TestDevice]]:
    """All, with their backends; a UsageError if there is none."""
    found: list[tuple[str, TestDevice]] = []
    help = "`xetl doctor` says what is missing"
    for name in backend_names():
        try:
            found += [(name, each) for each in find_backend(name).test_devices()]
        except XetlError as error:
            help = error.help or help
    if not found:
        raise click.UsageError(f"there is no device that can run kernels: {help}")
    return found


def _test(
    backend: str, device: TestDevice, names: Sequence[str], is_quiet: bool
) -> Facts:
    start = perf_counter()
    cases: list[Facts] = []
    width = max(map(len, names))
    for each in results(backend, device.name, names):
        cases.append(each)
        if not is_quiet:
            colour = _COLOURS.get(each["state"], "red")
            state = click.style(f"{each['state']:8}", fg=colour)
            said = _first(each) or f"{each.get('ms', 0):.0f} ms"
            click.echo(f"  {state}{each['case']:{width}}  {said}")
    plain: dict[str, Any] = {
        name: getattr(device, name) for name in ("name", "text", "target", "is_gpu")
    }
    seconds = round(perf_counter() - start, 1)
    return {**plain, "backend": backend, "seconds": seconds, "cases": cases}


def _first(facts: Facts) -> str:
    return (facts.get("text") or "").partition("\n")[0]


def _closing(
    found: Sequence[tuple[str, TestDevice]], tested: Sequence[Facts], output: Path
) -> Iterator[str]:
    yield ""
    for each in tested:
        counts = Counter(case["state"] for case in each["cases"])
        said = ", ".join(f"{count} {state}" for state, count in counts.items())
        yield f"{each['name']}: {said}, in {each['seconds']:.0f} s"
    if not any(device.is_gpu for _, device in found):
        yield "no GPU is here: Intel's instructions were emulated by the OpenCL driver"
    yield f"wrote {output}; attach it to an issue"
