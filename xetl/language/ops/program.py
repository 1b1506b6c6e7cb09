"""Which program this is; barriers; printing and checking while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from xetl.language.operation import operation

if TYPE_CHECKING:
    from xetl.language.values import Operand, Vector

__all__ = [
    "assume",
    "barrier",
    "device_assert",
    "device_print",
    "multiple_of",
    "num_programs",
    "program_id",
    "subgroup_id",
]


V = TypeVar("V", "Vector", int)


@operation
def program_id(axis: int) -> int:
    """Index of this program along a grid axis.

    Args:
        axis: 0, 1 or 2, known when compiling.

    Raises:
        TileShapeError: the axis is another.
    Source: MLIR gpu dialect, "gpu.block_id".
    """
    ...


@operation
def num_programs(axis: int) -> int:
    """Extent of the grid along ``axis`` (0, 1 or 2).

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
    """Index of this subgroup in its workgroup; only in subgroup-level kernels.

    Raises:
        ControlFlowError: the kernel is a workgroup-level one.
    """
    ...


@operation
def device_print(fmt: str, *values: Operand) -> None:
    """Print while the kernel runs.

    Args:
        fmt: text known when compiling, with one ``{}`` for each value, or with none:
            then the values follow it.
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

    The interpreter does, and fails as `device_assert` does where it does not hold.
    """
    ...


@operation
def multiple_of(v: V, n: int) -> V:
    """``v``, promised to be a multiple of ``n``, as `assume` promises.

    Of a number the compiler makes use of that; where the promise is broken it is
    rounded down.

    Args:
        v: an int, or a vector of integers.
        n: positive, known when compiling.
    """
    ...
