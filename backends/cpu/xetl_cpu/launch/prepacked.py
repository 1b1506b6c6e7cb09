"""Packed operands that outlive a launch: memory for `xetl.prepacked.Prepacked`.

A launch that is given such an operand brings the memory in which an earlier launch
left it packed; the kernel looks at what the memory says of itself and refuses anything
else than it would have packed. Then other memory is tried, and at last a new one
filled.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from xetl.backend import Argument, ArrayView
from xetl.prepacked import Prepacked
from xetl_cpu.launch.slots import PACKED, PACKED_BYTES, PACKED_STATE
from xetl_cpu.launch.workspace import Pages, bring

HEADER_WORDS = 16
"""Of the memory, before the operand."""

NONE, FILL, FILLED = range(3)
"""What a launch brings: nothing (pack into the workspace), memory to pack into, memory
in which the operand is packed."""

Slots: TypeAlias = "ctypes.Array[ctypes.c_int64]"

_REFUSED = 1
"""What an entry says that has done nothing."""

_MOST = 8
"""Kernels for which one operand keeps memory."""


def prepacked_argument(
    args: Sequence[Argument], packed: int | None
) -> Prepacked | None:
    """What keeps the operand that a kernel packs.

    Args:
        args: of the launch.
        packed: which of them the kernel packs.
    """
    if packed is None:
        return None
    arg = args[packed]
    if isinstance(arg, ArrayView) and isinstance(arg.obj, Prepacked):
        return arg.obj
    return None


def fast_prepacked(
    fast: Callable[..., int], place: int, kernel: Hashable
) -> Callable[..., int]:
    """A native entry for calls whose operand is prepacked, and packed already.

    Args:
        fast: the entry for arrays (`xetl.backend.Executable.fast`).
        place: of the parameter that ``kernel`` packs.
        kernel: who it is packed for.
    """
    place += 3  # behind the grid

    def run(*args: Any) -> int:
        operand = args[place] if place < len(args) else None
        if type(operand) is not Prepacked:
            return _REFUSED
        memory = operand.kept.get(kernel)
        if memory is None:
            return _REFUSED
        bring(memory.address, memory.size, FILLED)
        try:
            return fast(*args[:place], operand.array, *args[place + 1 :])
        finally:
            bring(0, 0, NONE)

    return run


def run_prepacked(
    operand: Prepacked,
    kernel: Hashable,
    slots: Slots,
    run: Callable[[], int],
) -> int:
    """Run a kernel with what there is of the operand, or what it makes of it now.

    Args:
        operand: what the kernel packs.
        kernel: who it is packed for.
        slots: of the launch; those of packed memory are filled here.
        run: calls the kernel; a negative result is the bytes of packed memory that it
            needs, and nothing was written.
    """
    memory = operand.kept.get(kernel)
    if memory is not None:
        result = _run_with(memory, FILLED, slots, run)
        if result >= 0:
            return result
    with operand.lock.held():
        for other in set(operand.kept.values()):
            result = _run_with(other, FILLED, slots, run)
            if result >= 0:
                operand.kept[kernel] = other
                return result
        return _fill(operand, kernel, slots, run)


def _fill(
    operand: Prepacked,
    kernel: Hashable,
    slots: Slots,
    run: Callable[[], int],
) -> int:
    needed = -_run_with(None, FILL, slots, run)
    memory = Pages(needed)
    result = _run_with(memory, FILL, slots, run)
    if result == 0:
        if len(operand.kept) >= _MOST:
            operand.kept.clear()
        operand.kept[kernel] = memory
    return result


def _run_with(
    memory: Pages | None,
    state: int,
    slots: Slots,
    run: Callable[[], int],
) -> int:
    slots[PACKED] = 0 if memory is None else memory.address
    slots[PACKED_BYTES] = 0 if memory is None else memory.size
    slots[PACKED_STATE] = state
    return run()
