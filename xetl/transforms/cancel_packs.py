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
from xdsl.rewriter import Rewriter

from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith
from xetl.dialects.walk import operations_in
from xetl.dialects.xetile import TilePackOp, TileUnpackOp
from xetl.ir.passes import Pass


class CancelPacksPass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        for each in operations_in(op, TilePackOp, TileUnpackOp):
            before = each.source.owner
            if isinstance(before, TilePackOp | TileUnpackOp):
                _cancel(before, each)
            elif isinstance(before, arith.ConstantOp) and isinstance(each, TilePackOp):
                _pack(before, each)


def _cancel(
    first: TilePackOp | TileUnpackOp, second: TilePackOp | TileUnpackOp
) -> None:
    """The readers of the second take the first one's source, if it is the opposite."""
    if type(first) is type(second) or first.inner_blocks != second.inner_blocks:
        return
    Rewriter.replace_op(second, [], [first.source])
    if not first.result.uses:
        Rewriter.erase_op(first)


def _pack(constant: arith.ConstantOp, op: TilePackOp) -> None:
    """Make a constant of one number in blocks; the plain one may have other readers."""
    number = splat_value(constant.value)
    if number is None:
        return
    type_ = op.result.type
    value = make_splat(number, type_)
    Rewriter.replace_op(op, arith.ConstantOp(value, type_, location=op.location))
    if not constant.result.uses:
        Rewriter.erase_op(constant)
