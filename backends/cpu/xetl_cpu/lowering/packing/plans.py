"""Which operands are packed for many programs, and by what their tiles are numbered.

Index values of a program are needed before all programs: as bounds, and as copies.
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
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.tiles import (
    counters_of,
    is_counter,
    is_non_negative,
    may_alias,
    may_write,
    root,
    task_along_n,
    tile_sizes,
    written_root,
)
from xetl_cpu.microkernels.blocking import Blocking

_GROWING: dict[type[Operation], tuple[int, ...]] = {
    # With each: which operands the result grows with; the others must be outside.
    arith.AddiOp: (0, 1),
    arith.SubiOp: (0,),
    arith.MuliOp: (0, 1),
    arith.CeildivsiOp: (0,),
    arith.FloordivsiOp: (0,),
    arith.MaxsiOp: (0, 1),
    arith.MinsiOp: (0, 1),
}


def has_bound(value: Index, loop: scf.ParallelOp) -> bool:
    """Whether `bound` can say how large a value is at most in any program."""
    if is_defined_outside(value, loop):
        return True
    assert isinstance(value, SSAValue)
    op = value.owner
    if isinstance(op, arith.SelectOp):
        return has_bound(_not_zero(op), loop) if _is_zero_or_one(op) else False
    growing = _GROWING.get(type(op)) if isinstance(op, Operation) else None
    if growing is None:
        return False
    assert isinstance(op, Operation)
    if isinstance(op, arith.MuliOp) and not all(map(is_non_negative, op.operands)):
        return False
    return all(
        has_bound(v, loop) if i in growing else is_defined_outside(v, loop)
        for i, v in enumerate(op.operands)
    )


def bound(value: Index, loop: scf.ParallelOp, build: Builder) -> Index:
    """What a value, for which `has_bound` holds, never exceeds; made by ``build``."""
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
    """Where loops end that go along a dimension of a matrix of B; None: nobody knows.

    Those of all products with tiles of it, for they share what is packed.
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


def _is_zero_or_one(op: arith.SelectOp) -> bool:
    """Whether it selects between 0 and something else."""
    return 0 in (constant_index(op.true_value), constant_index(op.false_value))


def _not_zero(op: arith.SelectOp) -> SSAValue:
    is_first = constant_index(op.true_value) != 0
    return op.true_value if is_first else op.false_value


def copier(
    loop: scf.ParallelOp, build: Builder, known: dict[SSAValue, SSAValue]
) -> Callable[[SSAValue], SSAValue]:
    """A function that computes values of a program again, by ``build``.

    ``known``: what stands for programs' numbers and counters.
    """

    def is_there(value: SSAValue) -> bool:
        return value in known or is_defined_outside(value, loop)

    def copy(value: SSAValue) -> SSAValue:
        waiting = [value]
        while waiting:
            op = waiting[-1].owner
            if is_there(waiting[-1]):
                waiting.pop()
                continue
            assert isinstance(op, Operation)
            missing = next((each for each in op.operands if not is_there(each)), None)
            if missing is not None:
                waiting.append(missing)
                continue
            new = build.add(op.clone({v: known.get(v, v) for v in op.operands}))
            new.location = op.location
            known.update(zip(op.results, new.results))
        return known.get(value, value)

    return copy


def copied(
    values: Sequence[Index], copy: Callable[[SSAValue], SSAValue]
) -> list[Index]:
    """Indices, those that are values copied."""
    return [v if isinstance(v, int) else copy(v) for v in values]


_Fact = Index | str | None


@record()
class Plan:
    """What is packed of an operand, and how a program finds its part in it.

    Attributes:
        init: the operand's tile.
        n_dim: which of its dimensions is n.
        tile: the program's number, the counter of a loop in the program, or what a
            program computes of its number, that counts the tiles along n; None: there
            is one.
        width: columns from one tile to the next.
        k_start: where along k it starts; None: where ``step`` says.
        step: counts parts of k, one product's depth each; all are packed.
        batch: the program's number, or the counter of a loop of few trips in the
            program, that chooses the matrix; None: there is one for all programs.
    """

    init: InitTileOp
    n_dim: int
    tile: SSAValue | None
    width: Index
    k_start: Index | None
    step: BlockArgument | None
    batch: BlockArgument | None

    def argument(self) -> int | None:
        """The number of the argument that it is part of, if it is."""
        base = root(self.init.source)
        if not isinstance(base, BlockArgument):
            return None
        is_argument = isinstance(base.block.parent_op(), func.FuncOp)
        return base.index if is_argument else None

    def axis(self, loop: scf.ParallelOp) -> int | None:
        """Which number of a program counts the tiles, if one does."""
        return _axis(self.tile, loop)

    def group_axis(self, loop: scf.ParallelOp) -> int | None:
        """Which number of a program chooses the matrix, if one does."""
        return _axis(self.batch, loop)

    def trips(self) -> int | None:
        """How many matrices the loop goes through that chooses them, if one does."""
        return None if self.batch is None else few_trips(self.batch)

    def is_of_program(self, loop: scf.ParallelOp) -> bool:
        """Whether a program needs one tile; else it has a loop over tiles."""
        tile = self.tile
        if tile is None or isinstance(tile, BlockArgument):
            return tile is None or self.axis(loop) is not None
        return (
            isinstance(tile.owner, Operation) and tile.owner.parent is loop.body.block
        )

    def may_be_brought(self) -> bool:
        """Whether it is one matrix, all of which is packed."""
        return self.batch is None and self.step is None


def _axis(number: SSAValue | None, loop: scf.ParallelOp) -> int | None:
    """Of the grid, if that is a program's number."""
    if isinstance(number, BlockArgument) and number.block is loop.body.block:
        return number.index
    return None


_TRIPS = 64
"""At most, of a loop that chooses matrices: it might choose one again and again."""


def few_trips(counter: BlockArgument) -> int | None:
    """Trips of the loop that counts 0, 1, 2, ..., if they are known and few."""
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
    """Whether two values are one, or equal numbers."""
    if isinstance(left, SSAValue) and isinstance(right, SSAValue):
        known = constant_index(left)
        return left is right or (known is not None and known == constant_index(right))
    return left == right


def _kind_of_tile(plan: Plan) -> _Fact:
    """What decides how many tiles are packed: an axis of the grid, or the matrix."""
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
    """The plan for b, with a remark what will become of it.

    ``group``: the axis that chooses other matrices already; there can be but one.
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
    """What to pack; a NotPackedError if programs have too little of it in common."""
    init = op.b.owner
    if not isinstance(op.b.type, TileType):
        raise NotPackedError("it is computed in the program")
    if not isinstance(init, InitTileOp) or op.count is None or init.indices is not None:
        raise NotPackedError("it is not loaded from a tile made for this product")
    sizes = tile_sizes(init)
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
    batch = _batch(rest, loop, {*_counters(tile, loop), step})
    if batch is not None and not is_shared(loop, batch, tile):
        raise NotPackedError("no other program multiplies by it")
    if not all(has_bound(value, loop) for value in (op.count, *sizes)):
        raise NotPackedError("its size is not known before the programs run")
    return Plan(init, n_dim, tile, width, k_start, step, batch)


def _counters(tile: SSAValue | None, loop: scf.ParallelOp) -> set[BlockArgument]:
    """What decides which tile along n it is: all programs' numbers, if nobody knows."""
    found = set[BlockArgument]() if tile is None else counters_of([tile], loop)
    return set(loop.body.block.args) if found is None else found


def is_written(source: SSAValue, loop: Operation) -> bool:
    """True if a program or a trip may store to the operand, or if nobody can tell."""
    base = root(source)
    is_known = isinstance(base, BlockArgument) or isinstance(base.owner, AllocOp)
    return not is_known or any(
        may_alias(base, written_root(op)) for op in loop.walk() if may_write(op)
    )


def _number_of(
    offset: Index, extent: int, loop: scf.ParallelOp
) -> tuple[bool, SSAValue | None]:
    """What counts the tiles of ``extent``; (True, None): there is one tile."""
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
    """What counts b's tiles, and how many columns are from one to the next.

    Those of a program's tile, or what `grow-tiles` computes: how many a task has.

    Raises:
        NotPackedError: nothing counts them.
    """
    _, n, _ = op.shape()
    found, tile = _number_of(offset, n, loop)
    if found:
        return tile, n
    task = task_along_n(op)
    own = loop.body.block.args
    if task is None or not (task[0] in own or _is_computed(task[0], loop)):
        raise NotPackedError("its place along n is not a program number times BN")
    return task


def _is_computed(number: SSAValue | None, loop: scf.ParallelOp) -> bool:
    """Whether it is not negative, and made of programs' numbers: ``pid % tiles``.

    A number that is read from memory may be one of a few: packing all tiles were waste.
    """
    if number is None or isinstance(number, BlockArgument):
        return False
    return is_non_negative(number) and bool(counters_of([number], loop))


def _serial_counter(
    offset: Index, extent: int, loop: scf.ParallelOp
) -> BlockArgument | None:
    """The counter of a loop in the program, if each trip is at a whole ``extent``."""
    if not isinstance(offset, SSAValue):
        return None
    is_scaled = not isinstance(offset, BlockArgument)
    counter = multiple_of(offset, extent) if is_scaled else offset
    if not isinstance(counter, BlockArgument) or not is_counter(counter, loop):
        return None
    serial = counter.block.parent_op()
    if not isinstance(serial, scf.ForOp) or not is_non_negative(serial.lower_bound):
        return None
    if is_scaled:
        return counter if is_non_negative(serial.step) else None
    starts = is_multiple_of(serial.lower_bound, extent)
    return counter if starts and is_multiple_of(serial.step, extent) else None


def _step_of(
    offset: Index, depth: int, loop: scf.ParallelOp, blocking: Blocking
) -> BlockArgument | None:
    """What counts the parts of k, if panels may be cut between them."""
    if depth % max(blocking.k_pack, blocking.k_step) != 0:
        return None
    found, step = _number_of(offset, depth, loop)
    return step if found and isinstance(step, BlockArgument) else None


def _batch(
    values: list[Index], loop: scf.ParallelOp, taken: set[BlockArgument | None]
) -> BlockArgument | None:
    """The program's number or counter that all else about the operand depends on.

    ``taken``: what already counts tiles or steps.

    Raises:
        NotPackedError: it depends on more.
    """
    sources = counters_of(values, loop)
    if sources is None or not all(
        one.block is loop.body.block or few_trips(one) for one in sources
    ):
        raise NotPackedError("where it starts differs from step to step")
    if len(sources) > 1 or sources & taken:
        raise NotPackedError("where it starts differs between programs")
    return next(iter(sources), None)


def is_shared(loop: scf.ParallelOp, *own: SSAValue | None) -> bool:
    """Whether programs differ by other numbers, too: then some agree in these."""
    return any(
        axis not in own and any(True for _ in axis.uses)
        for axis in loop.body.block.args
    )
