"""What a message may ask of the caches: a word for L1, one for the cache behind it.

That cache is L3 in the text of XeGPU and of the machine code, level 1 in SPIR-V, and
what Ponte Vecchio's manuals call L2. Messages have no third word.

Source: [measured] ocloc 26.27 for pvc and bmg, all pairs, on 2-D blocks and scattered
accesses: these reach the message as they are; for others the compiler warns and takes
its own, or it takes other ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Literal, NamedTuple

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

_LEGAL: Mapping[str, Mapping[Kind, tuple[Hints, ...]]] = {
    "pvc": {"load": (*_LOADS, Hints("read_invalidate", "cached")), "store": _STORES},
    "bmg": {
        "load": (*_LOADS, Hints("read_invalidate", "read_invalidate")),
        "store": _STORES,
    },
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
