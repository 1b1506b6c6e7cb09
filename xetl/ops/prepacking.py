"""``xetl.ops.prepack``: say that an operand does not change."""

from __future__ import annotations

import weakref
from dataclasses import field
from typing import Any

import numpy as np

from xetl.errors import XetlError
from xetl.prepacked import Prepacked
from xetl.records import record
from xetl.runtime.arrays import locate
from xetl.runtime.call_site import at_caller
from xetl.runtime.tensors import hide_from_dynamo
from xetl.settings import config


@record()
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


def prepack(b: Any) -> Prepacked:
    """Prepare an operand of products that does not change: backends pack it once.

    To be given in place of ``b``, to `matmul` and to kernels of one's own. Nothing is
    done at once: the first launch of a kernel that packs ``b`` keeps the packed copy,
    and the next ones read that; kernels that read it in the same arrangement share it.
    Where nothing is packed (another backend, products of up to four rows, batches of
    b) it is simply the array. Several threads may use it at once.

    Do not change the elements of ``b`` afterwards: some kernels would read the old
    ones, others the new ones. A copy lives as long as the kernel that reads it and the
    object returned.

    Args:
        b: an array as kernels take them, of any shape and dtype.

    Returns:
        What stands for ``b``, with its ``shape``, ``ndim`` and ``dtype``.

    Raises:
        LaunchError: it is no array, or one that kernels cannot read (X0805).
    """
    try:
        if not isinstance(b, Prepacked):
            locate(b, "b")
            b = Prepacked(b)
    except XetlError as error:
        raise at_caller(error) from None
    return b


hide_from_dynamo(prepack)
