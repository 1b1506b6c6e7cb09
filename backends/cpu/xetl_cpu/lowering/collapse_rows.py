"""collapse-rows: a matrix whose rows are contiguous in memory is computed as one row.

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      %m = arith.muli %x, 64
      %n = arith.muli %y, 64
      store_tile f(load_tile (%X at [%m, %n], [%rows, %cols], [%step, 1])), %Y at ...
    }
    ->
    %flat = %step == %cols and the like of %Y, equal sizes, and the grid covers them
    %rows' = select %flat, 1, %rows
    %cols' = select %flat, %rows * %cols, %cols
    %gx' = select %flat, 1, %gx
    %gy' = select %flat, ceil(%rows * %cols / 64), %gy
    scf.parallel (%x, %y) = ... to (%gx', %gy') {
      ... the same, of matrices of %rows' x %cols'
    }

Why: each row of a tile starts a new loop, and ends it with a mask unless its width is a
multiple of the vector width; a matrix of 64 x 64 is 64 loops of four vectors.  The code
is the same for matrices of one row and of many rows: the launch knows which it is.

Programs that match and keep all values in registers are marked: ``grow-tiles`` lets
their rows be as long as memory likes.

Before: ``grow-tiles``.  Left alone: programs that do more than compute each element of
one tile from the same elements of others, and those that load from another view of the
matrix that they store to: a tile is loaded as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import is_defined_outside
from xetl.dialects.base import Index, is_dense, is_vector, operations_in
from xetl.dialects.literals import splat_value
from xetl.dialects.upstream import arith, scf, vector
from xetl.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp
from xetl.ir.builder import Builder, Pass
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.place_values import stays_in_registers
from xetl_cpu.lowering.slices import is_elementwise, shape_of, starts_of
from xetl_cpu.lowering.tiles import may_alias, tile_like, tile_root
from xetl_cpu.targets import find_target

LINES = "xetl.lines"
"""Marks a loop over programs whose rows may have any length."""

_LINE = 64
"""A number of elements that is a whole number of cache lines for any type."""


@dataclass(frozen=True)
class CollapseRowsPass(Pass):
    target: str = "host"

    def rewrite(self, op: ModuleOp) -> None:
        machine = find_target(self.target)
        for loop in operations_in(op, scf.ParallelOp):
            numbers = _numbers(loop)
            if numbers is None:
                continue
            if stays_in_registers(loop.body.block, machine):
                loop.attributes[LINES] = UnitAttr()
            store = operations_in(loop, StoreTileOp)[0]
            text = "rows that lie one behind the other are computed as one"
            remark(store, "programs", text)
            _collapse(loop, numbers, shape_of(store.value.type))


def _numbers(loop: scf.ParallelOp) -> list[BlockArgument] | None:
    """Return the numbers that move all tiles along rows and columns; None: no match."""
    body = loop.body.block
    inits = operations_in(loop, InitTileOp)
    stores = operations_in(loop, StoreTileOp)
    if len(stores) != 1 or not all(_is_apart(init, stores[0]) for init in inits):
        return None
    shape = tuple(shape_of(stores[0].value.type))
    found: dict[SSAValue, tuple[BlockArgument, int]] = {}
    for number in body.args:
        starts, extent = starts_of(number)
        users = {use.operation for each in starts for use in each.uses}
        if extent > 0 and users and users <= {*inits}:
            found |= {start: (number, extent) for start in starts}
        elif list(number.uses):
            return None
    places = {tuple(map(found.get, _values(init.mixed_offsets))) for init in inits}
    if len(places) != 1 or not all(_lies_by_rows(init, loop) for init in inits):
        return None
    both = [each for each in places.pop() if each is not None]
    numbers = [number for number, _ in both]
    starts = [start.owner for start in found]
    others = [op for op in body.ops if op not in starts and op not in inits]
    is_all = tuple(extent for _, extent in both) == shape and len({*numbers}) == 2
    is_all = is_all and all(_is_of_elements(op, shape, loop) for op in others)
    return numbers if is_all else None


def _values(indices: Sequence[Index]) -> list[SSAValue]:
    return [each for each in indices if isinstance(each, SSAValue)]


def _is_apart(init: InitTileOp, store: StoreTileOp) -> bool:
    """Whether a store changes no element of a tile, except the elements it stores."""
    to = store.tile.owner
    is_same = isinstance(to, InitTileOp) and to.source is init.source
    return is_same or not may_alias(tile_root(init.result), tile_root(store.tile))


def _lies_by_rows(init: InitTileOp, loop: scf.ParallelOp) -> bool:
    """Whether a tile is in a row-major matrix whose sizes are known before the loop."""
    sizes, strides = init.mixed_sizes, init.mixed_strides
    is_matrix = init.indices is None and len(sizes) == len(strides) == 2
    if not is_matrix or strides[1] != 1 or init.result.type.wg_map:
        return False
    known = _values((*sizes, *strides))
    return all(is_defined_outside(each, loop) for each in known)


def _is_of_elements(op: Operation, shape: Sequence[int], loop: scf.ParallelOp) -> bool:
    """Whether an element of the result depends only on those at the same place."""
    if isinstance(op, scf.ReduceOp | StoreTileOp):
        return True
    if len(op.results) != 1 or not is_vector(op.results[0].type):
        return False
    if tuple(shape_of(op.results[0].type)) != shape:
        return False
    if isinstance(op, LoadTileOp):
        return op.permutation is None
    if isinstance(op, arith.ConstantOp):
        return is_dense(op.value) and splat_value(op.value) is not None
    inside = [v for v in op.operands if not is_defined_outside(v, loop)]
    if isinstance(op, vector.BroadcastOp):
        return not inside and not is_vector(op.source.type)
    vectors = [v for v in op.operands if is_vector(v.type)]
    return is_elementwise(op) and inside == vectors


def _collapse(
    loop: scf.ParallelOp, numbers: Sequence[BlockArgument], shape: Sequence[int]
) -> None:
    build = Builder.before(loop)
    inits = operations_in(loop, InitTileOp)
    rows, columns = inits[0].mixed_sizes
    at = [len(loop.upper_bounds) + number.index for number in numbers]
    grid = [loop.operands[each] for each in at]
    covered = map(build.times, grid, shape)
    tests = [*map(build.compare, ("sge", "sge"), covered, (rows, columns))]
    for init in inits:
        sides = *init.mixed_sizes, init.mixed_strides[0]
        pairs = zip(sides, (rows, columns, columns))
        tests += [build.compare("eq", a, b) for a, b in pairs if a is not b]
    flat = build.both(*tests)
    all_ = build.times(rows, columns)
    # No second row exists; a stride of whole cache lines keeps the alignment.
    step = build.rounded_up(all_, _LINE)
    for init in inits:
        sizes = [*map(build.select, (flat, flat), (1, all_), init.mixed_sizes)]
        strides: list[Index] = [build.select(flat, step, init.mixed_strides[0]), 1]
        Rewriter.replace_op(init, tile_like(init, sizes=sizes, strides=strides))
    programs = 1, build.ceil_divided(all_, shape[1])
    for place, few, many in zip(at, programs, grid):
        loop.operands[place] = build.select(flat, few, many)
