"""What subgroups know of each other where some barriers are named: vector clocks.

A barrier of all orders everything before it with everything after it.  A named one
orders only what came before an arrival with what comes after a wait, so each subgroup
knows something else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping

Known = dict[int, int]
"""For each subgroup the first code (shadow.py) of it that may still be under way."""


class Order:
    """What the subgroups of one program know of each other."""

    def __init__(self) -> None:
        self._known: defaultdict[int, Known] = defaultdict(dict)
        self._arrived: defaultdict[Hashable, Known] = defaultdict(dict)

    def known(self, subgroup: int) -> Mapping[int, int]:
        """What a subgroup knows; of those that are missing it knows nothing."""
        return self._known[subgroup]

    def arrive(self, subgroup: int, meeting: Hashable, now: int) -> None:
        """A subgroup arrives; what it did before the code ``now`` has ended."""
        known = self._known[subgroup]
        _join(known, {subgroup: now})
        _join(self._arrived[meeting], known)

    def leave(self, subgroup: int, meeting: Hashable) -> None:
        """A subgroup has waited until all had arrived."""
        _join(self._known[subgroup], self._arrived[meeting])


def _join(known: Known, more: Mapping[int, int]) -> None:
    for subgroup, code in more.items():
        known[subgroup] = max(known.get(subgroup, 0), code)
