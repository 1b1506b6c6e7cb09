"""Builds the index arithmetic that depends on the id of a subgroup; parts of values.

What depends on nothing but the id is computed once, at the head of the kernel.
Source: XeTile RFC, "wg_map"; docs/xetile.md, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Index, is_memref
from xetl.dialects.literals import make_splat
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import arith, gpu, memref, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.dialects.xetile.types import SHARED
from xetl.ir.builder import Builder, remade
from xetl.language.distribution import Layout, rounds
from xetl.transforms.diagnostics import refusal
from xetl.transforms.propagate_wg_maps.map_attributes import is_map, is_matrix

Origin = tuple[Index, ...]
_ALIGNMENT = 64
"""Of shared memory, in bytes: what a block access asks for."""


class Subgroups(Builder):
    """The builder of one kernel's rewriting, which knows the kernel's subgroups.

    Args:
        head: the first block of the kernel.
        slm_limit: how many bytes of shared memory exchanges may use at a time.
    """

    def __init__(self, head: Block, subgroups: int, slm_limit: int) -> None:
        first = head.first_op
        assert first is not None
        super().__init__(InsertPoint.before(first), first.location)
        self.subgroups = subgroups
        self.slm_limit = slm_limit
        self._head = Builder.before(first)
        self._scratch: memref.AllocOp | None = None

    def head_constant(self, value: int) -> SSAValue:
        """A constant of type `index` at the head of the kernel."""
        return self._head.once((value,), lambda head: head.index(value))

    # Who am I -----------------------------------------------------------------------

    @property
    def identity(self) -> SSAValue:
        """The number of this subgroup in its workgroup."""
        return self._head.once(("id",), lambda head: head.insert(gpu.SubgroupIdOp()))

    def coordinates(self, layout: Layout) -> Origin:
        """Where this subgroup stands in ``sg_layout``; numbers where all agree."""
        key = ("at", layout.sg_layout, layout.order)
        return self._head.once(key, lambda head: self._coordinates(head, layout))

    def _coordinates(self, head: Builder, layout: Layout) -> Origin:
        found: list[Index] = [0] * layout.rank
        rest: Index = self.identity if layout.subgroups > 1 else 0
        slower = layout.subgroups
        for dim in layout.order:
            count = layout.sg_layout[dim]
            slower //= count
            # Ids end where the slowest dimension does: nothing is left to divide.
            found[dim] = head.remainder(rest, count) if slower > 1 else rest
            rest = head.divided(rest, count) if slower > 1 else 0
        return tuple(found)

    # What do I own ------------------------------------------------------------------

    def origin(self, shape: Sequence[int], layout: Layout, part: int) -> Origin:
        """Where the sub-tile number ``part`` of this subgroup begins, in elements.

        Args:
            shape: of the tile of the workgroup.
            part: as `distribution.origins` counts them, dimension 0 outermost.

        Returns:
            An entry a dimension: an int where it is the same for all subgroups,
            otherwise a value of type `index`.
        """
        turns: list[int] = []
        for count in reversed(rounds(shape, layout)):
            part, turn = divmod(part, count)
            turns.insert(0, turn)
        return tuple(
            self._along(dim, shape[dim], layout, turn) for dim, turn in enumerate(turns)
        )

    def _along(self, dim: int, extent: int, layout: Layout, turn: int) -> Index:
        count, size = layout.sg_layout[dim], layout.sg_data[dim]
        sub_tiles = extent // size
        if sub_tiles == 1:
            return 0
        key = ("from", dim, layout.sg_layout, layout.order, sub_tiles, size, turn)

        def answer(head: Builder) -> Index:
            mine = self.coordinates(layout)[dim]
            if count > sub_tiles:  # they wrap: several own the same
                mine = head.remainder(mine, sub_tiles)
            return head.plus(head.times(mine, size), turn * count * size)

        return self._head.once(key, answer)

    def first_owner(self, shape: Sequence[int], layout: Layout) -> SSAValue | None:
        """Whether this subgroup speaks for all that share its data; None: always.

        What must be done once (an atomic, a store) is done by this one.
        """
        sub_tiles = [extent // size for extent, size in zip(shape, layout.sg_data)]
        shared = [d for d, n in enumerate(sub_tiles) if layout.sg_layout[d] > n]
        if not shared:
            return None
        limits = tuple((dim, sub_tiles[dim]) for dim in shared)
        key = ("first", layout.sg_layout, layout.order, limits)

        def answer(head: Builder) -> SSAValue:
            at = self.coordinates(layout)
            return head.both(*[head.compare("ult", at[dim], n) for dim, n in limits])

        return self._head.once(key, answer)

    # Memory between subgroups -------------------------------------------------------

    def scratch(self, size: int) -> SSAValue:
        """Shared memory of at least ``size`` bytes, as ``memref<? x i8, 3>``.

        There is one, for all who ask: whoever has used it leaves a barrier behind the
        last read before it is written again.  The value is good until the next call.
        """
        old = self._scratch
        if old is not None and prod(old.result.type.get_shape()) >= size:
            return old.result
        space = IntegerAttr(SHARED, i64)
        type_ = MemRefType(i8, [size], memory_space=space)
        new = memref.AllocOp(type_, alignment=_ALIGNMENT)
        if old is None:
            self._head.add(new)
        else:
            # Where the old one stands, as that is ahead of all who use it.
            Builder.before(old).add(new)
            Rewriter.replace_op(old, [], [new.result])
        self._scratch = new
        return new.result


Build = Callable[[], Sequence[SSAValue]]


def is_leader(team: Subgroups) -> SSAValue | None:
    """Whether this is the subgroup that acts for all; None: there is no other."""
    return team.first_owner((1,), Layout((team.subgroups,), (1,)))


def guarded(
    team: Subgroups,
    condition: SSAValue | None,
    types: Sequence[Attribute],
    build: Build,
) -> list[SSAValue]:
    """What ``build`` adds and gives where ``condition`` holds, zeros elsewhere.

    Args:
        condition: None: it always holds.
        types: of what ``build`` gives.
    """
    if condition is None:
        return list(build())
    then = Block()
    with team.inside(then):
        team.add(scf.YieldOp(*build()))
    otherwise = Region()
    if types:
        block = Block()
        with team.inside(block):
            zeros = [team.add(arith.ConstantOp(make_splat(0, t), t)) for t in types]
            team.add(scf.YieldOp(*zeros))
        otherwise.add_block(block)
    return list(team.add(scf.IfOp(condition, types, Region(then), otherwise)).results)


def is_distributed(value: SSAValue) -> bool:
    """Whether a subgroup holds parts of a value, instead of all of it."""
    return isinstance(value.type, TileType) or is_matrix(value)


def count_parts(shape: Sequence[int], layout: Layout) -> int:
    """How many sub-tiles a subgroup owns."""
    return prod(rounds(shape, layout))


def without_maps(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """All but what says how values are distributed."""
    return {k: v for k, v in attributes.items() if not is_map(k, v)}


def keep_without_maps(op: Operation) -> None:
    """Strip the maps of an operation that stays."""
    for attributes in (op.attributes, op.properties):
        for name in [n for n, value in attributes.items() if is_map(n, value)]:
            del attributes[name]


def rebuilt(
    op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
) -> Operation:
    """The same operation on other operands, without maps."""
    new = remade(op, operands, result_types)
    keep_without_maps(new)
    return new


def is_private(value: SSAValue) -> bool:
    """Whether a memref is memory that the kernel asked for, and not shared memory."""
    owner = value.owner
    while isinstance(owner, Operation):
        if isinstance(owner, memref.AllocOp | memref.AllocaOp):
            return memory_space_of(owner.result.type) != SHARED
        if not owner.operands or not is_memref(owner.operands[0].type):
            return False
        owner = owner.operands[0].owner
    return False


def writes_private(op: Operation) -> bool:
    """Whether what an operation has to do with memory is all private."""
    bases = [each for each in op.operands if is_memref(each.type)]
    return bool(bases) and all(is_private(each) for each in bases)


def refuse_private_tile(op: InitTileOp) -> None:
    """Tiles of a workgroup lie where all its subgroups see them.

    Raises:
        IRError: this one lies in memory that each subgroup has for itself.
    """
    if not is_memref(op.source.type) or not is_private(op.source):
        return
    problem = "allocate it in memory space 3: `memref.alloc() : memref<..., 3>`"
    raise refusal(
        op, "a tile of a workgroup needs memory that all its subgroups see", problem
    )
