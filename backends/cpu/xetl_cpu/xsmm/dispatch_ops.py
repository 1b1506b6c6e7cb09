"""Operations that find (or make) a micro-kernel: an i64, its address.

``xsmm.brgemm.dispatch [m, n, k, lda, ldb, ldc, stride_a, stride_b] flags = (vnni_b)
data_type = bf16``.  Sizes and strides in elements, row-major.  Dispatching has no
effect but the time it takes, so it may move anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr, i64
from xdsl.irdl import (
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from xetl.dialects.base import ints_of
from xetl.dialects.operation import XetlOp
from xetl_cpu.xsmm.flags import (
    BINARY_FLAGS,
    BINARY_KINDS,
    DATA_TYPES,
    GEMM_FLAGS,
    UNARY_FLAGS,
    UNARY_KINDS,
)

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
