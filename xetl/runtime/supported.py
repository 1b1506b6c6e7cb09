"""Which arrays kernels can read, in words of errors."""

from __future__ import annotations

from xetl.errors import LaunchError

SUPPORTED = "bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64"
"""Dtypes of arrays."""


def check_rank(rank: int, name: str) -> None:
    """Refuse arrays without dimensions.

    Raises:
        LaunchError: ``rank`` is 0.
    """
    if rank == 0:
        raise LaunchError(
            f"`{name}` is an array without dimensions",
            code="X0805",
            help=f"pass the number itself (`{name}.item()`), or an array of one element"
            f" (`{name}.reshape(1)`)",
        )
