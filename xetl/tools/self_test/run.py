"""Runs cases on a device in a child process, and compares each with the reference.

``python -m xetl.tools.self_test.run BACKEND DEVICE NAME...`` prints a line of JSON when
a case begins, and another when it has ended. If the driver crashes or hangs, the parent
process starts another child for the remaining cases.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from xetl.backend import find_backend
from xetl.errors import XetlError
from xetl.findings import TestDevice
from xetl.imports import import_whole
from xetl.tools.self_test.cases import Case, all_cases

_INTERFACE = "__sycl_usm_array_interface__"


class OnDevice:
    """A copy of a NumPy array in memory that a device can access (USM)."""

    def __init__(self, array: Any, kind: str, queue: Any) -> None:
        memory = import_whole("dpctl.memory")
        make = getattr(memory, f"MemoryUSM{kind.capitalize()}")
        whole = array if array.base is None else array.base
        self.memory = make(whole.nbytes, queue=queue)
        self.memory.copy_from_host(whole.view(np.uint8).reshape(-1))
        size, first = array.itemsize, array.ctypes.data - whole.ctypes.data
        own = {"shape": array.shape, "strides": tuple(n // size for n in array.strides)}
        own |= {"offset": first // size, "typestr": array.dtype.str}
        self.shape = array.shape
        setattr(self, _INTERFACE, {**getattr(self.memory, _INTERFACE), **own})

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return int(getattr(self, _INTERFACE)["data"][0])

    def read(self, like: Any) -> Any:
        """Return the elements as a NumPy array with the dtype and shape of ``like``."""
        data: Any = np.empty(like.nbytes, np.uint8)
        self.memory.copy_to_host(data)
        return data.view(like.dtype).reshape(like.shape)


def result(case: Case, backend: str, device: TestDevice) -> Any:
    """Run a case on the device, and return the array with its result."""
    given = case.arrays()
    arrays: list[Any] = given
    if case.memory != "host":
        arrays = [OnDevice(each, case.memory, device.queue) for each in given]
    passed = list(arrays)
    if case.by_address:
        passed[0] = arrays[0].address
    options = {"queue": device.queue, "backend": backend, **case.constants}
    launch = case.kernel[case.grid]
    events = [launch(*passed, wait=False, **options) for _ in range(case.launches)]
    for event in events:
        event.wait()
    stored = arrays[case.stored]
    return stored if case.memory == "host" else stored.read(given[case.stored])


def expected(case: Case) -> Any:
    """Return the result of a case on the backend ``reference``."""
    arrays = case.arrays()
    passed = list(arrays)
    if case.by_address:
        passed[0] = arrays[0].ctypes.data
    case.kernel[case.grid](*passed, backend="reference", **case.constants)
    return arrays[case.stored]


def difference(found: Any, wanted: Any) -> float:
    """Return the largest difference, relative to the largest element (1 at least)."""
    is_float = found.dtype.kind in "fV" or found.dtype.name.startswith(("bf", "float"))
    wide = np.float64 if is_float else np.int64
    one, other = found.astype(wide), wanted.astype(wide)
    if not np.isfinite(one.astype(np.float64)).all():
        return float("inf")
    most = float(np.abs(other).max(initial=1))
    return float(np.abs(one - other).max(initial=0)) / most


def run(case: Case, backend: str, device: TestDevice) -> dict[str, Any]:
    """Run a case; return facts, with ``state``: ok, wrong, error or skipped."""
    missing = sorted(case.needs & device.lacks)
    if missing:
        why = f"the device has no {', '.join(missing)}"
        return {"case": case.name, "state": "skipped", "text": why}
    start = perf_counter()
    try:
        found = result(case, backend, device)
        off = difference(found, expected(case))
    except Exception as error:
        named = "" if isinstance(error, XetlError) else f"{type(error).__name__}: "
        return {"case": case.name, "state": "error", "text": f"{named}{error}"}
    ms = round((perf_counter() - start) * 1e3, 1)
    facts = {"case": case.name, "ms": ms, "difference": off}
    if off <= case.tolerance:
        return {**facts, "state": "ok"}
    text = f"differs by {off:.3g} of the largest element; {case.tolerance:g} is allowed"
    return {**facts, "state": "wrong", "text": text}


def main(words: Sequence[str]) -> None:
    """Run cases by name on a device by name: backend, device, names of cases."""
    backend, name, *wanted = words
    devices = find_backend(backend).test_devices()
    device = next(each for each in devices if each.name == name)
    for case in all_cases():
        if case.name in wanted:
            _say({"begins": case.name})
            _say(run(case, backend, device))


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
