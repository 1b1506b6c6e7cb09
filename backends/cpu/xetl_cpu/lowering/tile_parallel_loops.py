"""Tile parallel loops: ``tile-parallel-loops{sizes=4,8}``.

    scf.parallel (%i, %j) = (0, 0) to (32, 32) step (1, 1) { body }
    ->
    scf.parallel (%i, %j) = (0, 0) to (32, 32) step (4, 8) {
      scf.for %u = 0 to 4 { scf.for %v = 0 to 8 { body at (%u + %i, %v + %j) } }
    }

A size of 1, or none for a dimension, leaves it; where a size does not divide the
extent the inner loop ends at the bound.  Source: seed 003, "2D parallelism".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass

from xetl.dialects.base import Index
from xetl.dialects.memref_layout import constant_index
from xetl.dialects.upstream import arith, scf
from xetl.ir.builder import Builder


@dataclass(frozen=True)
class TileParallelLoopsPass(ModulePass):
    """See the module docstring; ``sizes`` in iterations."""

    name = "tile-parallel-loops"
    sizes: tuple[int, ...] = (1,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for loop in [one for one in op.walk() if isinstance(one, scf.ParallelOp)]:
            sizes = (*self.sizes, *(1 for _ in loop.upper_bounds))
            sizes = sizes[: len(loop.upper_bounds)]
            if any(size > 1 for size in sizes) and not loop.results:
                _tile(loop, sizes)


def _tile(loop: scf.ParallelOp, sizes: Sequence[int]) -> None:
    build = Builder.before(loop)
    steps = [
        build.index(build.times(_known(step), size))
        for step, size in zip(loop.steps, sizes)
    ]
    old = loop.body.block
    new = Block(arg_types=[argument.type for argument in old.args])
    inner, loops = Builder.at_end(new), list[scf.ForOp]()
    for dim, (argument, outer) in enumerate(zip(old.args, new.args)):
        at: SSAValue = outer
        if sizes[dim] > 1:
            stop = _end(inner, loop, dim, steps[dim], outer)
            loops.append(inner.for_loop(0, stop, loop.steps[dim]))
            inner = Builder.at_end(loops[-1].body.block)
            at = inner.insert(arith.AddiOp(loops[-1].body.block.args[0], outer))
        argument.replace_all_uses_with(at)
    _move_body(old, inner)
    for each in loops:
        each.body.block.add_op(scf.YieldOp())
    new.add_op(scf.ReduceOp())
    lowers, uppers = list(loop.lower_bounds), list(loop.upper_bounds)
    tiled = scf.ParallelOp(lowers, uppers, steps, Region(new))
    tiled.location = loop.location
    build.add(tiled)
    loop.detach()
    loop.erase()


def _known(value: SSAValue) -> Index:
    constant = constant_index(value)
    return value if constant is None else constant


def _end(
    build: Builder, loop: scf.ParallelOp, dim: int, step: SSAValue, at: SSAValue
) -> Index:
    """Where the inner loop ends: the tile's size, or less at the edge."""
    lower, upper = (_known(b[dim]) for b in (loop.lower_bounds, loop.upper_bounds))
    size = _known(step)
    extent = build.minus(upper, lower)
    if isinstance(extent, int) and isinstance(size, int) and extent % size == 0:
        return size
    return build.minimum(size, build.minus(upper, at))


def _move_body(old: Block, to: Builder) -> None:
    """The operations of a loop's body, without its end."""
    for op in list(old.ops):
        if isinstance(op, scf.ReduceOp):
            continue
        op.detach()
        to.add(op)
