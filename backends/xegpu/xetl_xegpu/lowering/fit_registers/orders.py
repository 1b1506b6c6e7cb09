"""Operations of a block put into a line, and what lives meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from xdsl.ir import Operation, SSAValue

from xetl_xegpu import simt
from xetl_xegpu.lowering.fit_registers.graph import Graph, Registers


class Line:
    """A line that grows at its end.

    Attributes:
        numbers: of the operations in it.
        live: bytes of a lane that are in use at its end.
        most: and at most, so far.
    """

    def __init__(self, graph: Graph, registers: Registers) -> None:
        self.numbers: list[int] = []
        self._graph, self._held = graph, registers
        self._placed = [False] * len(graph.ops)
        self._bits = 0
        self._readers = Counter(root for reads in graph.reads for root in reads)
        # What comes from further out lives all through the block: it may be a loop.
        given = [r for r in self._readers if r not in graph.own]
        given += [each for each in graph.block.args if each in self._readers]
        self.live = self.most = sum(map(registers.bytes_of, given))

    @property
    def operations(self) -> list[Operation]:
        """What stands in it."""
        return [self._graph.ops[number] for number in self.numbers]

    def place(self, number: int) -> None:
        """Append an operation and all that it needs and is not there yet."""
        for each in self._missing(number):
            self._placed[each] = True
            self._bits |= 1 << each
            self.numbers.append(each)
            self.live, at_once = self._step(each, self.live, self._readers)
            self.most = max(self.most, at_once)

    def tried(self, number: int) -> tuple[int, int]:
        """What would be in use at most, and at the end, if this were placed."""
        missing = self._missing(number)
        touched = {root for each in missing for root in self._graph.reads[each]}
        readers = Counter({root: self._readers[root] for root in touched})
        live, most = self.live, 0
        for each in missing:
            live, at_once = self._step(each, live, readers)
            most = max(most, at_once)
        return most, live

    def is_ready(self, anchor: int) -> bool:
        """Whether no other anchor must stand before it."""
        before = self._graph.anchors_before[anchor]
        return not before & ~self._bits

    def _step(
        self, number: int, live: int, readers: Counter[SSAValue]
    ) -> tuple[int, int]:
        """What is in use behind an operation, and at once while it runs."""
        graph, size = self._graph, self._held.bytes_of
        made = sum(size(r) for r in graph.makes[number] if self._begins(r, number))
        dying = 0
        for root in graph.reads[number]:
            readers[root] -= 1
            if not readers[root] and root in graph.own:
                dying += size(root)
        # A result may take the place of what is read for the last time.
        return live + made - dying, live + max(0, made - dying)

    def _begins(self, root: SSAValue, number: int) -> bool:
        return root.owner is self._graph.ops[number] and root in self._readers

    def _missing(self, number: int) -> list[int]:
        """What is needed and not there yet, each behind what it needs itself."""
        found: list[int] = []
        seen = {number}
        open_ = [(number, iter(self._graph.needs[number]))]
        while open_:
            current, needs = open_[-1]
            following = next((n for n in needs if self._is_new(n, seen)), None)
            if following is not None:
                seen.add(following)
                open_.append((following, iter(self._graph.needs[following])))
                continue
            open_.pop()
            found.append(current)
        return [] if self._placed[number] else found

    def _is_new(self, number: int, seen: set[int]) -> bool:
        return not self._placed[number] and number not in seen


def line_of(graph: Graph, registers: Registers, numbers: Iterable[int]) -> Line:
    """Operations in this order, each behind what it needs."""
    line = Line(graph, registers)
    for number in numbers:
        line.place(number)
    return line


_WINDOW = 64
"""Anchors that are looked at to find the next one."""

_A, _B = 0, 1


def lines(graph: Graph, registers: Registers, budget: int) -> Iterator[Line]:
    """Some lines, those first that differ least from the one there is.

    Args:
        graph: of the block.
        registers: what takes registers.
        budget: bytes of a lane.
    """
    yield line_of(graph, registers, range(len(graph.ops)))
    yield line_of(graph, registers, graph.anchors)
    for side in (_B, _A):
        yield line_of(graph, registers, _by_loads(graph, side))
    yield _within(graph, registers, budget)


def _by_loads(graph: Graph, side: int) -> list[int]:
    """Products that read from one load next to each other, nest by nest.

    A nest are products of which none multiplies what another one gave.
    """
    ordered: list[int] = []
    nest: list[int] = []
    for number in graph.anchors:
        is_product = isinstance(graph.ops[number], simt.PRODUCTS)
        if not is_product or _multiplies_any(graph, number, nest):
            ordered += _grouped(graph, nest, side)
            nest = []
        if is_product:
            nest.append(number)
        else:
            ordered.append(number)
    return ordered + _grouped(graph, nest, side)


def _multiplies_any(graph: Graph, product: int, others: list[int]) -> bool:
    behind = (graph.behind(side) for side in graph.ops[product].operands[:-1])
    return not set(others).isdisjoint(each for side in behind for each in side)


def _grouped(graph: Graph, nest: list[int], side: int) -> list[int]:
    first: dict[int, int] = {}
    keys = {
        number: first.setdefault(_load_behind(graph, number, side), len(first))
        for number in nest
    }
    return sorted(nest, key=keys.__getitem__)


def _load_behind(graph: Graph, product: int, side: int) -> int:
    """The first load that a side of a product comes from; -1: none of this block."""
    behind = graph.behind(graph.ops[product].operands[side])
    loads = (simt.BlockLoadOp, simt.LoadOp)
    return min((n for n in behind if isinstance(graph.ops[n], loads)), default=-1)


def _within(graph: Graph, registers: Registers, budget: int) -> Line:
    """The order there is, as long as the registers last; else what frees most."""
    line, left = Line(graph, registers), list(graph.anchors)
    while left:
        best, least = left[0], None
        ready = (each for each in left[:_WINDOW] if line.is_ready(each))
        for anchor in ready:
            most, live = line.tried(anchor)
            if most <= budget:
                best = anchor
                break
            cost = (most, live)
            if least is None or cost < least:
                best, least = anchor, cost
        line.place(best)
        left.remove(best)
    return line
