"""What happens while a kernel is compiled; part of it works on the host too."""

from __future__ import annotations

from xetl.language.operation import host_operation, operation

__all__ = [
    "cdiv",
    "next_power_of_2",
    "static_assert",
    "static_print",
    "static_range",
]


@host_operation
def cdiv(a: int, b: int) -> int:
    """``a / b``, rounded up; also on the host, as in grids."""
    return -(-a // b)


@host_operation
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below ``n``; also on the host."""
    return 1 if n <= 1 else 1 << (n - 1).bit_length()


@operation
def static_assert(cond: bool, msg: str = "") -> None:
    """Stop compiling with ``msg`` unless ``cond`` holds.

    Raises:
        ControlFlowError: it does not hold, or is not known when compiling.
    """
    ...


@operation
def static_print(*values: object) -> None:
    """Print while compiling: constants, and kinds and shapes of other values."""
    ...


@operation
def static_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """``range`` for a loop that is unrolled; its bounds are known when compiling."""
    ...
