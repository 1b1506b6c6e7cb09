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

from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, MemRefType, StringAttr, i64
from xdsl.ir import Dialect
from xdsl.irdl import operand_def, prop_def, result_def
from xdsl.traits import Pure

from xetl.dialects.base import check, ints_of
from xetl.dialects.operation import XetlOp, operations_of

from .traits import READS_AND_WRITES

# Names and numbers --------------------------------------------------------------------

DISPATCH, INVOKE = "xsmm_brgemm_dispatch", "xsmm_brgemm_invoke"
TILES = ("xsmm_intel_amx_tile_config_dispatch", "xsmm_intel_amx_tile_config_invoke")
FUNCTIONS = (DISPATCH, INVOKE, *TILES)
"""All that a kernel may call."""

_OURS = ("bf16_f32", "f64", "i8_i32", "i16_i32")
DATA_TYPES = {"f32": 1, "bf16": 2} | {name: 258 + i for i, name in enumerate(_OURS)}
"""Of A, B and C. Those of two types (the second is that of C) and f64 are ours, and no
numbers of libxsmm's."""

GEMM_FLAGS = {
    "none": 0,
    "beta_0": 4,
    "no_reset_tileconfig": 64,
    "no_setup_tileconfig": 128,
    "vnni_a": 2048,
    "vnni_b": 4096,
    "vnni_c": 8192,
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


# Operations ---------------------------------------------------------------------------


SIZES = ("m", "n", "k", "lda", "ldb", "ldc", "stride_a", "stride_b")
"""What a kernel is dispatched for."""


def _check_name(what: str, name: str, table: Mapping[str, int]) -> None:
    check(name in table, "{} `{}` is not one of {}", what, name, ", ".join(table))


class DispatchOp(XetlOp, traits=[Pure()]):
    """What all dispatches share: sizes, flags and a data type."""

    assembly_format = (
        "custom<Integers>($sizes) `flags` `=` custom<Words>($flags) "
        "`data_type` `=` custom<Word>($data_type) attr-dict"
    )

    sizes = prop_def(DenseArrayBase)
    data_type = prop_def(StringAttr)
    flags = prop_def(ArrayAttr[StringAttr])
    kernel = result_def(i64)

    def size_list(self) -> tuple[int, ...]:
        """The numbers, in the order of ``SIZES``."""
        return ints_of(self.sizes)

    def flag_names(self) -> tuple[str, ...]:
        """The flags."""
        found: Any = self.flags
        return tuple(one.data for one in found)

    def verify_(self) -> None:
        found = len(self.size_list())
        wanted = f"{len(SIZES)} numbers ({', '.join(SIZES)})"
        check(found == len(SIZES), "`{}` takes {}, found {}", self.name, wanted, found)
        _check_name("data_type", self.data_type.data, DATA_TYPES)
        for flag in self.flag_names():
            _check_name("flags", flag, GEMM_FLAGS)


class BrgemmDispatchOp(DispatchOp, name="xsmm.brgemm.dispatch"):
    """A kernel for a batch of products that are summed."""


class TileConfigDispatchOp(DispatchOp, name="xsmm.IntelAMXtileConfig.dispatch"):
    """A kernel that sets AMX up (``no_reset_tileconfig``) or gives it back."""


class BrgemmOp(XetlOp, name="xsmm.brgemm", traits=READS_AND_WRITES):
    """C += the sum of ``batch`` products, A and B moving by the dispatched strides."""

    kernel = operand_def(i64)
    a = b = c = operand_def(MemRefType)
    batch = operand_def(i64)
    data_type = prop_def(StringAttr)
    assembly_format = (
        "`(` `data_type` `=` custom<Word>($data_type) `,` operands `)` attr-dict `:` "
        "`(` type(operands) `)` `->` `(` `)`"
    )

    def verify_(self) -> None:
        _check_name("data_type", self.data_type.data, DATA_TYPES)


class TileConfigOp(XetlOp, name="xsmm.IntelAMXtileConfig", traits=READS_AND_WRITES):
    """Set AMX up for a kernel, or give it back; ``state`` keeps what was before.

    Which of the two it is the dispatched kernel says.
    """

    kernel = operand_def(i64)
    state = operand_def(MemRefType)


Xsmm = Dialect("xsmm", operations_of(__name__))
