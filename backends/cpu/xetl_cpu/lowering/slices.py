"""The values of a program that depend on its number, so that programs can be merged.

`grow-tiles` merges neighbouring programs. Tiles and vectors that start at ``number *
extent``, and values that are computed from them column by column (or row by row),
become several times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import builtin
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.analysis.memory import is_dead, is_pure
from xetl.dialects import xetile
from xetl.dialects.base import (
    Index,
    constant_index,
    is_dense,
    is_memref,
    is_vector,
    memref_type,
)
from xetl.dialects.literals import splat_value
from xetl.dialects.memref_layout import has_static_layout, strides_of
from xetl.dialects.upstream import arith, memref, scf, vector
from xetl.ir.builder import Builder
from xetl_cpu.dialect import BrgemmTileOp
from xetl_cpu.lowering.tiles import tile_like
from xetl_cpu.lowering.trips import Place

_READS = (xetile.LoadTileOp, xetile.LoadGatherOp, memref.LoadOp)
_ACCESSES = (xetile.LoadTileOp, xetile.StoreTileOp)


class Slices:
    """The values of a program that depend on its number, and along which dimension.

    Attributes:
        extent: of a tile; 0: it is unknown where the program's tiles start.
        first: the products of number and extent.
        starts: these, and casts of them.
        dims: the dimension of tiles and vectors, from the end: -1 or -2.
        rests: how far matrices reach from where the tiles start.
        repeated: operands that are equal for all programs, or count up with them.
        products: products of tiles, with the dimension of each.
        accesses: loads and stores of tiles, with the dimension of each; None:
            independent.
        loops: loops that carry such vectors.
    """

    def __init__(self, number: SSAValue) -> None:
        self.first, self.extent = starts_of(number)
        self.starts = set(self.first)
        self.dims: dict[SSAValue, int] = {}
        self.rests: list[Operation] = []
        self.limits: set[SSAValue] = set()
        self.repeated: list[tuple[Operation, int, int]] = []
        self.products: dict[BrgemmTileOp, int] = {}
        self.accesses: dict[xetile.LoadTileOp | xetile.StoreTileOp, int | None] = {}
        self.loops: list[scf.ForOp] = []

    def follow(self, op: Operation) -> bool:
        """Record what an operation computes; False: programs cannot be merged."""
        own = self.dims.keys() | self.starts | self.limits
        known = [v for v in op.operands if v in own]
        if isinstance(op, scf.ForOp):
            return self._follow_loop(op)
        if isinstance(op, _ACCESSES):
            self.accesses[op] = self.dims.get(op.tile)
        if isinstance(op, xetile.StoreTileOp):
            return self._follow_store(op)
        if not known:
            return is_pure(op) or isinstance(op, _READS)
        if isinstance(op, xetile.PrefetchTileOp):
            return True
        if len(op.results) != 1:
            return False
        if self._is_start(op):
            self.starts.add(op.results[0])
            return True
        if self._is_limit(op):
            self.limits.add(op.results[0])
            return True
        dim = self._dim(op, known)
        if dim is None or shape_of(op.results[0].type)[dim] != self.extent:
            return False
        self.dims[op.results[0]] = dim
        return True

    @property
    def stores(self) -> list[xetile.StoreTileOp]:
        """The stores of tiles."""
        return [op for op in self.accesses if isinstance(op, xetile.StoreTileOp)]

    def _follow_store(self, op: xetile.StoreTileOp) -> bool:
        dim, init = self.dims.get(op.tile), op.tile.owner
        if dim is None or not isinstance(init, xetile.InitTileOp):
            return False
        source = init.source.type
        is_known = is_memref(source) and has_static_layout(source)
        return bool(init.mixed_sizes or is_known) and self._agree(op, dim)

    def _follow_loop(self, loop: scf.ForOp) -> bool:
        """Whether carried rows can be longer, with the same iterations of the loop."""
        own = self.dims.keys() | self.starts | self.limits
        bounds = loop.lower_bound, loop.upper_bound, loop.step
        rows = [is_vector(each.type) for each in loop.results]
        if not own.isdisjoint(bounds) or not all(rows) or self.extent == 1:
            return False
        *body, end = loop.body.block.ops
        self.dims |= dict.fromkeys((*loop.body.block.args[1:], *loop.results), -1)
        self.loops.append(loop)
        fits = all(shape_of(each.type)[-1] == self.extent for each in loop.results)
        begins = fits and self._agree(loop, -1, loop.init_args)
        return begins and all(map(self.follow, body)) and self._agree(end, -1)

    def _is_start(self, op: Operation) -> bool:
        """Whether it casts or broadcasts the start of a program's tiles."""
        is_cast = isinstance(op, arith.IndexCastOp) or _is_spread(op)
        return is_cast and op.operands[0] in self.starts

    def _is_limit(self, op: Operation) -> bool:
        """Whether it is how far a matrix, or the farthest, reaches from the start."""
        if isinstance(op, arith.SubiOp) and op.operands[1] in self.first:
            self.rests.append(op)
            return op.operands[0] not in self.starts | self.limits
        return isinstance(op, arith.MaxsiOp) and self.limits.issuperset(op.operands)

    def _dim(self, op: Operation, known: Sequence[SSAValue]) -> int | None:
        """Return the dimension of a result, or None."""
        if isinstance(op, xetile.InitTileOp):
            return self._dim_of_tile(op)
        if isinstance(op, BrgemmTileOp):
            return self._dim_of_product(op, known)
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
        is_one = isinstance(op, xetile.LoadGatherOp) or is_elementwise(op)
        return dim if is_one and self._agree(op, dim) else None

    def _dim_of_tile(self, op: xetile.InitTileOp) -> int | None:
        if op.indices is not None:
            return None if self.starts & set(op.operands) else self.dims.get(op.indices)
        offsets, others = op.mixed_offsets, {*op.mixed_sizes, *op.mixed_strides}
        found = [n for n, each in enumerate(offsets) if each in self.starts]
        if len(offsets) != 2 or len(found) != 1 or others & self.starts:
            return None
        return None if op.result.type.wg_map else found[0] - 2

    def _dim_of_product(
        self, op: BrgemmTileOp, known: Sequence[SSAValue]
    ) -> int | None:
        """Return that of the rows, if A has it, or of the columns, if B has it."""
        ways = (
            (-2, op.a, -2 if op.trans_a is None else -1, op.rows),
            (-1, op.b, -1 if op.trans_b is None else -2, op.cols),
        )
        for dim, operand, along, limit in ways:
            is_known = op.count is not None and op.plan is None and limit in self.limits
            if is_known and self.dims.get(operand) == along:
                self.products[op] = dim
                sums = [] if op.acc is None else [op.acc]
                is_all = {*known} <= {operand, limit, *sums}
                return dim if is_all and self._agree(op, dim, sums) else None
        return None

    def _dim_of_numbers(self, op: Operation) -> int | None:
        """Return that of the column numbers of a program's tiles in the matrix."""
        (result,), (first, other) = op.results, op.operands
        self.repeated += [(op, n, _long_dim(result)) for n in (0, 1)]
        numbers = (other if first in self.starts else first).owner
        while isinstance(numbers, arith.IndexCastOp | vector.ShapeCastOp):
            numbers = numbers.operands[0].owner
        is_row = prod(shape_of(result.type)) == self.extent > 1
        counts = isinstance(numbers, vector.StepOp)
        return _long_dim(result) if is_row and counts else None

    def _dim_of_cast(self, op: vector.ShapeCastOp) -> int | None:
        """Return that of a row or column in another shape."""
        sizes = {prod(shape_of(each.type)) for each in (*op.operands, *op.results)}
        return _long_dim(op.result) if sizes == {self.extent} != {1} else None

    def _agree(
        self, op: Operation, dim: int, among: Sequence[SSAValue] | None = None
    ) -> bool:
        """Whether all operands can grow along one dimension; record those to repeat."""
        for number, each in enumerate(op.operands):
            if among is not None and each not in among:
                continue
            if each in self.starts or self.dims.get(each, dim) != dim:
                return False
            if each not in self.dims and is_vector(each.type):
                if not self._is_repeated(each, dim):
                    return False
                self.repeated.append((op, number, dim))
        return True

    def _is_repeated(self, value: SSAValue, dim: int) -> bool:
        """Whether a value and all its operands are constant along a dimension."""
        op, shape = value.owner, shape_of(value.type)
        if value in self.starts or value in self.dims or len(shape) != 2:
            return False
        if self.extent == 1 or _is_spread(op):
            return True
        if isinstance(op, arith.ConstantOp):
            return is_dense(op.value) and splat_value(op.value) is not None
        if isinstance(op, xetile.TileBroadcastOp):
            return shape_of(op.source.type)[dim] == 1
        if not isinstance(op, Operation) or not is_elementwise(op):
            return False
        return all(self._is_repeated(v, dim) for v in op.operands if is_vector(v.type))

    def lies_along(self, tile: SSAValue) -> bool:
        """Whether elements along the tile's dimension are adjacent in memory."""
        init = tile.owner
        if tile not in self.dims or not isinstance(init, xetile.InitTileOp):
            return False
        strides = list(init.mixed_strides)
        if not strides and is_memref(init.source.type):
            strides = strides_of(memref_type(init.source)) or [0, 0]
        return len(strides) == 2 and strides[self.dims[tile]] == 1

    def grow(self, times: int) -> None:
        """Make all recorded values ``times`` times as long."""
        made: dict[tuple[SSAValue, int], SSAValue] = {}

        def larger(value: SSAValue, dim: int) -> SSAValue:
            if (value, dim) not in made:
                made[value, dim] = _repeated(value, dim, times, larger)
            return made[value, dim]

        for op, number, dim in self.repeated:
            op.operands[number] = larger(op.operands[number], dim)
        for value, dim in self.dims.items():
            Rewriter.replace_value_with_new_type(value, _longer(value.type, dim, times))


def starts_of(number: SSAValue) -> tuple[list[SSAValue], int]:
    """Return products of a program's number and a tile's extent, and this; 0: none."""
    users = [use.operation for use in number.uses]
    products = [op for op in users if isinstance(op, arith.MuliOp)]
    if not products:
        return [number], 1
    factors = {constant_index(op.rhs) for op in products}
    extent = factors.pop() if len(factors) == 1 else None
    if extent is None or products != users:
        return [], 0
    return [op.result for op in products], extent


def _longer(type_: Attribute, dim: int, times: int) -> Attribute:
    """Return the type of a tile or vector that is longer along ``dim``."""
    shape = list(shape_of(type_))
    shape[dim] *= times
    if isinstance(type_, xetile.TileType):
        return type_.replace(shape)
    assert is_vector(type_)
    return builtin.VectorType(type_.element_type, shape)


def _repeated(
    value: SSAValue, dim: int, times: int, larger: Callable[[SSAValue, int], SSAValue]
) -> SSAValue:
    """Return a longer value: one constant along ``dim``, or numbers of elements."""
    op, build = value.owner, Builder.after(value)
    type_ = _longer(value.type, dim, times)
    if isinstance(op, arith.ConstantOp):
        number = splat_value(op.value)
        if number is not None:
            return build.constant(number, type_)
    if shape_of(value.type)[dim] == 1 and not _is_spread(op):
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


def spread(
    loop: scf.ParallelOp, number: SSAValue, slices: Slices, times: Index
) -> Place:
    """Run fewer programs at larger distances; they store nothing behind the last one.

    ``times`` is the number of programs that are merged. If it is computed, each merged
    program ends where the next one starts. If ``number`` is computed, the caller has
    already divided the grid by it. Return where a merged program starts and ends.
    """
    extent, build = slices.extent, Builder.before(loop)
    inner, end = Builder.after(number), None
    if isinstance(number, BlockArgument):
        at = len(loop.upper_bounds) + number.index
        programs = loop.operands[at]
        end = build.times(programs, extent)
        loop.operands[at] = build.index(build.ceil_divided(programs, times))
        inner = Builder(InsertPoint.at_start(loop.body.block))
    stride = build.index(build.times(times, extent))
    start = arith.MuliOp(number, stride)
    for each in slices.first:
        each.replace_uses_with_if(start.result, lambda use: use.operation is not start)
    inner.add(start)
    if end is None or not isinstance(times, int):
        next_one = inner.plus(start.result, stride)
        end = next_one if end is None else inner.minimum(next_one, end)
    for op in slices.rests:
        before = Builder.before(op)
        op.operands[0] = before.index(before.minimum(op.operands[0], end))
    for product, dim in slices.products.items():
        if dim == -1 and product.cols is not None:  # Tiles of packed B are counted so.
            cols = Builder.before(product).pure(arith.MinsiOp, product.cols, stride)
            Rewriter.replace_op(product, product.changed(cols=cols))
    _end_tiles(slices, end)
    for op in reversed(list(loop.body.block.ops)):
        if is_dead(op):
            Rewriter.erase_op(op)
    return Place(start.result, build.index(end))


def _end_tiles(slices: Slices, end: Index) -> None:
    """End matrices at ``end``: nothing is stored behind it, nor loaded by loops."""
    for op, dim in slices.accesses.items():
        is_computed = slices.loops or isinstance(op, xetile.StoreTileOp)
        init = op.tile.owner
        if dim is None or not is_computed or not isinstance(init, xetile.InitTileOp):
            continue
        init = _sized(init)
        sizes = list(init.mixed_sizes)
        sizes[dim] = Builder.before(init).minimum(sizes[dim], end)
        Rewriter.replace_op(init, tile_like(init, sizes=sizes))


def _sized(init: xetile.InitTileOp) -> xetile.InitTileOp:
    """Return the tile with sizes of its matrix as operands instead of in the type."""
    if init.mixed_sizes:
        return init
    type_ = memref_type(init.source)
    strides = [each or 0 for each in strides_of(type_) or ()]
    sizes, layout = type_.get_shape(), builtin.StridedLayoutAttr(strides)
    loose = builtin.MemRefType(
        type_.element_type, [builtin.DYNAMIC_INDEX] * 2, layout, type_.memory_space
    )
    matrix = Builder.before(init).insert(memref.CastOp(init.source, loose))
    tile, where = init.result.type, init.location
    new = xetile.InitTileOp(
        matrix, init.mixed_offsets, tile, sizes, strides, location=where
    )
    Rewriter.replace_op(init, new)
    return new


def _is_spread(op: object) -> bool:
    """Whether this broadcasts a scalar to a vector."""
    return isinstance(op, vector.BroadcastOp) and not is_vector(op.source.type)


def shape_of(type_: Attribute) -> Sequence[int]:
    """Return the shape of a tile or a vector."""
    if isinstance(type_, xetile.TileType):
        return type_.shape
    assert is_vector(type_)
    return type_.get_shape()


def _long_dim(value: SSAValue) -> int:
    """Return the dimension, from the end, along which a row or column is long."""
    return -1 if shape_of(value.type)[-1] > 1 else -2


def is_elementwise(op: Operation) -> bool:
    """Whether element (i, j) of the result needs only elements (i, j)."""
    one = len(op.results) == 1
    return one and op.name.startswith(("arith.", "math.", "vector.fma"))
