"""Operations that run a dispatched kernel on memrefs.

``xsmm.brgemm(data_type = bf16, %kernel, %a, %b, %c, %batch) : (i64, memref<...>, ...)
-> ()`` adds to (or, with ``beta_0``, sets) ``%c``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import MemRefType, StringAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.operation import XetlOp
from xetl_cpu.xsmm.flags import BINARY_KINDS, DATA_TYPES, UNARY_KINDS

_CALL = (
    "`(` `data_type` `=` custom<Word>($data_type) `,` operands `)` attr-dict `:` "
    "`(` type(operands) `)` `->` `(` `)`"
)


class InvokeOp(XetlOp):
    """What all invocations share: the kernel first, then what it works on.

    ``MEMREFS`` says what the operands behind the kernel are; with ``HAS_BATCH`` the
    number of products follows.
    """

    MEMREFS: ClassVar[tuple[str, ...]] = ()
    HAS_BATCH: ClassVar[bool] = False
    KINDS: ClassVar[Mapping[str, int] | None] = None

    kernel = operand_def(i64)
    arguments = var_operand_def(Attribute)
    data_type = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = _CALL

    @property
    def memrefs(self) -> Sequence[SSAValue]:
        """The operands named by ``MEMREFS``."""
        return self.arguments[: len(self.MEMREFS)]

    @property
    def batch(self) -> SSAValue | None:
        """How many products are summed."""
        return self.arguments[-1] if self.HAS_BATCH else None

    def verify_(self) -> None:
        """Check the operands' number and types."""
        wanted = [*self.MEMREFS, *(["batch"] if self.HAS_BATCH else [])]
        if len(self.arguments) != len(wanted):
            raise VerifyException(
                f"`{self.name}` takes kernel, {', '.join(wanted)};"
                f" found {len(self.arguments) + 1} operands"
            )
        for name, value in zip(self.MEMREFS, self.arguments):
            if not isinstance(value.type, MemRefType):
                raise VerifyException(f"`{name}` must be a memref, found {value.type}")
        if self.batch is not None and self.batch.type != i64:
            raise VerifyException(f"batch must be an i64, found {self.batch.type}")
        if self.data_type.data not in DATA_TYPES:
            known = ", ".join(DATA_TYPES)
            raise VerifyException(f"data_type `{self.data_type.data}`: not of {known}")
        if self.KINDS is not None and self.kind_name() not in self.KINDS:
            known = ", ".join(self.KINDS)
            raise VerifyException(f"kind `{self.kind_name()}` is not one of {known}")

    def kind_name(self) -> str:
        """What a unary or binary operation does."""
        found = self.properties["kind"]
        assert isinstance(found, StringAttr)
        return found.data


class GemmOp(InvokeOp, name="xsmm.gemm"):
    """C += A @ B."""

    MEMREFS = ("a", "b", "c")


class BrgemmOp(InvokeOp, name="xsmm.brgemm"):
    """C += the sum of ``batch`` products, A and B moving by the dispatched strides."""

    MEMREFS = ("a", "b", "c")
    HAS_BATCH = True


class FusedBrgemmOp(InvokeOp, name="xsmm.fused_brgemm"):
    """C = unary(binary(d, C + the sum of products))."""

    MEMREFS = ("a", "b", "c", "d")
    HAS_BATCH = True


class UnaryOp(InvokeOp, name="xsmm.unary"):
    """A matrix made from another."""

    MEMREFS = ("input", "output")
    KINDS: ClassVar[Mapping[str, int] | None] = UNARY_KINDS

    kind = prop_def(StringAttr)
    assembly_format = "custom<Word>($kind)" + _CALL


class BinaryOp(InvokeOp, name="xsmm.binary"):
    """A matrix made from two others."""

    MEMREFS = ("lhs", "rhs", "output")
    KINDS: ClassVar[Mapping[str, int] | None] = BINARY_KINDS

    kind = prop_def(StringAttr)
    assembly_format = "custom<Word>($kind)" + _CALL


class TileConfigOp(XetlOp, name="xsmm.IntelAMXtileConfig"):
    """Set AMX up for a kernel, or give it back; ``state`` keeps what was before.

    Which of the two it is the dispatched kernel says.
    """

    kernel = operand_def(i64)
    state = operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
