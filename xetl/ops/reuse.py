"""Operands that come again are prepacked by themselves, where `xetl.config` says so.

Only NumPy arrays that are read-only count as constant: whoever sets
`config.reuse_constants` vouches that nobody writes to them through another view.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from xetl.prepacked import Prepacked
from xetl.settings import config


@dataclass(slots=True)
class _Known:
    """An operand that came before, and what backends keep for it.

    The array itself is not kept alive: with it goes what is packed.
    """

    array: weakref.ref[Any]
    packed: Prepacked = field(default_factory=lambda: Prepacked(None))


_known: dict[int, _Known] = {}


def reused(operand: Any) -> Prepacked | None:
    """What stands for an operand that came before and is constant, else None."""
    if type(operand) is not np.ndarray or operand.flags.writeable:
        return None
    if not config.reuse_constants:
        return None
    place = id(operand)
    known = _known.get(place)
    if known is not None and known.array() is operand:
        return known.packed.over(operand)
    _known[place] = _Known(weakref.ref(operand, lambda _: _known.pop(place, None)))
    return None
