"""Which program this is; barriers; printing and checking, also while it is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from xetl.language.operation import host_operation, operation

if TYPE_CHECKING:
    from xetl.language.values import Operand, Vector


__all__: list[str] = ["assume", "barrier", "cdiv", "device_assert", "device_print"]
__all__ += ["multiple_of", "next_power_of_2", "num_programs", "program_id"]
__all__ += ["static_assert", "static_print", "static_range", "subgroup_id"]


V = TypeVar("V", "Vector", int)


@operation
def program_id(axis: int) -> int:
    """Return the index of this program along a grid axis.

    Args:
        axis: 0, 1 or 2, known when compiling.

    Raises:
        TileShapeError: the axis is another.
    Source: MLIR gpu dialect, "gpu.block_id".
    """
    ...


@operation
def num_programs(axis: int) -> int:
    """Return the extent of the grid along ``axis`` (0, 1 or 2).

    Raises:
        TileShapeError: the axis is another.
    Source: MLIR gpu dialect, "gpu.grid_dim".
    """
    ...


@operation
def barrier() -> None:
    """Wait for all subgroups of the workgroup; orders SLM and global accesses."""
    ...


@operation
def subgroup_id() -> int:
    """Return the index of this subgroup in its workgroup; for subgroup-level kernels.

    Raises:
        ControlFlowError: the kernel is a workgroup-level one.
    """
    ...


@operation
def device_print(fmt: str, *values: Operand) -> None:
    """Print while the kernel runs.

    Args:
        fmt: a text known when compiling, with one ``{}`` for each value. Without any
            ``{}`` the values follow the text.
        values: scalars or vectors.
    """
    ...


@operation
def device_assert(cond: bool | Operand, msg: str | None = None) -> None:
    """Stop the kernel with ``msg`` unless ``cond`` holds, in all lanes of a mask."""
    ...


@operation
def assume(cond: bool | Operand) -> None:
    """Promise that ``cond`` holds, in all lanes of a mask; compiled code trusts it.

    The interpreter checks it, and fails as `device_assert` does if it does not hold.
    """
    ...


@operation
def multiple_of(v: V, n: int) -> V:
    """Return ``v`` and promise, as by `assume`, that it is a multiple of ``n``.

    The compiler uses the promise for a number. A number that breaks it is rounded down.

    Args:
        v: an int, or a vector of integers.
        n: positive, known when compiling.
    """
    ...


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
