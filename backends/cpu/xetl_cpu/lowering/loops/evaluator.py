"""The evaluator computes some elements of rank-2 values inside a loop nest.

``eval(value, i, j, axis)`` returns ``lanes`` elements from (i, j) on along ``axis``, as
a rank-1 vector. A value without a buffer is computed from its operands: this is how
elementwise chains, broadcasts and loads fuse into one loop. Lanes past the end of a row
hold any value; code that stores or reduces masks them.

`evaluate` has the rules for operations, and enters them into `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from xetl.dialects.base import Index, constant_index, is_vector, row_type, vector_type
from xetl.dialects.literals import make_splat
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.errors import InternalError
from xetl.imports import late
from xetl.ir.builder import Builder
from xetl.records import record
from xetl.worklist import sources_first
from xetl_cpu.lowering.loops.nest import (
    COLUMNS,
    At,
    Nest,
    lane_mask,
    lane_numbers,
    splat,
)
from xetl_cpu.lowering.loops.state import Buffer, Matrix, State, TileAt, transposed_view
from xetl_cpu.lowering.loops.transposes import lies_across, transposed_rows

_row_of_any_stride = late("xetl_cpu.lowering.loops.strides", "row_of_any_stride")


_FEW_ROWS = 8
"""Rows of a tile that cannot lie far outside of its matrix.

Others are read at row 0 where they are outside: a load takes some 100 ns where no
memory is mapped, even if its mask is empty. [measured: Zen 5]
"""


@record()
class Evaluator:
    """Evaluates values inside one nest; equal requests are computed once.

    Attributes:
        whole: the loop runs only where all loads are inside their matrices: no load
            needs a mask.
        limits: with ``whole``, the columns up to which each load allows that.
        starts: the first columns of tiles that may start before their matrix.
        memo: the results so far.
        stop: where stores end, if before their tile does.
        loads: the loads that have been written.
        ended: loads that have a limit.
        outside: loads that are past their limit.
        inside: tiles that must be inside their matrices, instead of limits.
        shifted: chunks do not start at multiples of the lanes.
        is_aligned: chunks must start at multiples of the lanes.
        multiples: divisors of columns that are computed from those of the nest.
    """

    state: State
    nest: Nest
    whole: bool = False
    limits: dict[object, Index] = field(default_factory=dict[object, Index])
    starts: dict[object, Index] = field(default_factory=dict[object, Index])
    memo: dict[Any, SSAValue] = field(default_factory=dict[Any, SSAValue])
    stop: Index | None = None
    loads: dict[Operation, None] = field(default_factory=dict[Operation, None])
    ended: set[Operation] = field(default_factory=set[Operation])
    outside: Collection[Operation] = ()
    inside: dict[object, TileAt] | None = None
    shifted: bool = False
    is_aligned: bool = False
    multiples: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def eval(self, value: SSAValue, at: At) -> SSAValue:
        """Return the elements ``at`` of a vector value; return a scalar as it is."""
        if not is_vector(value.type):
            return value
        where = at.key()
        found = self.memo.get((id(value), where))
        if found is None:
            waiting = sources_first(value, partial(self._missing_operands, where=where))
            for each in [*waiting]:
                found = self._compute(each, at)
                self.memo[id(each), where] = found
        assert found is not None
        return found

    def _missing_operands(self, value: SSAValue, where: object) -> Sequence[SSAValue]:
        """Return the elementwise operands of a value that are not computed yet."""
        op = value.owner
        if value in self.state.buffers or not isinstance(op, Operation):
            return ()
        if type(op) in RULES:
            return ()
        vectors = [operand for operand in op.operands if is_vector(operand.type)]
        return [each for each in vectors if (id(each), where) not in self.memo]

    def _compute(self, value: SSAValue, at: At) -> SSAValue:
        buffer = self.state.buffers.get(value)
        if buffer is not None:
            return self.read(buffer, vector_type(value).element_type, at)
        op = value.owner
        if not isinstance(op, Operation):
            raise InternalError("a carried value has no buffer")
        rule = RULES.get(type(op), RULES[Operation])
        return rule(self, op, at)

    def place(self, at: At) -> Builder:
        """Return the builder for code that depends on these coordinates."""
        return self.nest.at(at.row, at.col)

    def spread(self, value: SSAValue, at: At, row: Index, col: Index) -> SSAValue:
        """Return one element, broadcast to all lanes, of a value equal in all lanes."""
        scalar = self.eval(value, At(row, col, COLUMNS, 1))
        key = (id(scalar), "splat", at.lanes)
        if key not in self.memo:
            self.memo[key] = splat(self.nest.at(row, col), scalar, at.lanes)
        return self.memo[key]

    def read(self, buffer: Buffer, element: Attribute, at: At) -> SSAValue:
        """Return elements of a buffer."""
        build = self.place(at)
        rows, cols = buffer.shape
        if at.lanes == 1:
            indices = [at.row] if buffer.is_column else [at.row, at.col]
            return build.insert(
                memref.LoadOp(buffer.memref, [build.index(i) for i in indices])
            )
        type_ = row_type(element, at.lanes)
        if buffer.is_column and at.axis != COLUMNS:
            return build.insert(
                vector.LoadOp(buffer.memref, [build.index(at.row)], type_)
            )
        if at.axis == COLUMNS and not buffer.is_column:
            indices = [build.index(at.row), build.index(at.col)]
            return build.insert(vector.LoadOp(buffer.memref, indices, type_))
        if (cols if at.axis == COLUMNS else rows) == 1:
            one = self.read(buffer, element, At(at.row, at.col, COLUMNS, 1))
            return splat(build, one, at.lanes)
        if at.block is not None:

            def row_of_block(row: Index, col: Index) -> SSAValue:
                if rows % at.lanes:
                    # The last block goes on below the buffer; it is not stored there.
                    row = self.nest.computed(Builder.minimum, row, rows - 1)
                return self.read(buffer, element, At(row, col, COLUMNS, at.lanes))

            return self.block_row(id(buffer.memref), at.transposed(), row_of_block)
        view = Matrix(transposed_view(buffer.memref, rows, cols), cols, rows)
        mask = lane_mask(build, build.minus(rows, at.row), at.lanes)
        return self.gather(view.memref, [at.col, at.row], mask, element, at)

    def gather(
        self,
        base: SSAValue,
        indices: list[Index],
        mask: SSAValue,
        element: Attribute,
        at: At,
    ) -> SSAValue:
        """Gather lanes along the last dimension of ``base``, with any stride."""
        build, fill = self.place(at), self.zero(element, at.lanes)
        numbers = lane_numbers(build, at.lanes)
        start = [build.index(index) for index in indices]
        return build.insert(vector.GatherOp(base, start, numbers, mask, fill))

    def zero(self, element: Attribute, lanes: int) -> SSAValue:
        """Return zeros; the constant is before the nest."""
        return self.constant(element, 0, lanes)

    def constant(self, element: Attribute, number: float, lanes: int) -> SSAValue:
        """Return a constant in every lane; it is made once before the nest."""
        key = ("constant", element, repr(number), lanes)
        if key not in self.memo:
            self.memo[key] = self.nest.places[0].insert(
                constant_op(element, number, lanes)
            )
        return self.memo[key]

    def load(
        self,
        tile: TileAt,
        element: Attribute,
        at: At,
        padding: SSAValue,
        inside: bool = False,
    ) -> SSAValue:
        """Load elements of a tile, with ``padding`` for those outside the matrix.

        ``inside``: no element is outside.
        """
        if at.axis != COLUMNS:
            return self.load(tile.transposed(), element, at.transposed(), padding)
        matrix, lanes = tile.matrix, at.lanes
        if at.block is not None and lies_across(matrix):
            inside = self._is_whole_block(tile, at, *at.block)

            def row_of_block(row: Index, col: Index) -> SSAValue:
                there = At(row, col, COLUMNS, lanes)
                return self.load(tile.transposed(), element, there, padding, inside)

            where = (id(matrix.memref), _key(tile.row), _key(tile.col), id(padding))
            return self.block_row(where, at, row_of_block)
        row, col = self.nest.plus(at.row, tile.row), self.nest.plus(at.col, tile.col)
        build = self.nest.at(row, col)
        if inside or self.is_unmasked(tile, at, row):
            type_ = row_type(element, lanes)
            indices = [build.index(row), build.index(col)]
            return build.insert(vector.LoadOp(matrix.memref, indices, type_))
        limit, mask = self.row_limit(matrix, row), self.lanes_inside(tile, at, row)
        if not matrix.is_contiguous():
            start = [build.index(row), build.index(col)]
            numbers = lane_numbers(build, lanes)
            apart = vector.GatherOp(matrix.memref, start, numbers, mask, padding)
            return build.insert(_row_of_any_stride(self, tile, row, limit, apart))
        if tile.shape[0] > _FEW_ROWS:
            outside = self.nest.at(row)
            row = outside.select(outside.compare("ult", row, matrix.rows), row, 0)
        indices = [build.index(row), build.index(col)]
        return build.insert(vector.MaskedloadOp(matrix.memref, indices, mask, padding))

    def is_unmasked(self, tile: TileAt, at: At, row: Index) -> bool:
        """Whether a load from a row needs no mask; records the condition for that."""
        if self.is_within(tile, at):
            return True
        if not self.is_whole(tile, at):
            return False
        key = _key(tile.col)
        if self.inside is not None:
            self.inside[id(tile.matrix.memref), _key(tile.row), key] = tile
            return True
        limit, outside = self.row_limit(tile.matrix, row), self.nest.at(at.row)
        self.limits[_key(limit), key] = outside.minus(limit, tile.col)
        if not tile.non_negative and key not in self.starts:
            first = self.nest.places[0]
            self.starts[key] = first.maximum(first.minus(0, tile.col), 0)
        return True

    def _is_whole_block(self, tile: TileAt, at: At, row: Index, col: Index) -> bool:
        """Whether loads of a block need no masks; records the condition for that."""
        is_inner = self.nest.level(col) == 2 > self.nest.level(row)
        if not (self.whole and tile.non_negative and is_inner):
            return False
        key = id(tile.matrix.memref), _key(tile.row), _key(tile.col)
        if self.inside is not None:
            self.inside[key] = tile
            return True
        build = self.nest.at(row)
        last = build.plus(build.plus(row, tile.row), at.lanes)
        fits = build.compare("sle", last, tile.matrix.rows)
        limit = build.select(fits, tile.matrix.cols, 0)
        self.limits[key] = build.minus(limit, tile.col)
        return True

    def block_row(
        self, key: object, at: At, load: Callable[[Index, Index], SSAValue]
    ) -> SSAValue:
        """Return a row of a block with contiguous columns: the block is transposed."""
        assert at.block is not None
        row, col = at.block
        known = (key, "block", _key(row), _key(col), at.lanes)
        if (*known, at.nth) not in self.memo:
            columns = [load(self.nest.plus(col, n), row) for n in range(at.lanes)]
            rows = transposed_rows(self.nest.places[2], columns)
            self.memo |= {(*known, n): vector for n, vector in enumerate(rows)}
        return self.memo[(*known, at.nth)]

    def load_one(self, tile: TileAt, at: At, padding: SSAValue) -> SSAValue:
        """Load one element of a tile, or ``padding`` if it is outside of the matrix."""
        matrix = tile.matrix
        row, col = self.nest.plus(at.row, tile.row), self.nest.plus(at.col, tile.col)
        build = self.nest.at(row, col)
        load = memref.LoadOp(matrix.memref, [build.index(row), build.index(col)])
        if self.is_unmasked(tile, at, row):
            return build.insert(load)
        fits = [
            build.compare("ult", index, size)
            for index, size in ((row, matrix.rows), (col, matrix.cols))
        ]
        return load_if(build, build.both(*fits), load, padding)

    def goes_along(self, at: At) -> bool:
        """True for lanes along the inner loop, row by row."""
        is_inner = self.nest.level(at.col) == 2
        return at.axis == COLUMNS and at.block is None and is_inner

    def is_whole(self, tile: TileAt, at: At) -> bool:
        """True for a load along the inner loop of memory without gaps."""
        return (
            self.whole
            and tile.matrix.is_contiguous()
            and self.nest.level(at.col) > self.nest.level(at.row)
            and self.nest.level(at.col) == 2
        )

    def is_within(self, tile: TileAt, at: At) -> bool:
        """True for a load of lanes that are known to be inside of the matrix."""
        if not (tile.is_inside and tile.matrix.is_contiguous()):
            return False
        first = self.multiple_of(at.col)
        return first is not None and (first | tile.shape[1]) % at.lanes == 0

    def multiple_of(self, col: Index) -> int | None:
        """Return a divisor of a column (0 for the first one); None if unknown."""
        if col is self.nest.inner and not self.shifted:
            return self.state.lanes
        if isinstance(col, SSAValue) and col in self.multiples:
            return self.multiples[col]
        return col if isinstance(col, int) else constant_index(col)

    def row_limit(self, matrix: Matrix, row: Index) -> Index:
        """Return the columns of a row that exist: 0 if it is outside the matrix."""
        key = ("limit", id(matrix.memref), _key(row), _key(matrix.cols))
        found = self.memo.get(key)
        if found is None:
            build = self.nest.at(row)
            inside = build.compare("ult", row, matrix.rows)
            found = self.memo[key] = build.select(inside, matrix.cols, 0)
        return found

    def lanes_inside(self, tile: TileAt, at: At, row: Index) -> SSAValue:
        """Return a mask of the lanes whose elements exist.

        Rows of a few columns share what does not depend on the row.
        """
        matrix, is_shared = tile.matrix, tile.shape[0] > 1
        is_shared = is_shared and self.nest.level(at.col) <= self.nest.level(row)
        if not is_shared:
            return self._lanes_to(self.row_limit(matrix, row), tile, at, row)
        key = "columns", _key(matrix.cols), _key(tile.col), _key(at.col), at.lanes
        if key not in self.memo:
            self.memo[key] = self._lanes_to(matrix.cols, tile, at, 0)
        build = self.nest.at(row)
        inside = build.compare("ult", row, matrix.rows)
        return build.both(self.memo[key], splat(build, inside, at.lanes))

    def _lanes_to(self, limit: Index, tile: TileAt, at: At, row: Index) -> SSAValue:
        """Return a mask of the lanes from the matrix's first column to a limit."""
        outside, build = self.nest.at(row), self.nest.at(row, at.col)
        ends = [limit] if tile.non_negative else [limit, 0]
        mask, *missing = (
            lane_mask(build, build.minus(rest, at.col), at.lanes)
            for rest in (outside.minus(end, tile.col) for end in ends)
        )
        for each in missing:
            every = self.constant(IntegerType(1), 1, at.lanes)
            mask = build.both(mask, build.insert(arith.XoriOp(each, every)))
        return mask


def _key(index: Index) -> object:
    return index if isinstance(index, int) else id(index)


def constant_op(element: Attribute, number: float, lanes: int) -> arith.ConstantOp:
    """Return a scalar constant, or a splat for more than one lane."""
    if lanes > 1:
        return arith.ConstantOp.of(number, row_type(element, lanes))
    if isinstance(element, IndexType):
        return arith.ConstantOp.index(int(number))
    return arith.ConstantOp(make_splat(number, element), element)


def load_if(
    build: Builder, is_inside: SSAValue, load: memref.LoadOp, padding: SSAValue
) -> SSAValue:
    """Load an element if it is inside, else return the padding."""
    there = Region(Block([load, scf.YieldOp(load.result)]))
    outside = Region(Block([scf.YieldOp(padding)]))
    return build.insert(scf.IfOp(is_inside, [padding.type], there, outside))


Rule: TypeAlias = Callable[[Evaluator, Any, At], SSAValue]
RULES: dict[type[Operation], Rule] = {}
"""The rule for each operation; the rule of `Operation` is for elementwise ones."""
