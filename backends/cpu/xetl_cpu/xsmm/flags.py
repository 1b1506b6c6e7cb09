"""Names of the ``xsmm`` dialect and the numbers that stand for them in calls.

The numbers are those of the C functions ``xsmm_*`` (libxsmm of 2025, as seed 003 has
them).  A library may use others: who serves the calls translates (native/).

Source: seed 003; libxsmm, ``libxsmm_typedefs.h``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
