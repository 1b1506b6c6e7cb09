"""The graph of values that need a map, and of the relations between their maps.

A `Node` stands for values that always have the same map (a loop-carried value in all
its names, a tile and the same tile after it moved). An `Edge` connects an operand to
the node that its map follows from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue
from xdsl.utils.disjoint_set import DisjointSet

from xetl.analysis.axes import defined_by, lines_of
from xetl.dialects import xetile
from xetl.dialects.base import vector_type
from xetl.dialects.traits import Reduces, element_trait
from xetl.dialects.upstream import scf
from xetl.dialects.upstream.elementwise import bit_width
from xetl.language.distribution import Layout
from xetl.records import record
from xetl.transforms.propagate_wg_maps import map_attributes, rules

TRIPS = 8
"""The assumed number of iterations of a loop."""
SMALL = 1024
"""The most bytes of a value that every subgroup may hold as a whole."""
_RELOADED = 0.25
"""The cost of loading a value again, relative to an exchange."""
_PARTIAL_SUMS = 4
"""How many partial sums are exchanged for each sum."""


@record(frozen=True, eq=False)
class Given:
    """A map that the user wrote, and the operation that carries it."""

    layout: Layout
    op: Operation


@record(eq=False)
class Node:
    """Values that have the same map, and the facts that determine this map."""

    shape: tuple[int, int]
    bits: int
    weight: float
    given: Given | None = None
    label: Layout | None = None
    origin: Given | None = None
    """The user's map that the label comes from. None: the cost model chose it."""
    edges: list[Edge] = field(default_factory=list["Edge"])
    together: set[int] = field(default_factory=set[int])
    """Dimensions along which an operation needs all elements in one subgroup."""
    rows_of: list[Node] = field(default_factory=list["Node"])
    """The products whose left side it is."""
    lines: set[int] = field(default_factory=set[int])
    """Dimensions along which a subgroup must have its elements in one part."""
    feeds_whole: bool = False
    """Whether an operation needs the whole value in every subgroup."""
    becomes: list[Node] = field(default_factory=list["Node"])
    """The nodes that the user converts it to."""

    @property
    def bytes(self) -> int:
        """The size of the value in bytes."""
        return prod(self.shape) * max(1, self.bits // 8)


@record(frozen=True, eq=False)
class Edge:
    """The map of ``operand`` follows from ``anchor``; ``cost``: of a conversion."""

    relation: rules.Relation
    anchor: Node
    operand: Node
    cost: float

    def other(self, node: Node) -> Node:
        """Return the end of the edge that is not ``node``."""
        return self.operand if self.anchor is node else self.anchor

    @property
    def turns(self) -> bool:
        """Whether the rows of one node are the columns of the other."""
        return self.relation.backward is map_attributes.transposed

    @property
    def is_one_to_one(self) -> bool:
        """Whether each map determines the other, and the values have equal sizes."""
        return self.relation.backward in (rules.same, map_attributes.transposed)


class Graph:
    """All nodes and edges of one kernel.

    Attributes:
        products: all tile_mma operations, and how often each runs.
        whole: operations that every subgroup does on whole values.
        frees: values that are made again for each use.
    """

    def __init__(self, kernel: Operation) -> None:
        self.products: list[tuple[xetile.TileMmaOp, float]] = []
        self.whole: list[Operation] = []
        self.frees: list[SSAValue] = []
        self.tiles: list[SSAValue] = []
        self._same = DisjointSet[SSAValue]()
        self._runs: dict[SSAValue, float] = {}
        self._relations: list[rules.Relation] = []
        self._special: list[Any] = []
        self._ties: list[tuple[SSAValue, SSAValue]] = []
        self._given: list[tuple[SSAValue, Layout, Operation]] = []
        self._visit_inside(kernel, 1.0)
        self._merge_ties()
        self.nodes = self._make_nodes()
        self._set_given()
        self._make_edges()
        self._read_special()

    def node(self, value: SSAValue) -> Node:
        """Return the node of a value that `is_mapped` and not `is_free`."""
        return self.nodes[self._same.find(value)]

    def has(self, value: SSAValue) -> bool:
        """Whether the value has a node."""
        return value in self._runs

    def bytes_of(self, value: SSAValue) -> int:
        """Return the bytes of a value that has a node, and is no tile; else 0."""
        is_held = self.has(value) and not isinstance(value.type, xetile.TileType)
        return _bytes(value) if is_held else 0

    # Reading the kernel ---------------------------------------------------------------

    def _visit_inside(self, op: Operation, runs: float) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    self._visit(inner, runs)

    def _visit(self, op: Operation, runs: float) -> None:
        for value in defined_by(op):
            self._define(value, runs)
        # Maps of an operation's results take precedence over maps of its operands.
        for value, found in given_maps(op):
            if self.has(value):
                self._given.append((value, found, op))
        if isinstance(op, xetile.TileMmaOp) and map_attributes.is_matrix(op.result):
            self.products.append((op, runs))
        if lines_of(op) or isinstance(op, xetile.TileConvLayoutOp):
            self._special.append(op)
        if rules.needs_whole(op):
            self.whole.append(op)
        else:
            self._ties += rules.ties(op)
            self._relations += rules.relations(op)
        is_loop = isinstance(op, scf.ForOp | scf.WhileOp)
        self._visit_inside(op, runs * TRIPS if is_loop else runs)

    def _define(self, value: SSAValue, runs: float) -> None:
        if not rules.is_mapped(value):
            return
        if rules.is_free(value):
            self.frees.append(value)
            return
        self._same.add(value)
        self._runs[value] = runs
        if isinstance(value.type, xetile.TileType):
            self.tiles.append(value)

    # Building -------------------------------------------------------------------------

    def _merge_ties(self) -> None:
        pairs = list(self._ties)
        for each in self._relations:
            # No conversion of a tile exists, but a load may differ from its tile.
            is_tile = isinstance(each.operand.type, xetile.TileType)
            if is_tile and not isinstance(each.operation, xetile.LoadTileOp):
                pairs.append((each.operand, each.anchor))
        for one, other in pairs:
            if self.has(one) and self.has(other):
                self._same.union(one, other)

    def _make_nodes(self) -> dict[SSAValue, Node]:
        nodes: dict[SSAValue, Node] = {}
        for value, runs in self._runs.items():
            root, cost = self._same.find(value), runs * _bytes(value)
            if root in nodes:
                nodes[root].weight = max(nodes[root].weight, cost)
            else:
                rows, columns = map_attributes.matrix_shape(value)
                nodes[root] = Node((rows, columns), bits_of(value), cost)
        for op in self.whole:
            for operand in op.operands:
                if self.has(operand):
                    nodes[self._same.find(operand)].feeds_whole = True
        return nodes

    def _set_given(self) -> None:
        # Maps of results come first.
        known = sorted(self._given, key=lambda each: each[0] in each[2].operands)
        for value, found, op in known:
            node = self.node(value)
            if node.given is None:
                node.given = Given(found, op)

    def _read_special(self) -> None:
        for op in self._special:
            if not isinstance(op, xetile.TileConvLayoutOp):
                self.node(op.result).lines.update(lines_of(op))
            elif self.has(op.source):
                self.node(op.source).becomes.append(self.node(op.result))

    def _make_edges(self) -> None:
        for each in self._relations:
            if not (self.has(each.operand) and self.has(each.anchor)):
                continue
            anchor, operand = self.node(each.anchor), self.node(each.operand)
            operand.together.update(_together(each))
            if isinstance(each.operation, xetile.TileMmaOp) and each.index == 0:
                operand.rows_of.append(anchor)
            if anchor is not operand:
                edge = Edge(each, anchor, operand, self._cost(each, anchor))
                anchor.edges.append(edge)
                operand.edges.append(edge)

    def _cost(self, relation: rules.Relation, anchor: Node) -> float:
        """Return the bytes to exchange if the operand does not have the wanted map."""
        operand, op = relation.operand, relation.operation
        runs = self._runs[operand]
        if element_trait(type(op)) is Reduces:
            return runs * min(_bytes(operand), _PARTIAL_SUMS * anchor.bytes)
        if isinstance(op, xetile.LoadTileOp | xetile.StoreTileOp) and can_retile(
            op.tile
        ):
            return 0.0
        return runs * _bytes(operand) * (_RELOADED if can_reload(operand) else 1.0)


def _together(relation: rules.Relation) -> tuple[int, ...]:
    """Return dimensions of the operand along which a subgroup needs all elements."""
    op = relation.operation
    if isinstance(op, xetile.TileMmaOp):
        return ((1,), (0,), ())[relation.index]
    if element_trait(type(op)) is not Reduces:
        return ()
    reduction: Any = op
    return reduction.dims


def given_maps(op: Operation) -> Iterator[tuple[SSAValue, Layout]]:
    """Yield the maps that an operation carries, each with its value."""
    if isinstance(op, xetile.InitTileOp):
        yield from _given((op.result, op.result.type.wg_map))
    elif isinstance(op, xetile.TileMmaOp):
        yield from _given((op.result, op.wg_map), (op.a, op.wg_map_a))
        yield from _given((op.b, op.wg_map_b))
    elif not isinstance(op, xetile.LoadTileOp):
        maps = ((value, map_attributes.map_of(value)) for value in defined_by(op))
        yield from ((value, found) for value, found in maps if found is not None)
        if op.operands:
            yield from _given((op.operands[0], xetile.wg_map_of(op, "source_map")))


def _given(
    *pairs: tuple[SSAValue, xetile.WorkgroupMap | None],
) -> Iterator[tuple[SSAValue, Layout]]:
    return ((value, xetile.layout_of(m)) for value, m in pairs if m is not None)


def can_retile(tile: SSAValue) -> bool:
    """Whether a second tile with another map can be made at the same place."""
    op = xetile.unmoved(tile)[0].owner
    is_made = isinstance(op, xetile.InitTileOp)
    return is_made and op.result.type.wg_map is None and op.indices is None


def can_reload(value: SSAValue) -> bool:
    """Whether a value is loaded from a tile without a map from the user."""
    op = value.owner
    return (
        isinstance(op, xetile.LoadTileOp)
        and len(op.results) == 1
        and can_retile(op.tile)
    )


def bits_of(value: SSAValue) -> int:
    """Return the bits of an element of a vector or a tile; 64 for an index."""
    type_ = value.type
    element = (xetile.tile_type if isinstance(type_, xetile.TileType) else vector_type)(
        value
    )
    return bit_width(element.element_type)


def _bytes(value: SSAValue) -> int:
    return prod(map_attributes.matrix_shape(value)) * max(1, bits_of(value) // 8)
