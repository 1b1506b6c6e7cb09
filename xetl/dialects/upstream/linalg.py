"""Operations on whole memrefs, which texts have: products, copies, fills.

Source: MLIR, `linalg` dialect. The pipelines of tpp-mlir start from these operations.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, MemRefType
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import operand_def, opt_result_def, prop_def, region_def
from xdsl.traits import IsTerminator

from ..base import check, ints_of, is_memref, memref_type
from ..operation import XetlOp, operations_of


class MatmulOp(XetlOp, name="linalg.matmul"):
    """``c += a @ b`` of matrices (m, k) and (k, n)."""

    a = b = c = operand_def()
    result = opt_result_def()

    assembly_format = (
        "attr-dict `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)`"
        " `outs` `(` $c `:` type($c) `)` (`->` type($result)^)?"
    )

    def verify_(self) -> None:
        is_memory = all(is_memref(each.type) for each in self.operands)
        check(is_memory and self.result is None, "it takes memrefs: bufferize tensors")
        types = [memref_type(each) for each in self.operands]
        check(all(each.get_num_dims() == 2 for each in types), "it takes matrices")
        (m, k), (k_of_b, n), c = (each.get_shape() for each in types)
        for known, other in ((k, k_of_b), (m, c[0]), (n, c[1])):
            check(known == other or -1 in (known, other), "extents do not agree")


class CopyOp(XetlOp, name="linalg.copy"):
    """Copy all elements of a memref to another one of the same shape."""

    source = to = operand_def(MemRefType)

    assembly_format = (
        "attr-dict `ins` `(` $source `:` type($source) `)`"
        " `outs` `(` $to `:` type($to) `)`"
    )

    def verify_(self) -> None:
        source, to = memref_type(self.source), memref_type(self.to)
        same = source.element_type == to.element_type
        check(same, "it copies elements of one type")
        check(source.get_num_dims() == to.get_num_dims(), "ranks do not agree")
        for known, other in zip(source.get_shape(), to.get_shape()):
            check(known == other or -1 in (known, other), "extents do not agree")


class FillOp(XetlOp, name="linalg.fill"):
    """Set all elements to one number."""

    value = operand_def(Attribute)
    to = operand_def(MemRefType)

    assembly_format = (
        "attr-dict `ins` `(` $value `:` type($value) `)`"
        " `outs` `(` $to `:` type($to) `)`"
    )


class TransposeOp(XetlOp, name="linalg.transpose"):
    """Permute dimensions: dimension i of ``to`` is ``permutation[i]`` of ``source``."""

    source = to = operand_def(MemRefType)
    permutation = prop_def(DenseArrayBase)

    assembly_format = (
        "`ins` `(` $source `:` type($source) `)` `outs` `(` $to `:` type($to) `)`"
        " `permutation` `=` custom<Integers>($permutation) attr-dict"
    )

    def verify_(self) -> None:
        source, to = memref_type(self.source), memref_type(self.to)
        order = ints_of(self.permutation)
        check(sorted(order) == [*range(source.get_num_dims())], "it is no permutation")
        shape = [source.get_shape()[dim] for dim in order]
        check(shape == [*to.get_shape()], "extents do not agree")
        check(source.element_type == to.element_type, "it moves elements of one type")


class YieldOp(XetlOp, name="linalg.yield", traits=[IsTerminator()]):
    """Give the new value of an element of the output."""

    value = operand_def()

    assembly_format = "$value attr-dict `:` type($value)"


class GenericOp(XetlOp, name="linalg.generic"):
    """A loop nest over the elements of three memrefs, indexed by affine maps."""

    a = b = c = operand_def(MemRefType)
    indexing_maps = iterator_types = prop_def(ArrayAttr)
    body = region_def("single_block")

    assembly_format = (
        "attr-dict `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)`"
        " `outs` `(` $c `:` type($c) `)` $body"
    )


Linalg = Dialect("linalg", operations_of(__name__))
