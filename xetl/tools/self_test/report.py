"""The self-test of all devices, and its report, which users attach to an issue.

The cases run in child processes, because a driver may crash or hang.
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
"""The time limit of a case: the first compile for a device takes long."""

Facts = dict[str, Any]


def results(
    backend: str,
    device: str,
    names: Sequence[str],
    seconds: float = _SECONDS,
    command: Sequence[str] = ("-m", "xetl.tools.self_test.run"),
) -> Iterator[Facts]:
    """Run cases on a device, and yield the facts about each, in order.

    Args:
        seconds: the time after which a case counts as hanging.
        command: the arguments of Python; backend, device and names follow.
    """
    left = list(names)
    while left:
        words = [sys.executable, *command, backend, device, *left]
        child = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            for facts in _child_facts(child, left, seconds):
                left.remove(facts["case"])
                yield facts
        finally:
            child.kill()
            child.communicate()


def _child_facts(
    child: subprocess.Popen[str], left: Sequence[str], seconds: float
) -> Iterator[Facts]:
    """Yield the facts that a child process prints, until it ends or a case fails it."""
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
            last = said[-1].strip() if said else "it says nothing"
            text = f"the process ended with {child.wait()}: {last}"
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
    except ValueError:  # a line that a driver prints
        return {}
    return cast("Facts", found) if isinstance(found, dict) else {}


REPORT = Path("xetl-gpu-report.json")
_COLOURS = {"ok": "green", "skipped": "yellow"}
_FINE = frozenset(_COLOURS)


def self_test(only: str | None, output: Path, as_json: bool) -> bool:
    """Test every device, print the results, write the report.

    Args:
        only: a regular expression for the names of cases; None: all.
        as_json: whether only the report is printed.

    Returns:
        Whether every case is ``ok`` or ``skipped``.

    Raises:
        UsageError: there is no device, or no such case.
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
    """Return all devices with their backends; a UsageError if there is none."""
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
            line = (each.get("text") or "").partition("\n")[0]
            said = line or f"{each.get('ms', 0):.0f} ms"
            click.echo(f"  {state}{each['case']:{width}}  {said}")
    plain: dict[str, Any] = {
        name: getattr(device, name) for name in ("name", "text", "target", "is_gpu")
    }
    seconds = round(perf_counter() - start, 1)
    return {**plain, "backend": backend, "seconds": seconds, "cases": cases}


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
