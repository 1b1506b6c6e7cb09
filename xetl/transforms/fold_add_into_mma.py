"""Fold an addition into the product before it: ``(a @ b) + c`` is one ``tile_mma``.

*What*: ``a @ b + c`` becomes ``tile_mma a, b, c``.
*Why*: ``acc += a @ b`` is how many write an accumulation; only with the sum inside the
product is the loop around it one batch-reduce GEMM, and no tile of products is stored.
The sum inside is rounded no more often than outside.
*Left alone*: products that already add, have several readers, or another type.

before: %d = xetile.tile_mma %a, %b; %e = arith.addf %d, %c
after:  %e = xetile.tile_mma %a, %b, %c
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from xetl.dialects.base import operations_in
from xetl.dialects.upstream import arith
from xetl.dialects.xetile import TileMmaOp
from xetl.ir.builder import Pass, remade


class FoldAddIntoMmaPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for add in operations_in(op, arith.AddfOp, arith.AddiOp):
            _fold(add)


def _fold(add: Operation) -> None:
    left, right = add.operands
    for product, other in ((left, right), (right, left)):
        mma = _lone_product(product)
        if mma is None or other is product:
            continue
        # Where the sum stood: what is added may be defined after the product.
        new = remade(mma, [mma.a, mma.b, other], [mma.result.type])
        new.location = mma.location
        Rewriter.replace_op(add, new)
        Rewriter.erase_op(mma)
        return


def _lone_product(value: SSAValue) -> TileMmaOp | None:
    """The product behind a value, if it adds nothing yet and has no other reader."""
    mma = value.owner
    if not isinstance(mma, TileMmaOp) or mma.c is not None:
        return None
    return mma if len(list(value.uses)) == 1 else None
