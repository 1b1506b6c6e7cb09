"""Vectors in registers: shapes and elements; and the `vector` dialect of all its files.

Source: MLIR, `vector` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, VectorType
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def

from ..base import (
    Index,
    Ints,
    MixedList,
    check,
    element_type,
    ints_of,
    reshaped,
    shape_of,
    vector_type,
)
from ..operation import PureOp, operations_of
from ..reduction_kinds import CombiningKindAttr
from ..type_rules import like
from . import vector_elements as elements
from . import vector_memory as memory
from . import vector_reduce as reduce
from .elementwise import bit_width
from .vector_elements import *
from .vector_memory import *
from .vector_reduce import *


class _ConversionOp(PureOp):
    """``op %a : type to type``."""

    source = operand_def()
    result = result_def(VectorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"


class BroadcastOp(_ConversionOp, name="vector.broadcast"):
    """Broadcast a scalar or a vector, whose trailing dimensions match or are 1."""

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        text = "a broadcast keeps the element type, found {} to {}"
        check(element_type(source) == result.element_type, text, source, result)
        old, new = shape_of(source), result.get_shape()
        fits = len(old) <= len(new) and all(
            a in (1, b) for a, b in zip(reversed(old), reversed(new))
        )
        check(fits, "{} cannot be broadcast to {}", source, result)


class ShapeCastOp(_ConversionOp, name="vector.shape_cast"):
    """Change the shape; the elements stay in row-major order."""

    def verify_(self) -> None:
        source, result = vector_type(self.source), self.result.type
        kept = [(v.element_type, v.element_count()) for v in (source, result)]
        text = "a shape_cast keeps elements and their number, found {} to {}"
        check(kept[0] == kept[1], text, source, result)


class BitcastOp(_ConversionOp, name="vector.bitcast"):
    """Read the same bits as other elements; only the last dimension changes."""

    def verify_(self) -> None:
        source, result = vector_type(self.source), self.result.type
        bits = [v.element_count() * bit_width(v.element_type) for v in (source, result)]
        fits = bits[0] == bits[1] and source.get_shape()[:-1] == result.get_shape()[:-1]
        text = "a bitcast keeps the bits of each row, found {} to {}"
        check(fits, text, source, result)


class StepOp(PureOp, name="vector.step"):
    """The vector 0, 1, 2, ..."""

    result = result_def(VectorType)

    assembly_format = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        found = self.result.type
        fits = found.get_num_dims() == 1 and isinstance(found.element_type, IndexType)
        check(fits, "vector.step gives a vector of index of rank 1, found {}", found)


def _permuted(source: Attribute, permutation: Attribute) -> Attribute:
    shape = shape_of(source)
    return reshaped(source, [shape[dim] for dim in ints_of(permutation)])


class TransposeOp(PureOp, name="vector.transpose"):
    """Permute: dimension i of the result is ``permutation[i]`` of the source."""

    source = operand_def(VectorType)
    permutation = prop_def(DenseArrayBase)
    result = result_def(like("source", "permutation", _permuted, base=VectorType))

    assembly_format = (
        "$source `,` custom<Integers>($permutation) attr-dict `:` type($source) "
        "`to` type($result)"
    )

    dims = Ints("permutation")
    """The permutation."""

    def verify_(self) -> None:
        rank, dims = vector_type(self.source).get_num_dims(), list(self.dims)
        text = "expected a permutation of {} dimensions, found {}"
        check(sorted(dims) == list(range(rank)), text, rank, dims)


def _part_type(source: Attribute, count: int) -> Attribute:
    """Return the type at a position of ``count`` indices: an element or a vector."""
    part = reshaped(source, shape_of(source)[count:])
    return part if part.get_shape() else part.element_type


def _part_at(source: Attribute, position: Attribute) -> Attribute:
    return _part_type(source, len(ints_of(position)))


class ExtractOp(PureOp, name="vector.extract"):
    """Extract an element, or the smaller vector at a position."""

    source = operand_def(VectorType)
    dynamic_position = var_operand_def(IndexType)
    static_position = prop_def(DenseArrayBase)
    result = result_def(like("source", "static_position", _part_at, is_binding=False))

    assembly_format = (
        "$source `` custom<DynamicIndexList>($dynamic_position, $static_position) "
        "attr-dict `:` type($result) `from` type($source)"
    )

    position = MixedList("dynamic_position", "static_position", "position")

    def verify_(self) -> None:
        _check_position(vector_type(self.source), self.position, self.result.type)


def _check_position(
    source: VectorType[Attribute], position: Sequence[Index], part: Attribute
) -> None:
    shape = source.get_shape()
    known = ((i, n) for i, n in zip(position, shape) if isinstance(i, int))
    fits = len(position) <= len(shape) and all(0 <= i < extent for i, extent in known)
    check(fits, "position {} does not lie in {}", list(position), source)
    expected = _part_type(source, len(position))
    # MLIR also allows a vector of one element in place of a scalar.
    one = reshaped(source, [1])
    text = "at {} indices of {} is {}, found {}"
    check(part in (expected, one), text, len(position), source, expected, part)


class InsertOp(PureOp, name="vector.insert"):
    """Replace the part of a vector at a position."""

    value = operand_def()
    dest = operand_def(VectorType)
    dynamic_position = var_operand_def(IndexType)
    static_position = prop_def(DenseArrayBase)
    result = result_def(like("dest", base=VectorType))

    assembly_format = (
        "$value `,` $dest `` custom<DynamicIndexList>($dynamic_position, "
        "$static_position) attr-dict `:` type($value) `into` type($dest)"
    )

    position = MixedList("dynamic_position", "static_position", "position")

    def verify_(self) -> None:
        _check_position(vector_type(self.dest), self.position, self.value.type)


Vector = Dialect(
    "vector",
    operations_of(elements, memory, reduce, __name__),
    [CombiningKindAttr, reduce.IteratorTypeAttr],
)
