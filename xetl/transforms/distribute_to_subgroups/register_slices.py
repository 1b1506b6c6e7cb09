"""Layout changes within a subgroup: which register slices make up the new layout.

Numbers only, no IR.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from math import gcd

from xetl.language.distribution import Layout, origins
from xetl.records import record

Offsets = tuple[int, ...]


@record(frozen=True)
class Slice:
    """A block of a new part, and the block of an old part that goes there.

    Attributes:
        at: where it begins in the new part.
        size: of the block.
        source: the number of the old part.
        origin: where the block begins in the old part.
    """

    at: Offsets
    size: Offsets
    source: int
    origin: Offsets


@lru_cache(maxsize=1024)
def slices_for(
    shape: tuple[int, ...], source: Layout, target: Layout
) -> list[list[Slice]] | None:
    """What each part in the layout ``target`` is made of, the same in all subgroups.

    None: some subgroup needs what another one owns, or needs it from another place.
    """
    if source.subgroups != target.subgroups:
        return None
    owned = [_Owned(shape, source, sg) for sg in range(source.subgroups)]
    wanted = [origins(shape, target, sg) for sg in range(target.subgroups)]
    made: list[list[Slice]] = []
    for part in range(len(wanted[0])):
        starts = [each[part] for each in wanted]
        slices = _part(owned, starts, source.sg_data, target.sg_data)
        if slices is None:
            return None
        made.append(slices)
    return made


class _Owned:
    """Where a subgroup finds an element in its parts."""

    def __init__(self, shape: Sequence[int], layout: Layout, sg: int) -> None:
        self._size = layout.sg_data
        self._parts = {at: i for i, at in enumerate(origins(shape, layout, sg))}

    def find(self, element: Offsets) -> tuple[int, Offsets] | None:
        """The number of the part and the place in it; None: it owns no such part."""
        inner = tuple(i % size for i, size in zip(element, self._size))
        start = tuple(i - rest for i, rest in zip(element, inner))
        part = self._parts.get(start)
        return None if part is None else (part, inner)


def _part(
    owned: Sequence[_Owned], starts: Sequence[Offsets], old: Offsets, new: Offsets
) -> list[Slice] | None:
    """One new part, which begins at ``starts`` in the subgroups."""

    def source_of(at: Offsets) -> tuple[int, Offsets] | None:
        found = [
            each.find(tuple(a + b for a, b in zip(start, at)))
            for each, start in zip(owned, starts)
        ]
        return found[0] if all(each == found[0] for each in found) else None

    sizes = tuple(gcd(a, b) for a, b in zip(old, new))
    blocks = _blocks(source_of, sizes, new)
    if blocks is None or len(blocks) == 1:
        return blocks
    # Neighbours of one old part go together: it is one slice if all do.
    first = blocks[0]
    fits = all(o + n <= size for o, n, size in zip(first.origin, new, old))
    if fits and all(each.source == first.source for each in blocks):
        return [Slice(first.at, new, first.source, first.origin)]
    return blocks


def _blocks(
    source_of: Callable[[Offsets], tuple[int, Offsets] | None],
    size: Offsets,
    extent: Offsets,
) -> list[Slice] | None:
    blocks: list[Slice] = []
    for at in product(*(range(0, n, step) for n, step in zip(extent, size))):
        found = source_of(at)
        if found is None:
            return None
        blocks.append(Slice(at, size, *found))
    return blocks
