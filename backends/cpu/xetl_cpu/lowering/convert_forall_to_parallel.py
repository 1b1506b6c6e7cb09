"""convert-forall-to-parallel: `scf.forall` on memrefs is `scf.parallel`.

    scf.forall (%i, %j) in (32, %n) { body }
    ->
    scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %n) step (%c1, %c1) { body }

Before: any stage.  Left alone: nothing; `scf.forall` over tensors is not parsed.
Source: seed 003, "-convert-forall-to-parallel"; MLIR's pass of that name.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from xetl.dialects.upstream import scf
from xetl.ir.builder import Builder


class ConvertForallToParallelPass(ModulePass):
    """See the module docstring."""

    name = "convert-forall-to-parallel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for loop in [one for one in op.walk() if isinstance(one, scf.ForallOp)]:
            _convert(loop)


def _convert(loop: scf.ForallOp) -> None:
    build = Builder.before(loop)
    bounds = [[build.index(each) for each in group] for group in loop.mixed_bounds]
    end = loop.region.block.last_op
    assert end is not None
    end.detach()
    end.erase()
    loop.region.block.add_op(scf.ReduceOp(location=end.location))
    lowers, uppers, steps = bounds
    body = loop.detach_region(loop.region)
    build.add(scf.ParallelOp(lowers, uppers, steps, body, location=loop.location))
    loop.detach()
    loop.erase()
