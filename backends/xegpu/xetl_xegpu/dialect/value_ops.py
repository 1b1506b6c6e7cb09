"""Products of matrices, changes of layout, and ``xegpu_x``: what upstream lacks.

Operations of ``xegpu_x`` print in MLIR's generic form, which `mlir-opt
--allow-unregistered-dialect` takes.  Source: MLIR 22, `xegpu` dialect.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import I1, UnitAttr, VectorType, i32
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from xetl.dialects.base import (
    Value,
    check,
    type_of,
    vector_type,
)
from xetl.dialects.operation import XetlOp
from xetl.dialects.type_rules import like
from xetl_xegpu.simt.program_ops import RecordOp

from .attributes import LayoutAttr, SliceAttr
from .block_ops import elements_per_word

_LAYOUT = LayoutAttr | SliceAttr


class DpasOp(XetlOp, name="xegpu.dpas"):
    """``a @ b + acc`` on the matrix unit; without ``acc``, plus zero.

    a: (m, k); b: (k, n), or (k / f, n, f) with rows in groups of f in 32 bits; the
    result (m, n).  f32 operands are rounded to tf32.  Integers are signed, but for
    operands with the attribute ``a_unsigned`` or ``b_unsigned``, which are ours: MLIR
    has unsigned types for that, and none for one unsigned operand.
    """

    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    acc = opt_operand_def(VectorType)
    layout_a = opt_prop_def(_LAYOUT)
    layout_b = opt_prop_def(_LAYOUT)
    layout_cd = opt_prop_def(_LAYOUT)
    result = result_def(VectorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs (`,` $acc^)? attr-dict `:` type($lhs) `,` type($rhs) (`,` "
        "type($acc)^)? `->` type($result)"
    )

    def __init__(
        self,
        lhs: Value,
        rhs: Value,
        acc: Value | None = None,
        *,
        result_type: Attribute | None = None,
        a_unsigned: bool = False,
        b_unsigned: bool = False,
        **others: Any,
    ) -> None:
        chosen = result_type if acc is None else type_of(acc)
        if chosen is None:
            raise TypeError("dpas needs an accumulator or the type of its result")
        super().__init__(lhs, rhs, acc, chosen, **others)
        signs = {"a_unsigned": a_unsigned, "b_unsigned": b_unsigned}
        self.attributes |= {
            name: UnitAttr() for name, is_set in signs.items() if is_set
        }

    @property
    def unsigned(self) -> tuple[bool, bool]:
        """Whether the integers of a, and of b, have no sign."""
        return "a_unsigned" in self.attributes, "b_unsigned" in self.attributes

    @property
    def packed(self) -> bool:
        """Whether rows of b come in groups (VNNI)."""
        return vector_type(self.rhs).get_num_dims() == 3

    def verify_(self) -> None:
        """Check shapes and element types against each other."""
        a, b = vector_type(self.lhs), vector_type(self.rhs)
        check(a.element_type == b.element_type, f"a is {a}, but b is {b}")
        result = vector_type(self.result)
        check(
            self.acc is None or self.acc.type == result,
            f"the accumulator is not of the type of the result, {result}",
        )
        rows, columns = _result_shape(a, b)
        fits = result.get_shape() == (rows, columns)
        check(fits, f"{a} by {b} gives {rows}x{columns}, found {result}")
        wanted = elements_per_word(a.element_type)
        check(
            not self.packed or (wanted > 1 and b.get_shape()[2] == wanted),
            f"rows come in groups of {wanted}, found {b}",
        )
        check(
            not any(self.unsigned) or result.element_type == i32,
            "only integers can be unsigned",
        )


def _result_shape(
    a: VectorType[Attribute], b: VectorType[Attribute]
) -> tuple[int, int]:
    """Rows of a and columns of b, which must agree on what is summed over."""
    shape, other = a.get_shape(), b.get_shape()
    fits = len(shape) == 2 and len(other) in (2, 3)
    check(fits, f"a has rank 2, b 2 or 3, found {a} and {b}")
    k = other[0] * (other[2] if len(other) == 3 else 1)
    check(shape[1] == k, f"a has {shape[1]} columns, but b {k} rows")
    return shape[0], other[1]


class ConvertLayoutOp(XetlOp, name="xegpu.convert_layout"):
    """The same value, split in another way."""

    source = operand_def(VectorType)
    input_layout = prop_def(_LAYOUT)
    target_layout = prop_def(_LAYOUT)
    result = result_def(like("source", base=VectorType))

    traits = traits_def(Pure())
    assembly_format = "$source prop-dict attr-dict `:` type($source)"

    def verify_(self) -> None:
        """Check that the value stays what it is."""
        check(self.source.type == self.result.type, "convert_layout keeps the type")


# Extensions ---------------------------------------------------------------------------


class PrintOp(RecordOp, name="xegpu_x.print"):
    """`xetile.print` of scalars and fragments: `gpu.printf` knows no vectors."""

    arguments = var_operand_def()


class AssertOp(RecordOp, name="xegpu_x.assert"):
    """`xetile.assert`: the text of `cf.assert` has no values in it."""

    condition = operand_def(I1)
    arguments = var_operand_def()


XeGPUExtensions = Dialect("xegpu_x", [PrintOp, AssertOp])
