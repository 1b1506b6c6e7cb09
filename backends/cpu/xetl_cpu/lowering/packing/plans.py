"""Which operands are packed for many programs, and what numbers their tiles.

Index values of a program are needed before all programs, as bounds and as copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.ir import BlockArgument, Operation, SSAValue

from xetl.analysis.affine import is_defined_outside, is_multiple_of, multiple_of
from xetl.dialects.base import Index, constant_index, is_memref, operations_in
from xetl.dialects.upstream import arith, func, scf
from xetl.dialects.upstream.memref import AllocOp
from xetl.dialects.xetile import InitTileOp, TileType
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl.worklist import sources_first
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering import tiles
from xetl_cpu.microkernels.blocking import Blocking

_GROWING: dict[type[Operation], tuple[int, ...]] = {
    # The operands that the result grows with; the others must be defined outside.
    arith.AddiOp: (0, 1),
    arith.SubiOp: (0,),
    arith.MuliOp: (0, 1),
    arith.CeildivsiOp: (0,),
    arith.FloordivsiOp: (0,),
    arith.MaxsiOp: (0, 1),
    arith.MinsiOp: (0, 1),
}


def has_bound(value: Index, loop: scf.ParallelOp) -> bool:
    """Whether `bound` can compute an upper bound of a value over all programs."""
    if is_defined_outside(value, loop):
        return True
    assert isinstance(value, SSAValue)
    op = value.owner
    if isinstance(op, arith.SelectOp):
        if 0 not in (constant_index(op.true_value), constant_index(op.false_value)):
            return False
        return has_bound(_not_zero(op), loop)
    growing = _GROWING.get(type(op)) if isinstance(op, Operation) else None
    if growing is None:
        return False
    assert isinstance(op, Operation)
    if isinstance(op, arith.MuliOp) and not all(
        map(tiles.is_non_negative, op.operands)
    ):
        return False
    return all(
        has_bound(v, loop) if i in growing else is_defined_outside(v, loop)
        for i, v in enumerate(op.operands)
    )


def bound(value: Index, loop: scf.ParallelOp, build: Builder) -> Index:
    """Build an upper bound of a value for which `has_bound` holds."""
    if is_defined_outside(value, loop):
        return value
    assert isinstance(value, SSAValue)
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return build.maximum(bound(_not_zero(op), loop, build), 0)
    assert isinstance(op, Operation)
    operands = [build.index(bound(v, loop, build)) for v in op.operands]
    return build.insert(type(op)(*operands))


def reach(
    init: InitTileOp, dim: int, loop: scf.ParallelOp, build: Builder
) -> Index | None:
    """Return the end of loops along a dimension of a matrix of B; None: unknown.

    This covers the loops of all products with tiles of the matrix, because they share
    the packed panels.
    """
    ends = list[Index]()
    for product in operations_in(loop, BrgemmTileOp):
        tile = product.b.owner
        if not isinstance(tile, InitTileOp) or tile.source is not init.source:
            continue
        counter = tile.mixed_offsets[dim]
        serial = None
        if isinstance(counter, BlockArgument) and counter.index == 0:
            serial = counter.block.parent_op()
        if not isinstance(serial, scf.ForOp) or not has_bound(serial.upper_bound, loop):
            return None
        ends.append(bound(serial.upper_bound, loop, build))
    return reduce(build.maximum, ends)


def _not_zero(op: arith.SelectOp) -> SSAValue:
    is_first = constant_index(op.true_value) != 0
    return op.true_value if is_first else op.false_value


def copier(
    loop: scf.ParallelOp, build: Builder, known: dict[SSAValue, SSAValue]
) -> Callable[[SSAValue], SSAValue]:
    """Return a function that computes values of a program again, by ``build``.

    ``known``: the values that replace programs' numbers and counters.
    """

    def inside(value: SSAValue) -> list[SSAValue]:
        """Return the operands that are made in the loop, the last one first."""
        operands = value.owner.operands if isinstance(value.owner, Operation) else ()
        return [v for v in reversed(operands) if not is_defined_outside(v, loop)]

    def copy(value: SSAValue) -> SSAValue:
        if is_defined_outside(value, loop):
            return known.get(value, value)
        for each in sources_first(value, inside, known):
            op = each.owner
            assert isinstance(op, Operation)
            new = build.add(op.clone({v: known.get(v, v) for v in op.operands}))
            new.location = op.location
            known.update(zip(op.results, new.results))
        return known.get(value, value)

    return copy


def copied(
    values: Sequence[Index], copy: Callable[[SSAValue], SSAValue]
) -> list[Index]:
    """Return indices whose values are copied by ``copy``."""
    return [v if isinstance(v, int) else copy(v) for v in values]


_Fact = Index | str | None


@record()
class Plan:
    """The packed part of an operand, and how a program finds its block in it.

    Attributes:
        init: the operand's tile.
        n_dim: which of its dimensions is n.
        tile: the value that numbers the tiles along n: the program's number, the
            counter of a loop in the program, or a value computed from the number. None:
            one tile.
        width: columns from one tile to the next.
        k_start: where along k it starts; None: ``step`` decides.
        step: counts parts of k, each as deep as one product; all are packed.
        batch: the program's number, or the counter of a loop of few iterations in the
            program, that chooses the matrix; None: all programs use one matrix.
    """

    init: InitTileOp
    n_dim: int
    tile: SSAValue | None
    width: Index
    k_start: Index | None
    step: BlockArgument | None
    batch: BlockArgument | None

    def argument(self) -> int | None:
        """Return the index of the argument that contains the operand, or None."""
        base = tiles.root(self.init.source)
        if not isinstance(base, BlockArgument):
            return None
        is_argument = isinstance(base.block.parent_op(), func.FuncOp)
        return base.index if is_argument else None

    def axis(self, loop: scf.ParallelOp) -> int | None:
        """Return the grid axis that numbers the tiles, if one does."""
        return _axis(self.tile, loop)

    def group_axis(self, loop: scf.ParallelOp) -> int | None:
        """Return the grid axis that chooses the matrix, if one does."""
        return _axis(self.batch, loop)

    def trips(self) -> int | None:
        """Return the iterations of the loop that chooses the matrix, if one does."""
        return None if self.batch is None else few_trips(self.batch)

    def is_of_program(self, loop: scf.ParallelOp) -> bool:
        """Whether a program needs one tile; otherwise it has a loop over tiles."""
        tile = self.tile
        if tile is None or isinstance(tile, BlockArgument):
            return tile is None or self.axis(loop) is not None
        return (
            isinstance(tile.owner, Operation) and tile.owner.parent is loop.body.block
        )

    def may_be_brought(self) -> bool:
        """Whether the operand is one matrix that is packed completely."""
        return self.batch is None and self.step is None


def _axis(number: SSAValue | None, loop: scf.ParallelOp) -> int | None:
    """Return the axis of the grid whose number this is, or None."""
    if isinstance(number, BlockArgument) and number.block is loop.body.block:
        return number.index
    return None


_TRIPS = 64
"""Iterations of a loop that chooses matrices, at most: it might repeat matrices."""


def few_trips(counter: BlockArgument) -> int | None:
    """Return the iterations of a loop over 0, 1, 2, ..., if they are known and few."""
    serial = counter.block.parent_op()
    if not isinstance(serial, scf.ForOp):
        return None
    bounds = (serial.lower_bound, serial.step, serial.upper_bound)
    first, step, trips = map(constant_index, bounds)
    is_few = trips is not None and trips <= _TRIPS
    return trips if (first, step) == (0, 1) and is_few else None


def same_plan(left: Plan, right: Plan) -> bool:
    """Whether two plans pack the same elements, if tiles, depths and counts agree."""
    pairs: list[tuple[_Fact, _Fact]] = [
        (left.init.source, right.init.source),
        (left.n_dim, right.n_dim),
        (left.width, right.width),
        (left.batch, right.batch),
        (left.step is None, right.step is None),
        (left.k_start, right.k_start),
        (_kind_of_tile(left), _kind_of_tile(right)),
        *zip(left.init.mixed_sizes, right.init.mixed_sizes),
        *zip(left.init.mixed_strides, right.init.mixed_strides),
    ]
    return all(same_index(one, other) for one, other in pairs)


def same_index(left: _Fact, right: _Fact) -> bool:
    """Whether two values are identical or equal constants."""
    if isinstance(left, SSAValue) and isinstance(right, SSAValue):
        known = constant_index(left)
        return left is right or (known is not None and known == constant_index(right))
    return left == right


def _kind_of_tile(plan: Plan) -> _Fact:
    """Return what the number of packed tiles depends on: a grid axis, or the matrix."""
    tile = plan.tile
    if tile is None:
        return "one"
    if not isinstance(tile, BlockArgument):
        return "all"
    return "all" if isinstance(tile.block.parent_op(), scf.ForOp) else tile.index


class NotPackedError(Exception):
    """Why an operand is packed by each program."""


def plan_or_say_why(
    op: BrgemmTileOp, loop: scf.ParallelOp, blocking: Blocking, group: int | None
) -> Plan | None:
    """Return the plan for b, and add a remark that explains the choice.

    ``group``: the axis that chooses matrices of other operands; only one is possible.
    """
    try:
        plan = _plan(op, loop, blocking)
        axis = plan.group_axis(loop)
        if None not in (group, axis) and axis != group:
            raise NotPackedError("another operand is chosen by another program_id")
    except NotPackedError as reason:
        text = f"b is packed by each program, chunk by chunk: {reason}"
        remark(op, "packing", text)
        return None
    alone = "reads it where it is" if blocking.is_low else "packs it itself"
    once = "b is packed once"
    if axis is None:
        text = f"{once}, before the programs run"
    else:
        text = f"{once} for each program_id({axis}), before its programs run"
    remark(op, "packing", f"{text}; a program that needs it alone {alone}")
    return plan


def _plan(op: BrgemmTileOp, loop: scf.ParallelOp, blocking: Blocking) -> Plan:
    """Return what to pack; a NotPackedError if programs share too little of it."""
    init = op.b.owner
    if not isinstance(op.b.type, TileType):
        raise NotPackedError("it is computed in the program")
    if not isinstance(init, InitTileOp) or op.count is None or init.indices is not None:
        raise NotPackedError("it is not loaded from a tile made for this product")
    sizes = tiles.tile_sizes(init)
    if sizes is None or len(init.mixed_offsets) != 2 or not is_memref(init.source.type):
        raise NotPackedError("its matrix is not an array")
    if is_written(init.source, loop):
        raise NotPackedError("the kernel may write its matrix")
    n_dim = 0 if op.trans_b is not None else 1
    *_, depth = op.shape()
    tile, width = _tiles_along_n(op, init.mixed_offsets[n_dim], loop)
    k_start: Index | None = init.mixed_offsets[1 - n_dim]
    step = None
    if not is_defined_outside(k_start, loop) and constant_index(op.count) == 1:
        step = _step_of(k_start, depth, loop, blocking)
        k_start = k_start if step is None else None
    if step is not None and step is tile:
        raise NotPackedError("its place along n and along k grow together")
    rest = [init.source, op.count, *sizes, *init.mixed_strides]
    rest += [] if k_start is None else [k_start]
    # What decides the tile along n: all numbers, if it is unknown.
    found = tiles.counters_of([] if tile is None else [tile], loop)
    counters = loop.body.block.args if found is None else found
    batch = _batch(rest, loop, {*counters, step})
    if batch is not None and not is_shared(loop, batch, tile):
        raise NotPackedError("no other program multiplies by it")
    if not all(has_bound(value, loop) for value in (op.count, *sizes)):
        raise NotPackedError("its size is not known before the programs run")
    return Plan(init, n_dim, tile, width, k_start, step, batch)


def is_written(source: SSAValue, loop: Operation) -> bool:
    """True if a program or an iteration may store to the operand, or if unknown."""
    base = tiles.root(source)
    is_known = isinstance(base, BlockArgument) or isinstance(base.owner, AllocOp)
    return not is_known or any(
        tiles.may_alias(base, tiles.written_root(op))
        for op in loop.walk()
        if tiles.may_write(op)
    )


def _number_of(
    offset: Index, extent: int, loop: scf.ParallelOp
) -> tuple[bool, SSAValue | None]:
    """Return what numbers tiles of ``extent``, if found; (True, None): one tile."""
    if constant_index(offset) == 0:
        return True, None
    number = multiple_of(offset, extent)
    if isinstance(number, BlockArgument) and number.block is loop.body.block:
        return True, number
    counter = _serial_counter(offset, extent, loop)
    if counter is None and _is_computed(number, loop):
        return True, number
    return counter is not None, counter


def _tiles_along_n(
    op: BrgemmTileOp, offset: Index, loop: scf.ParallelOp
) -> tuple[SSAValue | None, Index]:
    """Return what numbers b's tiles, and the columns from one tile to the next.

    The columns are those of a program's tile, or those of a task, which `grow-tiles`
    computes.

    Raises:
        NotPackedError: no number of a tile was found.
    """
    _, n, _ = op.shape()
    found, tile = _number_of(offset, n, loop)
    if found:
        return tile, n
    task = tiles.task_along_n(op)
    own = loop.body.block.args
    if task is None or not (task[0] in own or _is_computed(task[0], loop)):
        raise NotPackedError("its place along n is not a program number times BN")
    return task


def _is_computed(number: SSAValue | None, loop: scf.ParallelOp) -> bool:
    """Whether it is 0 or more and computed from programs' numbers: ``pid % tiles``.

    A number that is read from memory may be one of a few: packing all tiles would be a
    waste.
    """
    if number is None or isinstance(number, BlockArgument):
        return False
    return tiles.is_non_negative(number) and bool(tiles.counters_of([number], loop))


def _serial_counter(
    offset: Index, extent: int, loop: scf.ParallelOp
) -> BlockArgument | None:
    """Return the counter of a loop in the program that steps in whole ``extent``s."""
    if not isinstance(offset, SSAValue):
        return None
    is_scaled = not isinstance(offset, BlockArgument)
    counter = multiple_of(offset, extent) if is_scaled else offset
    if not isinstance(counter, BlockArgument) or not tiles.is_counter(counter, loop):
        return None
    serial = counter.block.parent_op()
    if not isinstance(serial, scf.ForOp) or not tiles.is_non_negative(
        serial.lower_bound
    ):
        return None
    if is_scaled:
        return counter if tiles.is_non_negative(serial.step) else None
    starts = is_multiple_of(serial.lower_bound, extent)
    return counter if starts and is_multiple_of(serial.step, extent) else None


def _step_of(
    offset: Index, depth: int, loop: scf.ParallelOp, blocking: Blocking
) -> BlockArgument | None:
    """Return what counts the parts of k, if panels may be cut between parts."""
    if depth % max(blocking.k_pack, blocking.k_step) != 0:
        return None
    found, step = _number_of(offset, depth, loop)
    return step if found and isinstance(step, BlockArgument) else None


def _batch(
    values: list[Index], loop: scf.ParallelOp, taken: set[BlockArgument | None]
) -> BlockArgument | None:
    """Return the one number or counter that the rest of the operand depends on.

    ``taken``: the numbers that already count tiles or steps.

    Raises:
        NotPackedError: the operand depends on more than one.
    """
    sources = tiles.counters_of(values, loop)
    if sources is None or not all(
        one.block is loop.body.block or few_trips(one) for one in sources
    ):
        raise NotPackedError("where it starts differs from step to step")
    if len(sources) > 1 or sources & taken:
        raise NotPackedError("where it starts differs between programs")
    return next(iter(sources), None)


def is_shared(loop: scf.ParallelOp, *own: SSAValue | None) -> bool:
    """Whether programs differ in other numbers, too: then some agree in ``own``."""
    return any(
        axis not in own and any(True for _ in axis.uses)
        for axis in loop.body.block.args
    )
