"""The ``xsmm`` dialect of seed 003: calls of micro-kernels that are dispatched first.

``xsmm.brgemm.dispatch [m, n, k, lda, ldb, ldc, stride_a, stride_b] flags = (vnni_b)
data_type = bf16`` finds (or makes) a micro-kernel: an i64, its address.  Sizes and
strides in elements, row-major.  Dispatching has no effect but the time it takes, so it
may move anywhere.  ``xsmm.brgemm(data_type = bf16, %kernel, %a, %b, %c, %batch) : (i64,
memref<...>, ...) -> ()`` runs it: it adds to (or, with ``beta_0``, sets) ``%c``.

The numbers of flags are those of the C functions ``xsmm_*`` (libxsmm of 2025, as seed
003 has them).  A library may use others: who serves the calls translates (native/).

Source: seed 003; libxsmm, ``libxsmm_typedefs.h``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, MemRefType, StringAttr, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import ints_of
from xetl.dialects.operation import XetlOp, operations_of

# Names and numbers --------------------------------------------------------------------


DATA_TYPES = {"f32": 1, "bf16": 2, "bf16_f32": 258}
"""Of A, B and C; ``bf16_f32`` is ours and no number of libxsmm's: C is f32."""

GEMM_FLAGS = {
    "none": 0,
    "beta_0": 4,
    "no_reset_tileconfig": 64,
    "no_setup_tileconfig": 128,
    "vnni_a": 2048,
    "vnni_b": 4096,
    "vnni_c": 8192,
}
UNARY_KINDS = {
    "none": 0,
    "identity": 1,
    "zero": 2,
    "relu": 5,
    "vnni_2": 28,
    "transpose": 29,
}
UNARY_FLAGS = {"none": 0, "bcast_row": 2, "bcast_col": 4, "bcast_scalar": 8}
BINARY_KINDS = {"none": 0, "add": 1, "mul": 2, "sub": 3, "div": 4}
BINARY_FLAGS = {
    "none": 0,
    "bcast_row_in0": 1,
    "bcast_row_in1": 2,
    "bcast_col_in0": 4,
    "bcast_col_in1": 8,
    "bcast_scalar_in0": 16,
    "bcast_scalar_in1": 32,
}

_SWAPPED = {"vnni_a": "vnni_b", "vnni_b": "vnni_a"}


def number(table: Mapping[str, int], names: Iterable[str]) -> int:
    """All flags in one number."""
    return sum(table[name] for name in set(names))


def gemm_flags_in_calls(names: Iterable[str]) -> int:
    """Flags of a product as a call has them.

    libxsmm is column-major, so its A is the B of the dialect, which is row-major.

    >>> gemm_flags_in_calls(["vnni_b", "no_reset_tileconfig"])
    2112
    """
    return number(GEMM_FLAGS, (_SWAPPED.get(name, name) for name in names))


def gemm_flags_of_calls(flags: int) -> list[str]:
    """The names of what `gemm_flags_in_calls` puts in a number.

    >>> gemm_flags_of_calls(2112)
    ['no_reset_tileconfig', 'vnni_b']
    """
    names = [name for name, bit in GEMM_FLAGS.items() if bit & flags]
    return [_SWAPPED.get(name, name) for name in names] or ["none"]


# Dispatches ---------------------------------------------------------------------------


GEMM_SIZES = ("m", "n", "k", "lda", "ldb", "ldc")
BRGEMM_SIZES = (*GEMM_SIZES, "stride_a", "stride_b")


_SIZES = "custom<Integers>($sizes)"
_FLAGS = "`flags` `=` custom<Words>($flags)"
_TYPE = "`data_type` `=` custom<Word>($data_type) attr-dict"


class DispatchOp(XetlOp):
    """What all dispatches share: sizes, flags and a data type.

    ``SIZES`` names the numbers, ``FLAGS`` the lists of flags with their tables,
    ``KINDS`` what stands in front (or, fused, behind) of the numbers.
    """

    assembly_format = f"{_SIZES} {_FLAGS} {_TYPE}"

    SIZES: ClassVar[tuple[str, ...]] = ()
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {"flags": GEMM_FLAGS}
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {}

    sizes = prop_def(DenseArrayBase)
    data_type = prop_def(StringAttr)
    flags = prop_def(ArrayAttr[StringAttr])
    kernel = result_def(i64)
    traits = traits_def(Pure())

    def size_list(self) -> tuple[int, ...]:
        """The numbers, in the order of ``SIZES``."""
        return ints_of(self.sizes)

    def names_of(self, name: str) -> tuple[str, ...]:
        """The flags of one list."""
        found: Any = self.properties[name]
        return tuple(one.data for one in found)

    def kind_of(self, name: str) -> str:
        """A kind's name."""
        found: Any = self.properties[name]
        return found.data

    def verify_(self) -> None:
        """Check that there are as many numbers as names, and all names are known."""
        if len(self.size_list()) != len(self.SIZES):
            raise VerifyException(
                f"`{self.name}` takes {len(self.SIZES)} numbers"
                f" ({', '.join(self.SIZES)}), found {len(self.size_list())}"
            )
        _check_name("data_type", self.data_type.data, DATA_TYPES)
        for name, table in self.FLAGS.items():
            for flag in self.names_of(name):
                _check_name(name, flag, table)
        for name, table in self.KINDS.items():
            _check_name(name, self.kind_of(name), table)


def _check_name(what: str, name: str, table: Mapping[str, int]) -> None:
    if name not in table:
        raise VerifyException(f"{what} `{name}` is not one of {', '.join(table)}")


class GemmDispatchOp(DispatchOp, name="xsmm.gemm.dispatch"):
    """A kernel for one product."""

    SIZES = GEMM_SIZES


class BrgemmDispatchOp(DispatchOp, name="xsmm.brgemm.dispatch"):
    """A kernel for a batch of products that are summed."""

    SIZES = BRGEMM_SIZES


class TileConfigDispatchOp(DispatchOp, name="xsmm.IntelAMXtileConfig.dispatch"):
    """A kernel that sets AMX up (``no_reset_tileconfig``) or gives it back."""

    SIZES = BRGEMM_SIZES


class FusedBrgemmDispatchOp(DispatchOp, name="xsmm.fused_brgemm.dispatch"):
    """A BRGEMM followed by a binary and then a unary operation on C."""

    SIZES = BRGEMM_SIZES
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "flags": GEMM_FLAGS,
        "binary_flags": BINARY_FLAGS,
        "unary_flags": UNARY_FLAGS,
    }
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {
        "binary_kind": BINARY_KINDS,
        "unary_kind": UNARY_KINDS,
    }

    binary_flags = prop_def(ArrayAttr[StringAttr])
    unary_flags = prop_def(ArrayAttr[StringAttr])
    binary_kind = prop_def(StringAttr)
    unary_kind = prop_def(StringAttr)
    assembly_format = (
        f"{_SIZES} ` ` `[` custom<Word>($binary_kind) `,` "
        f"custom<Word>($unary_kind) `]` {_FLAGS} "
        "`binary_flags` `=` custom<Words>($binary_flags) "
        f"`unary_flags` `=` custom<Words>($unary_flags) {_TYPE}"
    )


class _KindDispatchOp(DispatchOp):
    """One kind of operation, in front of the numbers."""

    kind = prop_def(StringAttr)
    assembly_format = f"custom<Word>($kind) {_SIZES} {_FLAGS} {_TYPE}"


class UnaryDispatchOp(_KindDispatchOp, name="xsmm.unary.dispatch"):
    """A kernel from one matrix to another."""

    SIZES = ("m", "n", "ldi", "ldo")
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {"flags": UNARY_FLAGS}
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {"kind": UNARY_KINDS}


class BinaryDispatchOp(_KindDispatchOp, name="xsmm.binary.dispatch"):
    """A kernel from two matrices to a third."""

    SIZES = ("m", "n", "ldi_lhs", "ldi_rhs", "ldo")
    FLAGS: ClassVar[Mapping[str, Mapping[str, int]]] = {"flags": BINARY_FLAGS}
    KINDS: ClassVar[Mapping[str, Mapping[str, int]]] = {"kind": BINARY_KINDS}


# Calls --------------------------------------------------------------------------------


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


Xsmm = Dialect("xsmm", operations_of(__name__))
