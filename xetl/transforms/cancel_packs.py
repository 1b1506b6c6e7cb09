"""Drop a pack and an unpack that undo one another.

*What*: a value that is unpacked and packed again in the same blocks, or packed and
unpacked, is itself; a vector of one number is made in blocks at once.
*Why*: packing moves every element through registers; passes that rearrange blocks write
each step on its own and leave the rest to here.
*Left alone*: two sizes of blocks: there something must move.

before: %u = xetile.tile_unpack %p {inner_blocks = [8, 16]}
        %q = xetile.tile_pack %u {inner_blocks = [8, 16]}
after:  uses of %q use %p
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import TilePackOp, TileUnpackOp
from xetl.ir.passes import Pass
from xetl.transforms.rewriting import apply_patterns


class CancelPack(RewritePattern):
    """Match the second of the two, since its readers take the first one's source."""

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: TilePackOp | TileUnpackOp, rewriter: PatternRewriter, /
    ) -> None:
        """Take the source of the opposite operation before ``op``."""
        before = op.source.owner
        if not isinstance(before, TilePackOp | TileUnpackOp):
            return
        if type(before) is type(op) or before.inner_blocks != op.inner_blocks:
            return
        rewriter.replace(op, [], [before.source])
        if not before.result.uses:
            rewriter.erase(before)


class PackUniform(RewritePattern):
    """Match the pack: the constant may have other readers."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TilePackOp, rewriter: PatternRewriter, /) -> None:
        """Make a constant in blocks where a plain one is packed."""
        constant = op.source.owner
        if not isinstance(constant, arith.ConstantOp):
            return
        number = splat_value(constant.value)
        if number is None:
            return
        value = make_splat(number, op.result.type)
        rewriter.replace(op, arith.ConstantOp(value, op.result.type))
        if not constant.result.uses:
            rewriter.erase(constant)


class CancelPacksPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        apply_patterns(op, CancelPack(), PackUniform())
