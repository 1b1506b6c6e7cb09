"""Loads and stores of vectors; transfers pad elements outside of the memref.

Source: MLIR, `vector` dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ..base import (
    check,
    element_of,
    is_array,
    is_vector,
    map_of_dims,
    memref_type,
    shape_of,
    vector_type,
)
from ..operation import XetlOp
from ..property_values import Defaults
from ..type_rules import like


def check_base(base: SSAValue, indices: Sequence[SSAValue], vector: Attribute) -> None:
    """Check the number of indices, and that memref and vector have one element type."""
    type_ = memref_type(base)
    rank = type_.get_num_dims()
    check(rank == len(indices), "expected {} indices, found {}", rank, len(indices))
    element = type_.element_type
    fits = not is_vector(vector) or element in (vector, vector.element_type)
    check(fits, "the memref holds {}, the vector is {}", element, vector)


def _mask_of(vector: Attribute) -> Attribute:
    return builtin.VectorType(builtin.i1, shape_of(vector))


class _Access(XetlOp):
    """An access that moves the vector ``MOVED`` from or to ``base[indices]``."""

    MOVED = "result"

    base = irdl.operand_def(builtin.MemRefType)
    indices = irdl.var_operand_def(builtin.IndexType)

    def verify_(self) -> None:
        check_base(self.base, self.indices, getattr(self, self.MOVED).type)


class LoadOp(_Access, name="vector.load", traits=[MemoryReadEffect()]):
    """Load consecutive elements of the last dimension(s); all must be inside."""

    nontemporal = alignment = irdl.opt_prop_def(builtin.IntegerAttr)
    result = irdl.result_def(builtin.VectorType)

    assembly_format = (
        "$base custom<Indices>($indices) attr-dict `:` type($base) `,` type($result)"
    )


class StoreOp(_Access, name="vector.store", traits=[MemoryWriteEffect()]):
    """Store consecutive elements; all must be inside."""

    MOVED = "value"

    value = irdl.operand_def(builtin.VectorType)
    nontemporal = alignment = irdl.opt_prop_def(builtin.IntegerAttr)

    assembly_format = (
        "$value `,` $base custom<Indices>($indices) attr-dict `:` type($base) `,` "
        "type($value)"
    )


class MaskedloadOp(_Access, name="vector.maskedload", traits=[MemoryReadEffect()]):
    """Load the elements whose mask is set; the others come from ``pass_thru``."""

    mask = irdl.operand_def(like("pass_thru", _mask_of, base=builtin.VectorType))
    pass_thru = irdl.operand_def(builtin.VectorType)
    alignment = irdl.opt_prop_def(builtin.IntegerAttr)
    result = irdl.result_def(like("pass_thru", base=builtin.VectorType))

    assembly_format = (
        "$base custom<Indices>($indices) `,` $mask `,` $pass_thru attr-dict `:` "
        "type($base) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )


class MaskedstoreOp(_Access, name="vector.maskedstore", traits=[MemoryWriteEffect()]):
    """Store the elements whose mask is set."""

    MOVED = "value"

    mask = irdl.operand_def(like("value", _mask_of, base=builtin.VectorType))
    value = irdl.operand_def(builtin.VectorType)
    alignment = irdl.opt_prop_def(builtin.IntegerAttr)

    assembly_format = (
        "$base custom<Indices>($indices) `,` $mask `,` $value attr-dict `:` "
        "type($base) `,` type($mask) `,` type($value)"
    )


class GatherOp(_Access, name="vector.gather", traits=[MemoryReadEffect()]):
    """Load the elements at the offsets ``index_vec`` whose mask is set."""

    index_vec = irdl.operand_def(builtin.VectorType)
    mask = irdl.operand_def(like("pass_thru", _mask_of, base=builtin.VectorType))
    pass_thru = irdl.operand_def(builtin.VectorType)
    alignment = irdl.opt_prop_def(builtin.IntegerAttr)
    result = irdl.result_def(like("pass_thru", base=builtin.VectorType))

    assembly_format = (
        "$base custom<Indices>($indices) `[` $index_vec `]` `,` $mask `,` "
        "$pass_thru attr-dict `:` type($base) `,` type($index_vec) `,` type($mask) "
        "`,` type($pass_thru) `into` type($result)"
    )

    def verify_(self) -> None:
        super().verify_()
        shape, found = self.result.type.get_shape(), vector_type(self.index_vec)
        text = "the indices must have shape {}, found {}"
        check(found.get_shape() == shape, text, shape, found)


class ScatterOp(_Access, name="vector.scatter", traits=[MemoryWriteEffect()]):
    """Store the elements whose mask is set, at the offsets ``index_vec``."""

    MOVED = "value"

    index_vec = irdl.operand_def(builtin.VectorType)
    mask = irdl.operand_def(like("value", _mask_of, base=builtin.VectorType))
    value = irdl.operand_def(builtin.VectorType)
    alignment = irdl.opt_prop_def(builtin.IntegerAttr)

    assembly_format = (
        "$base custom<Indices>($indices) `[` $index_vec `]` `,` $mask `,` $value "
        "attr-dict `:` type($base) `,` type($index_vec) `,` type($mask) `,` "
        "type($value)"
    )


def _flags(values: Sequence[bool]) -> builtin.ArrayAttr[builtin.IntegerAttr]:
    return builtin.ArrayAttr([builtin.BoolAttr(int(x), builtin.i1) for x in values])


def _defaults(vector: str) -> Defaults:
    """Return defaults: a map of the last dimensions, and in_bounds of all false."""

    def make(types: Mapping[str, Attribute]) -> dict[str, Attribute]:
        rank = len(shape_of(types[vector]))
        # The map from memory to the vector that takes the last dimensions.
        memory_rank = len(shape_of(types["base"]))
        dims = range(memory_rank - rank, memory_rank)
        default = map_of_dims(dims, memory_rank)
        return {"permutation_map": default, "in_bounds": _flags([False] * rank)}

    return make


class _TransferOp(_Access, makers={"in_bounds": _flags}):
    permutation_map = irdl.prop_def(builtin.AffineMapAttr)
    in_bounds = irdl.prop_def(builtin.ArrayAttr)

    def verify_(self) -> None:
        super().verify_()
        vector = vector_type(getattr(self, self.MOVED))
        held = memref_type(self.base).element_type
        fits = held == vector.element_type
        check(fits, "the memref holds {}, the vector is {}", held, vector)
        flags = self.properties["in_bounds"]
        text = "in_bounds needs one entry for each dimension of the vector"
        check(is_array(flags) and len(flags.data) == vector.get_num_dims(), text)


class TransferReadOp(
    _TransferOp, name="vector.transfer_read", traits=[MemoryReadEffect()]
):
    """Load elements from ``indices`` on: ``padding`` if outside or masked off."""

    padding = irdl.operand_def(like("base", element_of))
    mask = irdl.opt_operand_def(like("result", _mask_of, base=builtin.VectorType))
    result = irdl.result_def(builtin.VectorType)

    DEFAULTS = _defaults("result")

    assembly_format = (
        "$base custom<Indices>($indices) `,` $padding (`,` $mask^)? attr-dict `:` "
        "type($base) `,` type($result)"
    )


class TransferWriteOp(
    _TransferOp, name="vector.transfer_write", traits=[MemoryWriteEffect()]
):
    """Store from ``indices`` on the elements that are inside and not masked off."""

    MOVED = "value"

    value = irdl.operand_def(builtin.VectorType)
    mask = irdl.opt_operand_def(like("value", _mask_of, base=builtin.VectorType))

    DEFAULTS = _defaults("value")

    assembly_format = (
        "$value `,` $base custom<Indices>($indices) (`,` $mask^)? attr-dict `:` "
        "type($value) `,` type($base)"
    )
