"""Which values are live at once: made, and read later on.

A loop returns to its start, so what its body uses from outside lives all through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from xdsl.ir import Block, Operation, SSAValue


class Liveness:
    """What lives in a block and in the regions of its operations.

    Attributes:
        most: the largest sum of sizes of values that live at one point.
        behind: the live values right behind each of the ``watched`` operations.
    """

    def __init__(
        self,
        block: Block,
        size: Callable[[SSAValue], int],
        watched: Collection[Operation] = (),
    ) -> None:
        self.most = 0
        self.behind: dict[Operation, frozenset[SSAValue]] = {}
        self._size = size
        self._watched = watched
        self._before(block, set())

    def _before(self, block: Block, after: set[SSAValue]) -> None:
        """Count the live values in a block, given those that are live after it."""
        live = set(after)
        size = self._sum(live)
        self.most = max(self.most, size)
        for op in reversed(list(block.ops)):
            if op in self._watched:
                self.behind[op] = frozenset(live)
            size -= self._sum(live.intersection(op.results))
            live.difference_update(op.results)
            if op.regions:
                size += self._sum(used := set(used_from_outside(op)) - live)
                live |= used
            for inner in (each for region in op.regions for each in region.blocks):
                self._before(inner, live)
            size += self._sum(used := set(op.operands) - live)
            live |= used
            self.most = max(self.most, size)

    def _sum(self, values: Iterable[SSAValue]) -> int:
        return sum(self._size(each) for each in values)


def used_from_outside(op: Operation) -> list[SSAValue]:
    """Return the outer values that the regions of an operation use, each once."""
    inside = [each for region in op.regions for each in region.walk()]
    made = {result for each in inside for result in each.results}
    blocks = [
        b for each in (op, *inside) for region in each.regions for b in region.blocks
    ]
    made |= {argument for block in blocks for argument in block.args}
    used = dict.fromkeys(operand for each in inside for operand in each.operands)
    return [value for value in used if value not in made]
