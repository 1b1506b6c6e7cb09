"""collapse-vectors: vectors of rank 0 and of more than 2 become matrices.

Why: elementwise operations and copies of whole values do not depend on the rank, and
`expand-text-forms` has rewritten all other operations with matrices. The last dimension
is a row of the matrix; all others together count its rows.

Before: ``%v = vector.shape_cast %r : vector<64x128xf32> to vector<8x8x128xf32>``,
``math.exp %v : vector<8x8x128xf32>``
After:  ``math.exp %r : vector<64x128xf32>``

Left alone: blocked values (of rank 4, if tiles have blocks): see `unblock-values`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter

from xetl.analysis.axes import defined_by
from xetl.dialects.base import is_dense, is_vector, operations_in
from xetl.dialects.literals import make_splat, splat_value
from xetl.dialects.upstream import arith, gpu, vector
from xetl.dialects.xetile import TilePackOp, TileType, TileUnpackOp
from xetl.errors import InternalError
from xetl.ir.builder import Pass
from xetl.transforms.legalize_vectors.shapes import matrix_shape


class CollapseVectorsPass(Pass):
    def rewrite(self, op: ModuleOp) -> None:
        for kernel in operations_in(op, gpu.FuncOp):
            _collapse(kernel)


def _collapse(kernel: gpu.FuncOp) -> None:
    operations = list(kernel.walk())
    kept = {1, 2, 4} if any(map(_has_blocks, operations)) else {1, 2}
    for op in operations:
        for value in defined_by(op):
            type_ = value.type
            if not is_vector(type_) or type_.get_num_dims() in kept:
                continue
            shape = matrix_shape(type_.get_shape())
            new = VectorType(type_.element_type, list(shape))
            if isinstance(op, arith.ConstantOp):
                _retype(op, new)
            Rewriter.replace_value_with_new_type(value, new)
    for op in operations:
        if isinstance(op, vector.ShapeCastOp) and op.source.type == op.result.type:
            Rewriter.replace_op(op, [], [op.source])


def _has_blocks(op: Operation) -> bool:
    if isinstance(op, TilePackOp | TileUnpackOp):
        return True
    return any(
        isinstance(value.type, TileType) and value.type.inner_blocks is not None
        for value in defined_by(op)
    )


def _retype(op: arith.ConstantOp, type_: Attribute) -> None:
    number = splat_value(op.value)
    if number is None or not is_dense(op.value):
        raise InternalError("a constant of different elements reached this pass")
    op.properties["value"] = make_splat(number, type_)
