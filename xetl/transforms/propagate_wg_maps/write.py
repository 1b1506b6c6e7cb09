"""Write the chosen maps into a kernel, and convert values where two maps differ.

A free value (a splat, say) is made again for each map. A loaded value is loaded again
through a tile of its own, unless the user gave this tile a map. Any other value goes
through a ``tile_conv_layout`` after its definition: outside of loops that only use it,
and once for all users of the same map.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation, SSAValue

from xetl.analysis.axes import defined_by
from xetl.dialects import xetile
from xetl.dialects.base import vector_type
from xetl.ir.builder import Builder, remade
from xetl.language.distribution import Layout, row_major, whole
from xetl.transforms.diagnostics import positions_of, remark
from xetl.transforms.propagate_wg_maps import map_attributes
from xetl.transforms.propagate_wg_maps.graph import (
    SMALL,
    Given,
    Graph,
    Node,
    can_retile,
)
from xetl.transforms.propagate_wg_maps.rules import Relation, is_free, relations


class Writer:
    """The state of the rewriting of one kernel; ``team`` is any of its layouts."""

    def __init__(self, graph: Graph, team: Layout) -> None:
        self._graph = graph
        self._team = team
        self._changed: dict[tuple[SSAValue, Layout], SSAValue] = {}
        self._used: set[SSAValue] = set()
        """Free values that have their map already."""
        self._retiled: dict[tuple[SSAValue, Layout], SSAValue] = {}
        self._first_tiles: dict[SSAValue, SSAValue] = {}
        """The original tile of each load that was given another one."""
        self._loaded: dict[SSAValue, Node] = {}
        """The node of the tile, for loads that keep the tile's map, not their own."""

    def write(self, kernel: Operation) -> None:
        """Give every value of the kernel its map."""
        operations = list(kernel.walk())
        for op in operations:
            self._give_maps(op)
            if isinstance(op, xetile.LoadTileOp) and map_attributes.is_matrix(
                op.result
            ):
                self._meet_tile(op)
        for op in operations:
            for relation in list(relations(op)):
                self._meet(relation)
            if isinstance(op, xetile.TileConvLayoutOp):
                self._meet_conversion(op)
        for op in self._graph.whole:
            self._meet_whole(op)
        for value in self._graph.frees:
            if value not in self._used:
                map_attributes.set_map(value, self._whole(value))
        for tile in self._graph.tiles:
            map_attributes.set_tile_map(tile, _written(self._graph.node(tile)))

    def _give_maps(self, op: Operation) -> None:
        """Set the maps of results and block arguments; tiles get theirs at the end."""
        for name in ("map", "source_map"):
            op.attributes.pop(name, None)
        if isinstance(op, map_attributes.ReadsTile):
            return
        for value in defined_by(op):
            if map_attributes.is_matrix(value) and self._graph.has(value):
                map_attributes.set_map(value, _written(self._graph.node(value)))
        if isinstance(op, xetile.TileMmaOp) and op.wg_map_c is not None:
            c = xetile.layout_of(op.wg_map_c)
            sides = [
                xetile.attribute_of(map_attributes.plain(each.backward(c)))
                for each in relations(op)
            ]
            op.wg_map_a, op.wg_map_b = sides[:2]

    # Where two maps meet --------------------------------------------------------------

    def _node(self, value: SSAValue) -> Node:
        return self._loaded.get(value) or self._graph.node(value)

    def _label(self, value: SSAValue) -> Layout:
        found = self._node(value).label
        assert found is not None, "a value without a map"
        return found

    def _whole(self, value: SSAValue) -> Layout:
        shape = vector_type(value).get_shape()
        return map_attributes.plain(whole(shape, (self._team.subgroups, 1)))

    def _meet_tile(self, op: xetile.LoadTileOp) -> None:
        """Make a load and its tile agree on a map."""
        own, wanted = self._label(op.tile), self._label(op.result)
        if own == wanted:
            return
        if can_retile(op.tile):
            self._first_tiles[op.result] = op.tile
            op.operands[0] = self._tile_with(op.tile, wanted)
        else:
            self._loaded[op.result] = self._graph.node(op.tile)

    def _meet(self, relation: Relation) -> None:
        """Give an operand the map that its relation demands."""
        op, operand = relation.operation, relation.operand
        if not map_attributes.is_matrix(operand):
            return
        wanted = map_attributes.plain(relation.backward(self._label(relation.anchor)))
        if is_free(operand):
            op.operands[relation.index] = self._free(operand, wanted)
        elif relation.is_strict and not self._agrees(operand, wanted):
            if isinstance(op, xetile.StoreTileOp) and self._stores_as_it_is(op):
                op.operands[1] = self._tile_with(op.tile, self._label(operand))
                return
            target = self._node(relation.anchor)
            op.operands[relation.index] = self._change(operand, wanted, op, target)

    def _agrees(self, value: SSAValue, wanted: Layout) -> bool:
        shape = vector_type(value).get_shape()
        return map_attributes.same_owners(shape, self._label(value), wanted)

    def _stores_as_it_is(self, op: xetile.StoreTileOp) -> bool:
        """Whether the tile may take the map of the value.

        A large value that every subgroup owns is not stored as it is: only one subgroup
        would store it.
        """
        node = self._node(op.value)
        assert node.label is not None
        alone = map_attributes.is_whole(node.shape, node.label) and node.bytes > SMALL
        return can_retile(op.tile) and not alone

    def _meet_conversion(self, op: xetile.TileConvLayoutOp) -> None:
        """Record the source map in a conversion that the user wrote."""
        if is_free(op.source):
            op.operands[0] = self._free(op.source, self._label(op.result))
        else:
            op.attributes["source_map"] = xetile.attribute_of(self._label(op.source))

    def _meet_whole(self, op: Operation) -> None:
        for index, operand in enumerate(op.operands):
            if not map_attributes.is_matrix(operand):
                continue
            wanted = self._whole(operand)
            if is_free(operand):
                op.operands[index] = self._free(operand, wanted)
            elif not self._agrees(operand, wanted):
                op.operands[index] = self._change(operand, wanted, op, None)

    # Conversions ----------------------------------------------------------------------

    def _free(self, value: SSAValue, wanted: Layout) -> SSAValue:
        """Return the value for the first wanted map, a copy for each later map."""
        found = self._changed.get((value, wanted))
        if found is None:
            found = value
            if value in self._used:
                assert isinstance(value.owner, Operation)
                found = _behind(value, value.owner.clone())
            self._used.add(value)
            map_attributes.set_map(found, wanted)
            self._changed[value, wanted] = found
        return found

    def _change(
        self, value: SSAValue, wanted: Layout, user: Operation, target: Node | None
    ) -> SSAValue:
        """Return ``value`` with the map that ``user`` needs."""
        found = self._changed.get((value, wanted))
        if found is None:
            found = self._make(value, wanted, user, target)
            self._changed[value, wanted] = found
        return found

    def _make(
        self, value: SSAValue, wanted: Layout, user: Operation, target: Node | None
    ) -> SSAValue:
        owner = value.owner
        if isinstance(owner, xetile.LoadTileOp):
            tile = self._first_tiles.get(value, owner.tile)
            if len(owner.results) == 1 and can_retile(tile):
                load = owner.clone()
                load.operands[0] = self._tile_with(tile, wanted)
                return _behind(value, load)
        source = self._label(value)
        report_change(value, source, wanted, user, self._node(value), target)
        maps = xetile.attribute_of(wanted), xetile.attribute_of(source)
        return _behind(value, xetile.TileConvLayoutOp(value, *maps), user)

    def _tile_with(self, tile: SSAValue, wanted: Layout) -> SSAValue:
        """Return a tile of the same memory with another map."""
        if self._graph.node(tile).label == wanted:
            return tile
        found = self._retiled.get((tile, wanted))
        if found is None:
            found = self._retiled[tile, wanted] = self._retile(tile, wanted)
        return found

    def _retile(self, tile: SSAValue, wanted: Layout) -> SSAValue:
        op = tile.owner
        if isinstance(op, xetile.UpdateTileOffsetOp):
            base = self._tile_with(op.tile, wanted)
            new = xetile.UpdateTileOffsetOp(base, op.mixed_offsets)
            return _behind(tile, new)
        assert isinstance(op, xetile.InitTileOp)
        type_ = map_attributes.with_map(xetile.tile_type(tile), wanted)
        return _behind(tile, remade(op, op.operands, [type_]))


def _written(node: Node) -> Layout:
    """Return the label of a node with the user's inst_data and lane fields."""
    label, given = node.label, node.given
    assert label is not None, "a value without a map"
    if given is None or given.layout.sg_data != label.sg_data:
        return label
    return replace(
        label,
        inst_data=given.layout.inst_data,
        lane_layout=given.layout.lane_layout,
        lane_data=given.layout.lane_data,
    )


def _behind(value: SSAValue, new: Operation, user: Operation | None = None) -> SSAValue:
    """Insert an operation after the definition of ``value``; return its result."""
    place = value.owner if user is None else user
    if isinstance(place, Operation):
        new.location = place.location
    return Builder.after(value).insert(new)


TOPIC = "maps"


def report_change(
    value: SSAValue,
    source: Layout,
    wanted: Layout,
    user: Operation,
    origin: Node,
    target: Node | None,
) -> None:
    """Report that ``value`` is converted for ``user``.

    Args:
        wanted: the map that ``user`` needs.
        origin: the node whose map is ``source``.
        target: the node that ``wanted`` follows from; None: every subgroup needs all.
    """
    move = f"{_described(value)} changes from {_shown(source)} to {_shown(wanted)}"
    remark(user, TOPIC, f"{move}: {origin.bytes} bytes go through shared memory")
    one, other = origin.origin, target and target.origin
    if one is None or other is None or one is other:
        return
    text = (
        f"the maps at {_place(one)} and {_place(other)} do not fit together: {move} "
        "through shared memory; write `tile_conv_layout` if that is meant"
    )
    remark(user, TOPIC, text, is_warning=True)


def _place(given: Given) -> str:
    found: FileLineColLoc | None = next(positions_of(given.op.location), None)
    return f"line {found.line.data}" if found else f"`{given.op.name}`"


def _described(value: SSAValue) -> str:
    type_ = vector_type(value)
    shape = "x".join(map(str, type_.get_shape()))
    return f"a value of {shape} {type_.element_type!s}"


def _shown(layout: Layout) -> str:
    """Return a map as the user writes it; with ``order`` unless it is row-major."""
    text = f"{list(layout.sg_layout)}, {list(layout.sg_data)}"
    if layout.order != row_major(layout.rank):
        text += f", order={[*layout.order]}"
    return f"wg_map({text})"
