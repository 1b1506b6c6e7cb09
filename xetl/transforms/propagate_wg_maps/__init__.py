"""Give every vector of rank 2 a map: which subgroup owns which part of it.

*What*: propagate the user's maps (of tiles, operations, products) backwards to the
operations that define their operands, by the rules of the RFC, and forwards to values
without a map. A cost model chooses all other maps. Where two maps differ, insert a
``tile_conv_layout`` at the cheapest place and report it: a remark, or a warning if the
user gave both maps.
*Why*: after this pass each operation states the part that a subgroup does.
*Left alone*: kernels at subgroup level; values that are no vectors of rank 2 (every
subgroup holds all of them); scatter tiles of rank 1.

before: %v = load_tile %t : tile<256x32>        (no map)
        %d = tile_mma %v, %w {wg_map_c = ([8, 4]; [32, 64])}
after:  %v = load_tile %t : tile<256x32, wg_map = ([8, 4]; [32, 32])>

Source: XeTile RFC, "Workgroup Level XeTile extension"; docs/xetile.md, section 5; the
other parts are rules, graph, choose and write.

The search: maps grow from the known ones along the edges of the graph, the most
expensive edge first (as a maximum spanning forest grows). So two maps meet at a cheap
edge: after a conversion to f16 rather than before it, outside of a loop rather than
inside, at a load rather than at a product. Values that no map reaches get one from the
cost model (`choose`), first the products, then the largest value.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from math import prod

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue

from xetl.analysis.axes import defined_by
from xetl.analysis.liveness import Liveness
from xetl.devices import Device, find_device
from xetl.dialects.base import operations_in, vector_type
from xetl.dialects.kernel_attributes import LEVEL, SUBGROUP
from xetl.dialects.upstream import func, gpu
from xetl.dialects.xetile import LoadGatherOp, TileMmaOp
from xetl.ir.builder import Pass
from xetl.language.distribution import Layout, whole
from xetl.transforms.propagate_wg_maps import choose
from xetl.transforms.propagate_wg_maps.graph import (
    SMALL,
    Edge,
    Given,
    Graph,
    Node,
    bits_of,
)
from xetl.transforms.propagate_wg_maps.map_attributes import counted, plain, with_data
from xetl.transforms.propagate_wg_maps.write import Writer
from xetl.worklist import Worklist

_Known = Callable[[Node], Layout | None]
"""Returns the known map of an operand, or None, before its product has a map."""


class _Search:
    def __init__(self, graph: Graph, live: Liveness, device: Device) -> None:
        self._graph = graph
        self._live = live
        self._device = device
        self._nodes = list(graph.nodes.values())
        self._any: Layout | None = None
        self._turned: dict[Node, bool] = {}
        self._tick = count()

    def run(self) -> Layout | None:
        """Label all nodes; return any label. Return None if there are no nodes."""
        self._find_turns()
        self._flood(self._seeds())
        self._free_products()
        for op, _ in sorted(self._graph.products, key=_work, reverse=True):
            node = self._graph.node(op.result)
            if node.label is None:
                self._label(node, self._best_of_product(op, lambda n: n.label), None)
                self._flood([node])
        self._label_whole()
        for node in sorted(self._nodes, key=lambda n: -n.weight):
            if node.label is None:
                self._choose_value(node)
        return self._any

    # The order of ids -----------------------------------------------------------------

    def _find_turns(self) -> None:
        """Find the values that are used transposed, starting at products and stores.

        The ids of their subgroups count down the columns, so a transpose does not
        change the owners. Maps with one row or one column of subgroups are the same in
        both orders. The user's other maps keep ids that count along the rows, so the
        search visits them before all remaining values.
        """
        products = [self._graph.node(op.result) for op, _ in self._graph.products]
        stated = [
            n for n in self._nodes if n.given and 1 not in n.given.layout.sg_layout
        ]
        tiles = [self._graph.node(tile) for tile in self._graph.tiles]
        for node in (*products, *stated, *tiles, *self._nodes):
            self._turn_from(node)

    def _turn_from(self, start: Node) -> None:
        if start in self._turned:
            return
        self._turned[start] = False
        waiting = Worklist([start])
        for node in waiting:
            for edge in node.edges:
                other = edge.other(node)
                if other not in self._turned:
                    self._turned[other] = self._turned[node] != edge.turns
                    waiting += [other]

    # Growing --------------------------------------------------------------------------

    def _seeds(self) -> list[Node]:
        """Label the nodes whose map the user gave, and return them."""
        seeds = [node for node in self._nodes if node.given is not None]
        for node in seeds:
            given = node.given
            assert given is not None
            self._label(node, counted(given.layout, self._turned[node]), given)
        return seeds

    def _label(self, node: Node, layout: Layout, origin: Given | None) -> None:
        if origin is None or origin is not node.given:
            layout = self._with_whole_lines(node, layout)
        node.label, node.origin = layout, origin
        if self._any is None:
            self._any = layout

    def _with_whole_lines(self, node: Node, layout: Layout) -> Layout:
        """Return a layout with each scanned line in one part.

        Subgroups share the lines if there are fewer lines than subgroups.
        """
        lines = sorted(node.lines)
        fitted = with_data(layout, lines, [node.shape[dim] for dim in lines])
        if not lines:
            return layout
        best = self._cheapest_value_map(node, layout.subgroups)
        other = counted(best, self._turned[node])
        return min(
            fitted, other, key=lambda each: prod(choose.owned_shape(node.shape, each))
        )

    def _flood(self, seeds: Iterable[Node]) -> None:
        """Propagate labels along the most expensive edges first."""
        heap: list[tuple[float, int, Node, Edge]] = []
        for node in seeds:
            self._push(heap, node)
        while heap:
            _, _, node, edge = heapq.heappop(heap)
            other = edge.other(node)
            if other.label is not None:
                continue
            layout = _across(node, edge)
            if layout is not None:
                self._label(other, layout, node.origin)
                self._push(heap, other)

    def _push(self, heap: list[tuple[float, int, Node, Edge]], node: Node) -> None:
        for edge in node.edges:
            heapq.heappush(heap, (-edge.cost, next(self._tick), node, edge))

    # Choosing -------------------------------------------------------------------------

    @property
    def _subgroups(self) -> int | None:
        return None if self._any is None else self._any.subgroups

    def _free_products(self) -> None:
        """Give a product its own best map if this map and a conversion are cheaper.

        So the map of a store, say, does not slow down a product in a loop before it.
        All maps except the user's are then propagated again.
        """
        better: dict[Node, Layout] = {}
        for op, runs in self._graph.products:
            node = self._graph.node(op.result)
            if node.label is None or node.given is not None or node in better:
                continue
            best = self._best_of_product(op, _given_of)
            product = self._product(op, _given_of)
            now, then = (
                choose.product_cost(product, layout, self._device)
                for layout in (node.label, best)
            )
            turn = choose.exchange_cost(node.shape, node.bits, best, self._device)
            if runs * (now - then) > turn:
                better[node] = best
        if not better:
            return
        for node in self._nodes:
            node.label = node.origin = None
        for node, layout in better.items():
            self._label(node, layout, None)
        self._flood([*self._seeds(), *better])

    def _best_of_product(self, op: TileMmaOp, known: _Known) -> Layout:
        product = self._product(op, known)
        found = choose.choose_product_map(product, self._subgroups, self._device)
        return counted(found, self._turned[self._graph.node(op.result)])

    def _product(self, op: TileMmaOp, known: _Known) -> choose.Product:
        node = self._graph.node(op.result)
        sides = [self._side(side, self._turned[node], known) for side in (op.a, op.b)]
        return choose.Product(
            node.shape,
            vector_type(op.a).get_shape()[1],
            bits_of(op.a),
            frozenset(self._together(node)),
            *sides,
            on_matrix_unit=choose.goes_to_matrix_unit(op, self._device),
            beside=sum(n.shape[1] for n in set(self._second_products(node))),
            others=self._others(op),
            kept=sum(node.bytes for node in self._kept(op)),
            is_gathered=isinstance(op.a.owner, LoadGatherOp),
        )

    def _others(self, op: TileMmaOp) -> int:
        """Return the bytes that live through a product, without second products."""
        start = self._graph.node(op.result)
        counted = {start, *self._second_products(start)}
        found = {self._graph.node(each) for each in self._through(op)}
        return sum(
            node.bytes
            for node in found.difference(self._kept(op))
            if counted.isdisjoint(each for each, _ in self._computed_from(node))
        )

    def _through(self, op: TileMmaOp) -> set[SSAValue]:
        """Return the values that live through a product."""
        values = self._live.behind[op].difference(op.operands)
        return {each for each in values if self._graph.bytes_of(each)}  # no tiles

    def _kept(self, op: TileMmaOp) -> set[Node]:
        """Return those of them that a loop carries and B is computed from."""
        if not self._graph.has(op.b):
            return set()
        b = self._graph.node(op.b)
        carried = (v for v in self._through(op) if isinstance(v.owner, Block))
        found = map(self._graph.node, carried)
        return {n for n in found if any(b is o for o, _ in self._computed_from(n))}

    def _side(self, value: SSAValue, turned: bool, known: _Known) -> Layout | None:
        """Return the map of A or B, with ids in the order of a C with row-major ids."""
        if not self._graph.has(value):
            return None
        node = self._graph.node(value)
        layout = known(node)
        return layout and counted(layout, self._turned[node] != turned)

    def _choose_value(self, node: Node) -> None:
        known = [each.label for each in node.becomes if each.label is not None]
        layout = known[0] if known else self._cheapest_value_map(node, self._subgroups)
        self._label(node, counted(layout, self._turned[node]), None)
        self._flood([node])

    def _cheapest_value_map(self, node: Node, subgroups: int | None) -> Layout:
        known = node.shape, node.bits, subgroups, self._device
        together, live = self._together(node), self._live.most
        return choose.choose_value_map(*known, together, node.lines, live)

    def _together(self, start: Node) -> set[int]:
        """Return dimensions along which it, or a value computed from it, is reduced."""
        onward = self._computed_from(start)
        return {1 - d if turned else d for n, turned in onward for d in n.together}

    def _second_products(self, start: Node) -> Iterator[Node]:
        """Yield products whose left side is computed from the rows of ``start``."""
        for node, turned in self._computed_from(start):
            if not turned:
                yield from node.rows_of

    def _computed_from(self, start: Node) -> Iterator[tuple[Node, bool]]:
        """Yield nodes computed from it elementwise, and whether each is transposed."""
        waiting, seen = [(start, False)], {start}
        while waiting:
            node, turned = waiting.pop()
            yield node, turned
            for edge in node.edges:
                onward = edge.operand is node and edge.is_one_to_one
                if onward and edge.anchor not in seen:
                    seen.add(edge.anchor)
                    waiting.append((edge.anchor, turned != edge.turns))

    def _label_whole(self) -> None:
        """Give whole maps to values that every subgroup computes.

        In a whole map every subgroup owns all elements. Small neighbours get one, too.
        """
        if self._any is None and self._nodes:
            self._choose_value(max(self._nodes, key=lambda node: node.weight))
        results = [value for op in self._graph.whole for value in defined_by(op)]
        found = [self._graph.node(v) for v in results if self._graph.has(v)]
        found += [n for n in self._nodes if n.feeds_whole and n.bytes <= SMALL]
        found = [node for node in found if node.label is None]
        for node in found:
            self._label(node, self._whole(node.shape), None)
        waiting = Worklist(found)
        for node in waiting:
            for other in (e.other(node) for e in node.edges if e.is_one_to_one):
                if other.label is None and other.bytes <= SMALL:
                    self._label(other, self._whole(other.shape), None)
                    waiting += [other]

    def _whole(self, shape: tuple[int, int]) -> Layout:
        assert self._any is not None
        return plain(whole(shape, (self._any.subgroups, 1)))


def _given_of(node: Node) -> Layout | None:
    return node.label if node.given is not None else None


def _work(product: tuple[TileMmaOp, float]) -> float:
    op, runs = product
    return runs * prod(vector_type(op.a).get_shape()) * vector_type(op.b).get_shape()[1]


def _across(node: Node, edge: Edge) -> Layout | None:
    """Return the label of the other end of an edge; None if it does not follow."""
    assert node.label is not None
    if edge.anchor is node:
        return plain(edge.relation.backward(node.label))
    forward = edge.relation.forward
    return None if forward is None else plain(forward(node.label))


@dataclass(frozen=True)
class PropagateWgMapsPass(Pass):
    device: str = "pvc"

    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp, func.FuncOp):
            if kernel.attributes.get(LEVEL) == StringAttr(SUBGROUP):
                continue
            graph = Graph(kernel)
            products = {product for product, _ in graph.products}
            live = Liveness(kernel.regions[0].block, graph.bytes_of, products)
            team = _Search(graph, live, find_device(self.device)).run()
            if team is not None:
                Writer(graph, team).write(kernel)
