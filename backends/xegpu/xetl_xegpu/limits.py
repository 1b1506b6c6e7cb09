"""What block messages ask of a matrix, and what messages may ask of the caches."""

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
"""Width, height (rows) and pitch must be below."""

UNALIGNED = "_unaligned"
"""The end of the name of the kernel that moves no blocks by messages."""

FIRST, OTHER = "+blocks", "+any"
"""Behind a target: the kernel that launches take where they can, and the other one."""

REFUSED = "X0835"
"""The error where an emulated device does what hardware would refuse."""

REFUSED_WORDS = 16
"""Words of a log in which there is room for one such error."""

MOST_PROGRAMS = 1 << 21
"""Programs along each axis of the grid, where a kernel moves blocks by messages.

Offsets that follow from the number of a program then fit 32 bits as they are.
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
    """What keeps block messages from a matrix; None: nothing does.

    Args:
        base: address of its first element.
        width: bytes of a row.
        height: number of rows.
        pitch: bytes from a row to the next.
        leading: bytes from a matrix to the next, where there are several.
        step: what base and leading are multiples of.  Below 64 the kernel lets rows
            begin at the multiple of 64 before, so they become longer.
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
"""A prefetch asks as a load does."""


class Hints(NamedTuple):
    """What L1 and the cache behind it should do; words of XeGPU's `cache_hint`."""

    l1: str
    l3: str

    def __str__(self) -> str:
        return f"`{self.l1}` in L1 and `{self.l3}` in L3"


_LOADS = tuple(
    Hints(*pair)
    for pair in product(("uncached", "cached", "streaming"), ("uncached", "cached"))
)
_STORES = (
    *(
        Hints(*pair)
        for pair in product(
            ("uncached", "write_through", "streaming"), ("uncached", "write_back")
        )
    ),
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
"""Where only one cache is spoken of: what the compiler takes then."""


def legal_hints(device: str, kind: Kind) -> tuple[Hints, ...]:
    """The pairs that a device has; none where messages are emulated."""
    return _LEGAL.get(device, {}).get(kind, ())


def completed(kind: Kind, l1: str | None, l3: str | None) -> Hints:
    """Words for both caches.

    A store that is to be `cached` is written back: a line that is kept is dirty.
    """
    pair = Hints(l1 or _ELSE[kind].l1, l3 or _ELSE[kind].l3)
    if kind == "load":
        return pair
    return Hints(*("write_back" if word == "cached" else word for word in pair))
