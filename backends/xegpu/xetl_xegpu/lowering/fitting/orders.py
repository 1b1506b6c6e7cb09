"""Orders of a block's anchors that may need fewer registers than the one it has."""

from __future__ import annotations

from collections.abc import Iterator

from xetl_xegpu import simt
from xetl_xegpu.lowering.fitting.graph import Graph
from xetl_xegpu.lowering.fitting.held import Held
from xetl_xegpu.lowering.fitting.line import Line, line_of

_WINDOW = 64
"""Anchors that are looked at to find the next one."""

_A, _B = 0, 1


def lines(graph: Graph, held: Held, budget: int) -> Iterator[Line]:
    """Some lines, those first that differ least from the one there is.

    Args:
        graph: of the block.
        held: what takes registers.
        budget: bytes of a lane.
    """
    yield line_of(graph, held, range(len(graph.ops)))
    yield line_of(graph, held, graph.anchors)
    for side in (_B, _A):
        yield line_of(graph, held, _by_loads(graph, side))
    yield _within(graph, held, budget)


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


def _within(graph: Graph, held: Held, budget: int) -> Line:
    """The order there is, as long as the registers last; else what frees most."""
    line, left = Line(graph, held), list(graph.anchors)
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
