"""Recorded launches, run again on arrays at other addresses.

The launches of a function depend only on the shapes, strides and dtypes of its arrays.
So the next call with such arrays differs only in addresses. A native entry
(`entry_replay.py`) does the whole call: it checks the arrays and runs the kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np

from xetl.backend import ArrayView, RecordedCall, RecordedLaunch
from xetl.prepacked import Prepacked
from xetl.runtime.arrays import unit_dim
from xetl.runtime.overlap import bounds, same_view
from xetl.runtime.shortcuts import entry_table
from xetl_cpu.launch import FIRST_ARGUMENT, GRID, PACKED
from xetl_cpu.launch import fastcall as layout
from xetl_cpu.launch.executable import CpuExecutable, words_of
from xetl_cpu.launch.tensor_words import P_TENSOR, find_torch
from xetl_cpu.launch.workspace import NOTHING, kept_for, prepacked_arguments, table_of


class _Operand(NamedTuple):
    """The place of an array in memory.

    Attributes:
        address: of its first element.
        start: its first byte.
        end: the byte behind its last one.
        slot: the index of its words among those of all arrays.
        alias: the first operand that is the same array.
    """

    address: int
    start: int
    end: int
    slot: int
    alias: int


def make_replay(call: RecordedCall) -> Callable[..., Any] | None:
    """See `xetl.backend.BackendBase.replay`."""
    objects = [*call.given, *(view for view, _, _ in call.made)]
    numbers = {i: FIRST_ARGUMENT for i in call.numbers if i is not None}
    records = [[0] * layout.RECORD for _ in objects]
    places: dict[int, _Operand] = {}
    slot = 0
    for i, (record, value) in enumerate(zip(records, objects)):
        record[layout.R_SLOT] = slot
        if isinstance(value, ArrayView):
            is_empty = 0 in value.shape
            if is_empty and i < len(call.given):
                return None
            before = [(k, x) for k, x in enumerate(objects[:i]) if k in places]
            same = (k for k, x in before if same_view(cast("ArrayView", x), value))
            # Results without elements have no memory, and share none.
            alias = i if is_empty else next(same, i)
            place = (0, 0) if is_empty else bounds(value)
            places[i] = _Operand(value.address, *place, slot, alias)
            rank = len(value.shape)
            layout.fill_array(record, value.dtype, rank, unit_dim(value), alias)
            record[layout.R_CLASS] = id(type(value.obj))
            if isinstance(value.obj, Prepacked):
                record[layout.R_CLASS] = id(value.obj)
                record[layout.R_ARRAY] = id(value.obj.array)
        elif i in numbers:
            numbers[i] = slot
            record[layout.R_KIND], record[layout.R_WIDTH] = layout.FLOAT, 1
        else:
            kind, word = layout.constant(value)
            is_compared = isinstance(value, str | tuple | list | np.dtype)
            record[layout.R_KIND] = layout.CONST_EQUAL if is_compared else kind
            record[layout.R_OBJECT] = word
        slot += record[layout.R_WIDTH]
    patched = [None if i is None else numbers[i] for i in call.numbers]
    stored: set[int] = set()
    runs: list[int] = []
    tables: list[object] = []
    for launch in call.launches:
        words = _launch_words(launch, places, patched, stored, tables)
        if words is None:
            return None
        runs += words
    given = len(call.given)
    for i in places:
        records[i][layout.R_STORED] = layout.FRESH if i >= given else int(i in stored)
    return _builtin(call, objects, records, slot, runs, tables)


def _builtin(
    call: RecordedCall,
    objects: Sequence[object],
    records: Sequence[list[int]],
    slots: int,
    runs: Sequence[int],
    tables: Sequence[object],
) -> Callable[..., Any] | None:
    """Return the entry with a table of the call; see the layout in `fastcall`."""
    expected: list[int] = []
    for record, value in zip(records, objects):
        is_array = isinstance(value, ArrayView)
        width = record[layout.R_WIDTH]
        expected += words_of(value) if is_array else [0] * width
    makers = [(make, args) for _, make, args in call.made]
    given = [value.obj for value in objects if isinstance(value, ArrayView)]
    arrays = [x.array if isinstance(x, Prepacked) else x for x in given]
    sees_modes = any(type(array) is not np.ndarray for array in arrays)
    find_torch(layout.process)
    if sees_modes and not layout.process[P_TENSOR]:
        return None
    header = [
        len(records),
        slots,
        len(call.launches),
        len(call.given),
        len(makers),
        len(call.gives),
        int(sees_modes),
        0 if any(type(make) is FunctionType for make, _ in makers) else len(call.given),
    ]
    flat = [word for record in records for word in record]
    made = [id(each) for maker in makers for each in maker]
    words = [*flat, *expected, *made, *call.gives, *runs]
    constants = [value for value in objects if not isinstance(value, ArrayView)]
    keep = [launch.executable for launch in call.launches], constants, makers, tables
    return layout.new_builtin(layout.REPLAY, header, words, keep)


def _launch_words(
    launch: RecordedLaunch,
    places: Mapping[int, _Operand],
    numbers: Sequence[int | None],
    stored: set[int],
    tables: list[object],
) -> list[int] | None:
    """Return a launch in the form of the table; None if it cannot be replayed.

    Operands that it writes are added to ``stored``. Tables of packed operands are added
    to ``tables``: they, and the memory in them, have to live as long as the replay.
    """
    executable = launch.executable
    if not isinstance(executable, CpuExecutable) or not entry_table(executable.fast):
        return None
    words = [0] * FIRST_ARGUMENT
    words[GRID : GRID + 3] = launch.grid
    operands = prepacked_arguments(launch.args, executable.packed)
    if any(operands):
        pairs = zip(operands, executable.packed)
        brought = [kept_for(*pair) or NOTHING for pair in pairs]
        table = table_of(brought)
        words[PACKED] = ctypes.addressof(table)
        tables += table, brought
    patches: list[int] = []
    fixed = len(launch.args) - len(numbers)
    for i, arg in enumerate(launch.args):
        number = numbers[i - fixed] if i >= fixed else None
        if number is not None:
            patches += len(words), number, 0
        elif isinstance(arg, ArrayView):
            found = _find(arg, places)
            if found is None:
                return None
            place = places[found]
            patches += len(words), place.slot, arg.address - place.address
            if i in launch.stored:
                stored.update(j for j, p in places.items() if p.alias == place.alias)
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


def _find(arg: ArrayView, places: Mapping[int, _Operand]) -> int | None:
    """Return the operand that contains an argument; None if it is not unique."""
    if 0 in arg.shape:
        return None
    start, end = bounds(arg)
    found = [
        i
        for i, place in places.items()
        if place.start <= start and end <= place.end and place.alias == i
    ]
    if len(found) > 1:  # parts of one array: most arguments begin where operands do
        found = [i for i in found if places[i].address == arg.address]
    return found[0] if len(found) == 1 else None
