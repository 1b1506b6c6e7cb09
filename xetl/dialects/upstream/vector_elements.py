"""Operations on elements of vectors: masks, slices, shuffles, outer products.

`splat`, `extractelement` and `insertelement` belong to earlier versions of MLIR, but
texts still use them.  Source: MLIR, `vector` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typing_extensions import Unpack
from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute

from ..base import (
    Ints,
    Value,
    check,
    element_type,
    int_array,
    ints_of,
    is_vector,
    reshaped,
    shape_of,
    vector_type,
)
from ..operation import Common, PureOp
from ..reduction_kinds import CombiningKindAttr
from ..type_rules import like


class _MaskOp(PureOp):
    """A mask given by bounds."""

    def verify_(self) -> None:
        op: Any = self
        type_, rank = op.result.type, len(op.bounds)
        fits = type_.element_type == builtin.i1 and type_.get_num_dims() == rank
        check(fits, "expected a vector of i1 of rank {}, found {}", rank, type_)


class CreateMaskOp(_MaskOp, name="vector.create_mask"):
    """True where each coordinate is below its bound; bounds may be out of range."""

    bounds = irdl.var_operand_def(builtin.IndexType)
    result = irdl.result_def(builtin.VectorType)

    assembly_format = "$bounds attr-dict `:` type($result)"


class ConstantMaskOp(_MaskOp, name="vector.constant_mask"):
    """True where each coordinate is below its constant bound."""

    mask_dim_sizes = irdl.prop_def(builtin.DenseArrayBase)
    result = irdl.result_def(builtin.VectorType)

    assembly_format = "custom<Integers>($mask_dim_sizes) attr-dict `:` type($result)"

    bounds = Ints("mask_dim_sizes")
    """The bounds."""


def _check_inside(
    whole: builtin.VectorType[Attribute], offsets: Sequence[int], sizes: Sequence[int]
) -> None:
    fits = len(offsets) <= whole.get_num_dims() and all(
        offset >= 0 and offset + size <= extent
        for offset, size, extent in zip(offsets, sizes, whole.get_shape())
    )
    text = "offsets {} with sizes {} leave {}"
    check(fits, text, list(offsets), list(sizes), whole)


def _slice(type_: Attribute, sizes: Attribute) -> Attribute:
    taken = ints_of(sizes)
    return reshaped(type_, [*taken, *shape_of(type_)[len(taken) :]])


class ExtractStridedSliceOp(PureOp, name="vector.extract_strided_slice"):
    """Extract a slice of ``sizes`` from ``offsets`` on; MLIR has only strides of 1."""

    source = irdl.operand_def(builtin.VectorType)
    offset_list = irdl.prop_def(builtin.ArrayAttr, prop_name="offsets")
    size_list = irdl.prop_def(builtin.ArrayAttr, prop_name="sizes")
    stride_list = irdl.prop_def(builtin.ArrayAttr, prop_name="strides")
    result = irdl.result_def(
        like("source", "size_list", _slice, base=builtin.VectorType, is_binding=False)
    )

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(
        self,
        source: Value,
        offsets: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int] | None = None,
        **common: Unpack[Common],
    ) -> None:
        lists = map(int_array, (offsets, sizes, strides or [1] * len(sizes)))
        super().__init__(source, *lists, **common)

    offsets = Ints("offset_list")
    """The start of the slice in the leading dimensions."""

    sizes = Ints("size_list")
    """The extents of the slice in the leading dimensions."""

    strides = Ints("stride_list")
    """The strides of the slice in the leading dimensions."""

    def verify_(self) -> None:
        type_ = vector_type(self.source)
        check(min(self.strides) > 0, "strides must be positive")
        taken = [step * (n - 1) + 1 for n, step in zip(self.sizes, self.strides)]
        _check_inside(type_, self.offsets, taken)
        expected = _slice(type_, self.size_list)
        found = self.result.type
        check(found == expected, "the slice is {}, found {}", expected, found)


class InsertStridedSliceOp(PureOp, name="vector.insert_strided_slice"):
    """Replace the elements of ``dest`` from ``offsets`` on; all strides are 1."""

    value = dest = irdl.operand_def(builtin.VectorType)
    offset_list = irdl.prop_def(builtin.ArrayAttr, prop_name="offsets")
    stride_list = irdl.prop_def(builtin.ArrayAttr, prop_name="strides")
    result = irdl.result_def(like("dest", base=builtin.VectorType))

    assembly_format = "$value `,` $dest attr-dict `:` type($value) `into` type($dest)"

    def __init__(
        self,
        value: Value,
        dest: Value,
        offsets: Sequence[int],
        **common: Unpack[Common],
    ) -> None:
        strides = int_array([1] * vector_type(value).get_num_dims())
        place = int_array(offsets)
        super().__init__(value, dest, offset_list=place, stride_list=strides, **common)

    offsets = Ints("offset_list")
    """The position of the value: an offset for each dimension of ``dest``."""

    def verify_(self) -> None:
        part, whole = vector_type(self.value), vector_type(self.dest)
        rank, found = whole.get_num_dims(), len(self.offsets)
        lead = rank - part.get_num_dims()
        check(found == rank and lead >= 0, "expected {} offsets, found {}", rank, found)
        _check_inside(whole, self.offsets, [*[1] * lead, *part.get_shape()])
        check(set(ints_of(self.stride_list)) <= {1}, "strides must be 1")


def _shuffled(rows: Attribute, mask: Attribute) -> Attribute:
    return reshaped(rows, [len(ints_of(mask)), *shape_of(rows)[1:]])


class ShuffleOp(PureOp, name="vector.shuffle"):
    """Select rows of two vectors in the order of ``mask``; -1 is an undefined row."""

    v1 = v2 = irdl.operand_def(builtin.VectorType)
    mask = irdl.prop_def(builtin.DenseArrayBase)
    result = irdl.result_def(like("v1", "mask", _shuffled, base=builtin.VectorType))

    assembly_format = (
        "$v1 `,` $v2 custom<Integers>($mask) attr-dict `:` type($v1) `,` type($v2)"
    )

    def verify_(self) -> None:
        rows = sum(vector_type(v).get_shape()[0] for v in (self.v1, self.v2))
        fits = all(-1 <= row < rows for row in ints_of(self.mask))
        check(fits, "the mask names rows outside 0..{}", rows - 1)


class FromElementsOp(PureOp, name="vector.from_elements"):
    """Make a vector of scalars in row-major order."""

    elements = irdl.var_operand_def(like("result", element_type))
    result = irdl.result_def(builtin.VectorType)

    assembly_format = "$elements attr-dict `:` type($result)"

    def verify_(self) -> None:
        expected = self.result.type.element_count()
        found = len(self.elements)
        check(expected == found, "expected {} elements, found {}", expected, found)


def _with_last(type_: Attribute, times: int, by: int) -> builtin.VectorType[Attribute]:
    if not is_vector(type_) or not type_.get_shape():
        raise TypeError(f"expected a vector with a dimension, found {type_}")
    *outer, last = type_.get_shape()
    return reshaped(type_, [*outer, last * times // by])


def _doubled(type_: Attribute) -> Attribute:
    return _with_last(type_, 2, 1)


def _halves(type_: Attribute) -> list[Attribute]:
    return [_with_last(type_, 1, 2)] * 2


def _product_type(left: Attribute, right: Attribute) -> builtin.VectorType[Attribute]:
    return reshaped(left, [*shape_of(left), *shape_of(right)])


def _elements(type_: Attribute) -> list[Attribute]:
    if not is_vector(type_):
        raise TypeError(f"expected a vector, found {type_}")
    return [type_.element_type] * type_.element_count()


class InterleaveOp(PureOp, name="vector.interleave"):
    """Interleave the elements of two vectors along the last dimension."""

    lhs = irdl.operand_def(builtin.VectorType)
    rhs = irdl.operand_def(like("lhs", base=builtin.VectorType))
    result = irdl.result_def(like("lhs", _doubled, base=builtin.VectorType))

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"


class DeinterleaveOp(PureOp, name="vector.deinterleave"):
    """Separate the elements at even and odd positions of the last dimension."""

    source = irdl.operand_def(builtin.VectorType)
    res = irdl.var_result_def(like("source", _halves, base=builtin.VectorType))

    assembly_format = (
        "$source attr-dict `:` type($source) `->` custom<OneType>(type($res))"
    )

    def verify_(self) -> None:
        type_ = vector_type(self.source)
        check(type_.get_shape()[-1] % 2 == 0, "{} has an odd number of elements", type_)


class OuterproductOp(PureOp, name="vector.outerproduct"):
    """``lhs[i] * rhs[j] + acc[i, j]``; a scalar ``rhs`` scales ``lhs``."""

    lhs = irdl.operand_def(builtin.VectorType)
    rhs = irdl.operand_def()
    acc = irdl.opt_operand_def(
        like("lhs", "rhs", _product_type, base=builtin.VectorType)
    )
    kind = irdl.opt_prop_def(CombiningKindAttr)
    result = irdl.result_def(like("lhs", "rhs", _product_type, base=builtin.VectorType))

    assembly_format = (
        "$lhs `,` $rhs (`,` $acc^)? attr-dict `:` type($lhs) `,` type($rhs)"
    )

    def verify_(self) -> None:
        left, right = vector_type(self.lhs), self.rhs.type
        ranks = [left.get_num_dims()]
        if is_vector(right):
            ranks.append(right.get_num_dims())
        check(set(ranks) == {1}, "both sides have rank 1, found {} and {}", left, right)
        check(element_type(right) == left.element_type, "element types differ")


class SplatOp(PureOp, name="vector.splat"):
    """Set all elements to one number; now `vector.broadcast`."""

    input = irdl.operand_def(like("result", element_type))
    result = irdl.result_def(builtin.VectorType)

    assembly_format = "$input attr-dict `:` type($result)"


class ExtractelementOp(PureOp, name="vector.extractelement"):
    """Extract one element of a vector of rank 1 or 0; now `vector.extract`."""

    vector = irdl.operand_def(builtin.VectorType)
    position = irdl.opt_operand_def()
    result = irdl.result_def(like("vector", element_type))

    assembly_format = (
        "$vector `[` ($position^ `:` type($position))? `]` attr-dict `:` type($vector)"
    )


class InsertelementOp(PureOp, name="vector.insertelement"):
    """Replace one element of a vector of rank 1 or 0; now `vector.insert`."""

    source = irdl.operand_def(like("dest", element_type))
    dest = irdl.operand_def(builtin.VectorType)
    position = irdl.opt_operand_def()
    result = irdl.result_def(like("dest", base=builtin.VectorType))

    assembly_format = (
        "$source `,` $dest `[` ($position^ `:` type($position))? `]` attr-dict `:` "
        "type($dest)"
    )


class ToElementsOp(PureOp, name="vector.to_elements"):
    """Return all elements of a vector as scalars, in row-major order."""

    source = irdl.operand_def(builtin.VectorType)
    elements = irdl.var_result_def(like("source", _elements))

    assembly_format = "$source attr-dict `:` type($source)"
