"""The blocks of each value: every class of axes takes what serves it best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from xdsl.ir import SSAValue

from xetl.devices import Block
from xetl.transforms.blocks.axes import Axis, Classes, shape_of
from xetl.transforms.blocks.demands import Demand


class Choice:
    """What each class of axes was given.

    A class takes the extent that the greatest weight of demands agrees on, the largest
    if several do.  A demand that cannot be met is packed for where it stands.

    Args:
        classes: of axes that are cut alike.
        demands: what operations ask for.
        limits: numbers that the extent of an axis's class must divide.
    """

    def __init__(
        self,
        classes: Classes,
        demands: Iterable[Demand],
        limits: Iterable[tuple[Axis, int]] = (),
    ) -> None:
        self._classes = classes
        votes: dict[Axis, Counter[int]] = {}
        for demand in demands:
            for dim, extents in enumerate((demand.rows, demand.columns)):
                counter = votes.setdefault(classes.find((demand.value, dim)), Counter())
                for extent in extents:
                    counter[extent] += demand.weight
        for axis, number in limits:
            counter = votes.get(classes.find(axis), Counter[int]())
            for extent in [each for each in counter if number % each]:
                del counter[extent]
        self._extents = {axis: _best(votes[axis]) for axis in votes if votes[axis]}

    def block_of(self, value: SSAValue) -> Block | None:
        """The blocks of a matrix; None where nobody asks for any."""
        rows, columns = (self._extent(value, dim) for dim in (0, 1))
        if rows is None or columns is None or max(shape_of(value)) == 1:
            return None
        return rows, columns

    def _extent(self, value: SSAValue, dim: int) -> int | None:
        if shape_of(value)[dim] == 1:
            return 1
        return self._extents.get(self._classes.find((value, dim)))


def _best(votes: Counter[int]) -> int:
    return max(votes, key=lambda extent: (votes[extent], extent))
