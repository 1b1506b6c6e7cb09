"""Requirements of block messages on a matrix, and the legal cache hints of messages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Literal, NamedTuple

BASE_ALIGNMENT = 64
LEAST_WIDTH = 64
WIDTH_STEP = 4
LEAST_PITCH = 64
PITCH_STEP = 16
LIMIT = 1 << 24
"""Width in bytes, height in rows and pitch in bytes must be less than this."""

UNALIGNED = "_unaligned"
"""The suffix of the name of the kernel without block messages."""

FIRST, REST, OTHER = "+blocks", "+rest", "+any"
"""Suffixes of a target: compile only the kernel with block messages, which launches
prefer; the same for arrays of one dimension of any number of words; or only the kernel
for any arrays."""

REFUSED = "X0835"
"""The code of the error if an emulated device does what hardware would refuse."""

REFUSED_WORDS = 16
"""The size in words of a log that holds one such error."""

MOST_PROGRAMS = 1 << 21
"""The most programs along an axis of the grid if a kernel moves blocks by messages.

Offsets that are computed from a program's index then fit 32 bits without a clamp.
"""


def why_no_blocks(
    base: int,
    width: int,
    height: int,
    pitch: int,
    leading: tuple[int, ...] = (),
    *,
    step: int = BASE_ALIGNMENT,
) -> str | None:
    """Return why block messages cannot move a matrix. Return None if they can.

    Args:
        base: address of its first element.
        width: bytes of a row.
        height: number of rows.
        pitch: bytes from a row to the next.
        leading: bytes from a matrix to the next, along each batch dimension.
        step: base and leading must be multiples of it. If it is less than 64, the
            kernel moves the base down to a multiple of 64, and rows become longer.
    """
    if base % step:
        return f"its address is no multiple of {step} bytes"
    if width < LEAST_WIDTH or width % WIDTH_STEP:
        return (
            f"its rows have {width} bytes, not {LEAST_WIDTH} or more "
            f"in steps of {WIDTH_STEP}"
        )
    if pitch < max(LEAST_PITCH, width) or pitch % PITCH_STEP:
        return f"its rows are {pitch} bytes apart, not a multiple of {PITCH_STEP}"
    is_even = not any(gap % BASE_ALIGNMENT for gap in leading)
    before = base % BASE_ALIGNMENT if is_even else BASE_ALIGNMENT - step
    if width + before > pitch:
        return (
            f"its address is no multiple of {BASE_ALIGNMENT} bytes, "
            "and its rows have too little between them"
        )
    if max(width + before, height, pitch) >= LIMIT:
        return f"it has {height} rows, {pitch} bytes apart: one of both is too much"
    if any(gap % step for gap in leading):
        return f"its matrices are not a multiple of {step} bytes apart"
    return None


Kind = Literal["load", "store"]
"""What a message does; the hints of a prefetch are those of a load."""


class Hints(NamedTuple):
    """Hints for L1 and the cache behind it, in the words of XeGPU's `cache_hint`."""

    l1: str
    l3: str

    def __str__(self) -> str:
        return f"`{self.l1}` in L1 and `{self.l3}` in L3"


def _pairs(l1: tuple[str, ...], l3: tuple[str, ...]) -> tuple[Hints, ...]:
    return tuple(Hints(*pair) for pair in product(l1, l3))


_LOADS = _pairs(("uncached", "cached", "streaming"), ("uncached", "cached"))
_STORES = (
    *_pairs(("uncached", "write_through", "streaming"), ("uncached", "write_back")),
    Hints("write_back", "write_back"),
)

_OF_XE2: Mapping[Kind, tuple[Hints, ...]] = {
    "load": (*_LOADS, Hints("read_invalidate", "read_invalidate")),
    "store": _STORES,
}
_LEGAL: Mapping[str, Mapping[Kind, tuple[Hints, ...]]] = {
    "pvc": {"load": (*_LOADS, Hints("read_invalidate", "cached")), "store": _STORES},
    "bmg": _OF_XE2,
    "cri": _OF_XE2,
}

_ELSE: Mapping[Kind, Hints] = {
    "load": Hints("cached", "cached"),
    "store": Hints("uncached", "write_back"),
}
"""The hints that the compiler takes for a cache that a message does not name."""


def legal_hints(device: str, kind: Kind) -> tuple[Hints, ...]:
    """Return the pairs that a device has; () if messages are emulated."""
    return _LEGAL.get(device, {}).get(kind, ())


def completed(kind: Kind, l1: str | None, l3: str | None) -> Hints:
    """Return hints for both caches, from those that are given.

    `cached` becomes `write_back` for a store, because the line that it keeps is dirty.
    """
    pair = Hints(l1 or _ELSE[kind].l1, l3 or _ELSE[kind].l3)
    if kind == "load":
        return pair
    return Hints(*("write_back" if word == "cached" else word for word in pair))
