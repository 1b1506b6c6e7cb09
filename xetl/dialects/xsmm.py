"""The ``xsmm`` dialect of seed 003: dispatch and calls of micro-kernels.

``xsmm.brgemm.dispatch [m, n, k, lda, ldb, ldc, stride_a, stride_b] flags = (vnni_b)
data_type = bf16`` finds or makes a micro-kernel and returns its address, an i64.  Sizes
and strides are in elements, row-major.  A dispatch has no side effect, so passes may
move it anywhere.  ``xsmm.brgemm(data_type = bf16, %kernel, %a, %b, %c, %batch) : (i64,
memref<...>, ...) -> ()`` runs the micro-kernel, which adds to ``%c``, or sets ``%c`` if
the flags have ``beta_0``.

The numbers of flags are those of the C functions ``xsmm_*`` (libxsmm of 2025, as in
seed 003).  If a library uses other numbers, the code that serves the calls translates
them (native/).

Source: seed 003; libxsmm, ``libxsmm_typedefs.h``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, MemRefType, StringAttr, i64
from xdsl.ir import Dialect
from xdsl.irdl import operand_def, prop_def, result_def

from xetl.dialects.base import check, ints_of
from xetl.dialects.operation import PureOp, XetlOp, operations_of

from .traits import READS_AND_WRITES

# Names and numbers --------------------------------------------------------------------

DISPATCH, INVOKE = "xsmm_brgemm_dispatch", "xsmm_brgemm_invoke"
TILES = ("xsmm_intel_amx_tile_config_dispatch", "xsmm_intel_amx_tile_config_invoke")
FUNCTIONS = (DISPATCH, INVOKE, *TILES)
"""The names of all functions that a kernel may call."""

_OURS = ("bf16_f32", "f64", "i8_i32", "i16_i32")
DATA_TYPES = {"f32": 1, "bf16": 2} | {name: 258 + i for i, name in enumerate(_OURS)}
"""The numbers of the data types of A, B and C. The names of two types (the second one
is the type of C) and f64 are our additions, with numbers that libxsmm does not use."""

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
    """Return the flags combined to one number."""
    return sum(table[name] for name in set(names))


def gemm_flags_in_calls(names: Iterable[str]) -> int:
    """Return the flags of a product as a number for calls.

    libxsmm is column-major and the dialect is row-major, so libxsmm's A is our B.

    >>> gemm_flags_in_calls(["vnni_b", "no_reset_tileconfig"])
    2112
    """
    return number(GEMM_FLAGS, (_SWAPPED.get(name, name) for name in names))


def gemm_flags_of_calls(flags: int) -> list[str]:
    """Return the names of flags in a number; the inverse of `gemm_flags_in_calls`.

    >>> gemm_flags_of_calls(2112)
    ['no_reset_tileconfig', 'vnni_b']
    """
    names = [name for name, bit in GEMM_FLAGS.items() if bit & flags]
    return [_SWAPPED.get(name, name) for name in names] or ["none"]


# Operations ---------------------------------------------------------------------------


SIZES = ("m", "n", "k", "lda", "ldb", "ldc", "stride_a", "stride_b")
"""The sizes and strides that a kernel is dispatched for."""


def _check_name(what: str, name: str, table: Mapping[str, int]) -> None:
    check(name in table, "{} `{}` is not one of {}", what, name, ", ".join(table))


class DispatchOp(PureOp):
    """The base class of dispatches: sizes, flags and a data type."""

    assembly_format = (
        "custom<Integers>($sizes) `flags` `=` custom<Words>($flags) "
        "`data_type` `=` custom<Word>($data_type) attr-dict"
    )

    sizes = prop_def(DenseArrayBase)
    data_type = prop_def(StringAttr)
    flags = prop_def(ArrayAttr[StringAttr])
    kernel = result_def(i64)

    def size_list(self) -> tuple[int, ...]:
        """Return the numbers in the order of ``SIZES``."""
        return ints_of(self.sizes)

    def flag_names(self) -> tuple[str, ...]:
        """Return the names of the flags."""
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
    """Find a kernel that sums a batch of products."""


class TileConfigDispatchOp(DispatchOp, name="xsmm.IntelAMXtileConfig.dispatch"):
    """Find a kernel that sets up AMX (``no_reset_tileconfig``) or releases it."""


class BrgemmOp(XetlOp, name="xsmm.brgemm", traits=READS_AND_WRITES):
    """C += the sum of ``batch`` products; A and B advance by the dispatched strides."""

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
    """Set up AMX for a kernel, or release it, depending on the dispatched kernel.

    ``state`` keeps the previous configuration.
    """

    kernel = operand_def(i64)
    state = operand_def(MemRefType)


Xsmm = Dialect("xsmm", operations_of(__name__))
