"""compute-operands: an operand that many programs would compute is computed once.

Why: a product whose operand is cast, scaled or dequantised in the K loop is not a
BRGEMM on memory, and every program repeats that computation: with tiles of 64 this
takes a third of the time. If the operand is computed once into memory of the launch, it
is loaded like any other operand; the loop is raised and the operand is packed.

Before::

    scf.parallel (%x, %y) { scf.for %k = %c0 to %K step %c32 {
      %b = arith.mulf (xetile.load_tile %B at [%k, %y * 64]), %scale
      xetile.tile_mma %a, %b, %acc } }

After::

    scf.parallel (%y, %step) { xetile.store_tile (arith.mulf ...), %ahead[...] }
    scf.parallel (%x, %y) { ... %b = xetile.load_tile %ahead at [%k, %y * 64] ... }

Blocks of an operand, a different matrix in each step, are copied to one matrix in the
same way if they are few and short (seed 003: A in blocks of 32 x 32, B in pairs of
rows; Granite Rapids, one thread, busy: 43 GFLOP/s, then 1050).

Left alone: operands that depend on more than the counter and one axis of the grid, on
memory that the kernel writes or on loop-carried values, and operands of products with
few rows or columns (up to 4): there, memory would cost more than the repeated
computation (1 x 4096 x 4096 by 1 x 256 with bytes as B on Zen 5: f32 9 GFLOP/s, then
17; by 8 x 64 with a sum as A 24 and 99).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.analysis.affine import is_defined_outside
from xetl.analysis.control_flow import yielded
from xetl.analysis.memory import is_dead
from xetl.dialects import xetile
from xetl.dialects.base import constant_index, operations_in, vector_type
from xetl.dialects.upstream import func, memref, scf, vector
from xetl.ir.builder import Builder, Pass
from xetl.records import record
from xetl.transforms.diagnostics import remark
from xetl_cpu.lowering.loops.state import reinterpret
from xetl_cpu.lowering.packing.panels import reserve_first
from xetl_cpu.lowering.packing.plans import copier, few_trips, is_shared, is_written
from xetl_cpu.lowering.pruning import prune_loop
from xetl_cpu.lowering.tiles import origin, sources_of, tile_like
from xetl_cpu.microkernels.blocking import SKINNY_ROWS

_COMPUTING = (
    vector.BroadcastOp,
    vector.ExtractStridedSliceOp,
    vector.InterleaveOp,
    vector.ShapeCastOp,
    vector.ShuffleOp,
    vector.StepOp,
    xetile.TileBroadcastOp,
    xetile.TileTransposeOp,
    xetile.LoadTileOp,
    xetile.InitTileOp,
    memref.CastOp,
    memref.DimOp,
    memref.ExtractStridedMetadataOp,
    memref.ReinterpretCastOp,
    memref.SubviewOp,
)


_BLOCK = 128
"""The largest k of a step for blocks to be copied: products of longer blocks are as
fast as products of whole matrices."""


class ComputeOperandsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for function in operations_in(op, func.FuncOp):
            changed = [
                _in_loop(loop, programs)
                for programs in operations_in(function, scf.ParallelOp)
                for loop in operations_in(programs, scf.ForOp)
            ]
            if any(changed):
                reserve_first(function)
                for each in [*function.walk(reverse=True)]:
                    if is_dead(each):
                        Rewriter.erase_op(each)


def _in_loop(loop: scf.ForOp, programs: scf.ParallelOp) -> bool:
    """Compute operands in a K loop ahead if possible; return whether any was."""
    products = [op for op in loop.body.block.ops if isinstance(op, xetile.TileMmaOp)]
    operands = [_Computed(mma, name, loop) for mma in products for name in "ab"]
    if all(_is_loaded(operand.value, loop) for operand in operands):
        return False
    _count_tiles(loop)
    found = [operand for operand in operands if _is_worth_it(operand, programs)]
    if not _blocks_pay(operands, found, loop):
        found = [one for one in found if _tile_of(one.value) is None]
    for operand in found:
        _compute_ahead(operand, programs)
    if found:
        prune_loop(loop)
    return bool(found)


def _blocks_pay(
    operands: Sequence[_Computed], found: Sequence[_Computed], loop: scf.ForOp
) -> bool:
    """Whether only-loaded blocks are few and short, and the loop can then be raised."""
    goes = all(one in found or _is_loaded(one.value, loop) for one in operands)
    is_few = few_trips(loop.body.block.args[0]) is not None
    return goes and is_few and all(one.depth <= _BLOCK for one in operands)


def _count_tiles(loop: scf.ForOp) -> None:
    """Rewrite tiles that move by the loop's step as tiles at the loop's counter."""
    counter, *carried = loop.body.block.args
    step = constant_index(loop.step)
    for tile, start, end in zip(carried, loop.init_args, yielded(loop.body.block)):
        init, update = start.owner, end.owner
        if not isinstance(init, xetile.InitTileOp) or init.indices is not None:
            continue
        if not isinstance(update, xetile.UpdateTileOffsetOp) or update.tile is not tile:
            continue
        moves = [constant_index(move) for move in update.mixed_offsets]
        if constant_index(loop.lower_bound) != 0 or moves not in ([0, step], [step, 0]):
            continue
        first = next(iter(loop.body.block.ops))
        build, offsets = Builder.before(first), list(init.mixed_offsets)
        k_dim = moves.index(step)
        is_zero = constant_index(offsets[k_dim]) == 0
        offsets[k_dim] = counter if is_zero else build.plus(offsets[k_dim], counter)
        tile.replace_all_uses_with(build.insert(tile_like(init, offsets=offsets)))


@record()
class _Computed:
    """An operand of a product in a K loop, which consists of one part per step."""

    mma: xetile.TileMmaOp
    name: str
    loop: scf.ForOp

    @property
    def index(self) -> int:
        """The index of the operand in the product."""
        return "ab".index(self.name)

    @property
    def value(self) -> SSAValue:
        """The value that the product reads."""
        return self.mma.operands[self.index]

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of one part."""
        rows, columns = vector_type(self.value).get_shape()
        return rows, columns

    @property
    def k_dim(self) -> int:
        """The dimension of the operand that is summed over."""
        return 1 - self.index

    @property
    def depth(self) -> int:
        """The extent of one part along k."""
        return self.shape[self.k_dim]


def _is_worth_it(operand: _Computed, programs: scf.ParallelOp) -> bool:
    """Whether it is computed, from memory, in whole parts, for several programs."""
    loop, value = operand.loop, operand.value
    if len(vector_type(value).get_shape()) != 2 or _is_loaded(value, loop):
        return False
    if vector_type(operand.mma.result).get_shape()[operand.k_dim] <= SKINNY_ROWS:
        return False
    depth = operand.depth
    bounds = (loop.lower_bound, loop.upper_bound, loop.step)
    starts, step = constant_index(loop.lower_bound), constant_index(loop.step)
    if not all(is_defined_outside(v, programs) for v in bounds):
        return False
    if starts != 0 or not step or depth % step:
        return False
    sources = _sources(value, loop, programs)
    if sources is None or loop.body.block.args[0] not in sources:
        return False
    axes = sources - {loop.body.block.args[0]}
    axis = next(iter(axes), None)
    return len(axes) <= 1 and is_shared(programs, axis)


def _tile_of(value: SSAValue) -> SSAValue | None:
    """Return the tile of a load, perhaps transposed; None if the value is computed."""
    owner = value.owner
    if isinstance(owner, xetile.TileTransposeOp):
        owner = owner.source.owner
    return owner.tile if isinstance(owner, xetile.LoadTileOp) else None


def _is_loaded(value: SSAValue, loop: scf.ForOp) -> bool:
    """True if `raise-to-brgemm` takes it as it is: a tile of one matrix in the loop."""
    tile = _tile_of(value)
    init = None if tile is None else origin(tile)
    return tile is not None and (init is None or is_defined_outside(init.source, loop))


def _sources(
    value: SSAValue, loop: scf.ForOp, programs: scf.ParallelOp
) -> set[BlockArgument] | None:
    """Return the numbers and counter that decide a value; None if others do, too."""

    def is_source(each: BlockArgument) -> bool:
        return each.block is programs.body.block or each is loop.body.block.args[0]

    def may_be_copied(op: Operation) -> bool:
        return _may_be_copied(op, programs)

    return sources_of([value], programs, is_source, may_be_copied)


def _may_be_copied(op: Operation, programs: scf.ParallelOp) -> bool:
    """Whether an operation gives the same result before the programs."""
    if isinstance(op, xetile.LoadTileOp):
        init = op.tile.owner
        if not isinstance(init, xetile.InitTileOp) or init.indices is not None:
            return False
        return not is_written(init.source, programs)
    return op.name.startswith(("arith.", "math.")) or isinstance(op, _COMPUTING)


def _compute_ahead(operand: _Computed, programs: scf.ParallelOp) -> None:
    """Compute all parts into memory before the programs, and load them from there."""
    loop, mma = operand.loop, operand.mma
    sources = _sources(operand.value, loop, programs)
    assert sources is not None
    counter = loop.body.block.args[0]
    axis = next((one for one in sources if one is not counter), None)
    build, depth = Builder.before(programs), operand.depth
    steps = build.maximum(build.ceil_divided(loop.upper_bound, loop.step), 0)
    count = 1 if axis is None else programs.upper_bounds[axis.index]
    extents = [build.times(count, side) for side in operand.shape]
    extents[operand.k_dim] = build.times(steps, depth)
    rows, columns = (build.index(extent) for extent in extents)
    element = vector_type(operand.value).element_type
    size = build.index(build.times(rows, columns))
    flat = memref.AllocOp([size], (), MemRefType(element, [DYNAMIC_INDEX]))
    flat.results[0].name_hint = "ahead"
    build.add(flat)
    matrix = reinterpret(build, flat.results[0], 0, (rows, columns), (columns, 1))
    where = _Memory(operand, matrix, rows, columns, axis)
    _fill(where, programs, *build.parallel([count, steps]))
    inside, step = Builder.before(mma), constant_index(loop.step)
    assert step
    first = build.index(inside.times(counter, depth // step))
    load = xetile.LoadTileOp(where.tile(inside, axis, first), location=mma.location)
    inside.add(load)
    mma.operands[operand.index] = load.results[0]
    remark(mma, "operands", f"{operand.name} is computed once, before the programs run")


@record()
class _Memory:
    """The memory of an operand as a matrix."""

    operand: _Computed
    matrix: SSAValue
    rows: SSAValue
    columns: SSAValue
    axis: BlockArgument | None

    def tile(
        self, build: Builder, number: SSAValue | None, first: SSAValue
    ) -> SSAValue:
        """Return the tile of a program, for the part at ``first`` along k."""
        operand = self.operand
        side = operand.shape[1 - operand.k_dim]
        # If possible in front of the K loop, as `raise-to-brgemm` requires.
        fixed = build if number is not self.axis else Builder.before(operand.loop)
        across = 0 if number is None else fixed.times(number, side)
        offsets = [first, across] if operand.k_dim == 0 else [across, first]
        element = vector_type(operand.value).element_type
        init = xetile.InitTileOp(
            self.matrix,
            offsets,
            xetile.TileType(operand.shape, element),
            sizes=[self.rows, self.columns],
            strides=[self.columns, 1],
            location=operand.mma.location,
        )
        return build.insert(init)


def _fill(
    where: _Memory,
    programs: scf.ParallelOp,
    build: Builder,
    numbers: Sequence[BlockArgument],
) -> None:
    """Compute the part of one step, for one number along the axis."""
    operand, (number, step) = where.operand, numbers
    first = build.index(build.times(step, operand.depth))
    counter = build.index(build.times(step, constant_index(operand.loop.step) or 1))
    known: dict[SSAValue, SSAValue] = {operand.loop.body.block.args[0]: counter}
    if where.axis is not None:
        known[where.axis] = number
    value = copier(programs, build, known)(operand.value)
    across = None if where.axis is None else number
    tile = where.tile(build, across, first)
    build.add(xetile.StoreTileOp(value, tile, location=operand.mma.location))
