"""Tiles that are one variable of the program, and whether `vector` can say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, SSAValue, Use

from xetl.dialects.base import Index
from xetl.dialects.kinds_of_types import is_memref
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import scf
from xetl.dialects.xetile import (
    InitTileOp,
    LoadGatherOp,
    LoadTileOp,
    PrefetchTileOp,
    StoreScatterOp,
    StoreTileOp,
    TileType,
    UpdateTileOffsetOp,
    tile_type,
)
from xetl.transforms.blocks.axes import arguments_of, tile_classes
from xetl.transforms.vectors.signs import is_not_negative

_READERS = (
    *(LoadTileOp, StoreTileOp, PrefetchTileOp, LoadGatherOp, StoreScatterOp),
    *(UpdateTileOffsetOp, scf.ForOp, scf.IfOp, scf.WhileOp),
)


@dataclass
class Family:
    """Tiles of one type that are moved and carried into one another."""

    members: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def type(self) -> TileType:
        """The type of all of them."""
        return tile_type(self.members[0])

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
        for tile in (*op.results, *arguments_of(op)):
            if isinstance(tile.type, TileType):
                root = classes.find((tile, 0))[0]
                found.setdefault(root, Family()).members.append(tile)
    return list(found.values())


def problem_with(family: Family) -> str | None:
    """Why transfers cannot say what these tiles do; None if they can."""
    type_ = family.type
    for op in family.made_by():
        if isinstance(op, InitTileOp):
            problem = _problem_with_base(op, type_)
        elif isinstance(op, UpdateTileOffsetOp):
            problem = _problem_with_offsets(op.mixed_offsets)
        elif isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp):
            problem = None
        else:
            problem = "it comes from outside of the function"
        if problem is not None:
            return problem
    return _problem_with_uses(family)


def _problem_with_base(op: InitTileOp, type_: TileType) -> str | None:
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
    known = all(map(is_not_negative, offsets))
    return None if known else "it may start before its matrix does"


def _problem_with_uses(family: Family) -> str | None:
    made = [op for op in family.made_by() if isinstance(op, InitTileOp)]
    bases = {op.source for op in made}
    if len(bases) != 1 or (len(made) > 1 and any(op.mixed_sizes for op in made)):
        return "it is one of several matrices"
    for use in family.uses():
        op = use.operation
        if not isinstance(op, (*_READERS, scf.YieldOp, scf.ConditionOp)):
            return f"`{op.name}` has no counterpart"
    return None
