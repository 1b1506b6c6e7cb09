"""Recorded launches, run again on arrays that lie elsewhere.

What a function launches depends on the shapes, strides and dtypes of its arrays alone,
so its next call with such arrays differs in addresses only. A native entry
(`entry_replay.py`) does all of it: it checks the arrays and runs the kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

from xetl.backend import ArrayView, RecordedLaunch
from xetl.runtime.arrays import unit_dim
from xetl.runtime.overlap import bounds, same_view
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.executable import CpuExecutable, words_of
from xetl_cpu.launch.slots import FIRST_ARGUMENT, GRID
from xetl_cpu.launch.tensor_words import find_torch


class _Operand(NamedTuple):
    """Where an array lies.

    Attributes:
        address: of its first element.
        start: its first byte.
        end: the byte behind its last one.
        slot: where its words are among those of all.
        alias: the first operand that is the same array.
    """

    address: int
    start: int
    end: int
    slot: int
    alias: int


def make_replay(
    launches: Sequence[RecordedLaunch],
    operands: Sequence[ArrayView],
    fresh: int,
    numbers: int,
) -> Callable[..., int] | None:
    """See `xetl.backend.BackendBase.replay`."""
    find_torch(layout.process)
    places: list[_Operand] = []
    slot = 0
    for view in operands:
        if 0 in view.shape:
            return None
        same = (i for i, x in enumerate(operands[: len(places)]) if same_view(x, view))
        alias = next(same, len(places))
        places.append(_Operand(view.address, *bounds(view), slot, alias))
        slot += 1 + 2 * len(view.shape)
    first_number = slot
    stored: set[int] = set()
    runs: list[int] = []
    for launch in launches:
        words = _launch_words(launch, places, first_number, numbers, stored)
        if words is None:
            return None
        runs += words
    records = _records(operands, places, stored, first_number, numbers)
    for record in records[len(operands) - fresh : len(operands)]:
        record[layout.R_STORED] = layout.FRESH
    expected = [word for view in operands for word in words_of(view)]
    header = [
        len(launches),
        ctypes.addressof(layout.process),
        len(records),
        first_number + numbers,
    ]
    flat = [word for record in records for word in record]
    table = [*header, *flat, *expected, *[0] * numbers, *runs]
    keep = [launch.executable for launch in launches]
    return layout.new_builtin(layout.REPLAY, table, keep)


def _launch_words(
    launch: RecordedLaunch,
    places: Sequence[_Operand],
    first_number: int,
    numbers: int,
    stored: set[int],
) -> list[int] | None:
    """A launch as the table has it; None if it is not that plain.

    Operands that it writes are added to ``stored``.
    """
    executable = launch.executable
    if not isinstance(executable, CpuExecutable) or executable.fast is None:
        return None
    words = [0] * FIRST_ARGUMENT
    words[GRID : GRID + 3] = launch.grid
    patches: list[int] = []
    fixed = len(launch.args) - numbers
    for i, arg in enumerate(launch.args):
        if i >= fixed:
            patches += len(words), first_number + i - fixed, 0
        elif isinstance(arg, ArrayView):
            found = _find(arg, places)
            if found is None:
                return None
            place = places[found]
            patches += len(words), place.slot, arg.address - place.address
            if i in launch.stored:
                stored.update(j for j, p in enumerate(places) if p.alias == place.alias)
        words += words_of(arg)
    if len(words) > layout.MOST_SLOTS:
        return None
    return [
        executable.address,
        len(words),
        len(patches) // layout.PATCH,
        *words,
        *patches,
    ]


def _find(arg: ArrayView, places: Sequence[_Operand]) -> int | None:
    """The operand that an argument of a kernel is part of; None: it may be several."""
    if 0 in arg.shape:
        return None
    start, end = bounds(arg)
    found = [
        i
        for i, place in enumerate(places)
        if place.start <= start and end <= place.end and place.alias == i
    ]
    if len(found) > 1:  # parts of one array: most arguments begin where operands do
        found = [i for i in found if places[i].address == arg.address]
    return found[0] if len(found) == 1 else None


def _records(
    operands: Sequence[ArrayView],
    places: Sequence[_Operand],
    stored: set[int],
    first_number: int,
    numbers: int,
) -> list[list[int]]:
    records = [[0] * layout.RECORD for _ in range(len(operands) + numbers)]
    for i, (record, view, place) in enumerate(zip(records, operands, places)):
        record[layout.R_SLOT] = place.slot
        record[layout.R_STORED] = int(i in stored)
        layout.fill_array(
            record, view.dtype, len(view.shape), unit_dim(view), place.alias
        )
    for i, record in enumerate(records[len(operands) :]):
        record[layout.R_KIND] = layout.FLOAT
        record[layout.R_SLOT] = first_number + i
        record[layout.R_WIDTH] = 1
    return records
