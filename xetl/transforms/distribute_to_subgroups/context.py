"""Build index arithmetic on the id of a subgroup, and describe the parts of values.

Values that depend only on the id are computed once, at the head of the kernel.
Source: XeTile RFC, "wg_map"; docs/xetile.md, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i8, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.dialects.base import Index, is_memref
from xetl.dialects.memref_layout import memory_space_of
from xetl.dialects.upstream import gpu, memref, scf
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.dialects.xetile.types import SHARED
from xetl.ir.builder import Builder, remade
from xetl.language.distribution import Layout, rounds
from xetl.transforms.diagnostics import refusal
from xetl.transforms.propagate_wg_maps.map_attributes import is_map, is_matrix

Origin = tuple[Index, ...]
_ALIGNMENT = 64
"""The alignment of shared memory in bytes, as block accesses require."""


class Subgroups(Builder):
    """A builder for the rewriting of one kernel, which knows the kernel's subgroups.

    Args:
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
        """Return a constant of type `index` at the head of the kernel."""
        return self._head.once((value,), lambda head: head.index(value))

    # The id of this subgroup --------------------------------------------------------

    @property
    def identity(self) -> SSAValue:
        """The number of this subgroup in its workgroup."""
        return self._head.once(("id",), lambda head: head.insert(gpu.SubgroupIdOp()))

    def coordinates(self, layout: Layout) -> Origin:
        """Return the coordinates of this subgroup in ``sg_layout``.

        A coordinate is an int if it is the same for all subgroups.
        """
        key = ("at", layout.sg_layout, layout.order)
        return self._head.once(key, lambda head: self._coordinates(head, layout))

    def _coordinates(self, head: Builder, layout: Layout) -> Origin:
        found: list[Index] = [0] * layout.rank
        rest: Index = self.identity if layout.subgroups > 1 else 0
        slower = layout.subgroups
        for dim in layout.order:
            count = layout.sg_layout[dim]
            slower //= count
            # The slowest dimension takes the rest of the id: no division is needed.
            found[dim] = head.remainder(rest, count) if slower > 1 else rest
            rest = head.divided(rest, count) if slower > 1 else 0
        return tuple(found)

    # The parts of this subgroup -----------------------------------------------------

    def origin(self, shape: Sequence[int], layout: Layout, part: int) -> Origin:
        """Return where sub-tile number ``part`` of this subgroup begins, in elements.

        Args:
            part: counted as in `distribution.origins`, dimension 0 outermost.

        Returns:
            An entry for each dimension: an int if it is the same for all subgroups,
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
            if count > sub_tiles:  # they wrap: several subgroups own the same sub-tile
                mine = head.remainder(mine, sub_tiles)
            return head.plus(head.times(mine, size), turn * count * size)

        return self._head.once(key, answer)

    def first_owner(self, shape: Sequence[int], layout: Layout) -> SSAValue | None:
        """Return whether this subgroup is the first of those that share its data.

        The first owner does the work that must be done once (an atomic, a store).
        Return None if no data is shared: every subgroup is the first owner.
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
        """Return shared memory of at least ``size`` bytes, as ``memref<? x i8, 3>``.

        All callers get the same memory: each caller adds a barrier after its last
        read, before the memory is written again. The value is valid until the next
        call.
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
            # In the place of the old allocation, as that dominates all users.
            Builder.before(old).add(new)
            Rewriter.replace_op(old, [], [new.result])
        self._scratch = new
        return new.result


Build = Callable[[], Sequence[SSAValue]]


def is_leader(team: Subgroups) -> SSAValue | None:
    """Return whether this subgroup acts for all. Return None if there is only one."""
    return team.first_owner((1,), Layout((team.subgroups,), (1,)))


def guarded(
    team: Subgroups,
    condition: SSAValue | None,
    types: Sequence[Attribute],
    build: Build,
    otherwise: Sequence[SSAValue] = (),
) -> list[SSAValue]:
    """Add the operations of ``build`` under a condition; return the results.

    Args:
        condition: a value of type i1; None: it always holds.
        types: the types of the values that ``build`` returns.
        otherwise: the results where the condition does not hold; empty: zeros.
    """
    if condition is None:
        return list(build())
    then = Block()
    with team.inside(then):
        team.add(scf.YieldOp(*build()))
    rest = Region()
    if types:
        block = Block()
        with team.inside(block):
            zeros = [] if otherwise else [team.constant(0, each) for each in types]
            team.add(scf.YieldOp(*otherwise, *zeros))
        rest.add_block(block)
    return list(team.add(scf.IfOp(condition, types, Region(then), rest)).results)


def is_distributed(value: SSAValue) -> bool:
    """Whether a subgroup holds parts of a value, instead of all of it."""
    return isinstance(value.type, TileType) or is_matrix(value)


def count_parts(shape: Sequence[int], layout: Layout) -> int:
    """Return how many sub-tiles a subgroup owns."""
    return prod(rounds(shape, layout))


def without_maps(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """Return the attributes that are no maps."""
    return {k: v for k, v in attributes.items() if not is_map(k, v)}


def keep_without_maps(op: Operation) -> None:
    """Strip the maps of an operation that stays."""
    for attributes in (op.attributes, op.properties):
        for name in [n for n, value in attributes.items() if is_map(n, value)]:
            del attributes[name]


def rebuilt(
    op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
) -> Operation:
    """Return the same operation on other operands, without maps."""
    new = remade(op, operands, result_types)
    keep_without_maps(new)
    return new


def is_private(value: SSAValue) -> bool:
    """Whether a memref is memory that the kernel allocates, outside shared memory."""
    owner = value.owner
    while isinstance(owner, Operation):
        if isinstance(owner, memref.AllocOp | memref.AllocaOp):
            return memory_space_of(owner.result.type) != SHARED
        if not owner.operands or not is_memref(owner.operands[0].type):
            return False
        owner = owner.operands[0].owner
    return False


def writes_private(op: Operation) -> bool:
    """Whether an operation has memory operands, and all of them are private."""
    bases = [each for each in op.operands if is_memref(each.type)]
    return bool(bases) and all(is_private(each) for each in bases)


def refuse_private_tile(op: InitTileOp) -> None:
    """Refuse a tile in memory that each subgroup has for itself: an IRError."""
    if not is_memref(op.source.type) or not is_private(op.source):
        return
    problem = "allocate it in memory space 3: `memref.alloc() : memref<..., 3>`"
    raise refusal(
        op, "a tile of a workgroup needs memory that all its subgroups see", problem
    )
