"""materialize-grid: the programs of a launch become the iterations of a parallel loop.

Why first: with the grid as a loop, "once per launch" means "before the loop", and a
pass can prove that an offset is a program's number times a constant.

Before: ``gpu.func @k(args) kernel { %x = gpu.block_id x ... }``
After:  ``func.func @k(args, %gx, %gy, %gz) { scf.parallel (%x, %y, %z) {...} }``

In MLIR text, outermost loops with independent iterations become axes of that loop, so
that their iterations are programs: `scf.forall`, `scf.parallel`, the tiles of
`linalg.matmul`, and loops whose iterations store neighbouring tiles. A loop over the
inside of a block is merged with the loop over blocks: then a task is as large as the
plan wants.

    scf.forall (%i) = (0) to (32) step (4) { scf.for %j = 0 to 4 { ... %i + %j ... } }
    ->
    scf.parallel (%x, %y, %z) ... to (32, 1, %gx * %gy * %gz) { ... %x ... }

Left alone: functions that are not kernels; MLIR text that uses programs' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import builtin
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from xetl.analysis.affine import is_defined_outside, multiple_of
from xetl.analysis.memory import is_dead, is_pure
from xetl.dialects.base import Index, constant_index, is_memref, known
from xetl.dialects.kernel_attributes import PARALLEL, STORED, TEXT
from xetl.dialects.upstream import arith, func, gpu, memref, scf
from xetl.dialects.xetile import InitTileOp, LoadTileOp, StoreTileOp, TileType
from xetl.ir.builder import Builder, Pass, move_before, move_to_end
from xetl.records import record
from xetl_cpu.lowering.tiles import may_alias, may_write, tile_root, written_root

_AXES = ("x", "y", "z")


class MaterializeGridPass(Pass):
    def rewrite(self, op: builtin.ModuleOp) -> None:
        for container in [o for o in op.body.block.ops if isinstance(o, gpu.ModuleOp)]:
            for kernel in [
                o for o in container.body.block.ops if isinstance(o, gpu.FuncOp)
            ]:
                kernel.detach()
                Rewriter.insert_op(_as_function(kernel), InsertPoint.before(container))
            Rewriter.erase_op(container)


def _as_function(kernel: gpu.FuncOp) -> func.FuncOp:
    """Return the function that runs all programs of a launch."""
    old = kernel.body.block
    inputs = [arg.type for arg in old.args]
    index = builtin.IndexType()
    block = Block(arg_types=[*inputs, index, index, index])
    for arg, new in zip(old.args, block.args):
        new.name_hint = arg.name_hint
        arg.replace_all_uses_with(new)
    grid = block.args[len(inputs) :]
    for axis, size in zip(_AXES, grid):
        size.name_hint = f"grid_{axis}"
    body = Block(arg_types=[index, index, index])
    for axis, number in zip(_AXES, body.args):
        number.name_hint = f"program_{axis}"
    move_to_end(old.ops, body)
    for op in list(body.walk()):
        source = _source(op, body, grid)
        if source is not None:
            Rewriter.replace_op(op, [], [source])
    last = body.last_op
    assert isinstance(last, gpu.ReturnOp)
    Rewriter.replace_op(last, scf.ReduceOp())
    zero, one = arith.ConstantOp.index(0), arith.ConstantOp.index(1)
    loop = scf.ParallelOp([zero.result] * 3, list(grid), [one.result] * 3, Region(body))
    block.add_ops([zero, one, loop, func.ReturnOp()])
    function = func.FuncOp(
        kernel.sym_name.data,
        builtin.FunctionType.from_lists([*inputs, index, index, index], []),
        Region(block),
    )
    function.attributes.update(
        {k: v for k, v in kernel.attributes.items() if k.startswith("xetile.")}
    )
    function.location = kernel.location
    function.attributes[STORED] = builtin.DenseArrayBase.from_list(
        builtin.i64, _stored(function)
    )
    if TEXT in kernel.attributes:
        _spread_trips(loop, grid)
    return function


@record()
class _Axis:
    """An axis of the grid: the counter and the bounds of the loop that it replaces."""

    counter: SSAValue
    lower: Index
    upper: Index
    step: Index


def _spread_trips(programs: scf.ParallelOp, grid: Sequence[SSAValue]) -> None:
    """Make the independent iterations of outermost loops programs."""
    body, build = programs.body.block, Builder.before(programs)
    numbered = any(number.first_use for number in body.args)
    if numbered or any(len([*size.uses]) > 1 for size in grid):
        return
    for op in [*programs.walk(reverse=True)]:
        is_unused = isinstance(op, memref.AllocaOp) and not op.results[0].first_use
        if is_unused or (op is not programs and is_dead(op)):
            Rewriter.erase_op(op)
    axes, loops = list[_Axis](), list[scf.ForOp]()
    while (loop := _only_loop(programs, loops)) is not None:
        axis = _Axis(loop.body.block.args[0], *map(known, _bounds(loop)))
        if not any(_join(axis, whole) for whole in axes):
            if len(axes) == len(grid) - 1:
                break
            axes.append(axis)
        loops.append(loop)
    inside = Builder(InsertPoint.at_start(body))
    for number, axis in enumerate(axes):
        span = build.maximum(build.minus(axis.upper, axis.lower), 0)
        count = build.index(build.ceil_divided(span, axis.step))
        programs.operands[len(grid) + number] = count
        first = inside.times(body.args[number], axis.step)
        counter = inside.index(inside.plus(first, axis.lower))
        axis.counter.replace_all_uses_with(counter)
    for number in range(len(axes), len(grid)) if axes else ():
        is_last = number == len(grid) - 1
        count = build.index(build.product(grid) if is_last else 1)
        programs.operands[len(grid) + number] = count
    for loop in loops:
        *trip, _ = loop.body.block.ops
        move_before(trip, loop)
        Rewriter.erase_op(loop)


def _only_loop(
    programs: scf.ParallelOp, loops: Sequence[scf.ForOp]
) -> scf.ForOp | None:
    """Return the next loop inward, if it is the only effect and may run in parallel."""
    around = loops[-1] if loops else programs
    *ops, _ = around.body.block.ops
    loop = ops.pop() if ops else None
    if not isinstance(loop, scf.ForOp) or loop.init_args or not all(map(is_pure, ops)):
        return None
    for op in ops:
        # Vectors cost memory to carry; each program has its own numbers of subgroups.
        stays = any(
            isinstance(v.type, builtin.VectorType | TileType) for v in op.results
        )
        stays = stays or op.name.startswith("gpu.")
        if not stays and all(is_defined_outside(v, programs) for v in op.operands):
            move_before([op], programs)
    known = all(is_defined_outside(bound, programs) for bound in _bounds(loop))
    is_free = PARALLEL in loop.attributes or _is_independent(loop)
    return loop if known and is_free else None


def _bounds(loop: scf.ForOp) -> tuple[SSAValue, SSAValue, SSAValue]:
    return loop.lower_bound, loop.upper_bound, loop.step


def _join(part: _Axis, whole: _Axis) -> bool:
    """Merge an axis within blocks with that of blocks, if only the sum is read."""
    sums = {use.operation for use in part.counter.uses}
    both, block = {part.counter, whole.counter}, whole.step
    if (part.lower, part.upper, part.step) != (0, block, 1) or not sums:
        return False
    ends = [n for n in (whole.lower, whole.upper, block) if isinstance(n, int)]
    if len(ends) < 3 or not ends[-1] or any(n % ends[-1] for n in ends):
        return False
    if sums != {use.operation for use in whole.counter.uses}:
        return False
    if not all(isinstance(o, arith.AddiOp) and {*o.operands} == both for o in sums):
        return False
    for op in sums:
        op.results[0].replace_all_uses_with(whole.counter)
        Rewriter.erase_op(op)
    whole.step = 1
    return True


_TILE_ACCESS = (LoadTileOp, StoreTileOp)


def _is_independent(loop: scf.ForOp) -> bool:
    """Whether iterations store neighbouring tiles and read no tile of another one."""
    ops = [*loop.walk()]
    stores = [op for op in ops if isinstance(op, StoreTileOp)]
    calm = (scf.ForOp, scf.YieldOp, *_TILE_ACCESS)
    if not stores or not all(is_pure(op) or isinstance(op, calm) for op in ops):
        return False
    accesses = [op for op in ops if isinstance(op, _TILE_ACCESS)]
    return all(_is_apart(store, accesses, loop) for store in stores)


def _is_apart(
    store: StoreTileOp, accesses: Sequence[LoadTileOp | StoreTileOp], loop: scf.ForOp
) -> bool:
    """Whether no access meets a tile of another iteration: all have the same offset."""
    init = store.tile.owner
    if not isinstance(init, InitTileOp) or constant_index(loop.step) is None:
        return False
    for dim, (offset, extent) in enumerate(
        zip(init.mixed_offsets, init.result.type.shape)
    ):
        number = multiple_of(offset, extent)
        terms = [number]
        if number is not None and isinstance(number.owner, arith.AddiOp):
            terms = [*number.owner.operands]
        own = [v for v in terms if v is not loop.body.block.args[0]]
        if len(own) == len(terms) or not all(
            v is not None and is_defined_outside(v, loop) for v in own
        ):
            continue
        others = [
            op.tile.owner
            for op in accesses
            if may_alias(tile_root(op.tile), written_root(store))
        ]
        if all(
            isinstance(each, InitTileOp)
            and each.source is init.source
            and each.mixed_offsets[dim] is offset
            and each.result.type.shape[dim] <= extent
            for each in others
        ):
            return True
    return False


def _stored(function: func.FuncOp) -> list[int]:
    """Return the indices of the array arguments that some program may write."""
    roots = [written_root(op) for op in function.walk() if may_write(op)]
    return [
        arg.index
        for arg in function.body.block.args
        if is_memref(arg.type) and any(root is None or root is arg for root in roots)
    ]


def _source(op: Operation, body: Block, grid: Sequence[SSAValue]) -> SSAValue | None:
    """Return the loop's counter for a block id, the argument for a grid's size."""
    if isinstance(op, gpu.BlockIdOp):
        return body.args[op.axis]
    if isinstance(op, gpu.GridDimOp):
        return grid[op.axis]
    return None
