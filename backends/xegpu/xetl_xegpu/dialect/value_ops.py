"""Products of matrices, changes of layout, matrices in shared memory, and ``xegpu_x``.

Upstream lacks the operations of ``xegpu_x``. They are printed in MLIR's generic form,
which `mlir-opt --allow-unregistered-dialect` reads. Source: MLIR 22, `xegpu` dialect.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl import irdl
from xdsl.dialects import builtin
from xdsl.ir import Attribute
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from xetl.dialects import base
from xetl.dialects.operation import XetlOp
from xetl.dialects.upstream.elementwise import bit_width
from xetl_xegpu.dialect.attributes import LayoutAttr, MemDescType, SliceAttr
from xetl_xegpu.dialect.nd_ops import elements_per_word
from xetl_xegpu.simt.program_ops import RecordOp


class DpasOp(XetlOp, name="xegpu.dpas", traits=[Pure()]):
    """``a @ b + acc`` on the matrix unit; without ``acc``, plus zero.

    a: (m, k); b: (k, n), or (k / f, n, f) with rows in groups of f in 32 bits; the
    result (m, n).  f32 operands are rounded to tf32.  Integers are signed, but for
    operands with the attribute ``a_unsigned`` or ``b_unsigned``, which are ours: MLIR
    has unsigned types for that, and none for one unsigned operand.  ``codes``, ours as
    well, says of which formats the floats are that i8 stand for: "e4m3xe5m2".
    """

    lhs = rhs = irdl.operand_def(builtin.VectorType)
    acc = irdl.opt_operand_def(builtin.VectorType)
    layout_a = layout_b = layout_cd = irdl.opt_prop_def(LayoutAttr | SliceAttr)
    result = irdl.result_def(builtin.VectorType)

    assembly_format = (
        "$lhs `,` $rhs (`,` $acc^)? attr-dict `:` type($lhs) `,` type($rhs) (`,` "
        "type($acc)^)? `->` type($result)"
    )

    def __init__(
        self,
        lhs: base.Value,
        rhs: base.Value,
        acc: base.Value | None = None,
        *,
        result_type: Attribute | None = None,
        a_unsigned: bool = False,
        b_unsigned: bool = False,
        codes: builtin.StringAttr | None = None,
        **others: Any,
    ) -> None:
        chosen = result_type if acc is None else base.type_of(acc)
        if chosen is None:
            raise TypeError("dpas needs an accumulator or the type of its result")
        super().__init__(lhs, rhs, acc, chosen, **others)
        signs = {"a_unsigned": a_unsigned, "b_unsigned": b_unsigned}
        self.attributes |= {
            name: builtin.UnitAttr() for name, is_set in signs.items() if is_set
        }
        if codes is not None:
            self.attributes["codes"] = codes

    @property
    def unsigned(self) -> tuple[bool, bool]:
        """Whether the integers of a, and those of b, are unsigned."""
        return "a_unsigned" in self.attributes, "b_unsigned" in self.attributes

    @property
    def codes(self) -> tuple[str, ...]:
        """The formats of a and b if they are codes of floats; otherwise ()."""
        found = self.attributes.get("codes")
        is_said = isinstance(found, builtin.StringAttr)
        return tuple(found.data.split("x")) if is_said else ()

    @property
    def packed(self) -> bool:
        """Whether rows of b are packed in groups (VNNI)."""
        return base.vector_type(self.rhs).get_num_dims() == 3

    def verify_(self) -> None:
        a, b = base.vector_type(self.lhs), base.vector_type(self.rhs)
        base.check(a.element_type == b.element_type, f"a is {a}, but b is {b}")
        result = base.vector_type(self.result)
        fits = self.acc is None or self.acc.type == result
        base.check(fits, "the accumulator is not of the type of the result, {}", result)
        rows, columns = _result_shape(a, b)
        fits = result.get_shape() == (rows, columns)
        base.check(fits, f"{a} by {b} gives {rows}x{columns}, found {result}")
        wanted = elements_per_word(a.element_type)
        fits = not self.packed or (wanted > 1 and b.get_shape()[2] == wanted)
        base.check(fits, "rows come in groups of {}, found {}", wanted, b)
        fits = not any(self.unsigned) or result.element_type == builtin.i32
        base.check(fits, "only integers can be unsigned")


def _result_shape(
    a: builtin.VectorType[Attribute], b: builtin.VectorType[Attribute]
) -> tuple[int, int]:
    """Return rows of a and columns of b, after a check of the inner dimension."""
    shape, other = a.get_shape(), b.get_shape()
    fits = len(shape) == 2 and len(other) in (2, 3)
    base.check(fits, f"a has rank 2, b 2 or 3, found {a} and {b}")
    k = other[0] * (other[2] if len(other) == 3 else 1)
    base.check(shape[1] == k, f"a has {shape[1]} columns, but b {k} rows")
    return shape[0], other[1]


# Extensions ---------------------------------------------------------------------------


class PrintOp(RecordOp, name="xegpu_x.print"):
    """`xetile.print` of scalars and fragments; `gpu.printf` cannot print vectors."""


class AssertOp(RecordOp, name="xegpu_x.assert"):
    """`xetile.assert`; the text of `cf.assert` cannot have values in it."""

    condition = irdl.operand_def(builtin.I1)


def mem_desc_type(value: base.Value) -> MemDescType:
    """Return the type of a matrix in shared memory, or raise TypeError."""
    found = base.type_of(value)
    if not isinstance(found, MemDescType):
        raise TypeError(f"expected a matrix in shared memory, found {found}")
    return found


class CreateMemDescOp(XetlOp, name="xegpu.create_mem_desc", traits=[Pure()]):
    """View a static memref of shared memory (space 3) as a matrix of any elements."""

    source = irdl.operand_def()
    mem_desc = irdl.result_def(MemDescType)

    assembly_format = "$source attr-dict `:` type($source) `->` type($mem_desc)"

    def verify_(self) -> None:
        source, matrix = self.source.type, mem_desc_type(self.mem_desc)
        is_static = base.is_memref(source) and source.has_static_shape()
        text = "a matrix in shared memory is a static memref, found {}"
        base.check(is_static, text, source)
        assert base.is_memref(source)
        have = prod(source.get_shape()) * bit_width(source.element_type)
        wanted = prod(matrix.shape) * bit_width(matrix.element_type)
        base.check(have == wanted, f"{source} has {have} bits, the matrix {wanted}")


class _MatrixOp(XetlOp):
    """Base class of accesses to a block of a matrix in shared memory.

    With ``subgroup_block_io`` one block message moves the block.
    """

    mem_desc = irdl.operand_def(MemDescType)
    offsets = irdl.var_operand_def(builtin.IndexType)
    const_offsets = irdl.prop_def(builtin.DenseArrayBase)
    subgroup_block_io = irdl.opt_prop_def(builtin.UnitAttr)
    layout = irdl.opt_prop_def(LayoutAttr | SliceAttr)

    mixed_offsets = base.MixedList("offsets", "const_offsets")
    """Row and column of the block."""

    def verify_block(self, block: Attribute) -> None:
        """Check that there are enough offsets, and that the block fits the matrix."""
        matrix, shape = mem_desc_type(self.mem_desc), base.shape_of(block)
        count, rank = len(self.mixed_offsets), len(matrix.shape)
        base.check(count == rank, "{} offsets for a matrix {}", count, matrix)
        element = matrix.element_type
        fits = base.element_type(block) == element
        base.check(fits, "the matrix holds {}, found {}", element, block)
        room = matrix.shape[-len(shape) :] if shape else ()
        fits = len(shape) <= rank and all(h <= r for h, r in zip(shape, room))
        base.check(fits, "{} is no block of {}", block, matrix)


_MATRIX = "$mem_desc `` custom<DynamicIndexList>($offsets, $const_offsets)"


class LoadMatrixOp(_MatrixOp, name="xegpu.load_matrix", traits=[MemoryReadEffect()]):
    """Load a block of a matrix in shared memory."""

    value = irdl.result_def()

    assembly_format = (
        f"{_MATRIX} prop-dict attr-dict `:` types($mem_desc, $offsets) `->` "
        "type($value)"
    )

    def verify_(self) -> None:
        self.verify_block(self.value.type)


class StoreMatrixOp(_MatrixOp, name="xegpu.store_matrix", traits=[MemoryWriteEffect()]):
    """Store a block of a matrix in shared memory."""

    value = irdl.operand_def()

    assembly_format = (
        f"$value `,` {_MATRIX} prop-dict attr-dict `:` "
        "types($value, $mem_desc, $offsets)"
    )

    def verify_(self) -> None:
        self.verify_block(self.value.type)
