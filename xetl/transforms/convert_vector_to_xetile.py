"""Matrices of MLIR's `vector` dialect become tiles.

*What*: transfers of matrices become loads and stores of tiles, parts of a memref their
offsets; `vector.contract` becomes `tile_mma`, transposes, broadcasts and reductions
their counterparts.  Loops and elementwise operations are the same on both sides.
*Why*: programs that were tiled and vectorised elsewhere come in through `vector`; the
two say the same (XeTile RFC, appendix 1).
*How*: by the rules of `legalize-vectors` that need no vectors of other ranks.
*Left alone*: masks, vectors that are no matrices, memory that is contiguous in no
dimension, padding that is no constant, products of a batch or of another kind.

before: %s = memref.subview %m[%i, %k] [64, 32] [1, 1]
        %v = vector.transfer_read %s[%c0, %c0], %zero : memref<64x32xf16, ...>
after:  %t = xetile.init_tile %m[%i, %k] -> !xetile.tile<64x32xf16>
        %v = xetile.load_tile %t
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from xetl.dialects.base import shape_of, vector_type
from xetl.dialects.upstream import memref, vector
from xetl.dialects.upstream.elementwise import is_float
from xetl.dialects.walk import operations_in
from xetl.ir.builder import Builder
from xetl.ir.passes import Pass
from xetl.transforms.legalize_vectors import reductions, shapes, transfers
from xetl.transforms.rewriting import Rule, Values, apply_rules


def _is_product(op: vector.ContractOp) -> bool:
    """Whether this is (m, k) by (k, n), in any order, of types a tile_mma takes."""
    lhs, rhs, acc = op.maps
    kinds = sorted(op.iterators)
    if op.kind.kind != "add" or kinds != ["parallel", "parallel", "reduction"]:
        return False
    shared = set(lhs) & set(rhs)
    ranks_fit = all(len(dims) == 2 for dims in op.maps)
    if not ranks_fit or set(acc) != set(lhs) ^ set(rhs) or len(shared) != 1:
        return False
    element = vector_type(op.lhs).element_type
    same = element == vector_type(op.rhs).element_type
    return same and is_float(element) == is_float(op.result.type)


def _where(condition: Callable[[Any], bool], rule: Rule) -> Rule:
    """A rule for the operations that fulfil a condition."""

    def choose(b: Builder, op: Any) -> Values | None:
        return rule(b, op) if condition(op) else None

    return choose


_RULES: dict[type[Operation], Rule] = {
    vector.TransferReadOp: transfers.read,
    vector.TransferWriteOp: transfers.write,
    vector.ContractOp: _where(_is_product, reductions.contract),
    vector.TransposeOp: _where(lambda op: op.dims == (1, 0), shapes.transpose),
    vector.BroadcastOp: _where(
        lambda op: len(shape_of(op.result.type)) == 2, shapes.broadcast
    ),
    vector.MultiReductionOp: _where(
        lambda op: len(shape_of(op.source.type)) == 2 and bool(op.dims),
        reductions.multi_reduction,
    ),
}


class ConvertVectorToXetilePass(Pass):
    """See the module docstring."""

    def rewrite(self, op: ModuleOp) -> None:
        """Rewrite ``op`` in place."""
        apply_rules(op, _RULES)
        for view in reversed(operations_in(op, memref.SubviewOp)):
            if not view.result.uses:
                Rewriter.erase_op(view)
