"""Loop nests over a rank-2 value, and places for code in them.

A nest has three places: before it (0), in its outer loop (1), in its inner loop (2).
Code goes to the outermost place where the coordinates it depends on exist: a row's mean
is loaded once for the row, and a constant once for all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from xetl.dialects.base import Index, row_type
from xetl.dialects.upstream import scf, vector
from xetl.ir.builder import Builder
from xetl.records import record

COLUMNS = 1
"""The axis along which consecutive lanes are in one row."""


@record()
class At:
    """``lanes`` elements from (row, col) on, along ``axis``.

    ``block``: the start of the first row of a block of ``lanes`` rows, if the nest
    evaluates all rows of the block; this row is the ``nth`` of them.
    """

    row: Index
    col: Index
    axis: int
    lanes: int
    block: tuple[Index, Index] | None = None
    nth: int = 0

    def moved(self, row: Index, col: Index) -> At:
        """Return the same lanes at another place."""
        return At(row, col, self.axis, self.lanes)

    def transposed(self) -> At:
        """Return the place of these elements in the transposed value."""
        block = self.block and (self.block[1], self.block[0])
        return At(self.col, self.row, 1 - self.axis, self.lanes, block, self.nth)

    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for equal elements."""
        row = self.row if isinstance(self.row, int) else id(self.row)
        col = self.col if isinstance(self.col, int) else id(self.col)
        return (row, col, self.axis, self.lanes)


@record()
class Nest:
    """An outer loop (left out if it has one iteration) around an inner one.

    Attributes:
        outer: the outer coordinate.
        inner: the inner coordinate.
        loop: the inner loop, without terminator until `close`.
        outer_loop: the outer loop, if there is one.
        before: the nest whose inner loop this inner loop continues.
        guard: the condition around the inner loop, if there is one.
    """

    outer: Index
    inner: Index
    loop: scf.ForOp
    outer_loop: scf.ForOp | None
    places: tuple[Builder, Builder, Builder]
    levels: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    before: Nest | None = None
    guard: scf.IfOp | None = None

    def level(self, *coordinates: Index) -> int:
        """Return the outermost place where all coordinates exist."""
        return max(
            (self.levels.get(c, 0) for c in coordinates if isinstance(c, SSAValue)),
            default=0,
        )

    def at(self, *coordinates: Index) -> Builder:
        """Return the builder at the outermost place where all coordinates exist."""
        return self.places[self.level(*coordinates)]

    def computed(self, make: Callable[..., Index], *coordinates: Index) -> Index:
        """Compute ``make`` of coordinates as far out as possible."""
        level = self.level(*coordinates)
        found = make(self.places[level], *coordinates)
        if isinstance(found, SSAValue) and found not in self.levels:
            self.levels[found] = level
        return found

    def plus(self, left: Index, right: Index) -> Index:
        """Return left + right, computed as far out as possible."""
        return self.computed(Builder.plus, left, right)

    @property
    def carried(self) -> Sequence[SSAValue]:
        """The values the inner loop carries."""
        return self.loop.body.block.args[1:]

    @property
    def results(self) -> Sequence[SSAValue]:
        """Return the results of the inner loops; a rest may continue only some."""
        before = () if self.before is None else self.before.results
        return (*self.loop.results, *before[len(self.loop.results) :])

    def end_inner(self, values: Sequence[SSAValue]) -> None:
        """End the inner loop with the values that its next iteration carries."""
        self.loop.body.block.add_op(scf.YieldOp(*values))

    def after(self) -> Builder:
        """Return the builder behind the finished inner loop, in the outer one."""
        return Builder.after(self.guard or self.loop)

    def end_outer(self) -> None:
        """End the outer loop, if there is one."""
        if self.outer_loop is not None:
            self.outer_loop.body.block.add_op(scf.YieldOp())

    def lead(self, start: Index, step: int, carried: int) -> Nest:
        """Insert an inner loop before this one, which then starts at ``start``.

        ``carried``: how many of its results this loop continues with, as its first
        ones.
        """
        main = self.loop
        stop = Builder.before(main).minimum(main.upper_bound, start)
        loop = Builder.before(main).for_loop(0, stop, step, main.init_args[:carried])
        main.operands[0] = Builder.before(main).index(start)
        for number, result in enumerate(loop.results):
            main.operands[3 + number] = result
        before = Builder.before(self.outer_loop or loop)
        return self._beside(before, loop, None)

    def rest(
        self,
        start: Index,
        end: Index,
        step: int,
        carried: int,
        where: Builder | None = None,
    ) -> Nest:
        """Insert a second inner loop behind this one, which continues from ``start``.

        ``carried``: how many of the first results it continues with.
        ``where``: the place for it, which is reached only if there is a rest.
        """
        build, guard = where or self.after(), None
        if not carried and where is None:
            # Code for masks runs only if there is a rest.
            last = scf.YieldOp()
            is_rest = build.compare("slt", start, end)
            guard = scf.IfOp(is_rest, [], Region(Block([last])))
            build.add(guard)
            build = Builder.before(last)
        loop = build.for_loop(start, end, step, self.results[:carried])
        rest = self._beside(self.places[0], loop, self)
        rest.guard = guard
        return rest

    def _beside(self, outside: Builder, loop: scf.ForOp, before: Nest | None) -> Nest:
        """Return the nest of another inner loop in the same outer loop."""
        places = (outside, Builder.before(loop), Builder.at_end(loop.body.block))
        column = loop.body.block.args[0]
        levels = {k: v for k, v in self.levels.items() if v < 2}
        levels[column] = 2
        return Nest(self.outer, column, loop, self.outer_loop, places, levels, before)


def open_nest(
    op: Operation,
    outer: Index,
    inner: Index,
    step: int,
    inits: Sequence[SSAValue] = (),
    rows_at_once: int = 1,
) -> Nest:
    """Build loops over outer x inner in front of ``op``; the inner one has ``step``.

    ``inits``: initial values of the inner loop, for each outer iteration.
    ``rows_at_once``: the step of the outer loop.
    """
    start = Builder.before(op)
    first, end, by = (start.index(v) for v in (0, inner, step))
    levels = dict[SSAValue, int]()
    if outer == rows_at_once:
        loop = start.for_loop(first, end, by, inits)
        outside = Builder.before(loop)
        # Without an outer loop, its code is before the inner one.
        places = (outside, outside, Builder.at_end(loop.body.block))
        outer_loop, row = None, 0
    else:
        outer_loop = start.for_loop(0, outer, rows_at_once)
        row = outer_loop.body.block.args[0]
        levels[row] = 1
        loop = Builder.at_end(outer_loop.body.block).for_loop(first, end, by, inits)
        places = (
            Builder.before(outer_loop),
            Builder.before(loop),
            Builder.at_end(loop.body.block),
        )
    column = loop.body.block.args[0]
    levels[column] = 2
    return Nest(row, column, loop, outer_loop, places, levels)


def no_loops(build: Builder, row: Index = 0, col: Index = 0) -> Nest:
    """Return a nest whose code all goes to one place: nobody asks for its loop."""
    known = ((row, 1), (col, 2))
    levels = {each: level for each, level in known if isinstance(each, SSAValue)}
    return Nest(row, col, None, None, (build, build, build), levels)  # pyright: ignore[reportArgumentType]


def splat(build: Builder, scalar: SSAValue, lanes: int) -> SSAValue:
    """Return a vector with the scalar in every lane; the scalar itself for one lane."""
    if lanes == 1:
        return scalar
    return build.insert(vector.BroadcastOp(scalar, row_type(scalar.type, lanes)))


def lane_mask(build: Builder, limit: Index, lanes: int) -> SSAValue:
    """Return a mask of the lanes below ``limit``."""
    return build.insert(vector.CreateMaskOp([build.index(limit)], row_type(i1, lanes)))


def lane_numbers(build: Builder, lanes: int) -> SSAValue:
    """Return 0, 1, 2, ... as an index vector."""
    return build.insert(vector.StepOp(row_type(IndexType(), lanes)))
