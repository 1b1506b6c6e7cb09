"""grow-tiles: narrow tiles of programs beside one another become one tile.

    scf.parallel (%x, %y) = ... to (%gx, %gy) {
      %n = arith.muli %y, 8
      store_tile f(load_tile %X[%m, %n]), %Y[%m, %n]      # tiles of 8 x 8
    }
    ->
    scf.parallel (%x, %y) = ... to (%gx, ceil(%gy / 8)) {
      %n = arith.muli %y, 64
      store_tile f(load_tile %X[%m, %n]), %Y[%m, %n]      # 8 x 64; %Y ends at %gy * 8
    }

Why: a row that is shorter than a vector costs as much as one that is as long as
several, and a column of one element is gathered and scattered.

Before: stage ``xsmm``.  Left alone: programs that do anything else than computing each
column (or row) of their tiles from the same ones of others, or that have loops: there
each program is much work, which several threads may share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.analysis.memory import is_dead, is_pure
from xetl.dialects import xetile
from xetl.dialects.base import memref_type
from xetl.dialects.kinds_of_types import is_dense, is_memref, is_vector
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import constant_index, strides_of
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.dialects.walk import operations_in
from xetl.ir.builder import Builder
from xetl.ir.passes import Pass
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.tiles import longer, tile_like

_WIDTH = 64
"""[measured] Elements of a row; with fewer, what is done once for it counts."""

_MOST = 1 << 15
"""Elements of the largest tile: it stays in L2 if it has to stand in memory."""

_READS = (xetile.LoadTileOp, xetile.LoadGatherOp, memref.LoadOp)
_ACCESSES = (xetile.LoadTileOp, xetile.StoreTileOp)


class GrowTilesPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite the loops over programs in place."""
        for loop in operations_in(op, scf.ParallelOp):
            for number in loop.body.block.args:
                _grow(loop, number)


def _grow(loop: scf.ParallelOp, number: BlockArgument) -> None:
    starts, extent = _starts(number)
    if not 0 < extent <= _WIDTH // 2:
        return
    body = [op for op in loop.body.block.ops if not isinstance(op, scf.ReduceOp)]
    slices = _Slices(extent, set(starts))
    if not all(map(slices.follow, body)):
        return
    sizes = [prod(_shape(tile.type)) for tile in slices.matrices]
    wide = [n for n, t in zip(sizes, slices.matrices) if slices.lies_along(t)]
    if max(wide, default=0) < max(sizes, default=1):
        return
    times = min(_WIDTH // extent, _MOST // max(sizes))
    if times > 1:
        slices.grow(times)
        _spread(loop, number, (extent, times), slices.stores)


def _starts(number: SSAValue) -> tuple[list[SSAValue], int]:
    """A program's number times the extent of its tiles, and this; 0: it is not so."""
    users = [use.operation for use in number.uses]
    products = [op for op in users if isinstance(op, arith.MuliOp)]
    if not products:
        return [number], 1
    factors = {constant_index(op.rhs) for op in products}
    extent = factors.pop() if len(factors) == 1 else None
    if extent is None or products != users:
        return [], 0
    return [op.result for op in products], extent


class _Slices:
    """What of a program belongs to its number, and along which dimension.

    Attributes:
        dims: of tiles and vectors, from the end: -1 or -2.
        repeated: operands that are equal for all programs, or count up with them.
    """

    def __init__(self, extent: int, starts: set[SSAValue]) -> None:
        self.extent, self.starts = extent, starts
        self.dims: dict[SSAValue, int] = {}
        self.repeated: list[tuple[Operation, int, int]] = []
        self.matrices: list[SSAValue] = []
        self.stores: dict[xetile.StoreTileOp, int] = {}

    def follow(self, op: Operation) -> bool:
        """Note what becomes of an operation; False: programs cannot become one."""
        known = [v for v in op.operands if v in self.dims or v in self.starts]
        if isinstance(op, _ACCESSES):
            self.matrices.append(op.tile)
        if isinstance(op, xetile.StoreTileOp):
            dim, init = self.dims.get(op.tile), op.tile.owner
            if dim is None or not isinstance(init, xetile.InitTileOp):
                return False
            self.stores[op] = dim
            return bool(init.mixed_sizes) and self._agree(op, dim)
        if not known:
            return is_pure(op) or isinstance(op, _READS)
        if isinstance(op, xetile.PrefetchTileOp):
            return True
        if len(op.results) != 1:
            return False
        if self._is_start(op):
            self.starts.add(op.results[0])
            return True
        dim = self._dim(op, known)
        if dim is None or _shape(op.results[0].type)[dim] != self.extent:
            return False
        self.dims[op.results[0]] = dim
        return True

    def _is_start(self, op: Operation) -> bool:
        """Whether it says where the tiles of a program start, in another type."""
        is_cast = isinstance(op, arith.IndexCastOp) or _is_spread(op)
        return is_cast and op.operands[0] in self.starts

    def _dim(self, op: Operation, known: Sequence[SSAValue]) -> int | None:
        """The dimension of a result."""
        if isinstance(op, xetile.InitTileOp):
            return self._dim_of_tile(op)
        at_start = bool(self.starts & set(op.operands))
        if at_start and isinstance(op, arith.AddiOp) and is_vector(op.results[0].type):
            return self._dim_of_numbers(op)
        dims = {self.dims.get(each) for each in known}
        dim = dims.pop()
        if dims or dim is None:
            return None
        if isinstance(op, xetile.LoadTileOp | xetile.TileConvLayoutOp):
            return dim
        if isinstance(op, xetile.TileTransposeOp):
            return -3 - dim
        if isinstance(op, xetile.TileBroadcastOp):
            return None if 2 + dim in op.dims else dim
        if isinstance(op, xetile.TileReduceOp):
            return dim if op.dims == (1 if dim == -2 else 0,) else None
        if isinstance(op, vector.ShapeCastOp):
            return self._dim_of_cast(op)
        is_one = isinstance(op, xetile.LoadGatherOp) or _is_elementwise(op)
        return dim if is_one and self._agree(op, dim) else None

    def _dim_of_tile(self, op: xetile.InitTileOp) -> int | None:
        if op.indices is not None:
            return None if self.starts & set(op.operands) else self.dims.get(op.indices)
        offsets, others = op.mixed_offsets, {*op.mixed_sizes, *op.mixed_strides}
        found = [n for n, each in enumerate(offsets) if each in self.starts]
        if len(offsets) != 2 or len(found) != 1 or others & self.starts:
            return None
        return None if op.result.type.wg_map else found[0] - 2

    def _dim_of_numbers(self, op: Operation) -> int | None:
        """Of the columns that a program's tiles have in the matrix."""
        (result,), (first, other) = op.results, op.operands
        self.repeated += [(op, n, _long_dim(result)) for n in (0, 1)]
        numbers = (other if first in self.starts else first).owner
        while isinstance(numbers, arith.IndexCastOp | vector.ShapeCastOp):
            numbers = numbers.operands[0].owner
        is_row = prod(_shape(result.type)) == self.extent > 1
        counts = isinstance(numbers, vector.StepOp)
        return _long_dim(result) if is_row and counts else None

    def _dim_of_cast(self, op: vector.ShapeCastOp) -> int | None:
        """Of a row or column in another shape."""
        sizes = {prod(_shape(each.type)) for each in (*op.operands, *op.results)}
        return _long_dim(op.result) if sizes == {self.extent} != {1} else None

    def _agree(self, op: Operation, dim: int) -> bool:
        """Whether all operands can grow along the same dimension; it is noted."""
        for number, each in enumerate(op.operands):
            if each in self.starts or self.dims.get(each, dim) != dim:
                return False
            if each not in self.dims and is_vector(each.type):
                if not self._is_repeated(each, dim):
                    return False
                self.repeated.append((op, number, dim))
        return True

    def _is_repeated(self, value: SSAValue, dim: int) -> bool:
        """Whether a value is the same all along a dimension, and is made of such."""
        op, shape = value.owner, _shape(value.type)
        if value in self.starts or value in self.dims or len(shape) != 2:
            return False
        if self.extent == 1 or _is_spread(op):
            return True
        if isinstance(op, arith.ConstantOp):
            return is_dense(op.value) and splat_value(op.value) is not None
        if isinstance(op, xetile.TileBroadcastOp):
            return _shape(op.source.type)[dim] == 1
        if not isinstance(op, Operation) or not _is_elementwise(op):
            return False
        return all(self._is_repeated(v, dim) for v in op.operands if is_vector(v.type))

    def lies_along(self, tile: SSAValue) -> bool:
        """Whether a tile's elements of one row are neighbours in memory."""
        init = tile.owner
        if tile not in self.dims or not isinstance(init, xetile.InitTileOp):
            return False
        strides = list(init.mixed_strides)
        if not strides and is_memref(init.source.type):
            strides = strides_of(memref_type(init.source)) or [0, 0]
        return len(strides) == 2 and strides[self.dims[tile]] == 1

    def grow(self, times: int) -> None:
        """Make all values so many times as large."""
        made: dict[tuple[SSAValue, int], SSAValue] = {}

        def larger(value: SSAValue, dim: int) -> SSAValue:
            if (value, dim) not in made:
                made[value, dim] = _repeated(value, dim, times, larger)
            return made[value, dim]

        for op, number, dim in self.repeated:
            op.operands[number] = larger(op.operands[number], dim)
        for value, dim in self.dims.items():
            Rewriter.replace_value_with_new_type(value, longer(value.type, dim, times))


def _repeated(
    value: SSAValue, dim: int, times: int, larger: Callable[[SSAValue, int], SSAValue]
) -> SSAValue:
    """What is the same along ``dim``, or the numbers of its elements, longer."""
    op, build = value.owner, Builder.after(value)
    type_ = longer(value.type, dim, times)
    if isinstance(op, arith.ConstantOp):
        number = splat_value(op.value)
        if number is not None:
            return build.constant(number, type_)
    if _shape(value.type)[dim] == 1 and not _is_spread(op):
        dims = (2 + dim,)
        return build.insert(xetile.TileBroadcastOp(value, type_, broadcast_dims=dims))
    ends = isinstance(op, vector.BroadcastOp | vector.StepOp | xetile.TileBroadcastOp)
    assert isinstance(op, Operation)
    is_cast = isinstance(op, vector.ShapeCastOp)
    operands = [
        larger(v, _long_dim(v) if is_cast else dim)
        if is_vector(v.type) and not ends
        else v
        for v in op.operands
    ]
    new = type(op).create(
        operands=operands, result_types=[type_], properties=dict(op.properties)
    )
    return build.insert(new)


def _spread(
    loop: scf.ParallelOp,
    number: BlockArgument,
    how: tuple[int, int],
    stores: dict[xetile.StoreTileOp, int],
) -> None:
    """Fewer programs, farther apart; they store nothing behind the last one."""
    (extent, times), at = how, len(loop.upper_bounds) + number.index
    build = Builder.before(loop)
    programs = loop.operands[at]
    end = build.times(programs, extent)
    loop.operands[at] = build.index(build.ceil_divided(programs, times))
    text = f"{times} neighbours run as one: {extent * times} instead of {extent}"
    for store, dim in stores.items():
        remark(store, "programs", text)
        init = store.tile.owner
        assert isinstance(init, xetile.InitTileOp)
        sizes = list(init.mixed_sizes)
        sizes[dim] = Builder.before(init).minimum(sizes[dim], end)
        Rewriter.replace_op(init, tile_like(init, sizes=sizes))
    first = Builder(InsertPoint.at_start(loop.body.block))
    uses = list(number.uses)
    moved = first.index(first.times(number, times))
    for use in uses:
        use.operation.operands[use.index] = moved
    for op in reversed(list(loop.body.block.ops)):
        if is_dead(op):
            Rewriter.erase_op(op)


def _is_spread(op: object) -> bool:
    """Whether this makes a vector of a scalar."""
    return isinstance(op, vector.BroadcastOp) and not is_vector(op.source.type)


def _shape(type_: Attribute) -> Sequence[int]:
    if isinstance(type_, xetile.TileType):
        return type_.shape
    assert is_vector(type_)
    return type_.get_shape()


def _long_dim(value: SSAValue) -> int:
    """The dimension of a row or column that has its elements, from the end."""
    return -1 if _shape(value.type)[-1] > 1 else -2


def _is_elementwise(op: Operation) -> bool:
    one = len(op.results) == 1
    return one and op.name.startswith(("arith.", "math.", "vector.fma"))
