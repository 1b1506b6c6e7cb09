"""Split tiles into their parts: a base, and the offset of the tile in it.

A tile that a loop or an if carries becomes two numbers that it carries, a scattered one
a vector of indices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint

from xetl.analysis.affine import is_non_negative
from xetl.analysis.axes import defined_by, tile_classes
from xetl.dialects import xetile
from xetl.dialects.base import Index, is_memref
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, memref, scf
from xetl.ir.builder import Builder, move_to_end
from xetl.ir.conversion import Carried, convert_for, convert_if, convert_while
from xetl.records import record

Parts = tuple[SSAValue, ...]
Access = Callable[[Operation, "Descriptors", Builder], bool]
"""Replaces an operation that accesses memory; False if it is none of a known tile."""


@record()
class Descriptors:
    """What tiles became.

    Attributes:
        family_of: the family of each tile that is replaced.
        bases: of each family, once its first `init_tile` was seen.
        starts: of each tile seen so far, row and column, or the vector of indices.
        dead: the operations that have been replaced, for the caller to erase.
    """

    family_of: dict[SSAValue, Family]
    bases: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    starts: dict[SSAValue, Parts] = field(default_factory=dict[SSAValue, Parts])
    dead: list[Operation] = field(default_factory=list[Operation])

    def knows(self, value: SSAValue) -> bool:
        """Whether this is a tile that is replaced."""
        return value in self.family_of

    def base(self, tile: SSAValue) -> SSAValue:
        """The memref a tile lies in."""
        return self.bases[id(self.family_of[tile])]


def replace_tiles(ops: Iterable[Operation], tiles: Descriptors, access: Access) -> None:
    """Replace the tiles of some operations, and of all inside."""
    for op in list(ops):
        build = Builder.before(op)
        if isinstance(op, xetile.InitTileOp) and tiles.knows(op.result):
            _init(op, tiles, build)
        elif isinstance(op, xetile.UpdateTileOffsetOp) and tiles.knows(op.result):
            _move(op, tiles, build)
        elif type(op) in _CONVERT and any(map(tiles.knows, defined_by(op))):
            new = _CONVERT[type(op)](_Carrying(tiles, access, build), op)
            new.attributes.update(op.attributes)
        elif not access(op, tiles, build):
            for region in op.regions:
                for inner in region.blocks:
                    replace_tiles(inner.ops, tiles, access)
            continue
        tiles.dead.append(op)


# Where a tile starts ----------------------------------------------------------------


def _init(op: xetile.InitTileOp, tiles: Descriptors, build: Builder) -> None:
    key = id(tiles.family_of[op.result])
    if key not in tiles.bases:
        tiles.bases[key] = _base(op, build)
    if op.indices is not None:
        tiles.starts[op.result] = (op.indices,)
    else:
        tiles.starts[op.result] = tuple(map(build.index, op.mixed_offsets))


def _base(op: xetile.InitTileOp, build: Builder) -> SSAValue:
    """The matrix; one of its own where sizes and strides are given."""
    sizes, strides = op.mixed_sizes, op.mixed_strides
    if not sizes:
        return op.source
    offset = build.add(memref.ExtractStridedMetadataOp(op.source)).results[1]
    return build.insert(memref.ReinterpretCastOp.of(op.source, offset, sizes, strides))


def _move(op: xetile.UpdateTileOffsetOp, tiles: Descriptors, build: Builder) -> None:
    start = tiles.starts[op.tile]
    if op.indices is not None:
        moved = build.insert(arith.AddiOp(start[0], op.indices))
        tiles.starts[op.result] = (moved,)
    else:
        rows, columns = map(build.plus, start, op.mixed_offsets)
        tiles.starts[op.result] = (build.index(rows), build.index(columns))


# Loops and branches -----------------------------------------------------------------


_CONVERT: dict[type[Operation], Any] = {
    scf.ForOp: convert_for,
    scf.IfOp: convert_if,
    scf.WhileOp: convert_while,
}


@record()
class _Carrying:
    """A loop or a branch that carries tiles becomes one that carries their parts.

    See `xetl.ir.conversion.Conversion`.
    """

    tiles: Descriptors
    access: Access
    emit: Builder

    def carried(self, value: SSAValue, op: Operation) -> Carried:
        """A tile as its parts, anything else as it is."""
        if not self.tiles.knows(value):
            return Carried([value.type], lambda each: [each], _replace)
        type_, starts = xetile.tile_type(value), self.tiles.starts
        index = VectorType(IndexType(), type_.shape)
        types = [index] if type_.scattered else [IndexType(), IndexType()]

        def bind(old: SSAValue, new: Sequence[SSAValue]) -> None:
            starts[old] = tuple(new)

        return Carried(types, starts.__getitem__, bind)

    def converted(self, value: SSAValue) -> SSAValue:
        """A scalar as it is."""
        return value

    def convert(self, block: Block) -> None:
        """Move the operations of a block to the open one, and replace them there."""
        target = self.emit.point.block
        operations = list(block.ops)[:-1]
        move_to_end(operations, target)
        replace_tiles(operations, self.tiles, self.access)
        self.emit.point = InsertPoint.at_end(target)


def _replace(old: SSAValue, new: Sequence[SSAValue]) -> None:
    new[0].name_hint = old.name_hint
    old.replace_all_uses_with(new[0])


_READERS = (
    *(
        xetile.LoadTileOp,
        xetile.StoreTileOp,
        xetile.PrefetchTileOp,
        xetile.LoadGatherOp,
        xetile.StoreScatterOp,
    ),
    *(xetile.UpdateTileOffsetOp, scf.ForOp, scf.IfOp, scf.WhileOp),
)


@record()
class Family:
    """Tiles of one type that are moved and carried into one another."""

    members: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def type(self) -> xetile.TileType:
        """The type of all of them."""
        return xetile.tile_type(self.members[0])

    def uses(self) -> Iterator[Use]:
        """All that is done with them."""
        for member in self.members:
            yield from member.uses

    def made_by(self) -> list[Operation | None]:
        """The operations that give them; loops for what they carry."""
        return [
            m.block.parent_op() if isinstance(m, BlockArgument) else _owner(m)
            for m in self.members
        ]


def _owner(value: SSAValue) -> Operation | None:
    return value.owner if isinstance(value.owner, Operation) else None


def families(ops: Sequence[Operation]) -> list[Family]:
    """All tiles of a function."""
    classes = tile_classes(ops)
    found: dict[SSAValue, Family] = {}
    for op in ops:
        for tile in defined_by(op):
            if isinstance(tile.type, xetile.TileType):
                root = classes.find((tile, 0))[0]
                found.setdefault(root, Family()).members.append(tile)
    return list(found.values())


def problem_with(family: Family) -> str | None:
    """Why transfers cannot say what these tiles do; None if they can."""
    type_ = family.type
    for op in family.made_by():
        if isinstance(op, xetile.InitTileOp):
            problem = _problem_with_base(op, type_)
        elif isinstance(op, xetile.UpdateTileOffsetOp):
            problem = _problem_with_offsets(op.mixed_offsets)
        elif isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            problem = None
        else:
            problem = "it comes from outside of the function"
        if problem is not None:
            return problem
    return _problem_with_uses(family)


def _problem_with_base(op: xetile.InitTileOp, type_: xetile.TileType) -> str | None:
    base = op.source.type
    if not is_memref(base):
        return "its base is an address"
    if type_.inner_blocks is not None:
        return "its values are looked at in blocks"
    if type_.array_length > 1 or memory_space_of(base) is None:
        return "it is no plain tile"
    if base.get_num_dims() != (1 if type_.scattered else 2):
        return f"its base has rank {base.get_num_dims()}"
    return _problem_with_offsets(op.mixed_offsets)


def _problem_with_offsets(offsets: Sequence[Index]) -> str | None:
    known = all(map(is_non_negative, offsets))
    return None if known else "it may start before its matrix does"


def _problem_with_uses(family: Family) -> str | None:
    made = [op for op in family.made_by() if isinstance(op, xetile.InitTileOp)]
    bases = {op.source for op in made}
    if len(bases) != 1 or (len(made) > 1 and any(op.mixed_sizes for op in made)):
        return "it is one of several matrices"
    for use in family.uses():
        op = use.operation
        if not isinstance(op, (*_READERS, scf.YieldOp, scf.ConditionOp)):
            return f"`{op.name}` has no counterpart"
    return None
