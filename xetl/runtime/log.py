"""Read the log of a launch: prints in the order of programs, and failed assertions.

A log consists of words of 8 bytes. The first word is their number; records follow:

    [number of the operation, program x, y, z, values ...]

Integers are i64, floats the bits of an f64. A record that does not fit is left out.
Backends emit the code that writes the log. This file imports no compiler, so a launch
from the disk cache can print without loading one.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from xetl.errors import LaunchError
from xetl.frames import at_frames, frame_at
from xetl.language.dtypes import BY_NAME
from xetl.records import record

LOG_WORDS = 1 << 17
LOG_BYTES = 8 * LOG_WORDS
HEADER_WORDS = 4

FAILED = "X0820"
"""The error of a failed assertion of a kernel."""

Entry = Mapping[str, Any]


def make_entry(
    template: str,
    values: Sequence[tuple[str, Sequence[int] | None]],
    *,
    error: str | None = None,
    unsigned: Sequence[int] = (),
    where: Sequence[tuple[str, int, int]] = (),
) -> dict[str, Any]:
    """Return a description of an operation that formats its records, as JSON.

    Args:
        template: text with a field for each value; the message of an assertion.
        values: dtype and shape of each; the shape of a number is None.
        error: the code of the error that a record stands for; None for a print.
        unsigned: the indices of the values that are unsigned integers.
        where: file, line and column of each frame, innermost first.
    """
    return {
        "template": template,
        "error": error,
        "values": [
            {
                "dtype": dtype,
                "shape": None if shape is None else list(shape),
                "unsigned": index in unsigned,
            }
            for index, (dtype, shape) in enumerate(values)
        ],
        "where": list(where),
    }


@record(frozen=True)
class Record:
    """One record of the log: its program, its operation and the formatted text."""

    program: tuple[int, int, int]
    entry: Entry
    text: str


def read_records(
    address: int, entries: Sequence[Entry], room: int = LOG_WORDS
) -> list[Record]:
    """Return the records of the last launch in the order of its programs, x fastest.

    Args:
        room: the words that the log can hold.
    """
    used = ctypes.c_int64.from_address(address).value
    if used == 1:
        return []
    memory = ctypes.string_at(address, 8 * min(used, room))
    words: Any = np.frombuffer(memory, np.int64)
    at, found = 1, list[Record]()
    while at < min(used, room):
        entry = entries[int(words[at])]
        sizes = [prod(value["shape"] or [1]) for value in entry["values"]]
        end = at + HEADER_WORDS + sum(sizes)
        if end > room:
            break
        found.append(_record(words[at:end], entry, sizes))
        at = end
    found.sort(key=lambda record: record.program[::-1])
    if used > LOG_WORDS:
        sys.stderr.write("xetl: the log of prints is full; the rest is left out\n")
    return found


def _record(words: Any, entry: Entry, sizes: Sequence[int]) -> Record:
    x, y, z = (int(word) for word in words[1:HEADER_WORDS])
    values: list[Any] = []
    at = HEADER_WORDS
    for value, size in zip(entry["values"], sizes):
        values.append(_value(words[at : at + size], value))
        at += size
    return Record((x, y, z), entry, entry["template"].format(*values))


def _value(words: Any, value: Mapping[str, Any]) -> Any:
    """Return a scalar as a Python number, a vector as a NumPy array."""
    name: str = value["dtype"]
    is_float = "f" in name
    numbers = words.view(np.float64) if is_float else words
    if value["shape"] is None:
        if name == "i1" or is_float:
            return bool(numbers[0]) if name == "i1" else float(numbers[0])
        number = int(numbers[0])
        return number % (1 << 64) if value["unsigned"] else number
    plain = f"u{name[1:]}" if value["unsigned"] else name
    return numbers.astype(BY_NAME[plain].numpy).reshape(value["shape"])


def show(records: Sequence[Record]) -> None:
    """Print the records up to the first error, which is raised as a LaunchError."""
    for each in records:
        if each.entry["error"] is not None:
            code = each.entry["error"]
            text = f"assertion failed: {each.text}" if code == FAILED else each.text
            error = LaunchError(text, code=code)
            frames = [frame_at(*position) for position in each.entry["where"]]
            raise at_frames(error, frames)
        sys.stdout.write(each.text + "\n")
