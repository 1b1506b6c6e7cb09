"""Views of memory with other sizes, strides, offsets or types; nothing is copied.

Source: MLIR, `memref` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, SSAValue

from ..base import (
    Index,
    MixedList,
    check,
    dims_of_map,
    element_of,
    int_array,
    ints_of,
    is_array,
    is_memref,
    map_of_dims,
    memref_type,
)
from ..operation import PureOp
from ..type_rules import like


def _elements_of(type_: Attribute) -> Attribute | None:
    return getattr(type_, "element_type", None)


class CastOp(PureOp, name="memref.cast"):
    """A view of the same memory with a compatible type, which may be unranked."""

    source = irdl.operand_def(builtin.MemRefType | builtin.UnrankedMemRefType)
    result = irdl.result_def(builtin.MemRefType | builtin.UnrankedMemRefType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        source: Attribute = self.source.type
        result: Attribute = self.result.type
        text = "a cast keeps the element type, found {} to {}"
        check(_elements_of(source) == _elements_of(result), text, source, result)
        if not is_memref(source) or not is_memref(result):
            return
        pairs = list(zip(source.get_shape(), result.get_shape()))
        fits = source.get_num_dims() == result.get_num_dims() and all(
            builtin.DYNAMIC_INDEX in pair or pair[0] == pair[1] for pair in pairs
        )
        check(fits, "shapes do not agree: {} to {}", source, result)


class _View(PureOp):
    source = irdl.operand_def(builtin.MemRefType)
    result = irdl.result_def(builtin.MemRefType)


class MemorySpaceCastOp(_View, name="memref.memory_space_cast"):
    """A view of the same memory in another memory space."""

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"


class ExtractAlignedPointerAsIndexOp(
    PureOp, name="memref.extract_aligned_pointer_as_index"
):
    """The address of the first element of the buffer."""

    source = irdl.operand_def(builtin.MemRefType)
    result = irdl.result_def(builtin.IndexType)

    assembly_format = "$source `:` type($source) `->` type($result) attr-dict"


def _metadata(type_: Attribute) -> list[Attribute]:
    if not is_memref(type_):
        raise TypeError(f"expected a memref, found {type_}")
    buffer = builtin.MemRefType(type_.element_type, [], memory_space=type_.memory_space)
    return [buffer, *[builtin.IndexType()] * (1 + 2 * type_.get_num_dims())]


class ExtractStridedMetadataOp(PureOp, name="memref.extract_strided_metadata"):
    """Buffer, offset, sizes and strides of a memref."""

    source = irdl.operand_def(builtin.MemRefType)
    metadata = irdl.var_result_def(like("source", _metadata))

    assembly_format = "$source `:` type($source) `->` type($metadata) attr-dict"

    @property
    def offset(self) -> SSAValue:
        """The offset from the start of the buffer, in elements."""
        return self.results[1]

    @property
    def sizes(self) -> Sequence[SSAValue]:
        """The extent of each dimension."""
        return self.results[2 : 2 + self._rank]

    @property
    def strides(self) -> Sequence[SSAValue]:
        """The stride of each dimension, in elements."""
        return self.results[2 + self._rank :]

    @property
    def _rank(self) -> int:
        return (len(self.results) - 2) // 2


class _StridedView(_View):
    """A view given by offsets, sizes and strides."""

    offsets = sizes = strides = irdl.var_operand_def(builtin.IndexType)
    static_offsets = irdl.prop_def(builtin.DenseArrayBase)
    static_sizes = irdl.prop_def(builtin.DenseArrayBase)
    static_strides = irdl.prop_def(builtin.DenseArrayBase)

    mixed_offsets = MixedList("offsets", "static_offsets")
    mixed_sizes = MixedList("sizes", "static_sizes")
    mixed_strides = MixedList("strides", "static_strides")

    @property
    def mixed_lists(self) -> tuple[tuple[Index, ...], ...]:
        """Offsets, sizes and strides."""
        return self.mixed_offsets, self.mixed_sizes, self.mixed_strides

    def verify_element(self) -> None:
        """Check that the view keeps the element type of the source."""
        keeps = element_of(self.source.type) == self.result.type.element_type
        check(keeps, "a view keeps the element type")


class ReinterpretCastOp(_StridedView, name="memref.reinterpret_cast"):
    """A view with a new offset, sizes and strides, which replace the old ones."""

    assembly_format = (
        "$source `to` `offset` `` `:` custom<DynamicIndexList>($offsets, "
        "$static_offsets) `` `,` `sizes` `` `:` custom<DynamicIndexList>($sizes, "
        "$static_sizes) `` `,` `strides` `` `:` custom<DynamicIndexList>($strides, "
        "$static_strides) attr-dict `:` type($source) `to` type($result)"
    )

    @classmethod
    def of(
        cls,
        source: SSAValue,
        offset: Index,
        sizes: Sequence[Index],
        strides: Sequence[Index],
        space: Attribute | None = None,
    ) -> Self:
        """Return a view; ints among the numbers become static parts of its type.

        Args:
            source: a memref.
            offset: in elements, from the origin of the memory.
            sizes: one for each dimension.
            strides: one for each dimension, in elements.
            space: the memory space; by default that of the source.
        """
        old = memref_type(source)
        shape = [n if isinstance(n, int) else builtin.DYNAMIC_INDEX for n in sizes]
        first, *steps = (n if isinstance(n, int) else None for n in (offset, *strides))
        layout = builtin.StridedLayoutAttr(steps, first)
        type_ = builtin.MemRefType(
            old.element_type, shape, layout, space or old.memory_space
        )
        return cls(source, [offset], sizes, strides, type_)

    def verify_(self) -> None:
        rank, lists = self.result.type.get_num_dims(), self.mixed_lists
        fits = [len(each) for each in lists] == [1, rank, rank]
        check(fits, "expected one offset, {} sizes and {} strides", rank, rank)
        self.verify_element()


class SubviewOp(_StridedView, name="memref.subview"):
    """A view of a part of a memref."""

    assembly_format = (
        "$source `` custom<DynamicIndexList>($offsets, $static_offsets) "
        "custom<DynamicIndexList>($sizes, $static_sizes) "
        "custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` "
        "type($source) `to` type($result)"
    )

    @property
    def kept_dims(self) -> list[int]:
        """The dimensions that the result keeps; others have the static size 1."""
        shape, kept = self.result.type.get_shape(), list[int]()
        spare = len(self.mixed_sizes) - len(shape)
        for dim, size in enumerate(self.mixed_sizes):
            wanted = shape[len(kept)] if len(kept) < len(shape) else None
            if spare > 0 and size == 1 and wanted != 1:
                spare -= 1
            else:
                kept.append(dim)
        return kept

    def verify_(self) -> None:
        rank = memref_type(self.source).get_num_dims()
        fits = {len(each) for each in self.mixed_lists} == {rank}
        check(fits, "expected {} offsets, sizes and strides", rank)
        fits = len(self.kept_dims) == self.result.type.get_num_dims()
        check(fits, "only dimensions of size 1 are dropped, found {}", self.result.type)
        self.verify_element()


class ViewOp(_View, name="memref.view"):
    """A view of bytes, from a byte offset on, as elements of another type."""

    byte_shift = irdl.operand_def(builtin.IndexType)
    sizes = irdl.var_operand_def(builtin.IndexType)

    assembly_format = (
        "$source `[` $byte_shift `]` `` custom<Indices>($sizes) attr-dict `:` "
        "type($source) `to` type($result)"
    )


def _permutation(dims: Sequence[int]) -> builtin.AffineMapAttr:
    return map_of_dims(dims, len(dims))


class TransposeOp(_View, name="memref.transpose", makers={"permutation": _permutation}):
    """A view with its dimensions in another order."""

    permutation = irdl.prop_def(builtin.AffineMapAttr)

    assembly_format = (
        "$source custom<Map>($permutation) attr-dict `:` type($source) `to` "
        "type($result)"
    )

    @property
    def dims(self) -> tuple[int, ...]:
        """The permutation: result dimension i is ``dims[i]`` of the source."""
        return dims_of_map(self.permutation)

    def verify_(self) -> None:
        rank = memref_type(self.source).get_num_dims()
        text = "expected a permutation of {} dimensions, found {}"
        check(sorted(self.dims) == list(range(rank)), text, rank, self.permutation)


_Lists = Sequence[Sequence[int]]


def groups_attribute(groups: _Lists) -> builtin.ArrayAttr[Attribute]:
    """Return the attribute for groups of dimensions; the inverse of `groups_of`."""
    return builtin.ArrayAttr(map(int_array, groups))


def groups_of(attribute: Attribute) -> list[list[int]]:
    """Return, for each dimension of the shorter shape, those of the longer shape."""
    parts = attribute.data if is_array(attribute) else ()
    return [[*ints_of(part)] for part in parts if is_array(part)]


def _check_groups(
    groups: _Lists,
    long: builtin.MemRefType[Attribute],
    short: builtin.MemRefType[Attribute],
) -> None:
    flat = [dim for group in groups for dim in group]
    is_whole = flat == list(range(long.get_num_dims()))
    fits = is_whole and len(groups) == short.get_num_dims()
    text = "{} does not group the dimensions of {} to those of {}"
    check(fits, text, [*map(list, groups)], long, short)
    for group, extent in zip(groups, short.get_shape()):
        parts = [long.get_shape()[dim] for dim in group]
        is_unknown = builtin.DYNAMIC_INDEX in (*parts, extent)
        fits = is_unknown or prod(parts) == extent
        check(fits, "extents {} do not make {}", parts, extent)
    check(long.element_type == short.element_type, "the element type is kept")


class _ReshapeOp(PureOp, makers={"reassociation": groups_attribute}):
    src = irdl.operand_def(builtin.MemRefType)
    reassociation = irdl.prop_def(builtin.ArrayAttr)
    result = irdl.result_def(builtin.MemRefType)

    @property
    def groups(self) -> list[list[int]]:
        """For each dimension of the shorter shape, those of the longer shape."""
        return groups_of(self.reassociation)


class CollapseShapeOp(_ReshapeOp, name="memref.collapse_shape"):
    """A view that merges groups of contiguous dimensions."""

    assembly_format = (
        "$src custom<Groups>($reassociation) attr-dict `:` type($src) `into` "
        "type($result)"
    )

    def verify_(self) -> None:
        _check_groups(self.groups, memref_type(self.src), memref_type(self.result))


class ExpandShapeOp(_ReshapeOp, name="memref.expand_shape"):
    """A view that splits dimensions; the last one of a group varies fastest."""

    output_shape = irdl.var_operand_def(builtin.IndexType)
    static_output_shape = irdl.prop_def(builtin.DenseArrayBase)

    assembly_format = (
        "$src custom<Groups>($reassociation) `output_shape` "
        "custom<DynamicIndexList>($output_shape, $static_output_shape) attr-dict "
        "`:` type($src) `into` type($result)"
    )

    sizes = MixedList("output_shape", "static_output_shape")
    """The extents of the result."""

    def verify_(self) -> None:
        _check_groups(self.groups, memref_type(self.result), memref_type(self.src))
        fits = len(self.sizes) == memref_type(self.result).get_num_dims()
        check(fits, "expected an extent for each dimension of {}", self.result.type)


class AssumeAlignmentOp(PureOp, name="memref.assume_alignment"):
    """The same memory, with the promise of an address that ``alignment`` divides."""

    memref = irdl.operand_def(builtin.MemRefType)
    alignment = irdl.prop_def(builtin.IntegerAttr[builtin.I32])
    result = irdl.opt_result_def(like("memref", base=builtin.MemRefType))

    assembly_format = "$memref `,` $alignment attr-dict `:` type($memref)"
